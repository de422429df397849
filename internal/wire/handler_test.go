package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/datadriven"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/sns"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/tracing"
	"godwit.dev/godwit/internal/wire"
)

const requestID = "00000000-0000-4000-8000-000000000001"

// newHandler serves a few operations that answer what they were asked.
func newHandler(adjust func(*wire.Options)) *wire.Handler {
	queues := wire.SQS(
		api.Op("CreateQueue", func(_ context.Context, call *api.Call, in *sqs.CreateQueueInput) (*sqs.CreateQueueOutput, error) {
			for name, value := range in.Attributes {
				if kind, err := strconv.Atoi(value); err == nil && name == "fail" {
					return nil, fault.New(fault.Kind(kind), "")
				}
			}
			return &sqs.CreateQueueOutput{QueueUrl: fmt.Sprintf("%s/%s/%s?region=%s&key=%s&a=%v&t=%v",
				call.Host, call.Account, *in.QueueName, call.Region, call.AccessKey, in.Attributes, in.Tags)}, nil
		}),
		api.Op("ListQueues", func(context.Context, *api.Call, *sqs.ListQueuesInput) (*sqs.ListQueuesOutput, error) {
			return &sqs.ListQueuesOutput{QueueUrls: []string{"http://localhost/1/a", "http://localhost/1/b"}, NextToken: "n"}, nil
		}),
		api.Op("SendMessage", func(_ context.Context, _ *api.Call, in *sqs.SendMessageInput) (*sqs.SendMessageOutput, error) {
			switch in.MessageBody {
			case "panic":
				panic("a secret")
			case "internal":
				return nil, errors.New("a secret")
			case "gone":
				return nil, context.Canceled
			case "missing":
				return nil, fault.New(fault.QueueDoesNotExist, "")
			case "invalid":
				return nil, fault.New(fault.InvalidParameter, "<bad> & \"worse\"")
			}
			return &sqs.SendMessageOutput{MessageId: in.QueueUrl, MD5OfMessageBody: fmt.Sprint(len(in.MessageBody), len(in.MessageAttributes))}, nil
		}),
		api.Op("SendMessageBatch", func(_ context.Context, call *api.Call, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			out := new(sqs.SendMessageBatchOutput)
			for _, e := range in.Entries {
				if e.MessageBody == "" {
					code, text, sender := call.Describe(fault.New(fault.InvalidParameter, "no body"))
					out.Failed = append(out.Failed, sqs.BatchResultErrorEntry{Id: e.Id, Code: code, Message: text, SenderFault: sender})
					continue
				}
				out.Successful = append(out.Successful, sqs.SendMessageBatchResultEntry{Id: e.Id, MessageId: "m-" + e.Id, MD5OfMessageBody: e.MessageBody})
			}
			return out, nil
		}),
		api.Op("ReceiveMessage", func(_ context.Context, _ *api.Call, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			if in.MaxNumberOfMessages == nil {
				return &sqs.ReceiveMessageOutput{}, nil
			}
			text := "v"
			return &sqs.ReceiveMessageOutput{Messages: []sqs.Message{{
				MessageId: "m", Body: "<b>\r\n", Attributes: api.Pairs{{Name: "SenderId", Value: "1"}},
				MessageAttributes: map[string]sqs.MessageAttributeValue{"a": {DataType: "String", StringValue: &text}},
			}}}, nil
		}),
		api.Op("DeleteMessage", func(context.Context, *api.Call, *sqs.DeleteMessageInput) (*sqs.DeleteMessageOutput, error) {
			return nil, nil
		}),
		api.Op("GetQueueAttributes", func(_ context.Context, _ *api.Call, in *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
			return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"url": in.QueueUrl, "names": strings.Join(in.AttributeNames, ",")}}, nil
		}),
	)
	topics := wire.SNS(
		api.Op("CreateTopic", func(_ context.Context, call *api.Call, in *sns.CreateTopicInput) (*sns.CreateTopicOutput, error) {
			var tags []struct{ key, value string }
			for _, tag := range in.Tags {
				tags = append(tags, struct{ key, value string }{tag.Key, *tag.Value})
			}
			return &sns.CreateTopicOutput{TopicArn: fmt.Sprintf("%s:%s:%s %v %v", call.Region, call.Account, *in.Name, in.Attributes, tags)}, nil
		}),
		api.Op("ListTopics", func(context.Context, *api.Call, *sns.ListTopicsInput) (*sns.ListTopicsOutput, error) {
			return &sns.ListTopicsOutput{Topics: []sns.Topic{{TopicArn: "a"}, {TopicArn: "b"}}}, nil
		}),
		api.Op("DeleteTopic", func(context.Context, *api.Call, *sns.DeleteTopicInput) (*sns.DeleteTopicOutput, error) {
			return nil, fault.New(fault.NotFound, "")
		}),
		api.Op("GetTopicAttributes", func(context.Context, *api.Call, *sns.GetTopicAttributesInput) (*sns.GetTopicAttributesOutput, error) {
			return &sns.GetTopicAttributesOutput{Attributes: map[string]string{"Policy": `{"a":1}`}}, nil
		}),
		api.Op("Publish", func(_ context.Context, _ *api.Call, in *sns.PublishInput) (*sns.PublishOutput, error) {
			return &sns.PublishOutput{MessageId: fmt.Sprint(*in.Message, len(in.MessageAttributes), *in.MessageAttributes["n"].StringValue)}, nil
		}),
		api.Op("Unsubscribe", func(context.Context, *api.Call, *sns.UnsubscribeInput) (*sns.UnsubscribeOutput, error) {
			return nil, nil
		}),
	)
	options := wire.Options{
		Services: []*wire.Service{queues, topics}, Logger: slog.New(slog.DiscardHandler), Clock: clock.System,
		DefaultRegion: "us-east-1", DefaultAccount: "000000000000", NewRequestID: func() string { return requestID },
	}
	if adjust != nil {
		adjust(&options)
	}
	return wire.NewHandler(options)
}

// TestGolden runs the requests in testdata. A request is its first line, its
// headers, an empty line (written as a lone dot) and its body, whose line feeds
// do not count.
func TestGolden(t *testing.T) {
	handler := newHandler(nil)
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "request" {
				t.Fatalf("unknown command %q", d.Cmd)
			}
			head, body, _ := strings.Cut(d.Input+"\n", "\n.\n")
			body = strings.ReplaceAll(body, "\n", "")
			head = strings.TrimSuffix(head, "\n") + "\n"
			if !strings.Contains(head, "Host: ") {
				head += "Host: localhost:4566\n"
			}
			if body != "" {
				head += fmt.Sprintf("Content-Length: %d\n", len(body))
			}
			r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(head, "\n", "\r\n") + "\r\n" + body)))
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return show(w)
		})
	})
}

func show(w *httptest.ResponseRecorder) string {
	var b strings.Builder
	fmt.Fprintln(&b, w.Code)
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range w.Header() {
			if !yield(name) {
				return
			}
		}
	}) {
		if name == "Content-Length" {
			if w.Header()[name][0] != strconv.Itoa(w.Body.Len()) {
				fmt.Fprintln(&b, "wrong Content-Length")
			}
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(w.Header()[name], " | "))
	}
	if w.Body.Len() > 0 {
		fmt.Fprintf(&b, "%s\n", w.Body)
	}
	return b.String()
}

func post(body string, target string) *http.Request {
	r := httptest.NewRequest("POST", "http://localhost:4566/", strings.NewReader(body))
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	return r
}

// A panic and an unclassified error are logged with the request's id, and
// neither their text nor the message's body reaches the caller.
func TestInternalFailures(t *testing.T) {
	for _, body := range []string{"panic", "internal"} {
		var log bytes.Buffer
		var seen wire.Observation
		var of string
		handler := newHandler(func(o *wire.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			o.Observe = func(service, operation string) wire.Observer {
				return func(x wire.Observation) { seen, of = x, service+" "+operation }
			}
		})
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, post(`{"QueueUrl":"q","MessageBody":"`+body+`"}`, "AmazonSQS.SendMessage"))
		if w.Code != 500 || strings.Contains(w.Body.String(), "secret") ||
			!strings.Contains(w.Body.String(), "We encountered an internal error. Please try again.") {
			t.Errorf("%s: %s", body, show(w))
		}
		if !strings.Contains(log.String(), requestID) || !strings.Contains(log.String(), "a secret") {
			t.Errorf("%s: the log says %s", body, &log)
		}
		if seen.Status != 500 || seen.Code != "InternalError" || of != "sqs SendMessage" {
			t.Errorf("%s: observed %s %+v", body, of, seen)
		}
	}
}

// Whoever hangs up is answered like one to whom the server is not there, and is not
// counted as one: that would be a fault of the server.
func TestCallerIsGone(t *testing.T) {
	var seen wire.Observation
	handler := newHandler(func(o *wire.Options) {
		o.Observe = func(string, string) wire.Observer { return func(x wire.Observation) { seen = x } }
	})
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, post(`{"QueueUrl":"q","MessageBody":"gone"}`, "AmazonSQS.SendMessage"))
	if w.Code != http.StatusServiceUnavailable || seen.Status != w.Code || seen.Code != wire.Canceled {
		t.Errorf("%s, observed %+v", show(w), seen)
	}
}

func TestLogNeverHoldsBodies(t *testing.T) {
	var log bytes.Buffer
	handler := newHandler(func(o *wire.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	handler.ServeHTTP(httptest.NewRecorder(), post(`{"QueueUrl":"q","MessageBody":"confidential"}`, "AmazonSQS.SendMessage"))
	handler.ServeHTTP(httptest.NewRecorder(), post(`{"QueueUrl":"q","MessageBody":"confidential"`, "AmazonSQS.SendMessage"))
	got := log.String()
	if strings.Contains(got, "confidential") || strings.Count(got, "operation=SendMessage status=200") != 1 ||
		strings.Count(got, "status=400 code=MalformedInput") != 1 {
		t.Errorf("the log says %s", got)
	}
}

// endless is a body that never ends and counts what is read of it.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return len(p), nil
}

func TestBodyLimit(t *testing.T) {
	handler := newHandler(func(o *wire.Options) { o.MaxBody = 100_000 })
	for name, length := range map[string]int64{"declared": 100_001, "undeclared": -1, "understated": 100_000} {
		t.Run(name, func(t *testing.T) {
			body := new(endless)
			r := httptest.NewRequest("POST", "http://localhost/", io.NopCloser(body))
			r.ContentLength = length
			r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != 413 || !strings.Contains(w.Body.String(), "RequestEntityTooLarge") {
				t.Errorf("answered %s", show(w))
			}
			if body.read > 400_000 || name == "declared" && body.read > 0 {
				t.Errorf("%d bytes were read", body.read)
			}
		})
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, post(`{"QueueUrl":"q","MessageBody":"`+strings.Repeat("x", 99_960)+`"}`, "AmazonSQS.SendMessage"))
	if w.Code != 200 {
		t.Errorf("a body within the limit: %s", show(w))
	}
	handler.ServeHTTP(w, post("Action=SendMessage&QueueUrl=q&MessageBody="+strings.Repeat("x", 100_000), ""))
	if !strings.Contains(w.Body.String(), "<Code>RequestEntityTooLarge</Code>") {
		t.Errorf("a form over the limit: %s", show(w))
	}
}

func TestBrokenBody(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		answer string
	}{
		{io.ErrUnexpectedEOF, 400, "could not be read"},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, 408, `"com.amazon.coral.service#RequestTimeoutException"`},
	} {
		r := post("", "AmazonSQS.SendMessage")
		r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(`{"Que`), iotest.ErrReader(test.err))), 50
		w := httptest.NewRecorder()
		newHandler(nil).ServeHTTP(w, r)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.answer) {
			t.Errorf("%v: %s", test.err, show(w))
		}
	}
}

func TestRequestIDsAreDistinctUUIDs(t *testing.T) {
	handler := newHandler(func(o *wire.Options) { o.NewRequestID = nil })
	seen := make(map[string]bool)
	for range 100 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, post(`{}`, "AmazonSQS.ListQueues"))
		id := w.Header()["x-amzn-RequestId"][0] //nolint:staticcheck // as AWS spells it
		if len(id) != 36 || id[14] != '4' || !strings.ContainsRune("89ab", rune(id[19])) || seen[id] {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
}

// Over a real connection, over a pooled buffer, many times: answers do not mix.
func TestOverHTTP(t *testing.T) {
	server := httptest.NewServer(newHandler(nil))
	defer server.Close()
	for n := range 50 {
		queue := fmt.Sprintf("queue-%d", n)
		r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL, strings.NewReader(`{"QueueUrl":"`+queue+`","MessageBody":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if want := `{"MD5OfMessageBody":"1 0","MessageId":"` + queue + `"}`; err != nil || string(body) != want {
			t.Fatalf("%s, %v; want %s", body, err, want)
		}
		if answer.Header.Get("X-Amzn-Requestid") != requestID {
			t.Fatalf("headers %v", answer.Header)
		}
	}
}

// BenchmarkSendMessage is a request without its network and engine: as it is, and with traces
// of which none and all are recorded.
func BenchmarkSendMessage(b *testing.B) {
	for name, ratio := range map[string]float64{"untraced": -1, "traced=0": 0, "traced=1": 1} {
		b.Run(name, func(b *testing.B) {
			benchmarkSend(b, newHandler(func(o *wire.Options) {
				if ratio >= 0 {
					o.Tracer = tracing.New(tracing.Options{Clock: clock.System, Ratio: ratio, Processor: nobody{}, Version: "1"})
				}
			}))
		})
	}
}

// nobody takes spans.
type nobody struct{}

func (nobody) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (nobody) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (nobody) ForceFlush(context.Context) error                { return nil }
func (nobody) Shutdown(context.Context) error                  { return nil }

func benchmarkSend(b *testing.B, handler *wire.Handler) {
	body := []byte(`{"QueueUrl":"http://localhost:4566/000000000000/q","MessageBody":"` + strings.Repeat("0123456789abcdef", 64) + `"}`)
	r := post("", "AmazonSQS.SendMessage")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/us-east-1/sqs/aws4_request, SignedHeaders=host;x-amz-date, Signature=00")
	reader := bytes.NewReader(body)
	r.Body, r.ContentLength = io.NopCloser(reader), int64(len(body))
	w := &discard{header: make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(body)
		handler.ServeHTTP(w, r)
	}
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// A signature of an older scheme is refused, whatever the protocol, and the
// operation does not run.
func TestOlderSignatures(t *testing.T) {
	h := newHandler(nil)
	for _, tc := range []struct {
		name, header, target, form string
		refused                    bool
	}{
		{"version 2 in Query", "", "", "Action=ListQueues&AWSAccessKeyId=AK&SignatureVersion=2&Signature=s", true},
		{"version 2 for topics", "", "", "Action=ListTopics&SignatureVersion=2&Version=2010-03-31", true},
		{"a header of version 2", "AWS AK:signature", "AmazonSQS.ListQueues", "{}", true},
		{"a header of version 3", "AWS3-HTTPS AWSAccessKeyId=AK", "", "Action=ListQueues", true},
		{"version 4", "AWS4-HMAC-SHA256 Credential=AK/20260101/us-east-1/sqs/aws4_request", "AmazonSQS.ListQueues", "{}", false},
		{"unsigned", "", "", "Action=ListQueues", false},
	} {
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tc.form))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if tc.target != "" {
			req.Header.Set("X-Amz-Target", tc.target)
		}
		if tc.header != "" {
			req.Header.Set("Authorization", tc.header)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if got := strings.Contains(w.Body.String(), "InvalidSecurity"); got != tc.refused || (w.Code == http.StatusOK) == tc.refused {
			t.Errorf("%s: %d %s", tc.name, w.Code, w.Body)
		}
	}
}

// A form is Query, also under a target that no service has: Amazon::SQS::Simple of Perl sends one.
func TestFormWithAnUnknownTarget(t *testing.T) {
	h := newHandler(nil)
	for _, tc := range []struct{ name, target, contentType, want string }{
		{"a form", "AmazonSQSv20121105.ListQueues", "application/x-www-form-urlencoded;charset=utf-8", "<ListQueuesResponse"},
		{"JSON", "AmazonSQSv20121105.ListQueues", "application/x-amz-json-1.0", "Godwit has no AmazonSQSv20121105"},
	} {
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("Action=ListQueues&Version=2012-11-05"))
		req.Header.Set("Content-Type", tc.contentType)
		req.Header.Set("X-Amz-Target", tc.target)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s: %d %s", tc.name, w.Code, w.Body)
		}
	}
}

// Admit refuses calls before they do anything, and knows what they are.
func TestAdmit(t *testing.T) {
	h := newHandler(func(o *wire.Options) {
		o.Admit = func(call *api.Call) error {
			if call.Service == "sqs" && call.Operation == "SendMessage" && call.Region == "us-east-1" && call.Account == "000000000000" {
				return fault.New(fault.Throttled, "less, please")
			}
			return nil
		}
	})
	for _, tc := range []struct{ form, want string }{
		{"Action=SendMessage&QueueUrl=q&MessageBody=panic", "<Code>RequestThrottled</Code><Message>less, please</Message>"},
		{"Action=ListQueues", "<ListQueuesResult>"},
	} {
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tc.form))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s: %d %s", tc.form, w.Code, w.Body)
		}
	}
}

// Nothing is begun for a caller who has gone, whatever the operation does with its context.
func TestCallerWhoHasGone(t *testing.T) {
	begun, code := 0, ""
	handler := newHandler(func(o *wire.Options) {
		o.Services = []*wire.Service{wire.SQS(api.Op("PurgeQueue", func(context.Context, *api.Call, *sqs.PurgeQueueInput) (*sqs.PurgeQueueOutput, error) {
			begun++
			return nil, nil
		}))}
		o.Audit = func(_ *api.Call, _ any, out wire.Outcome) { code = out.Code }
	})
	ask := func(ctx context.Context) int {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(`{"QueueUrl":"http://localhost/000000000000/q"}`))
		r.Header.Set("X-Amz-Target", "AmazonSQS.PurgeQueue")
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if status := ask(gone); begun != 0 || status != http.StatusServiceUnavailable || code != wire.Canceled {
		t.Errorf("for who had gone: begun %d times, status %d, code %q", begun, status, code)
	}
	if status := ask(t.Context()); begun != 1 || status != http.StatusOK {
		t.Errorf("for who is there: begun %d times, status %d", begun, status)
	}
}

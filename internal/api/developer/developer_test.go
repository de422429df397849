package developer_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api/developer"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/inspect"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// world is a handler, and the queue orders with a visible, a received and a delayed message.
type world struct {
	*testing.T
	http.Handler

	resets int
	fails  error
}

func open(t *testing.T) *world {
	t.Helper()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.NewVirtual(shardtest.Start)})
	t.Cleanup(func() { _ = e.Close() })
	orders := shardtest.QueueARN("orders")
	if err := e.CreateQueue(t.Context(), queues.QueueSpec{ARN: orders}); err != nil {
		t.Fatal(err)
	}
	send := func(id int, body string, delay time.Duration) {
		m := shardtest.NewMessage(id, body)
		m.Attributes = []message.Attribute{{Name: "kind", Type: "String", Value: []byte("book")}, {Name: "bits", Type: "Binary", Value: []byte{0xff}}}
		m.Seal()
		if _, err := e.Send(t.Context(), orders, []queues.SendEntry{{Message: m, Delay: delay}}); err != nil {
			t.Fatal(err)
		}
	}
	send(1, "taken", 0)
	got, err := e.Receive(t.Context(), queues.ReceiveRequest{Queue: orders, Max: 1, Visibility: time.Minute})
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	send(2, "<there>", 0)
	send(3, "later", time.Minute)
	w := &world{T: t}
	w.Handler = developer.Handler(developer.Options{
		Inspect: inspect.New(e.Queues, e.Functions), Region: shardtest.Region, Version: "1.2.3", Services: []string{"sqs", "sns"},
		Reset: func(context.Context) error {
			w.resets++
			return w.fails
		},
	})
	return w
}

func (w *world) ask(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	if answer.Header().Get("Cache-Control") != "no-store" {
		w.Errorf("%s %s may be kept: %v", method, path, answer.Header())
	}
	return answer
}

func TestHealth(t *testing.T) {
	answer := open(t).ask(http.MethodGet, "/_localstack/health", "")
	var got map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"services": map[string]any{"sqs": "available", "sns": "available"}, "edition": "godwit", "version": "1.2.3"}
	if diff := cmp.Diff(want, got); diff != "" || answer.Code != http.StatusOK {
		t.Errorf("%d %s", answer.Code, diff)
	}
}

func TestReset(t *testing.T) {
	w := open(t)
	if answer := w.ask(http.MethodPost, "/_localstack/state/reset", ""); answer.Code != http.StatusOK || answer.Body.Len() > 0 || w.resets != 1 {
		t.Errorf("%d %s, %d resets", answer.Code, answer.Body, w.resets)
	}
	w.fails = errors.New("a secret path")
	if answer := w.ask(http.MethodPost, "/_localstack/state/reset", ""); answer.Code != http.StatusInternalServerError || strings.Contains(answer.Body.String(), "secret") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	if r := httptest.NewRecorder(); true {
		w.ServeHTTP(r, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/_localstack/state/reset", nil))
		if r.Code != http.StatusMethodNotAllowed || w.resets != 2 {
			t.Errorf("a GET resets: %d", r.Code)
		}
	}
}

// What is in a queue is shown in each form that tools ask for, and however they name it; to
// look changes nothing.
func TestMessages(t *testing.T) {
	w := open(t)
	path := "/_aws/sqs/messages/" + shardtest.Region + "/" + shardtest.Account + "/orders"
	byURL := func(address string) string { return "/_aws/sqs/messages?QueueUrl=" + url.QueryEscape(address) }
	for _, ask := range []string{
		path, byURL("http://localhost:4566/" + shardtest.Account + "/orders"), byURL("http://sqs." + shardtest.Region + ".localhost.localstack.cloud:4566/" + shardtest.Account + "/orders"),
		byURL("http://" + shardtest.Region + ".queue.localhost.localstack.cloud:4566/" + shardtest.Account + "/orders"),
		byURL("http://localhost:4566/queue/" + shardtest.Region + "/" + shardtest.Account + "/orders"),
	} {
		var got struct {
			XMLName  xml.Name
			Messages []struct {
				MessageId, ReceiptHandle, Body, MD5OfBody string
				MessageAttribute                          []struct {
					Name  string
					Value struct{ StringValue, BinaryValue, DataType string }
				}
			} `xml:"ReceiveMessageResult>Message"`
		}
		answer := w.ask(http.MethodGet, ask, "")
		if err := xml.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK || len(got.Messages) != 1 {
			t.Errorf("%s: %d %s, %v", ask, answer.Code, answer.Body, err)
			continue
		}
		m := got.Messages[0]
		if m.Body != "<there>" || len(m.MD5OfBody) != 32 || len(m.MessageAttribute) != 2 || m.MessageAttribute[0].Value.BinaryValue+m.MessageAttribute[1].Value.BinaryValue != "/w==" {
			t.Errorf("%s: %+v", ask, m)
		}
	}
	for flags, want := range map[string]string{"": "<there>", "?ShowInvisible=true": "taken <there>", "?ShowDelayed=1": "<there> later", "?ShowInvisible=1&ShowDelayed=TRUE": "taken <there> later"} {
		var got struct {
			Messages []struct {
				Body       string
				Attributes map[string]string
			}
		}
		answer := w.ask(http.MethodGet, path+flags, "", "Content-Type", "application/x-amz-json-1.0")
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		var bodies []string
		for _, m := range got.Messages {
			bodies = append(bodies, m.Body)
			if strings.Contains(flags, "Invisible") && m.Attributes["IsVisible"] != fmt.Sprint(m.Body == "<there>") {
				t.Errorf("%s: %s is visible: %s", flags, m.Body, m.Attributes["IsVisible"])
			}
			if count := map[bool]string{true: "1", false: "0"}[m.Body == "taken"]; m.Attributes["ApproximateReceiveCount"] != count {
				t.Errorf("%s was received %s times", m.Body, m.Attributes["ApproximateReceiveCount"])
			}
		}
		if got := strings.Join(bodies, " "); got != want {
			t.Errorf("%q: %s, want %s", flags, got, want)
		}
	}
	// As XML becomes JSON: one is no list, and of several there is one.
	for flags, list := range map[string]bool{"": false, "?ShowDelayed=1": true} {
		var got struct {
			ReceiveMessageResponse struct{ ReceiveMessageResult struct{ Message any } }
		}
		answer := w.ask(http.MethodGet, path+flags, "", "Accept", "application/json")
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if _, is := got.ReceiveMessageResponse.ReceiveMessageResult.Message.([]any); is != list {
			t.Errorf("%q: %s", flags, answer.Body)
		}
	}
}

// A queue that is not there, and a body that cannot be read, are refused in the form that
// was asked for.
func TestRefusals(t *testing.T) {
	w := open(t)
	none := "/_aws/sqs/messages/" + shardtest.Region + "/" + shardtest.Account + "/none"
	for name, tt := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		want               string
	}{
		"no queue":                    {http.MethodGet, none, "", nil, 400, "<Code>AWS.SimpleQueueService.NonExistentQueue</Code>"},
		"in JSON":                     {http.MethodGet, none, "", []string{"Accept", "application/json"}, 400, `"Code":"AWS.SimpleQueueService.NonExistentQueue"`},
		"no address":                  {http.MethodPost, "/_aws/sqs/messages", "", nil, 400, "NonExistentQueue"},
		"another address":             {http.MethodGet, "/_aws/sqs/messages?QueueUrl=http://localhost/", "", nil, 404, "InvalidAddress"},
		"no address that can be read": {http.MethodGet, "/_aws/sqs/messages?QueueUrl=http%3A%2F%2F%5B", "", nil, 404, "InvalidAddress"},
		"no JSON":                     {http.MethodPost, "/_aws/sqs/messages", "{", []string{"Content-Type", "application/x-amz-json-1.0"}, 400, "InvalidRequest"},
		"too much of it":              {http.MethodPost, "/_aws/sqs/messages", `{"QueueUrl":"` + strings.Repeat("x", 70_000), []string{"Content-Type", "application/x-amz-json-1.0"}, 400, "InvalidRequest"},
		"another account's":           {http.MethodGet, "/_aws/sqs/messages/" + shardtest.Region + "/111122223333/orders", "", nil, 400, "NonExistentQueue"},
	} {
		answer := w.ask(tt.method, tt.path, tt.body, tt.headers...)
		if answer.Code != tt.status || !strings.Contains(answer.Body.String(), tt.want) {
			t.Errorf("%s: %d %s", name, answer.Code, answer.Body)
		}
	}
}

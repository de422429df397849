package wire_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/wire"
)

const budgetBytes = 1 << 20

// budgeted serves an operation that answers with as much text as it is asked for, and
// another that reports what is reserved while it runs.
func budgeted(t *testing.T) (h *wire.Handler, requests, answers *limit.Budget, during func() int64) {
	requests = limit.NewBudget("requests", budgetBytes, 20*time.Millisecond)
	answers = limit.NewBudget("answers", budgetBytes, 20*time.Millisecond)
	var reserved int64
	h = newHandler(func(o *wire.Options) {
		o.Requests, o.Answers = requests, answers
		o.Services = []*wire.Service{wire.SQS(
			api.Op("SendMessage", func(context.Context, *api.Call, *sqs.SendMessageInput) (*sqs.SendMessageOutput, error) {
				reserved = requests.Stats().Used
				return &sqs.SendMessageOutput{}, nil
			}),
			api.Op("ReceiveMessage", func(_ context.Context, _ *api.Call, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
				return &sqs.ReceiveMessageOutput{Messages: []sqs.Message{{Body: strings.Repeat("x", *in.MaxNumberOfMessages<<10)}}}, nil
			}),
		)}
	})
	t.Cleanup(func() {
		if used := requests.Stats().Used + answers.Stats().Used; used != 0 {
			t.Errorf("%d bytes are still reserved", used)
		}
	})
	return h, requests, answers, func() int64 { return reserved }
}

func ask(h http.Handler, operation string, body io.Reader, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r.Header.Set("X-Amz-Target", "AmazonSQS."+operation)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// patient is an answer to a client whose body has deadlines.
type patient struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (p *patient) SetReadDeadline(t time.Time) error {
	p.deadline = t
	return nil
}

// until fails reads behind the deadline.
type until struct {
	of *patient
	io.Reader
}

func (u until) Read(b []byte) (int, error) {
	if clock.System.Now().After(u.of.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return u.Reader.Read(b)
}

// While a request waits for memory, it reads nothing: the client is not late for that.
func TestWaitForMemoryIsNotTheClients(t *testing.T) {
	body := message(300 << 10)
	for name, length := range map[string]int{"before the body": len(body), "within the body": -1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := limit.NewBudget("requests", budgetBytes, 30*time.Second)
				h := newHandler(func(o *wire.Options) {
					o.Requests, o.Pace = requests, wire.Pace{Window: 10 * time.Second, Rate: 4 << 10, Whole: time.Minute}
				})
				for full := false; !full; {
					other := new(limit.Reservation)
					other.Of(requests)
					full = !other.TryGrow(64 << 10)
					clock.System.AfterFunc(15*time.Second, other.Release)
				}
				w := &patient{ResponseRecorder: httptest.NewRecorder()}
				r := httptest.NewRequest(http.MethodPost, "/", until{w, strings.NewReader(body)})
				r.ContentLength = int64(length)
				r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
				h.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					t.Error(show(w.ResponseRecorder))
				}
			})
		})
	}
}

func message(size int) string {
	return `{"QueueUrl":"q","MessageBody":"` + strings.Repeat("x", size) + `"}`
}

func TestBodiesAreReserved(t *testing.T) {
	h, requests, _, during := budgeted(t)
	packed := new(bytes.Buffer)
	z := gzip.NewWriter(packed)
	_, _ = io.WriteString(z, message(300<<10))
	_ = z.Close()
	for name, test := range map[string]struct {
		body     io.Reader
		header   []string
		reserved bool
	}{
		"little":                       {strings.NewReader(message(1 << 10)), nil, false},
		"much":                         {strings.NewReader(message(300 << 10)), nil, true},
		"much, of unknown length":      {io.MultiReader(strings.NewReader(message(300 << 10))), nil, true},
		"little that holds much in it": {packed, []string{"Content-Encoding", "gzip"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if w := ask(h, "SendMessage", test.body, test.header...); w.Code != http.StatusOK {
				t.Fatal(w.Code, w.Body)
			}
			if got := during(); (got >= 300<<10) != test.reserved || !test.reserved && got != 0 {
				t.Errorf("%d bytes were reserved", got)
			}
		})
	}
	t.Run("no room", func(t *testing.T) {
		var other limit.Reservation
		other.Of(requests)
		defer other.Release()
		if !other.TryGrow(budgetBytes / 2) {
			t.Fatal("no room")
		}
		w := ask(h, "SendMessage", strings.NewReader(message(300<<10)))
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "ServiceUnavailable") {
			t.Error(w.Code, w.Body)
		}
		if w := ask(h, "SendMessage", strings.NewReader(message(1<<10))); w.Code != http.StatusOK {
			t.Error("a small one is refused", w.Code, w.Body)
		}
	})
}

// announced is a body that stalls behind its first bytes.
type announced struct {
	io.Reader
	stalled func()
}

func (b *announced) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.stalled()
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestAnnouncedBytesAreNotReserved(t *testing.T) {
	h, requests, _, _ := budgeted(t)
	var used int64
	r := httptest.NewRequest(http.MethodPost, "/", &announced{strings.NewReader("{"), func() { used = requests.Stats().Used }})
	r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
	r.ContentLength = 2 << 20
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || used > 256<<10 {
		t.Errorf("%d; %d bytes were reserved for one", w.Code, used)
	}
}

func TestAnswersAreReserved(t *testing.T) {
	h, _, answers, _ := budgeted(t)
	if w := ask(h, "ReceiveMessage", strings.NewReader(`{"QueueUrl":"q","MaxNumberOfMessages":200}`)); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	var other limit.Reservation
	other.Of(answers)
	defer other.Release()
	if !other.TryGrow(budgetBytes / 2) {
		t.Fatal("no room")
	}
	w := ask(h, "ReceiveMessage", strings.NewReader(`{"QueueUrl":"q","MaxNumberOfMessages":400}`))
	if w.Code != http.StatusServiceUnavailable || w.Body.Len() > 1000 {
		t.Error(w.Code, w.Body.Len())
	}
	if w := ask(h, "ReceiveMessage", strings.NewReader(`{"QueueUrl":"q","MaxNumberOfMessages":1}`)); w.Code != http.StatusOK {
		t.Error("a small one is refused", w.Code)
	}
}

// TestBodyStaysInPlace: an input may hold parts of the request's body until its operation
// has run, whatever other requests come meanwhile.
func TestBodyStaysInPlace(t *testing.T) {
	var h *wire.Handler
	nested, got := true, ""
	h = newHandler(func(o *wire.Options) {
		o.Services = []*wire.Service{wire.SQS(
			api.Op("SendMessage", func(_ context.Context, _ *api.Call, in *sqs.SendMessageInput) (*sqs.SendMessageOutput, error) {
				if nested {
					nested = false
					for range 4 { // which would find the body's buffer in the pool
						ask(h, "SendMessage", strings.NewReader(`{"QueueUrl":"q","MessageBody":"`+strings.Repeat("y", 512)+`"}`))
					}
					got = strings.Clone(in.MessageBody)
				}
				return &sqs.SendMessageOutput{}, nil
			}),
		)}
	})
	if w := ask(h, "SendMessage", strings.NewReader(message(512))); w.Code != http.StatusOK || got != strings.Repeat("x", 512) {
		t.Errorf("status %d, the operation sees %.20q of %d bytes", w.Code, got, len(got))
	}
}

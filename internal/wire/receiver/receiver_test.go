package receiver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/ingest"
	"godwit.dev/godwit/internal/shard/topics"
)

const key = "a key of some length"

// door is a Receiver of one source, and what it has carried out and told.
type door struct {
	*Receiver
	within  func(ctx context.Context, call *api.Call, in any) (any, error)
	log     bytes.Buffer
	mu      sync.Mutex
	reasons []string
}

func open(t *testing.T, change func(s *ingest.Source)) *door {
	t.Helper()
	source := ingest.Source{
		Name: "shop", Target: "arn:aws:sqs:us-east-1:000000000000:orders", Account: "000000000000",
		Verification: ingest.Verification{Kind: ingest.APIKey},
	}
	if change != nil {
		change(&source)
	}
	compiled, err := ingest.Compile(source, []string{key})
	if err != nil {
		t.Fatal(err)
	}
	d := &door{within: func(context.Context, *api.Call, any) (any, error) {
		return &sqs.SendMessageOutput{MessageId: "m-1"}, nil
	}}
	d.Receiver = New(Options{
		Find: func(name string) *ingest.Compiled {
			if name == compiled.Name {
				return compiled
			}
			return nil
		},
		Within: func(ctx context.Context, call *api.Call, in any) (any, error) { return d.within(ctx, call, in) },
		Logger: slog.New(slog.NewTextHandler(&d.log, nil)),
		Observe: func(source string, refused ingest.Reason) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.reasons = append(d.reasons, source+" "+string(refused))
		},
	})
	return d
}

// post gives the status and the code of the answer, or the message's id.
func (d *door) post(t *testing.T, name, secret string, body io.Reader) (answer *httptest.ResponseRecorder, says string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Prefix+name, body)
	r.Header.Set("X-Api-Key", secret)
	answer = httptest.NewRecorder()
	d.ServeHTTP(answer, r)
	var got struct{ MessageID, Code string }
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatalf("%d %s: %v", answer.Code, answer.Body, err)
	}
	return answer, fmt.Sprint(answer.Code, " ", got.MessageID, got.Code)
}

func (d *door) want(t *testing.T, want, name, secret string, body io.Reader) {
	t.Helper()
	answer, says := d.post(t, name, secret, body)
	if says != want {
		t.Errorf("%s, want %s: %s", says, want, answer.Body)
	}
	again := answer.Header().Get("Retry-After") != ""
	if want := answer.Code == http.StatusTooManyRequests || answer.Code == http.StatusServiceUnavailable; again != want {
		t.Errorf("%s: Retry-After is %q", says, answer.Header().Get("Retry-After"))
	}
}

// broken is a body that fails after its beginning.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

func TestBodies(t *testing.T) {
	d := open(t, func(s *ingest.Source) { s.Limits.Bytes = 100 })
	d.want(t, "202 m-1", "shop", key, strings.NewReader("an order"))
	d.want(t, "408 slow", "shop", key, io.MultiReader(strings.NewReader("an or"), broken{os.ErrDeadlineExceeded}))
	d.want(t, "408 slow", "shop", key, io.MultiReader(strings.NewReader("an or"), broken{io.ErrUnexpectedEOF}))
	d.want(t, "413 size", "shop", key, strings.NewReader(strings.Repeat("x", 101)))
	d.want(t, "401 unverified", "shop", "a wrong key", strings.NewReader(strings.Repeat("x", 101))) // a stranger is not told the limit
	d.want(t, "413 size", "shop", key, io.MultiReader(strings.NewReader(strings.Repeat("x", ingest.MaxBytes+1))))
	d.want(t, "413 size", "shop", key, strings.NewReader(strings.Repeat("x", ingest.MaxBytes+1)))
	if got, want := strings.Join(d.reasons, ","), "shop ,shop slow,shop slow,shop size,shop signature,shop size,shop size"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A post that is not a message is answered with what is wrong with it.
func TestRefusalsSayWhatIsWrong(t *testing.T) {
	d := open(t, func(s *ingest.Source) { s.Mapping.Message = "/order" })
	for body, want := range map[string]string{
		`{"order":`:       "The body has to be JSON, and cannot be read as such.",
		`{"order":""}`:    "The body has nothing at /order.",
		"\xff":            "The body has to be text in UTF-8.",
		`{"else":"100%"}`: "The body has nothing at /order.",
	} {
		answer, _ := d.post(t, "shop", key, strings.NewReader(body))
		var got struct{ Error string }
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || got.Error != want {
			t.Errorf("%q: %d %s, want %s", body, answer.Code, answer.Body, want)
		}
	}
}

// Who proves nothing is answered alike, whether there is the source or not.
func TestStrangersAreToldNothing(t *testing.T) {
	d := open(t, func(s *ingest.Source) { s.Paused = true })
	wrong, _ := d.post(t, "shop", "a wrong key", strings.NewReader("x"))
	none, _ := d.post(t, "none", key, strings.NewReader("x"))
	if wrong.Code != http.StatusUnauthorized || wrong.Code != none.Code || wrong.Body.String() != none.Body.String() ||
		fmt.Sprint(wrong.Header()) != fmt.Sprint(none.Header()) {
		t.Errorf("%d %s %v, and %d %s %v", wrong.Code, wrong.Body, wrong.Header(), none.Code, none.Body, none.Header())
	}
	d.want(t, "503 paused", "shop", key, strings.NewReader("x"))
}

func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, func(s *ingest.Source) { s.Limits.Concurrent = 2 })
		held := make(chan struct{})
		d.within = func(context.Context, *api.Call, any) (any, error) {
			<-held
			return &sqs.SendMessageOutput{MessageId: "m-1"}, nil
		}
		answers := make(chan string, 2)
		for range 2 {
			go func() {
				_, says := d.post(t, "shop", key, strings.NewReader("x"))
				answers <- says
			}()
		}
		synctest.Wait()
		d.want(t, "429 concurrency", "shop", key, strings.NewReader("x"))
		close(held)
		for range 2 {
			if says := <-answers; says != "202 m-1" {
				t.Error(says)
			}
		}
		d.want(t, "202 m-1", "shop", key, strings.NewReader("x"))
	})
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, func(s *ingest.Source) { s.Limits.PerSecond = 2 })
		for _, want := range []string{"202 m-1", "202 m-1", "429 rate"} {
			d.want(t, want, "shop", key, strings.NewReader("x"))
		}
		d.want(t, "401 unverified", "shop", "a wrong key", strings.NewReader("x")) // which costs the source nothing
		passed := make(chan struct{})
		clock.System.AfterFunc(time.Second, func() { close(passed) })
		<-passed
		for _, want := range []string{"202 m-1", "202 m-1", "429 rate"} {
			d.want(t, want, "shop", key, strings.NewReader("x"))
		}
	})
}

// What the target answers is the poster's business only if he can do something about it.
func TestTargetRefuses(t *testing.T) {
	d := open(t, nil)
	for _, c := range []struct {
		err    error
		want   string
		logged bool
	}{
		{fault.New(fault.InvalidMessageContents, "what is in it"), "422 rejected", false},
		{fault.New(fault.Throttled, "slowly"), "429 rate", false},
		{fault.New(fault.Unavailable, "later"), "503 unavailable", false},
		{fault.New(fault.InsufficientStorage, "full"), "503 unavailable", false},
		{fault.New(fault.AccessDenied, "who is told of an owner"), "503 target", true},
		{topics.ErrProtected.With("CreditCardNumber"), "422 rejected", false},
		{topics.ErrUnprotected.With("Badge"), "422 rejected", false},
		{fault.New(fault.QueueDoesNotExist, "no queue"), "503 target", true},
		{context.Canceled, "503 unavailable", false},
		{errors.New("of ours"), "503 unavailable", true},
	} {
		d.log.Reset()
		d.within = func(context.Context, *api.Call, any) (any, error) { return nil, c.err }
		answer, says := d.post(t, "shop", key, strings.NewReader("a body that nobody may see"))
		if says != c.want || (d.log.Len() > 0) != c.logged {
			t.Errorf("%v: %s, want %s; the log: %s", c.err, says, c.want, &d.log)
		}
		if strings.Contains(d.log.String(), "nobody may see") || strings.Contains(d.log.String(), key) || strings.Contains(answer.Body.String(), "told of") {
			t.Errorf("%v tells too much: %s %s", c.err, answer.Body, &d.log)
		}
	}
}

// TestCertificates: they are fetched once, four at a time, and what cannot be had is asked
// for again.
func TestCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fetched atomic.Int32
		held := make(chan struct{})
		c := NewCertificates(func(ctx context.Context, address string, limit int64) ([]byte, error) {
			fetched.Add(1)
			switch {
			case address == "slow":
				<-ctx.Done()
				return nil, ctx.Err()
			case address == "held":
				<-held
			case limit != certificate:
				t.Errorf("%d bytes at most", limit)
			}
			return []byte("no certificate"), nil
		})
		reason := func(err error) ingest.Reason {
			if refusal, ok := errors.AsType[*ingest.Refusal](err); ok {
				return refusal.Reason
			}
			return ""
		}
		began := clock.System.Now()
		if _, err := c.of(t.Context(), "slow"); reason(err) != ingest.Uncertified || clock.System.Now().Sub(began) != fetchTime {
			t.Errorf("%v after %s", err, clock.System.Now().Sub(began))
		}
		for range 2 { // what is no certificate is not kept
			if _, err := c.of(t.Context(), "text"); err == nil {
				t.Error("a text is a certificate")
			}
		}
		if fetched.Load() != 3 {
			t.Errorf("fetched %d times", fetched.Load())
		}
		for range maxFetches {
			go func() { _, _ = c.of(t.Context(), "held") }()
		}
		synctest.Wait()
		if _, err := c.of(t.Context(), "text"); reason(err) != ingest.Uncertified || fetched.Load() != 3+maxFetches {
			t.Errorf("%v; fetched %d times", err, fetched.Load())
		}
		close(held)
	})
}

func TestEveryReasonHasAStatus(t *testing.T) {
	for _, reason := range ingest.Reasons {
		if reason != ingest.WrongRequest && statuses[reason] == 0 {
			t.Errorf("%s has no status", reason)
		}
	}
}

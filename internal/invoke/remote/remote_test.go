package remote

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
)

// run invokes a function at a URL once, through a pool.
func run(t *testing.T, url string, allow bool, timeout time.Duration) (invoke.Outcome, error) {
	t.Helper()
	runner := New(Options{AllowPrivate: allow})
	pool := invoke.New(invoke.Options{Remote: runner, Clock: clock.System})
	defer func() {
		if err := pool.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		runner.Close()
	}()
	return pool.Invoke(t.Context(), invoke.Invocation{
		Target: function.Target{
			Function: arn.Function("us-east-1", "123456789012", "far"), Name: "far", Version: "7", Qualifier: "live",
			MemoryMB: 128, Timeout: timeout, Code: function.Code{URL: url},
		},
		RequestID: "c0ffee00-0000-4000-8000-000000000001", Payload: []byte(`{"a":1}`), ClientContext: []byte(`{"custom":{}}`), Tail: true,
	})
}

func TestInvocations(t *testing.T) {
	type request struct {
		head http.Header
		body string
	}
	requests := make(chan request, 1)
	answers := map[string]http.HandlerFunc{
		"/ok": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString([]byte("its log")))
			_, _ = io.WriteString(w, `{"b":2}`)
		},
		invokePath: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `"emulator"`) },
		"/failed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Function-Error", "Handled")
			_, _ = io.WriteString(w, `{"errorMessage":"no"}`)
		},
		"/busy":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"/ill":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"/moved": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect) },
		"/slow":  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"/large": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxResponse+1)) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/ok" {
			requests <- request{r.Header, string(text)}
		}
		answers[r.URL.Path](w, r)
	}))
	defer server.Close()
	for _, c := range []struct {
		path, payload, failed string
		kind                  fault.Kind
	}{
		{path: "/ok", payload: `{"b":2}`},
		{path: "", payload: `"emulator"`},
		{path: "/failed", payload: `{"errorMessage":"no"}`, failed: "Unhandled"},
		{path: "/busy", kind: fault.Throttled},
		{path: "/ill", kind: fault.FunctionNotReady},
		{path: "/moved", kind: fault.FunctionNotReady},
		{
			path: "/slow", failed: "Unhandled",
			payload: `{"errorType":"Sandbox.Timedout","errorMessage":"RequestId: c0ffee00-0000-4000-8000-000000000001 Error: Task timed out after 1.00 seconds"}`,
		},
		{
			path: "/large", failed: "Unhandled",
			payload: `{"errorType":"Function.ResponseSizeTooLarge","errorMessage":"Response payload size exceeded maximum allowed payload size (6291556 bytes)."}`,
		},
	} {
		timeout := time.Minute
		if c.path == "/slow" {
			timeout = time.Second
		}
		out, err := run(t, server.URL+c.path, true, timeout)
		if c.kind != fault.Internal {
			if fault.KindOf(err) != c.kind {
				t.Errorf("%s: %v", c.path, err)
			}
			continue
		}
		if err != nil || string(out.Payload) != c.payload || out.FunctionError != c.failed {
			t.Errorf("%s: %q %.300s %v", c.path, out.FunctionError, out.Payload, err)
		}
		if c.path == "/ok" {
			got := <-requests
			if string(out.LogTail) != "its log" || got.body != `{"a":1}` || got.head.Get("X-Amz-Client-Context") != "eyJjdXN0b20iOnt9fQ==" ||
				got.head.Get("Lambda-Runtime-Invoked-Function-Arn") != "arn:aws:lambda:us-east-1:123456789012:function:far:live" {
				t.Errorf("tail %q, request %v %s", out.LogTail, got.head, got.body)
			}
		}
	}
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer server.Close()
	_, err := run(t, server.URL, false, time.Minute)
	if !errors.Is(err, ErrNotPublic) {
		t.Errorf("%v", err)
	}
	server.Close()
	if _, err = run(t, server.URL, true, time.Minute); fault.KindOf(err) != fault.FunctionNotReady {
		t.Errorf("nobody there: %v", err)
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
)

func testServer(t *testing.T, handler http.HandlerFunc) *conn {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c := newConn(strings.TrimPrefix(server.URL, "http://"))
	t.Cleanup(c.close)
	return c
}

func TestConnReadsEveryKindOfAnswer(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	remotes := map[string]int{}
	c := testServer(t, func(w http.ResponseWriter, r *http.Request) {
		remotes[r.RemoteAddr]++
		body, _ := io.ReadAll(r.Body)
		switch string(body) {
		case "length":
			w.Header().Set("Content-Length", "5")
			fmt.Fprint(w, "short")
		case "empty":
		case "chunks":
			fmt.Fprint(w, long[:50_000])
			w.(http.Flusher).Flush()
			fmt.Fprint(w, long[50_000:])
		case "close":
			w.Header().Set("Connection", "close")
			fmt.Fprint(w, "bye")
		case "old":
			nc, _, _ := w.(http.Hijacker).Hijack()
			fmt.Fprint(nc, "HTTP/1.0 200 OK\r\n\r\nuntil the end")
			nc.Close()
		}
	})
	for _, step := range []struct{ ask, want string }{
		{"length", "short"}, {"empty", ""}, {"chunks", long}, {"close", "bye"}, {"old", "until the end"}, {"length", "short"},
	} {
		got, err := c.do(sendMessage, []byte(step.ask))
		if err != nil || string(got) != step.want {
			t.Fatalf("%s: %d bytes %.40q, %v", step.ask, len(got), got, err)
		}
	}
	if len(remotes) != 3 { // up to "close", up to "old", after it
		t.Errorf("requests by connection: %v", remotes)
	}
}

func TestConnReportsFailure(t *testing.T) {
	c := testServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch string(body) {
		case "status":
			http.Error(w, "QueueDoesNotExist", http.StatusBadRequest)
		case "cut":
			w.Header().Set("Content-Length", "10")
			fmt.Fprint(w, "half")
		case "garbage":
			nc, _, _ := w.(http.Hijacker).Hijack()
			fmt.Fprint(nc, "SSH-2.0 hello there\r\n")
			nc.Close()
		default:
			fmt.Fprint(w, "fine")
		}
	})
	if _, err := c.do(sendMessage, []byte("status")); err == nil || !strings.Contains(err.Error(), "400: QueueDoesNotExist") {
		t.Errorf("status: %v", err)
	}
	for _, ask := range []string{"cut", "garbage"} {
		if got, err := c.do(sendMessage, []byte(ask)); err == nil {
			t.Errorf("%s: %q instead of an error", ask, got)
		}
		if got, err := c.do(sendMessage, []byte("again")); err != nil || string(got) != "fine" {
			t.Errorf("after %s: %q, %v", ask, got, err)
		}
	}
}

func TestAbortEndsARequest(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	c := testServer(t, func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	})
	defer close(release)
	failed := make(chan error)
	go func() {
		_, err := c.do(receive, nil)
		failed <- err
	}()
	<-arrived
	c.abort()
	if err := <-failed; err == nil {
		t.Error("the request succeeded")
	}
	if _, err := c.do(receive, nil); err == nil {
		t.Error("an aborted connection was used again")
	}
}

func TestMembers(t *testing.T) {
	doc := []byte(`{"Messages":[{"Body":"\"ReceiptHandle\":\"no\" \\","ReceiptHandle":"a\"b"},` +
		"{\"ReceiptHandle\" :\n \"c\", \"Id\":7, \"XReceiptHandle\":\"no\"}],\"ReceiptHandle\":null}")
	var got []string
	for value := range members(doc, "ReceiptHandle") {
		got = append(got, string(value))
	}
	if strings.Join(got, " ") != `a\"b c` {
		t.Errorf("%q", got)
	}
	if value, _, ok := member([]byte(`{"Id":"cut`), "Id"); ok {
		t.Errorf("value %q of a string that does not end", value)
	}
}

func TestSendChecksDigests(t *testing.T) {
	from := newTexts(50, true)
	for _, n := range []int{1, 3} {
		for _, wrong := range []bool{false, true} {
			var q *queue
			c := testServer(t, func(w http.ResponseWriter, _ *http.Request) {
				for i, sent := range q.sent {
					digest := sent.md5
					if wrong && i == n-1 {
						digest = bytes.Repeat([]byte("0"), 32)
					}
					fmt.Fprintf(w, `{"MD5OfMessageBody":"%s"}`, digest)
				}
			})
			q = openQueue(c, "http://x/q", 1)
			if err := q.send(from, n, 0); (err != nil) != wrong {
				t.Errorf("batch %d, wrong %v: %v", n, wrong, err)
			}
		}
	}
}

func TestPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := pause(t.Context(), requestTimeout); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), requestTimeout/2)
		defer cancel()
		if err := pause(ctx, requestTimeout); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a pause beyond the end of its context: %v", err)
		}
	})
}

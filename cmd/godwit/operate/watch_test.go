package operate

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// stopper interrupts the process when it has been written what it waits for.
type stopper struct {
	bytes.Buffer
	at string
}

func (s *stopper) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if strings.Contains(s.String(), s.at) {
		err = syscall.Kill(syscall.Getpid(), syscall.SIGINT)
		s.at = "\x00" // once
	}
	return n, err
}

// --watch shows each answer in place of the one before, continues past what fails in between,
// and ends without an error by an interrupt. What fails at first is an error.
func TestWatch(t *testing.T) {
	// The interrupt may leave a request behind, which is not to count for what follows: each has
	// a server of its own.
	serve := func(asked int32) *httptest.Server {
		var n atomic.Int32
		n.Store(asked)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			switch n := n.Add(1); n {
			case 2:
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprint(w, `{"error":"it starts"}`)
			default:
				fmt.Fprintf(w, `{"queues":[{"name":"orders","visible":%d}],"next":null}`, n)
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	for output, want := range map[string]string{
		"table": "\x1b[H\x1b[2JNAME | orders 1 | \x1b[H\x1b[2JNAME | orders 3 | ",
		"json":  `{ | "next": null, | "queues": [ | { | "name": "orders", | "visible": 1 | } | ] | } | { | "next": null, | "queues": [ | { | "name": "orders", | "visible": 3 | } | ] | } | `,
	} {
		out, told := &stopper{at: map[string]string{"table": "orders       3", "json": `"visible": 3`}[output]}, &bytes.Buffer{}
		q := Queues{Connection: Connection{Endpoint: serve(0).URL, Output: output, Watch: time.Millisecond}}
		if err := q.Run(Streams{Out: out, Err: told}); err != nil {
			t.Errorf("%s: %v", output, err)
		}
		var got strings.Builder
		for line := range strings.Lines(out.String()) {
			words := strings.Fields(line)
			if output == "table" {
				words = words[:min(len(words), 2)]
				if strings.HasSuffix(words[0], "NAME") {
					words = words[:1]
				}
			}
			got.WriteString(strings.Join(words, " ") + " | ")
		}
		if !strings.HasPrefix(got.String(), want) { // a signal takes its time
			t.Errorf("%s: %q, want %q", output, got.String(), want)
		}
		if told.String() != "it starts; asking again every 1ms\n" {
			t.Errorf("%s: told %q", output, told)
		}
	}
	q := Queues{Connection: Connection{Endpoint: serve(1).URL, Output: "table", Watch: time.Millisecond}}
	if err := q.Run(Streams{Out: &stopper{at: "\x00"}, Err: &bytes.Buffer{}}); err == nil || err.Error() != "it starts" {
		t.Errorf("what fails at first: %v", err)
	}
}

package conns

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// unread is how much of an answer reaches a client of overHTTP2 that does not read it.
const unread = 64 << 10

// overHTTP2 serves h by HTTP/2 with a short window. ask requests a path, on one connection; idle
// gets a value whenever no request is left on it, at first before any.
func overHTTP2(t *testing.T, h http.HandlerFunc) (ask func(path string) io.Reader, idle <-chan struct{}) {
	t.Helper()
	l, ended := listen(t, Options{Window: time.Second, Rate: 4 << 10}), make(chan struct{}, 100)
	s := httptest.NewUnstartedServer(Streams(h))
	s.Listener.Close()
	s.Listener, s.EnableHTTP2, s.Config.ConnContext, s.Config.WriteTimeout = l, true, Context, time.Minute
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			ended <- struct{}{}
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	transport := s.Client().Transport.(*http.Transport)
	transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: unread}
	return func(path string) io.Reader {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		if answer.ProtoMajor != 2 || answer.StatusCode != http.StatusOK {
			t.Fatal(answer.Proto, answer.Status)
		}
		return answer.Body
	}, ended
}

// An answer that its client does not read is given up, whatever deadline its handler has set, and
// the connection goes on with others.
func TestStreamsThatAreNotRead(t *testing.T) {
	failed := make(chan error, 1)
	ask, _ := overHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/small" {
			_, _ = io.WriteString(w, strings.Repeat("x", unread/2)) // several pieces
			return
		}
		if r.URL.Path == "/lifted" {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		}
		_, err := w.Write(make([]byte, 4<<20))
		failed <- err
	})
	for _, path := range []string{"/", "/lifted"} {
		large := ask(path)
		if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the handler's write ends with %v", path, err)
		}
		if n, err := io.Copy(io.Discard, large); err == nil {
			t.Errorf("%s: %d bytes, and no error", path, n)
		}
		if n, err := io.Copy(io.Discard, ask("/small")); err != nil || n != unread/2 {
			t.Errorf("another stream: %d bytes, %v", n, err)
		}
	}
}

// The end of an answer, which net/http sends once its handler has returned, has the same deadline.
func TestEndOfStreamThatIsNotRead(t *testing.T) {
	ask, idle := overHTTP2(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		_, _ = w.Write(make([]byte, unread))
		_, _ = w.Write(make([]byte, 1<<10))
	})
	answer := ask("/")
	<-idle // before the request
	<-idle
	if n, err := io.Copy(io.Discard, answer); err == nil {
		t.Errorf("%d bytes, and no error", n)
	}
}

// What counts is the time of writes: a stream may be quiet for longer than a window, if its handler has
// no deadline.
func TestQuietStreams(t *testing.T) {
	proceed, cut := make(chan struct{}), make(chan struct{}, 1)
	ask, _ := overHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Time{})
		if r.URL.Path == "/stalled" {
			_, _ = w.Write(make([]byte, 4<<20))
			cut <- struct{}{}
			return
		}
		_, _ = io.WriteString(w, "one ")
		_ = control.Flush()
		<-proceed
		_, _ = io.WriteString(w, "two")
	})
	quiet := ask("/quiet")
	first := make([]byte, 4)
	if _, err := io.ReadFull(quiet, first); err != nil {
		t.Fatal(err)
	}
	ask("/stalled")
	<-cut // so a window has passed since the first word
	close(proceed)
	if rest, err := io.ReadAll(quiet); string(first)+string(rest) != "one two" || err != nil {
		t.Errorf("%q %q, %v", first, rest, err)
	}
}

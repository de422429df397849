package http1

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An answer whose length its handler gives is sent as it is written, and is not collected.
func TestAnswersInParts(t *testing.T) {
	half := strings.Repeat("x", largeAnswer)
	proceed := make(chan struct{})
	_, addr := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(2*len(half)))
		_, _ = io.WriteString(w, half)
		<-proceed
		if n, err := io.WriteString(w, half+"x"); n != 0 || !errors.Is(err, http.ErrContentLength) {
			t.Errorf("more than was announced: %d bytes, %v", n, err)
		}
		if n, err := io.WriteString(w, half); n != len(half) || err != nil {
			t.Errorf("the rest: %d bytes, %v", n, err)
		}
	}), nil)
	c := dial(t, addr)
	for range 2 {
		c.send(request("x"))
		r, err := http.ReadResponse(c.Reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, len(half))
		if _, err := io.ReadFull(r.Body, first); err != nil {
			t.Fatal(err)
		}
		proceed <- struct{}{}
		if rest, err := io.ReadAll(r.Body); string(first)+string(rest) != half+half || err != nil {
			t.Fatalf("then %d bytes, %v", len(rest), err)
		}
	}
}

// An answer that is shorter than its handler has announced does not look complete.
func TestAnswersThatEndEarly(t *testing.T) {
	for _, length := range []int{100, 2 * largeAnswer} {
		_, addr := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(length))
			_, _ = io.WriteString(w, "some")
		}), nil)
		c := dial(t, addr)
		c.send(request("x"))
		r, err := http.ReadResponse(c.Reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(r.Body); string(text) != "some" || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("of %d bytes: %q, %v", length, text, err)
		}
	}
}

// forwarding has a server forward its requests to another.
func forwarding(t *testing.T, to http.HandlerFunc) client {
	t.Helper()
	behind := httptest.NewServer(to)
	t.Cleanup(behind.Close)
	at, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }, Transport: transport}
	_, addr := start(t, proxy, func(s *http.Server) { s.ReadTimeout = time.Minute })
	return dial(t, addr)
}

// What a proxy has of an answer whose rest is lost does not look complete, whether the
// length is known or not.
func TestForwardedAnswersThatEndEarly(t *testing.T) {
	for _, length := range []string{"", "100", "100000"} {
		c := forwarding(t, func(w http.ResponseWriter, _ *http.Request) {
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			_, _ = io.WriteString(w, "some")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		c.send(request("x"))
		r, err := http.ReadResponse(c.Reader, nil)
		if err != nil {
			continue
		}
		if text, err := io.ReadAll(r.Body); err == nil {
			t.Errorf("length %q: it looks like a whole answer: %q", length, text)
		}
	}
}

// A body that a proxy has not read when the answer comes is read by nobody else afterwards.
func TestForwardedBodiesThatAreNotRead(t *testing.T) {
	c := forwarding(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusTeapot)
	})
	head, _, _ := strings.Cut(request(strings.Repeat("x", 1<<10)), "\r\n\r\n")
	c.send(head + "\r\n\r\nsome")
	if r := c.answer(http.StatusTeapot, ""); !r.Close {
		t.Error("another request may follow, in the middle of a body")
	}
	c.ended()
}

// A handler may leave a body to another goroutine until it closes it.
func TestBodiesThatAnotherReads(t *testing.T) {
	reads, ended := make(chan struct{}), make(chan error, 1)
	_, addr := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		go func() {
			p := make([]byte, 1<<10)
			if _, err := io.ReadFull(r.Body, p[:4]); err != nil {
				t.Error(err)
			}
			close(reads)
			_, err := r.Body.Read(p)
			ended <- err
		}()
		<-reads
		_ = r.Body.Close()
		if err := <-ended; err == nil {
			t.Error("it reads on")
		}
		if _, err := r.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Error(err)
		}
	}), func(s *http.Server) { s.ReadTimeout = time.Minute })
	c := dial(t, addr)
	head, _, _ := strings.Cut(request(strings.Repeat("x", 1<<10)), "\r\n\r\n")
	c.send(head + "\r\n\r\nsome")
	c.answer(http.StatusOK, "")
}

// A body that is closed unread is discarded, and its connection goes on.
func TestBodiesThatAreClosed(t *testing.T) {
	_, addr := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _ = r.Body.Close() }), func(s *http.Server) { s.ReadTimeout = time.Minute })
	c := dial(t, addr)
	for range 2 {
		body := strings.Repeat("x", 8<<10)
		head, _, _ := strings.Cut(request(body), "\r\n\r\n")
		c.send(head + "\r\n\r\n")
		c.send(body)
		if r := c.answer(http.StatusOK, ""); r.Close {
			t.Error("the connection ends")
		}
	}
}

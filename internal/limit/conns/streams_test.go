package conns

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Requests of HTTP/2 count one by one, and so do their heads, however they are packed.
func TestStreamsAreBounded(t *testing.T) {
	l := listen(t, Options{Max: 3, HeadBytes: 10_000})
	came, leave := make(chan struct{}), make(chan struct{})
	s := httptest.NewUnstartedServer(Streams(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("it is %s", r.Proto)
		}
		came <- struct{}{}
		<-leave
	})))
	s.Listener.Close()
	s.Listener, s.EnableHTTP2, s.Config.ConnContext, s.Config.ConnState = l, true, Context, State
	s.StartTLS()
	defer s.Close()
	ask := func(header string) (status int, text string) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		r.Header.Set("X-Long", header)
		answer, err := s.Client().Do(r)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body)
	}
	for _, test := range []struct {
		header string
		most   int
		why    refusal
		name   string
	}{
		{"short", 3, fullOfStreams, "http2_requests"},
		{strings.Repeat("aaaaaaaa", 1000), 2, fullOfHeads, "header_bytes"}, // some 4,400 bytes above what is free
	} {
		var all sync.WaitGroup
		for range test.most {
			all.Go(func() {
				if status, text := ask(test.header); status != http.StatusOK {
					t.Errorf("%d %s", status, text)
				}
			})
			<-came
		}
		if status, text := ask(test.header); status != http.StatusServiceUnavailable || !strings.HasPrefix(text, string(test.why)) {
			t.Errorf("one more: %d %q", status, text)
		}
		if used := l.stat(t, "http2_requests").Used; used < int64(test.most) {
			t.Errorf("%d requests are counted", used)
		}
		for range test.most {
			leave <- struct{}{}
		}
		all.Wait()
		if refused := l.stat(t, test.name).Refused; refused != 1 {
			t.Errorf("%s: %d are refused", test.name, refused)
		}
	}
	s.CloseClientConnections()
	s.Close()
	if heads, streams := l.stat(t, "header_bytes").Used, l.stat(t, "http2_requests").Used; heads != 0 || streams != 0 {
		t.Errorf("%d bytes of heads and %d requests are still counted", heads, streams)
	}
}

func TestStreamsOfAnAddress(t *testing.T) {
	l := listen(t, Options{Max: 10, PerAddress: 2})
	c, other := &Conn{listener: l, of: new(set)}, &Conn{listener: l, of: new(set)}
	for range 2 {
		if why := c.begin(0); why != "" {
			t.Error(why)
		}
	}
	if why := c.begin(0); why != fullOfStreams {
		t.Errorf("%q", why)
	}
	if why := other.begin(0); why != "" {
		t.Error(why)
	}
	c.end(0)
	c.end(0)
	if why := c.begin(0); why != "" {
		t.Error(why)
	}
}

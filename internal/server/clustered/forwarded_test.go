package clustered

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/server/clustered/roster"
)

// owner is a node that owns the state, as the one that forwards to it sees it.
type owner struct {
	asked   chan string   // the paths of requests that wait
	proceed chan struct{} // they are answered
	ended   chan error    // how the reading of a body, or the writing of an answer, has ended
}

func (o *owner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stream":
		_, _ = io.WriteString(w, "begun ")
		_ = http.NewResponseController(w).Flush()
		fallthrough
	case "/poll":
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case o.asked <- r.URL.Path:
		case <-o.proceed: // the test has ended, and nobody is told
		}
		<-o.proceed
		_, _ = io.WriteString(w, "done")
	case "/body":
		_, err := io.Copy(io.Discard, r.Body)
		o.ended <- err
	case "/large":
		const size, piece = 512 << 20, 1 << 20 // more than sockets hold
		w.Header().Set("Content-Length", strconv.Itoa(size))
		var err error
		for written := 0; written < size && err == nil; written += piece {
			_, err = w.Write(make([]byte, piece))
		}
		o.ended <- err
	}
}

// shortTime is that for bodies and answers where it has to pass, in which a busy machine has to shake hands.
const shortTime = 10 * time.Second

// startForwarding has a node forward to the owner what it gets from clients by its listener, where the
// times for bodies and answers are short. ask sends a request by a protocol.
func startForwarding(t *testing.T, to http.Handler, protocol string) (ask func(method, path string, body io.Reader, length int64) (*http.Response, error)) {
	t.Helper()
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(unreadHeader) != "" { // the owner is asked once more, for its answer to what it did not get
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(peer.Close)
	o := startOwning(t) // another node owns the state
	f := o.part.front
	f.handOnTo([]roster.Peer{{Name: "b", Address: peer.Listener.Addr().String()}})
	cfg := config.Config{MaxConnections: 100, MinTransferRate: 4 << 10, TransferWindow: 2 * time.Second}
	f.limits = server.NewLimits(cfg, slog.New(slog.DiscardHandler))
	f.limits.Times = server.Times{Read: shortTime, Write: shortTime}
	l, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport, scheme := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(64 << 10)
		}
		return c, err
	}}, "http://"
	var secure *tls.Config
	if protocol != "plain" {
		s := httptest.NewTLSServer(nil)
		defer s.Close()
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		secure = &tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}
		transport.ForceAttemptHTTP2, scheme = protocol == "HTTP/2.0", "https://"
	}
	stop := serve(server.ForClients(cfg, o.part.log, f.limits, l, secure, f))
	t.Cleanup(stop)
	t.Cleanup(transport.CloseIdleConnections)
	return func(method, path string, body io.Reader, length int64) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, scheme+l.Addr().String()+path, body)
		if err != nil {
			return nil, err
		}
		r.ContentLength = length
		answer, err := transport.RoundTrip(r)
		if err == nil && protocol != "plain" && answer.Proto != protocol {
			err = errors.New("it is " + answer.Proto)
		}
		return answer, err
	}
}

// How long an answer takes that the owner gives is for the owner to say, by whichever protocol: a
// long poll or a stream is not cut off. A body that stalls is, and an answer that is not read.
func TestForwardedDeadlines(t *testing.T) {
	for _, protocol := range []string{"plain", "HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			to := &owner{make(chan string), make(chan struct{}), make(chan error, 1)}
			ask := startForwarding(t, to, protocol)
			proceed := sync.OnceFunc(func() { close(to.proceed) })
			t.Cleanup(proceed) // what waits ends also after a failure, before its servers are waited for
			type answered struct{ what, text string }
			answers := make(chan answered, 3)
			wait := func(what, method, path string, body io.Reader, length int64) {
				go func() {
					answer, err := ask(method, path, body, length)
					if err != nil {
						answers <- answered{what, err.Error()}
						return
					}
					text, err := io.ReadAll(answer.Body)
					if err != nil {
						text = append(text, err.Error()...)
					}
					answers <- answered{what, string(text)}
				}()
				select {
				case <-to.asked:
				case a := <-answers:
					t.Fatalf("%s: %q", a.what, a.text)
				}
			}
			wait("a poll", http.MethodPost, "/poll", strings.NewReader("body"), 4)
			wait("one with a body that is not kept", http.MethodPost, "/poll", strings.NewReader(strings.Repeat("x", replayable+1)), replayable+1)
			wait("a stream", http.MethodGet, "/stream", nil, 0)
			began := clock.System.Now()

			for path, length := range map[string]int64{"/kept": 100, "/body": replayable + 1} {
				read, write := io.Pipe()
				go func() { _, _ = io.WriteString(write, "some") }()
				answer, err := ask(http.MethodPost, path, read, length)
				if err == nil {
					if answer.StatusCode < 400 {
						t.Errorf("a body of %d bytes that stalls: %s", length, answer.Status)
					}
					answer.Body.Close()
				}
				write.Close()
			}
			if err := <-to.ended; err == nil {
				t.Error("a body that stalls is taken for all of it")
			}

			answer, err := ask(http.MethodPost, "/large", strings.NewReader("x"), 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := <-to.ended; err == nil {
				t.Error("an answer that is not read is taken for read")
			}
			answer.Body.Close()

			// The time for an answer passes, and that for a body.
			if err := clock.Wait(t.Context(), clock.System, shortTime+time.Second-clock.System.Now().Sub(began)); err != nil {
				t.Fatal(err)
			}
			proceed()
			for range cap(answers) {
				a := <-answers
				if want := map[bool]string{true: "begun done", false: "done"}[a.what == "a stream"]; a.text != want {
					t.Errorf("%s: %q", a.what, a.text)
				}
			}
		})
	}
}

// A request comes to the owner as the client has written it, also with a query that others would
// mend, and without a host.
func TestForwardedAsWritten(t *testing.T) {
	asked := make(chan *http.Request, 1)
	peer := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Clone(context.WithoutCancel(r.Context())) }))
	defer peer.Close()
	f := startOwning(t).part.front // another node owns the state
	f.handOnTo([]roster.Peer{{Name: "b", Address: peer.Listener.Addr().String()}})
	for _, query := range []string{"Action=SendMessage&MessageBody=a;b&DelaySeconds=5;", "b=%zz&a=1", "b&a=%20+%2f"} {
		for _, host := range []string{"example.com", ""} {
			for _, path := range []string{"/", "/000000000000/q", "/a|b{c}^\"`", "/%71/%2f/%c3%a4", "//a//b/./../c", "/a%7Cb|c", "/:a@b,c;d=e&f$g!h*(i)'"} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
				u, err := url.ParseRequestURI(path)
				if err != nil {
					t.Fatal(err)
				}
				r.URL, r.Host, r.RequestURI = u, host, path+"?"+query
				r.URL.RawQuery, r.RemoteAddr = query, "192.0.2.7:1234"
				if r.TLS = nil; host != "" {
					r.TLS = new(tls.ConnectionState)
				}
				f.ServeHTTP(httptest.NewRecorder(), r)
				got := <-asked
				f.ofPeer(httptest.NewRecorder(), got)
				if got.RequestURI != path+"?"+query || got.URL.RawQuery != query || got.Host != host || got.RemoteAddr != "192.0.2.7:1234" || (got.TLS != nil) != (host != "") {
					t.Errorf("%q?%q at %q comes as %q at %q", path, query, host, got.RequestURI, got.Host)
				}
			}
		}
	}
}

// A header that Connection names comes to the owner, and so does Connection itself: the client may
// have signed them, and the owner verifies what the client has sent.
func TestForwardedConnectionHeaders(t *testing.T) {
	asked := make(chan http.Header, 1)
	address := startBeside(t, time.Minute, func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header })
	const fields = "Content-Length: 4\r\nX-Amz-Date: 20260101T000000Z\r\nX-Amz-Meta: m\r\nUser-Agent: u\r\nKeep-Alive: timeout=5\r\nProxy-Authorization: p\r\n"
	want := http.Header{
		"Content-Length": {"4"}, "X-Amz-Date": {"20260101T000000Z"}, "X-Amz-Meta": {"m"}, "User-Agent": {"u"}, "Keep-Alive": {"timeout=5"}, "Proxy-Authorization": {"p"},
	}
	for _, connection := range [][]string{
		nil,
		{"keep-alive"},
		{"close"},
		{"keep-alive, X-Amz-Date"},
		{"x-amz-meta , keep-alive", "Keep-Alive,User-Agent"},
		{"Content-Length"},
		{sourceHeader + ", " + forwardedHeader},
	} {
		request := "POST / HTTP/1.1\r\nHost: x\r\n" + fields
		for _, value := range connection {
			request += "Connection: " + value + "\r\n"
		}
		if status, text := exchanged(t, address, request+"\r\nbody", false); status != http.StatusOK {
			t.Errorf("Connection: %q: status %d: %s", connection, status, text)
			continue
		}
		got := <-asked
		if !slices.Equal(got["Connection"], connection) {
			t.Errorf("Connection: %q comes as %q", connection, got["Connection"])
		}
		got.Del("Connection")
		if !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("Connection: %q: %v, want %v", connection, got, want)
		}
	}
}

// A body that stalls is waited for as long as at the owner, be it small enough to be kept or not: for
// a window, and not for the time that a whole body may take. One that goes on coming is not cut off, nor
// one that the owner is slow to read.
func TestForwardedPace(t *testing.T) {
	address := startBeside(t, 2*time.Second, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			_ = clock.Wait(r.Context(), clock.System, 3*time.Second) // longer than a window
		}
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%d %t", n, errors.Is(err, os.ErrDeadlineExceeded))
	}, func(f *front) { f.limits.Times.Read = time.Hour })
	sent := func(t *testing.T, path string, body io.Reader, length int64) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = length
		answer, err := new(http.Transport).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if text, err := io.ReadAll(answer.Body); err != nil || string(text) != fmt.Sprintf("%d false", length) {
			t.Errorf("%s, %v", text, err)
		}
	}
	for _, length := range []int64{100, replayable + 1} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			t.Parallel()
			request := fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\nbody", length)
			if status, text := exchanged(t, address, request, false); status != http.StatusOK || text != "0 true" {
				t.Errorf("status %d: %s", status, text)
			}
		})
	}
	t.Run("one that goes on", func(t *testing.T) {
		t.Parallel()
		const piece, pieces = 12 << 10, 4 // each is enough for a window
		read, write := io.Pipe()
		go func() {
			for range pieces {
				_, _ = write.Write(make([]byte, piece))
				_ = clock.Wait(t.Context(), clock.System, time.Second)
			}
		}()
		sent(t, "/", read, piece*pieces)
	})
	t.Run("one that is read late", func(t *testing.T) {
		t.Parallel()
		const length = 64 << 20 // more than connections hold
		sent(t, "/late", bytes.NewReader(make([]byte, length)), length)
	})
}

// startBeside has a node forward to another one, where a handler answers as the owner's would, and both
// have listeners. It returns the address of the first for clients, whose bodies have to keep the pace in
// each window.
func startBeside(t *testing.T, window time.Duration, h http.HandlerFunc, change ...func(*front)) (address string) {
	t.Helper()
	o := startOwning(t) // another node owns the state
	at, err := o.part.net.Listen(t.Context(), "127.0.0.1:0", func(l net.Listener) net.Listener { return l })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(serve(forPeers(o.part.net.Only(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received(r)
		h(w, r)
	}))), at))
	f := o.part.front
	f.handOnTo([]roster.Peer{{Name: "b", Address: at.Addr().String()}})
	cfg := config.Config{MaxConnections: 100, MinTransferRate: 4 << 10, TransferWindow: window}
	f.limits = server.NewLimits(cfg, slog.New(slog.DiscardHandler))
	f.limits.Times = server.Times{Read: 3 * time.Second, Write: 3 * time.Second}
	for _, c := range change {
		c(f)
	}
	l, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(serve(server.ForClients(cfg, o.part.log, f.limits, l, nil, f)))
	return l.Addr().String()
}

// exchanged sends a request as it is, ends the client's side of the connection if ends is set, and
// returns the answer.
func exchanged(t *testing.T, address, request string, ends bool) (status int, text string) {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(clock.System.Now().Add(time.Minute))
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	if ends {
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// A client whose body cannot be read gets what the owner answers to that, which reads what is known of
// it: its length, and whether it came too late. So does one that has ended its side of the connection.
func TestForwardedUnread(t *testing.T) {
	answers := func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		_ = clock.Wait(r.Context(), clock.System, 50*time.Millisecond) // the request may be given up meanwhile
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %d %q %t %t", r.Method, r.ContentLength, text, err != nil, errors.Is(err, os.ErrDeadlineExceeded))
		if r.Header.Get(unreadHeader) != "" {
			t.Error("the header is left")
		}
	}
	unhurried := func(f *front) { // however busy the machine is
		f.patience, f.limits.Times = time.Hour, server.Times{Read: time.Hour, Write: time.Hour}
	}
	prompt, stalled := startBeside(t, time.Hour, answers, unhurried), startBeside(t, 100*time.Millisecond, answers, unhurried)
	const post, chunked = "POST / HTTP/1.1\r\nHost: x\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	for _, c := range []struct {
		name, request string
		ends          bool
		want          string
	}{
		{"a whole body", post + "Content-Length: 4\r\n\r\nbody", false, `POST 4 "body" false false`},
		{"a whole body, and no more", post + "Content-Length: 4\r\n\r\nbody", true, `POST 4 "body" false false`},
		{"no body, and no more", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", true, `GET 0 "" false false`},
		{"chunks, and no more", post + chunked + "4\r\nbody\r\n0\r\n\r\n", true, `POST -1 "body" false false`},
		{"half a body", post + "Content-Length: 8\r\n\r\nbody", true, `POST 8 "" true false`},
		{"half of one that is not kept", post + fmt.Sprintf("Content-Length: %d\r\n\r\nbody", replayable+1), true, fmt.Sprintf(`POST %d "" true false`, replayable+1)},
		{"half a body, and then nothing", post + "Content-Length: 8\r\n\r\nbody", false, `POST 8 "" true true`},
		{"what is no chunk", post + chunked + "no\r\nbody\r\n", false, `POST -1 "" true false`},
		{"what is no second chunk", post + chunked + "4\r\nbody\r\nno\r\n", false, `POST -1 "" true false`},
		{"half a chunk", post + chunked + "8\r\nbody", true, `POST -1 "" true false`},
		{"an upgrade", post + "Connection: Upgrade\r\nUpgrade: \xc3\xa4\r\nContent-Length: 4\r\n\r\nbody", false, `POST 4 "body" false false`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			address := prompt
			if strings.HasSuffix(c.want, " true true") { // it is waited for in vain
				address = stalled
			}
			if status, text := exchanged(t, address, c.request, c.ends); status != http.StatusTeapot || text != c.want {
				t.Errorf("status %d: %s, want %s", status, text, c.want)
			}
		})
	}
}

// A long poll of a client that hangs up ends at the owner, which must take no message for it.
func TestForwardedHangUp(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	address := startBeside(t, time.Minute, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(ended)
	})
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	over, stop := clock.After(clock.System, time.Minute)
	defer stop()
	select {
	case <-ended:
	case <-over:
		t.Error("it goes on")
	}
}

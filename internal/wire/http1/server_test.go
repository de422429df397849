package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// start serves h on a port of its own, with the timeouts that set may change.
func start(t testing.TB, h http.Handler, set func(*http.Server)) (*Server, string) {
	t.Helper()
	other := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), ReadHeaderTimeout: time.Minute}
	if set != nil {
		set(other)
	}
	s := New(other.Handler, other)
	return s, serve(t, s, func(l net.Listener) net.Listener { return l })
}

// serve has s serve what by makes of a port of its own.
func serve(t testing.TB, s *Server, by func(net.Listener) net.Listener) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(by(l)) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

// client is a connection that is written to byte by byte.
type client struct {
	t *testing.T
	net.Conn
	*bufio.Reader
}

func dial(t *testing.T, addr string) client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return client{t, c, bufio.NewReader(c)}
}

func (c client) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func (c client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, s); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads one answer and checks its status and body.
func (c client) answer(status int, body string) *http.Response {
	c.t.Helper()
	r, err := http.ReadResponse(c.Reader, nil)
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != status || string(b) != body {
		c.t.Fatalf("answered %d %.200q %v, want %d %.200q", r.StatusCode, b, err, status, body)
	}
	return r
}

// ended checks that the server closes the connection and says nothing more.
func (c client) ended() {
	c.t.Helper()
	if b, err := io.ReadAll(c.Reader); len(b) > 0 || err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		c.t.Fatalf("%q, %v, want the connection's end", b, err)
	}
}

func request(body string, fields ...string) string {
	head := "POST /q HTTP/1.1\r\nHost: localhost\r\n"
	for _, f := range fields {
		head += f + "\r\n"
	}
	return head + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// echo answers with what it was asked. The header X-Plain says that the request
// did not come by way of net/http.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if _, plain := w.(*response); plain {
		w.Header().Set("X-Plain", "true")
	}
	b, err := io.ReadAll(r.Body)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.WriteHeader(http.StatusRequestTimeout)
		return
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.Path, r.Host, b)
})

func TestPlainRequests(t *testing.T) {
	_, addr := start(t, echo, nil)
	c := dial(t, addr)
	large := strings.Repeat("body ", 10_000)
	for _, body := range []string{"", "one", large, "two"} {
		c.send(request(body))
		r := c.answer(200, "POST /q localhost "+body)
		if r.Header.Get("X-Plain") != "true" {
			t.Error("served by net/http")
		}
		if _, err := http.ParseTime(r.Header.Get("Date")); err != nil {
			t.Error(err)
		}
	}
	t.Run("many at once", func(t *testing.T) {
		c.send(request("a") + request("b") + request(large) + request("c"))
		for _, body := range []string{"a", "b", large, "c"} {
			c.answer(200, "POST /q localhost "+body)
		}
	})
	t.Run("byte by byte", func(t *testing.T) {
		for _, b := range []byte(request("slow")) {
			c.send(string(b))
		}
		c.answer(200, "POST /q localhost slow")
	})
	t.Run("a head larger than a read", func(t *testing.T) {
		c.send(request("x", "X-Long: "+strings.Repeat("x", 3*readSize)))
		c.answer(200, "POST /q localhost x")
	})
	t.Run("a body that ends early", func(t *testing.T) {
		c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc")
		c.Conn.(*net.TCPConn).CloseWrite()
		c.answer(400, "")
		c.ended()
	})
}

func TestOtherRequestsAreLeftToNetHTTP(t *testing.T) {
	small := func(s *http.Server) { s.MaxHeaderBytes = 8 << 10 }
	t.Run("plain", func(t *testing.T) {
		_, addr := start(t, echo, small)
		testOtherRequests(t, func(t *testing.T) client { return dial(t, addr) })
	})
	t.Run("TLS", func(t *testing.T) {
		_, addr := startTLS(t, echo, small)
		testOtherRequests(t, func(t *testing.T) client { return dialTLS(t, addr, "http/1.1") })
	})
}

func testOtherRequests(t *testing.T, dial func(t *testing.T) client) {
	for name, test := range map[string]struct {
		sent   string
		status int
		body   string
	}{
		"another method":   {"GET /a HTTP/1.1\r\nHost: h\r\n\r\n", 200, "GET /a h "},
		"an older version": {"POST / HTTP/1.0\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", 200, "POST / h x"},
		"chunks":           {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 200, "POST / h x"},
		"escapes":          {"POST /a%20b HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", 200, "POST /a b h x"},
		"no host":          {"POST / HTTP/1.1\r\n\r\n", 400, "400 Bad Request: missing required Host header"},
		"no request":       {"what?\r\n\r\n", 400, "400 Bad Request"},
		"bare line feeds":  {"POST / HTTP/1.1\nHost: h\nContent-Length: 1\n\nx", 200, "POST / h x"},
		"one of them":      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\n\nx", 200, "POST / h x"},
		"TLS":              {"\x16\x03\x01\x00\x05\x01\x00\x00\x01\n", 400, "400 Bad Request"},
		"a head too large": {"POST / HTTP/1.1\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", 431, "431 Request Header Fields Too Large"},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t)
			c.send(request("plain"))
			c.answer(200, "POST /q localhost plain")
			c.send(test.sent)
			if r := c.answer(test.status, test.body); r.Header.Get("X-Plain") != "" {
				t.Error("taken as plain")
			}
		})
	}
	t.Run("and the connection stays there", func(t *testing.T) {
		c := dial(t)
		c.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n" + request("next"))
		c.answer(200, "GET /a h ")
		if r := c.answer(200, "POST /q localhost next"); r.Header.Get("X-Plain") != "" {
			t.Error("came back")
		}
	})
	t.Run("an expectation", func(t *testing.T) {
		c := dial(t)
		c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
		if line, err := c.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatal(line, err)
		}
		c.ReadString('\n')
		c.send("x")
		c.answer(200, "POST / h x")
	})
}

// Ends of lines behind a body, which some old clients send, are overlooked as net/http
// overlooks them.
func TestLineEndsBehindABody(t *testing.T) {
	_, addr := start(t, echo, nil)
	c := dial(t, addr)
	c.send(request("a") + "\r\n")
	c.answer(200, "POST /q localhost a")
	c.send("GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n")
	c.answer(200, "GET /next localhost ")
}

func TestUnreadBodies(t *testing.T) {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) })
	_, addr := start(t, refuse, nil)
	c := dial(t, addr)
	c.send(request(strings.Repeat("x", maxDiscard)) + request(""))
	if r := c.answer(413, ""); r.Close {
		t.Error("a small body ends the connection")
	}
	c.answer(413, "")
	c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n" + strings.Repeat("x", 1<<20))
	if r := c.answer(413, ""); !r.Close {
		t.Error("the end of the connection was not said")
	}
	c.Close()

	// Most clients read nothing before they have sent all.
	body := strings.Repeat("x", 20<<20)
	c = dial(t, addr)
	c.send(request(body))
	c.answer(413, "")
	c = dial(t, addr)
	c.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1400000\r\n" + body + "\r\n0\r\n\r\n") // left to net/http
	c.answer(413, "")
	c = dial(t, addr)
	c.send(request(body, "Connection: close"))
	c.answer(413, "")
	c.ended()
}

func TestAnswers(t *testing.T) {
	large, exited := strings.Repeat("answer ", 100_000), make(chan bool, 1)
	_, addr := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
			if _, err := io.WriteString(w, "a body"); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("a body where none may be: %v", err)
			}
		case "/broken":
			w.Header().Set("X-Text", "a\r\nInjected: b")
			w.WriteHeader(http.StatusTeapot)
			w.WriteHeader(http.StatusOK)
		case "/large":
			w.Header().Set("Content-Length", strconv.Itoa(len(large)))
			io.WriteString(w, large)
			if n, err := w.Write([]byte("more")); n != 0 || !errors.Is(err, http.ErrContentLength) {
				t.Errorf("a write behind the answer: %d, %v", n, err)
			}
		case "/parts":
			io.WriteString(w, large)
			io.WriteString(w, "end")
		case "/last":
			w.Header().Set("Connection", "close")
		case "/other":
			w.Header().Set("Connection", "X-Hop")
		case "/exit":
			context.AfterFunc(r.Context(), func() { exited <- true })
			runtime.Goexit()
		case "/abort":
			io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		case "/panic":
			panic("a mistake")
		}
	}), nil)
	c := dial(t, addr)
	ask := func(path string) { c.send("POST " + path + " HTTP/1.1\r\nHost: h\r\n\r\n") }
	ask("/empty")
	if r := c.answer(204, ""); r.Header.Get("Content-Length") != "" {
		t.Error("a length without a body")
	}
	ask("/broken")
	if r := c.answer(http.StatusTeapot, ""); r.Header.Get("Injected") != "" || r.Header.Get("X-Text") != "a  Injected: b" {
		t.Errorf("header %q", r.Header)
	}
	ask("/large")
	c.answer(200, large)
	ask("/parts")
	c.answer(200, large+"end")
	ask("/other")
	if r := c.answer(200, ""); r.Close || r.Header.Get("Connection") != "X-Hop" {
		t.Errorf("header %q", r.Header)
	}
	ask("/last")
	if r := c.answer(200, ""); !r.Close {
		t.Error("the end that the handler asked for was not said")
	}
	c.ended()
	for _, path := range []string{"/abort", "/panic", "/exit"} {
		c = dial(t, addr)
		ask(path)
		c.ended()
	}
	<-exited
}

// A context may be asked for by another goroutine than the one that reads the body.
func TestContextsThatAreDerivedWhileTheBodyIsRead(t *testing.T) {
	_, addr := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		derived := make(chan context.CancelFunc)
		go func() {
			_, cancel := context.WithCancel(r.Context())
			derived <- cancel
		}()
		echo(w, r)
		(<-derived)()
	}), nil)
	c := dial(t, addr)
	for range 100 {
		body := strings.Repeat("x", 2*readSize)
		c.send(request(body))
		c.answer(200, "POST /q localhost "+body)
	}
}

func TestACallerThatHangsUpCancelsTheRequest(t *testing.T) {
	read, cancelled := make(chan bool), make(chan error)
	_, addr := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		select {
		case <-ctx.Done():
			t.Error("cancelled before the body was read")
		default:
		}
		io.ReadAll(r.Body)
		if err := r.Context().Err(); err != nil {
			t.Error(err)
		}
		read <- true
		<-ctx.Done()
		cancelled <- r.Context().Err()
	}), nil)
	c := dial(t, addr)
	c.send(request("body"))
	<-read
	c.Close()
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Errorf("the context says %v", err)
	}
}

// A request that comes while the one before is waited for loses no byte to the
// watch, and a context that is asked late reports that its request is over.
func TestRequestsBehindOneThatWaits(t *testing.T) {
	answer := make(chan bool)
	contexts := make(chan context.Context, 10)
	_, addr := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		contexts <- r.Context()
		b, _ := io.ReadAll(r.Body)
		if string(b) == "wait" {
			select {
			case <-answer:
			case <-r.Context().Done():
				t.Error("cancelled")
			}
		}
		w.Write(b)
	}), nil)
	c := dial(t, addr)
	c.send(request("wait"))
	first := <-contexts
	c.send(request("early") + request(strings.Repeat("x", 2*readSize)))
	answer <- true
	c.answer(200, "wait")
	c.answer(200, "early")
	c.answer(200, strings.Repeat("x", 2*readSize))
	c.send(request("wait"))
	answer <- true // without anything behind
	c.answer(200, "wait")
	c.send(request("last"))
	c.answer(200, "last")
	<-first.Done()
	second := <-contexts
	if !errors.Is(second.Err(), context.Canceled) {
		t.Errorf("the context of a request that is over says %v", second.Err())
	}
	<-second.Done()
	if _, ok := second.Deadline(); ok || second.Value("key") != nil {
		t.Error("a deadline or a value")
	}
}

// A body that its handler leaves, having asked for Done, is read on after it:
// that must not begin a watch which nobody ends.
func TestUnreadBodyOfARequestThatIsWatched(t *testing.T) {
	_, addr := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Done() == nil {
			t.Error("never done")
		}
		w.Write([]byte(r.Header.Get("X-Number")))
	}), nil)
	c := dial(t, addr)
	for i := range 1000 {
		number := strconv.Itoa(i)
		c.send(request(strings.Repeat("x", 2*readSize), "X-Number: "+number))
		c.answer(200, number)
	}
}

func TestSlowPeersAreCutOff(t *testing.T) {
	const short = 30 * time.Millisecond
	lift := func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if err := errors.Join(c.SetReadDeadline(clock.System.Now().Add(time.Minute)), c.SetWriteDeadline(clock.System.Now().Add(time.Minute))); err != nil {
			t.Error(err)
		}
		echo(w, r)
	}
	// slow is a connection to a server where only one time is short: a busy machine
	// may take longer than that for everything else.
	slow := func(t *testing.T, set func(s *http.Server)) client {
		t.Helper()
		_, addr := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Lift") != "" {
				lift(w, r)
				return
			}
			echo(w, r)
		}), func(s *http.Server) {
			s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout = time.Hour, time.Hour, time.Hour
			set(s)
		})
		return dial(t, addr)
	}
	inBody := func(s *http.Server) { s.ReadTimeout = short }
	t.Run("who asks nothing", func(t *testing.T) {
		slow(t, func(s *http.Server) { s.IdleTimeout = short }).ended()
	})
	t.Run("in the head", func(t *testing.T) {
		c := slow(t, func(s *http.Server) { s.ReadHeaderTimeout = short })
		c.send("POST / HTTP/1.1\r\nHost: ")
		c.ended()
	})
	t.Run("in the body", func(t *testing.T) {
		c := slow(t, inBody)
		c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabc")
		c.answer(408, "")
		c.ended()
	})
	t.Run("who sends a little again and again", func(t *testing.T) {
		c := slow(t, inBody)
		c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n")
		tick := clock.System.Now()
		for clock.System.Now().Sub(tick) < time.Minute {
			if _, err := io.WriteString(c.Conn, "x"); err != nil {
				return // cut off
			}
			<-after(short / 5)
		}
		t.Error("may go on for ever")
	})
	t.Run("unless the handler grants more", func(t *testing.T) {
		c := slow(t, inBody)
		c.send("POST / HTTP/1.1\r\nHost: h\r\nX-Lift: yes\r\nContent-Length: 5\r\n\r\nabc")
		<-after(3 * short)
		c.send("de")
		c.answer(200, "POST / h abcde")
		c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabc") // the usual times are back
		c.answer(408, "")
		c.ended()
	})
}

// watched is a listener that tells with each read and write of its connections
// whether a time is set for it.
type watched struct {
	net.Listener
	used chan string
}

func (w watched) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &watchedConn{TCPConn: c.(*net.TCPConn), used: w.used}, nil
}

type watchedConn struct {
	*net.TCPConn
	used                      chan string
	readBounded, writeBounded bool
}

func (c *watchedConn) SetReadDeadline(t time.Time) error {
	c.readBounded = !t.IsZero()
	return c.TCPConn.SetReadDeadline(t)
}

func (c *watchedConn) SetWriteDeadline(t time.Time) error {
	c.writeBounded = !t.IsZero()
	return c.TCPConn.SetWriteDeadline(t)
}

func (c *watchedConn) Read(p []byte) (int, error) {
	c.used <- fmt.Sprintf("read %v", c.readBounded)
	return c.TCPConn.Read(p)
}

func (c *watchedConn) Write(p []byte) (int, error) {
	c.used <- fmt.Sprintf("write %v", c.writeBounded)
	return c.TCPConn.Write(p)
}

// Where no time is given, net/http takes the read timeout or none; what a handler
// sets is for its request alone.
func TestTimeoutsThatAreNotGiven(t *testing.T) {
	const hour = time.Hour
	for name, test := range map[string]struct {
		other                   *http.Server
		idle, head, body, write bool
	}{
		"all":                {&http.Server{}, false, false, false, false},
		"all but for reads":  {&http.Server{ReadTimeout: hour}, true, true, true, false},
		"all but when idle":  {&http.Server{IdleTimeout: hour}, true, false, false, false},
		"all but for heads":  {&http.Server{ReadHeaderTimeout: hour}, false, true, false, false},
		"all but for writes": {&http.Server{WriteTimeout: hour}, false, false, false, true},
		"negative ones":      {&http.Server{ReadTimeout: hour, ReadHeaderTimeout: -1, WriteTimeout: -1, IdleTimeout: -1}, false, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			other, used := test.other, make(chan string)
			other.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Set") != "" {
					c, later := http.NewResponseController(w), clock.System.Now().Add(2*hour)
					if err := errors.Join(c.SetReadDeadline(later), c.SetWriteDeadline(later)); err != nil {
						t.Error(err)
					}
				}
				io.ReadAll(r.Body)
			})
			c := dial(t, serve(t, New(other.Handler, other), func(l net.Listener) net.Listener { return watched{l, used} }))
			expect := func(phase, what string, bounded bool) {
				t.Helper()
				if got, want := <-used, fmt.Sprint(what, " ", bounded); got != want {
					t.Errorf("%s: %s, want %s", phase, got, want)
				}
			}
			for _, field := range []string{"", "X-Set: yes\r\n", ""} {
				set := field != ""
				expect("idle", "read", test.idle)
				c.send("POST / HTTP/1.1\r\nHost: h\r\n")
				expect("head", "read", test.head)
				c.send(field + "Content-Length: 1\r\n\r\n")
				expect("body", "read", test.body || set)
				c.send("x")
				expect("answer", "write", test.write || set)
				c.answer(200, "")
			}
			expect("idle", "read", test.idle)
		})
	}
}

func TestAnAnswerThatNobodyReadsIsCutOff(t *testing.T) {
	done := make(chan error, 1)
	body := bytes.Repeat([]byte("x"), 64<<20)
	_, addr := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, err := w.Write(body)
		done <- err
	}), func(s *http.Server) { s.WriteTimeout = 50 * time.Millisecond })
	c := dial(t, addr)
	c.send(request(""))
	if err := <-done; err == nil {
		t.Error("written to nobody")
	}
}

func TestShutdown(t *testing.T) {
	arrived, answer := make(chan bool), make(chan bool)
	s, addr := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		if r.URL.Path == "/q" {
			arrived <- true
			<-answer
		}
	}), nil)
	idle, other, busy := dial(t, addr), dial(t, addr), dial(t, addr)
	idle.send("POST / HTTP/1.1\r\nHost: h\r\n\r\n")
	idle.answer(200, "")
	other.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	other.answer(200, "")
	busy.send(request("x"))
	<-arrived

	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(t.Context()) }()
	idle.ended()
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("a connection is taken after the stop")
	}
	select {
	case err := <-stopped:
		t.Fatalf("stopped with a request under way: %v", err)
	default:
	}
	answer <- true
	if r := busy.answer(200, ""); !r.Close {
		t.Error("the end of the connection was not said")
	}
	busy.ended()
	other.ended()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if !s.closeIdle() {
		t.Error("a connection is still known")
	}
}

func TestShutdownThatIsCutShort(t *testing.T) {
	arrived := make(chan bool)
	s, addr := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		arrived <- true
		<-r.Context().Done()
	}), nil)
	c := dial(t, addr)
	c.send(request("x"))
	<-arrived
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	c.ended()
}

// Close also cuts off a body that net/http reads: it is not read to the end, nor with a hole in it.
func TestCloseEndsABodyThatIsRead(t *testing.T) {
	arrived, read := make(chan bool), make(chan string)
	s, addr := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 1))
		arrived <- true
		b, err := io.ReadAll(r.Body)
		if err == nil {
			t.Error("the body is taken for whole")
		}
		read <- string(b)
	}), nil)
	c := dial(t, addr)
	c.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
	<-arrived
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	_, _ = io.WriteString(c.Conn, "5\r\nafter\r\n0\r\n\r\n") // fails if the end has arrived
	if b := <-read; b != "" {
		t.Errorf("%q was read behind the end", b)
	}
}

func TestServeAfterShutdown(t *testing.T) {
	s := New(echo, &http.Server{Handler: echo})
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
}

func BenchmarkRequest(b *testing.B) {
	_, addr := start(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body [64]byte
		n, _ := r.Body.Read(body[:])
		w.Header()["Content-Type"] = jsonType
		w.Write(body[:n])
	}), nil)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	sent := []byte(sdkHead + "twelve bytes")
	answer := make([]byte, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(sent); err != nil {
			b.Fatal(err)
		}
		if n, err := c.Read(answer); err != nil || !bytes.HasSuffix(answer[:n], []byte("twelve bytes")) {
			b.Fatalf("%q, %v", answer[:n], err)
		}
	}
}

var jsonType = []string{"application/x-amz-json-1.0"}

package httpsender

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/deliver/sendertest"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSender(t *testing.T, o Options) *Sender {
	s := New(o)
	t.Cleanup(s.Close)
	return s
}

// serve runs a server; what it handles must end by itself.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

func TestConformance(t *testing.T) {
	sendertest.Run(t, func(t *testing.T, b sendertest.Behaviour) sendertest.Target {
		var mu sync.Mutex
		var received [][]byte
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			received = append(received, body)
			mu.Unlock()
			switch b {
			case sendertest.Takes:
			case sendertest.Fails:
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprint(w, sendertest.Secret)
			case sendertest.Refuses:
				w.WriteHeader(http.StatusGone)
				fmt.Fprint(w, sendertest.Secret)
			case sendertest.Hangs:
				<-r.Context().Done()
			}
		})
		return sendertest.Target{
			Sender: newSender(t, Options{AllowPrivate: true}), Protocol: topic.HTTP,
			Endpoint: strings.Replace(server.URL, "//", "//user:"+sendertest.Secret+"@", 1) + "/path?key=" + sendertest.Secret,
			Received: func() [][]byte {
				mu.Lock()
				defer mu.Unlock()
				return received
			},
		}
	})
}

// testTimeout bounds an attempt that should be quick.
const testTimeout = time.Minute

// send makes one attempt with the sample request, changed.
func send(t *testing.T, s *Sender, endpoint string, change func(r *deliver.Request)) deliver.Outcome {
	t.Helper()
	r := sendertest.Request(sendertest.Target{Protocol: topic.HTTP, Endpoint: endpoint})
	if change != nil {
		change(r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	return s.Send(ctx, r)
}

func TestRequest(t *testing.T) {
	const enveloped = "{\n  \"Type\" : \"Notification\""
	for _, tt := range []struct {
		name   string
		change func(r *deliver.Request)
		want   map[string]string // a header's name as sent, and its value; the rest must not be there
		body   string            // how it begins
	}{
		{"notification", nil, map[string]string{
			"Content-Type": "text/plain; charset=UTF-8", "x-amz-sns-message-type": "Notification",
			"x-amz-sns-subscription-arn": "arn:aws:sns:us-east-1:000000000000:orders:6d6b8f6e-0000-4000-8000-000000000001",
		}, enveloped},
		{"content type", func(r *deliver.Request) { r.ContentType = "application/json" }, map[string]string{
			"Content-Type": "application/json", "x-amz-sns-message-type": "Notification",
			"x-amz-sns-subscription-arn": "arn:aws:sns:us-east-1:000000000000:orders:6d6b8f6e-0000-4000-8000-000000000001",
		}, enveloped},
		{"raw", func(r *deliver.Request) { r.Message.Notice.Raw = true }, map[string]string{
			"Content-Type": "text/plain; charset=UTF-8", "x-amz-sns-message-type": "Notification", "x-amz-sns-rawdelivery": "true",
			"x-amz-sns-subscription-arn": "arn:aws:sns:us-east-1:000000000000:orders:6d6b8f6e-0000-4000-8000-000000000001",
		}, "body "},
		{"confirmation", func(r *deliver.Request) {
			r.ContentType, r.Message.Notice.Raw, r.Message.Notice.Kind = "application/json", true, message.SubscriptionConfirmation
		}, map[string]string{
			"Content-Type": "text/plain; charset=UTF-8", "x-amz-sns-message-type": "SubscriptionConfirmation",
		}, "{\n  \"Type\" : \"SubscriptionConfirmation\""},
		{"unsubscribed", func(r *deliver.Request) { r.Message.Notice.Kind = message.UnsubscribeConfirmation }, map[string]string{
			"Content-Type": "text/plain; charset=UTF-8", "x-amz-sns-message-type": "UnsubscribeConfirmation",
			"x-amz-sns-subscription-arn": "arn:aws:sns:us-east-1:000000000000:orders:6d6b8f6e-0000-4000-8000-000000000001",
		}, "{\n  \"Type\" : \"UnsubscribeConfirmation\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			head, body := wireRequest(t, tt.change)
			if !strings.HasPrefix(head[0], "POST /path?q=1 HTTP/1.1") {
				t.Errorf("request line %q", head[0])
			}
			tt.want["User-Agent"], tt.want["Accept-Encoding"] = "Amazon Simple Notification Service Agent", "gzip,deflate"
			tt.want["Connection"] = "Keep-Alive"
			tt.want["x-amz-sns-message-id"] = "aa000000-0000-0000-0000-000000000001"
			tt.want["x-amz-sns-topic-arn"] = "arn:aws:sns:us-east-1:000000000000:orders"
			got := map[string]string{}
			for _, line := range head[1:] {
				name, value, _ := strings.Cut(line, ": ")
				if name != "Host" && name != "Content-Length" {
					got[name] = value
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("headers (-want +got):\n%s", d)
			}
			if !strings.HasPrefix(body, tt.body) {
				t.Errorf("body %q", body)
			}
		})
	}
}

// wireRequest reads a request off the wire, where names have the spelling that
// was sent.
func wireRequest(t *testing.T, change func(*deliver.Request)) (head []string, body string) {
	t.Helper()
	address := raw(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		length := 0
		for {
			line, err := r.ReadString('\n')
			if line = strings.TrimRight(line, "\r\n"); line == "" || err != nil {
				break
			}
			_, _ = fmt.Sscanf(line, "Content-Length: %d", &length)
			head = append(head, line)
		}
		p := make([]byte, length)
		_, _ = io.ReadFull(r, p)
		body = string(p)
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	})
	if out := send(t, newSender(t, Options{AllowPrivate: true}), "http://user:pw@"+address+"/path?q=1#fragment", change); out.Class != deliver.Success {
		t.Fatalf("outcome %+v", out)
	}
	return head, body
}

// raw accepts one connection and hands it to f.
func raw(t *testing.T, f func(c net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		f(c)
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

func TestClassification(t *testing.T) {
	s, old := New(Options{Retry429: true}), New(Options{})
	for status, want := range map[int]deliver.Class{
		99: deliver.ServerError, 100: deliver.ServerError, 101: deliver.ServerError, 199: deliver.ServerError,
		200: deliver.Success, 204: deliver.Success, 299: deliver.Success,
		300: deliver.ClientError, 301: deliver.ClientError, 304: deliver.ClientError, 399: deliver.ClientError,
		400: deliver.ClientError, 401: deliver.ClientError, 404: deliver.ClientError, 408: deliver.ClientError,
		410: deliver.ClientError, 428: deliver.ClientError, 430: deliver.ClientError, 499: deliver.ClientError,
		429: deliver.ServerError,
		500: deliver.ServerError, 503: deliver.ServerError, 599: deliver.ServerError,
		600: deliver.ServerError, 999: deliver.ServerError,
	} {
		if got := s.classify(status); got.Class != want || got.Status != status {
			t.Errorf("%d: %+v, want %s", status, got, want)
		}
	}
	if got := old.classify(429).Class; got != deliver.ClientError {
		t.Errorf("429 without Retry429: %s", got)
	}
}

// TestStatusesOnTheWire runs the ones that net/http might treat by itself.
func TestStatusesOnTheWire(t *testing.T) {
	for answer, want := range map[string]deliver.Outcome{
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n": {Class: deliver.ServerError, Status: 101, Detail: "HTTP 101 Switching Protocols"},
		"HTTP/1.1 204 No Content\r\n\r\n":                                               {Class: deliver.Success, Status: 204},
		"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n":                   {Class: deliver.ClientError, Status: 302, Detail: "HTTP 302 Found, and redirects are not followed"},
		"HTTP/1.1 503 s3cr3t phrase\r\n\r\n":                                            {Class: deliver.ServerError, Status: 503, Detail: "HTTP 503 Service Unavailable"},
		"HTTP/1.1 777 Odd\r\n\r\n":                                                      {Class: deliver.ServerError, Status: 777, Detail: "HTTP 777"},
		"s3cr3t nonsense\r\n\r\n":                                                       {Class: deliver.ServerError, Detail: "no usable answer"},
		"":                                                                              {Class: deliver.ServerError, Detail: "connection closed without an answer"},
	} {
		address := raw(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			fmt.Fprint(c, answer)
		})
		got := send(t, newSender(t, Options{AllowPrivate: true}), "http://"+address, nil)
		got.Latency = 0
		if got.Detail == "connection reset" && answer == "" {
			continue // the kernel's choice when not all of the request was read
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", answer, d)
		}
	}
}

func TestFailuresWithoutAnAnswer(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = nil
	t.Cleanup(secure.Close)
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	reset := raw(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		_ = c.(*net.TCPConn).SetLinger(0) // close with a reset
	})
	trusting := func() *tls.Config {
		pool := secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		return &tls.Config{RootCAs: pool}
	}
	late := trusting()
	late.Time = func() time.Time { return time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC) }
	otherName := trusting()
	otherName.ServerName = "other.invalid"
	for _, tt := range []struct {
		name, endpoint string
		tls            *tls.Config
		want           string
	}{
		{"refused", "http://" + closed.Addr().String(), nil, "connection refused"},
		{"reset", "http://" + reset, nil, "connection reset"},
		{"no such host", "http://name.invalid/", nil, "DNS: "},
		{"untrusted", secure.URL, &tls.Config{}, "TLS: the certificate is not trusted"},
		{"expired", secure.URL, late, "TLS: the certificate has expired"},
		{"wrong name", secure.URL, otherName, "TLS: the certificate is for another name"},
		{"no TLS", strings.Replace(plain.URL, "http:", "https:", 1), nil, "TLS: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := send(t, newSender(t, Options{AllowPrivate: true, TLS: tt.tls}), tt.endpoint, nil)
			if got.Class != deliver.ServerError || got.Status != 0 || !strings.HasPrefix(got.Detail, tt.want) {
				t.Errorf("got %+v, want a server-side error: %s…", got, tt.want)
			}
		})
	}
	if got := send(t, newSender(t, Options{AllowPrivate: true, TLS: trusting()}), secure.URL, nil); got.Status != 404 {
		t.Errorf("over trusted TLS: %+v", got)
	}
	for _, bad := range []string{"", "http://", "ftp://host/", "http://ho st/", "http://%zz/"} {
		if got := send(t, newSender(t, Options{AllowPrivate: true}), bad, nil); got.Class != deliver.ClientError {
			t.Errorf("endpoint %q: %+v", bad, got)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var requests atomic.Int32
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	got := send(t, newSender(t, Options{AllowPrivate: true}), server.URL, nil)
	if got.Class != deliver.ClientError || got.Status != 307 || requests.Load() != 1 {
		t.Errorf("%+v after %d requests", got, requests.Load())
	}
}

func TestConnectionsAreReused(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "a body")
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	s := newSender(t, Options{AllowPrivate: true})
	for range 10 {
		send(t, s, server.URL, nil)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("10 attempts, one after the other, took %d connections", n)
	}
}

// TestAnEndlessAnswerIsCutShort: the status counts, the body does not.
func TestAnEndlessAnswerIsCutShort(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the body never ends
	})
	began := clock.System.Now()
	got := send(t, newSender(t, Options{AllowPrivate: true}), server.URL, nil)
	if d := clock.System.Now().Sub(began); got.Class != deliver.Success || d >= testTimeout {
		t.Errorf("%+v after %s", got, d)
	}
}

func TestGuardHoldsAtTheDial(t *testing.T) {
	var requests atomic.Int32
	server := serve(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	s := newSender(t, Options{})
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433"} {
		got := send(t, s, "http://"+net.JoinHostPort(strings.Trim(host, "[]"), port), nil)
		refused := got.Class == deliver.ClientError && got.Detail == publicnet.ErrForbidden.Error()
		unresolved := got.Class == deliver.ServerError && strings.HasPrefix(got.Detail, "DNS:") // some resolvers know no such names
		if !refused && (!unresolved || host != "2130706433") {
			t.Errorf("%s: %+v", host, got)
		}
	}
	if requests.Load() != 0 {
		t.Error("a request reached the private endpoint")
	}
}

func TestHost(t *testing.T) {
	s := New(Options{})
	for endpoint, want := range map[string]string{
		"http://Host/a": "host:80", "https://host/b?c": "host:443", "https://u:p@host:8443": "host:8443",
		"http://[::1]/": "[::1]:80", "http://[::1]:81/": "[::1]:81",
	} {
		if got := s.Host(endpoint); got != want {
			t.Errorf("%s: %q, want %q", endpoint, got, want)
		}
	}
}

func TestSilentEndpointKeepsNoConnection(t *testing.T) {
	for _, tt := range []struct{ name, scheme, answer string }{
		{"a handshake without an answer", "https", ""},
		{"another protocol", "http", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slots := limit.NewSlots("connections", 3)
				s := newSender(t, Options{Connections: slots, Dial: func(context.Context, string, string) (net.Conn, error) {
					client, server := net.Pipe()
					go func() {
						if tt.answer != "" {
							_, _ = http.ReadRequest(bufio.NewReader(server))
							_, _ = io.WriteString(server, tt.answer)
						}
						_, _ = io.Copy(io.Discard, server) // until the sender closes it
					}()
					return client, nil
				}})
				for range slots.Len() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					r := sendertest.Request(sendertest.Target{Protocol: topic.HTTP, Endpoint: tt.scheme + "://endpoint.example/"})
					if out := s.Send(ctx, r); out.Class != deliver.ServerError {
						t.Errorf("the outcome is %+v, want a server-side error", out)
					}
					cancel()
				}
				over, _ := clock.After(clock.System, time.Minute)
				<-over
				if n := slots.Stats().Used; n != 0 {
					t.Errorf("%d connections are open after their attempts", n)
				}
			})
		})
	}
}

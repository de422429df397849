package web_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/outlet"
	"godwit.dev/godwit/internal/outlet/web"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/stream"
)

func request(url string) *outlet.Post {
	return &outlet.Post{
		URL: url, AccessKey: "key", ID: "an id", Source: "arn:hose", Time: 1234, Size: 5,
		Attributes: []stream.Attribute{{AttributeName: new("n"), AttributeValue: new(`v"`)}},
		Records: func(f func(data []byte)) error {
			f([]byte("a"))
			f(nil)
			f([]byte("\xff\x00"))
			return nil
		},
	}
}

func code(err error) string {
	if e, ok := errors.AsType[*outlet.Error](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

// What an endpoint is sent is Firehose's form, compressed or not.
func TestRequest(t *testing.T) {
	for _, packed := range []bool{false, true} {
		t.Run(fmt.Sprint("compressed ", packed), func(t *testing.T) {
			var head http.Header
			var body []byte
			endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var in io.Reader = r.Body
				if packed {
					var err error
					if in, err = gzip.NewReader(r.Body); err != nil {
						t.Error(err)
						return
					}
				}
				head = r.Header
				var err error
				if body, err = io.ReadAll(in); err != nil {
					t.Error(err)
				}
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				_, _ = io.WriteString(w, `{"requestId":"an id","timestamp":1}`)
			}))
			defer endpoint.Close()
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			p := request(endpoint.URL)
			p.GZIP = packed
			if err := (&web.Endpoints{Transport: transport}).Post(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if want := `{"requestId":"an id","timestamp":1234,"records":[{"data":"YQ=="},{"data":""},{"data":"/wA="}]}`; string(body) != want || !json.Valid(body) {
				t.Errorf("%s, want %s", body, want)
			}
			encoding := map[bool]string{true: "gzip"}[packed]
			for name, want := range map[string]string{
				"Content-Type": "application/json", "User-Agent": web.UserAgent, "X-Amz-Firehose-Protocol-Version": "1.0",
				"X-Amz-Firehose-Request-Id": "an id", "X-Amz-Firehose-Source-Arn": "arn:hose", "X-Amz-Firehose-Access-Key": "key",
				"X-Amz-Firehose-Common-Attributes": `{"commonAttributes":{"n":"v\""}}`, "Content-Encoding": encoding,
			} {
				if got := head.Get(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

// An endpoint has taken a request only if it says so, with the request's id.
func TestAnswers(t *testing.T) {
	const destination, invalid = "HttpEndpoint.DestinationException", "HttpEndpoint.InvalidResponseFromDestination"
	for _, tt := range []struct {
		name, kind, body string
		status           int
		want             string // empty: it has
	}{
		{"taken", "application/json", `{"requestId":"an id","timestamp":1}`, 200, ""},
		{"with a time as text", "application/json", `{"requestId":"an id","timestamp":"1"}`, 200, ""},
		{"another request", "application/json", `{"requestId":"another","timestamp":1}`, 200, invalid},
		{"no request", "application/json", `{"timestamp":1}`, 200, invalid},
		{"no time", "application/json", `{"requestId":"an id"}`, 200, invalid},
		{"no JSON", "application/json", `taken`, 200, invalid},
		{"nothing", "application/json", ``, 200, invalid},
		{"another form", "text/plain", `{"requestId":"an id","timestamp":1}`, 200, invalid},
		{"too much", "application/json", `{"requestId":"an id","timestamp":1,"more":"` + strings.Repeat("x", 1<<20) + `"}`, 200, invalid},
		{"another status", "application/json", `{"requestId":"an id","timestamp":1}`, 202, destination},
		{"a redirection", "application/json", ``, 307, destination},
		{"an error", "text/html", `<h1>no</h1>`, 503, destination},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Content-Type", tt.kind)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			transport := &http.Transport{}
			err := (&web.Endpoints{Transport: transport}).Post(t.Context(), request(endpoint.URL))
			transport.CloseIdleConnections()
			endpoint.Close()
			if tt.want == "" && err != nil || tt.want != "" && code(err) != tt.want {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
			if err != nil && len(err.Error()) > 600 {
				t.Errorf("%d bytes are told of an answer", len(err.Error()))
			}
		})
	}
}

// Why a connection failed is told by its kind alone.
func TestConnections(t *testing.T) {
	for _, tt := range []struct {
		name string
		dial func(ctx context.Context) error
		want string
	}{
		{"refused", func(context.Context) error { return errors.New("10.0.0.1 has a secret") }, "HttpEndpoint.ConnectionFailure"},
		{"forbidden", func(context.Context) error { return publicnet.ErrForbidden }, "HttpEndpoint.ForbiddenAddress"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, tt.dial(ctx) }}
			err := (&web.Endpoints{Transport: transport}).Post(t.Context(), request("http://endpoint"))
			if code(err) != tt.want || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v", err)
			}
		})
	}
	if err := (&web.Endpoints{Transport: &http.Transport{}}).Post(t.Context(), request("http://a b")); code(err) != "HttpEndpoint.InvalidUrl" {
		t.Errorf("%v", err)
	}
}

// A body whose records cannot be read is not sent.
func TestUnreadable(t *testing.T) {
	p := request("http://endpoint")
	reason := errors.New("damage")
	p.Records = func(func([]byte)) error { return reason }
	if _, err := web.Body(p); !errors.Is(err, reason) {
		t.Errorf("%v", err)
	}
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		t.Error("it connects")
		return nil, reason
	}}
	if err := (&web.Endpoints{Transport: transport}).Post(t.Context(), p); !errors.Is(err, reason) {
		t.Errorf("%v", err)
	}
}

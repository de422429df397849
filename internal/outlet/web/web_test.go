package web_test

import (
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
	"time"

	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/outlet"
	"godwit.dev/godwit/internal/outlet/web"
	"godwit.dev/godwit/internal/publicnet"
)

func post(url string) *outlet.Post {
	return &outlet.Post{URL: url, ID: "the-id", Source: "arn", Time: 1, Size: 1, Records: func(f func(data []byte)) error {
		f([]byte("x"))
		return nil
	}}
}

// Only an answer that repeats the request's id is a success; what anything else is can be
// read in the stream's log.
func TestAnswers(t *testing.T) {
	const taken = `{"requestId":"the-id","timestamp":1}`
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, taken)
	}))
	defer elsewhere.Close()
	for name, tt := range map[string]struct {
		status     int
		kind, body string
		code       string // empty: a success
		permanent  bool
	}{
		"taken":        {200, "application/json", taken, "", false},
		"with charset": {200, "application/json; charset=utf-8", taken, "", false},
		"other id":     {200, "application/json", `{"requestId":"other","timestamp":1}`, "HttpEndpoint.InvalidResponseFromDestination", false},
		"no time":      {200, "application/json", `{"requestId":"the-id"}`, "HttpEndpoint.InvalidResponseFromDestination", false},
		"a page":       {200, "text/html", taken, "HttpEndpoint.InvalidResponseFromDestination", false},
		"no JSON":      {200, "application/json", "\xff{", "HttpEndpoint.InvalidResponseFromDestination", false},
		"endless":      {200, "application/json", taken + strings.Repeat(" ", 2<<20), "HttpEndpoint.InvalidResponseFromDestination", false},
		"created":      {201, "application/json", taken, "HttpEndpoint.DestinationException", false},
		"redirected":   {307, "application/json", taken, "HttpEndpoint.DestinationException", false},
		"too large":    {413, "application/json", taken, "HttpEndpoint.DestinationException", true},
		"busy":         {503, "text/plain", "later", "HttpEndpoint.DestinationException", false},
	} {
		t.Run(name, func(t *testing.T) {
			e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				w.Header().Set("Location", elsewhere.URL)
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			defer e.Close()
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			err := (&web.Endpoints{Transport: transport}).Post(t.Context(), post(e.URL))
			got, _ := errors.AsType[*outlet.Error](err)
			switch {
			case tt.code == "":
				if err != nil {
					t.Error(err)
				}
			case got == nil || got.Code != tt.code || got.Permanent != tt.permanent:
				t.Errorf("%v", err)
			case tt.status != 200 && !strings.Contains(got.Message, fmt.Sprintf("%d: %s", tt.status, tt.body)):
				t.Errorf("it says %s", got.Message)
			case len(got.Message) > 1000:
				t.Errorf("it says %d bytes", len(got.Message))
			}
		})
	}
}

// Whatever an attribute has can be sent in a header.
func TestAttributes(t *testing.T) {
	const name, value = "a\x7f\t", "b\x00\x7f\n\u0085\u2028ä"
	var got struct{ CommonAttributes map[string]string }
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.Unmarshal([]byte(r.Header.Get("X-Amz-Firehose-Common-Attributes")), &got); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"requestId":"the-id","timestamp":1}`)
	}))
	defer e.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	p := post(e.URL)
	p.Attributes = []deliverystream.Attribute{{AttributeName: new(name), AttributeValue: new(value)}}
	if err := (&web.Endpoints{Transport: transport}).Post(t.Context(), p); err != nil || got.CommonAttributes[name] != value {
		t.Errorf("%v; the attributes are %q", err, got.CommonAttributes)
	}
}

// Endpoints that cannot be reached are told apart.
func TestUnreachable(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close() // nobody listens there any more
	over, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	guarded := &net.Dialer{Control: publicnet.Guard{}.Control}
	for name, tt := range map[string]struct {
		ctx       context.Context
		transport *http.Transport
		url, code string
	}{
		"nobody is there": {t.Context(), &http.Transport{}, "http://" + gone.Addr().String(), "HttpEndpoint.ConnectionFailure"},
		"it is late":      {over, &http.Transport{}, "http://" + silent.Addr().String(), "HttpEndpoint.RequestTimeout"},
		"private":         {t.Context(), &http.Transport{DialContext: guarded.DialContext}, "http://" + silent.Addr().String(), "HttpEndpoint.ForbiddenAddress"},
		"metadata":        {t.Context(), &http.Transport{DialContext: guarded.DialContext}, "http://169.254.169.254/latest", "HttpEndpoint.ForbiddenAddress"},
		"no URL":          {t.Context(), &http.Transport{}, "http://a b", "HttpEndpoint.InvalidUrl"},
	} {
		t.Run(name, func(t *testing.T) {
			defer tt.transport.CloseIdleConnections()
			err := (&web.Endpoints{Transport: tt.transport}).Post(tt.ctx, post(tt.url))
			if got, ok := errors.AsType[*outlet.Error](err); !ok || got.Code != tt.code {
				t.Errorf("%v", err)
			}
		})
	}
}

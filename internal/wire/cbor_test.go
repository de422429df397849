package wire_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/wire"
)

type pingInput struct {
	Name string `wire:"required"`
}

type pingOutput struct{ Name string }

func newMonitoring(t *testing.T) *wire.Handler {
	t.Helper()
	service := wire.CloudWatch(
		api.Op("Ping", func(_ context.Context, call *api.Call, in *pingInput) (*pingOutput, error) {
			if call.Protocol != "cbor" {
				t.Errorf("the protocol is %s", call.Protocol)
			}
			if in.Name == "nobody" {
				return nil, fault.New(fault.NotFound, "")
			}
			return &pingOutput{in.Name}, nil
		}),
		api.Op("Void", func(context.Context, *api.Call, *struct{}) (*struct{}, error) { return nil, nil }))
	return wire.NewHandler(wire.Options{
		Services: []*wire.Service{service}, Logger: slog.New(slog.DiscardHandler), Clock: clock.System, MaxBody: 1000,
		DefaultRegion: "us-east-1", DefaultAccount: "000000000000", NewRequestID: func() string { return requestID },
	})
}

func zipped(body string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, body)
	w.Close()
	return b.String()
}

// A request in CBOR is known by its path, and is answered in CBOR.
func TestCBOR(t *testing.T) {
	name := func(s string) string { return "\xa1\x64Name" + string(rune(0x60+len(s))) + s }
	long := "\xa1\x64Name\x79\x10\x00" + strings.Repeat("x", 4096)
	for _, tc := range []struct {
		what, operation, body, encoding, mode string
		status                                int
		want, queryError                      string
	}{
		{"an answer", "Ping", name("a"), "", "", 200, "bf644e616d656161ff", ""},
		{"nothing to say", "Void", "", "", "", 200, "", ""},
		{"compressed", "Ping", zipped(name("a")), "gzip", "", 200, "bf644e616d656161ff", ""},
		{"compressed, in capitals", "Ping", zipped(name("a")), "GZIP", "", 200, "bf644e616d656161ff", ""},
		{"an error", "Ping", name("nobody"), "", "true", 404, "bf665f5f74797065" + text("com.amazonaws.cloudwatch.v2010_08_01#ResourceNotFound") + "ff", "ResourceNotFound;Sender"},
		{"an error for who does not ask for Query's", "Ping", name("nobody"), "", "", 400, "bf665f5f74797065" + text("com.amazonaws.cloudwatch.v2010_08_01#ResourceNotFound") + "ff", ""},
		{"a constraint", "Ping", "\xa0", "", "true", 400, "bf665f5f74797065" + text("com.amazon.coral.validate#ValidationException") + "676d657373616765" +
			text("1 validation error detected: Value null at 'name' failed to satisfy constraint: Member must not be null") + "ff", "ValidationError;Sender"},
		{"an unknown operation", "Pong", "\xa0", "", "true", 400, "", "InvalidAction;Sender"},
		{"no CBOR", "Ping", "{}", "", "true", 400, "", "MalformedInput;Sender"},
		{"no gzip", "Ping", name("a"), "gzip", "true", 400, "", "MalformedInput;Sender"},
		{"half of it", "Ping", zipped(name("a"))[:20], "gzip", "true", 400, "", "MalformedInput;Sender"},
		{"another encoding", "Ping", name("a"), "br", "true", 400, "", "MalformedInput;Sender"},
		{"small only while compressed", "Ping", zipped(long), "gzip", "true", 413, "", "RequestEntityTooLarge;Sender"},
	} {
		r := httptest.NewRequest("POST", "http://localhost:4566/service/GraniteServiceVersion20100801/operation/"+tc.operation, strings.NewReader(tc.body))
		r.Header.Set("Smithy-Protocol", "rpc-v2-cbor")
		r.Header.Set("Content-Type", "application/cbor")
		if tc.encoding != "" {
			r.Header.Set("Content-Encoding", tc.encoding)
		}
		if tc.mode != "" {
			r.Header.Set("X-Amzn-Query-Mode", tc.mode)
		}
		w := httptest.NewRecorder()
		newMonitoring(t).ServeHTTP(w, r)
		h, written := w.Header(), "application/cbor"
		if tc.operation == "Void" {
			written = "" // the protocol forbids it where there is no output
		}
		if w.Code != tc.status || tc.want != "" && hex.EncodeToString(w.Body.Bytes()) != tc.want ||
			strings.Join(h["x-amzn-query-error"], "") != tc.queryError || //nolint:staticcheck // as AWS spells it
			strings.Join(h["smithy-protocol"], "") != "rpc-v2-cbor" || strings.Join(h["Content-Type"], " ") != written { //nolint:staticcheck // as AWS spells it
			t.Errorf("%s: %d %v %q", tc.what, w.Code, h, w.Body)
		}
	}
}

// text is a text string of CBOR, in hexadecimal.
func text(s string) string {
	head := []byte{0x60 | byte(len(s))}
	if len(s) > 23 {
		head = []byte{0x78, byte(len(s))}
	}
	return hex.EncodeToString(append(head, s...))
}

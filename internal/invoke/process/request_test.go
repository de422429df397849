package process

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzReadRequest compares what we read with what net/http reads, as far as
// that takes it.
func FuzzReadRequest(f *testing.F) {
	for _, s := range []string{
		"GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nLambda-Runtime-Function-Error-Type: T\r\n\r\nabcGET /b HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n3\r\nabc\r\n0\r\nTrailer: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET / HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n",
		"GET / HTTP/1.1\nHost: x\nConnection: close\n\n",
		"POST /a HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("y", 9000) + "\r\nContent-Length: 1\r\n\r\nz",
		"POST /a HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "GET\r\n", "GET / HTTP/2\r\n\r\n", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ours, theirs := bufio.NewReader(bytes.NewReader(text)), bufio.NewReader(bytes.NewReader(text))
		for {
			want, err := http.ReadRequest(theirs)
			if err != nil {
				break
			}
			got, err := readRequest(ours)
			if err != nil {
				return // what we do not take, no runtime sends
			}
			if (want.Method == "GET" || want.Method == "POST") && got.method != want.Method {
				t.Fatalf("method %q, want %q", got.method, want.Method)
			}
			if got.kind != want.Header.Get("Lambda-Runtime-Function-Error-Type") && len(want.Header.Values("Lambda-Runtime-Function-Error-Type")) == 1 &&
				len(text) < 4096 {
				t.Fatalf("kind %q, want %q", got.kind, want.Header.Get("Lambda-Runtime-Function-Error-Type"))
			}
			wantBody, err := io.ReadAll(want.Body)
			if err != nil {
				return
			}
			if got.length != want.ContentLength {
				return // repeated or contradicting lengths: net/http has rules for them
			}
			gotBody, err := io.ReadAll(got.body)
			if err != nil || !bytes.Equal(gotBody, wantBody) {
				t.Fatalf("body %q %v, want %q", gotBody, err, wantBody)
			}
		}
	})
}

// A function's programs in Go count on as many processors as its memory would give
// them at AWS.
func TestProcessors(t *testing.T) {
	for megabytes, want := range map[int]int{128: 1, 1769: 1, 1770: 2, 3538: 2, 3539: 3, 10240: 6} {
		if got := processors(megabytes); got != want {
			t.Errorf("%d for %d MB, want %d", got, megabytes, want)
		}
	}
}

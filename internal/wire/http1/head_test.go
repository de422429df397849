package http1

import (
	"bufio"
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const sdkHead = "POST / HTTP/1.1\r\nHost: localhost:4566\r\nUser-Agent: aws-sdk-go-v2/1.40\r\nContent-Length: 12\r\n" +
	"Amz-Sdk-Invocation-Id: 0f1d\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.SendMessage\r\n" +
	"Authorization: AWS4-HMAC-SHA256 Credential=AKID/20261121/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=00\r\n" +
	"Accept-Encoding: gzip\r\n\r\n"

func TestHeadOfAnSDKIsPlain(t *testing.T) {
	var h head
	for range 2 { // the second time with what is remembered of the first
		checkHead(t, &h, []byte(sdkHead))
		if h.header == nil || !h.parse([]byte(sdkHead)) {
			t.Fatal("not plain")
		}
	}
	other := strings.Replace(sdkHead, "User-Agent: aws-sdk-go-v2/1.40\r\n", "accept: */*\r\nX-a: 1\r\nx-A: 2\r\n", 1)
	checkHead(t, &h, []byte(other))
	if got := h.header.Values("x-a"); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("a repeated field is %q", got)
	}
}

// While the fields are the same, the header of the request before is filled again.
func TestHeadsThatFollowEachOther(t *testing.T) {
	const begin, end = "POST / HTTP/1.1\r\nHost: a\r\n", "\r\n\r\n"
	for name, heads := range map[string][]string{
		"other values":           {"A: 1\r\nB: 2", "A: 3\r\nB: 4", "A: 3\r\nB:"},
		"another order":          {"A: 1\r\nB: 2", "B: 1\r\nA: 2"},
		"another name":           {"A: 1\r\nB: 2", "A: 1\r\nC: 2", "A: 1\r\nB: 2"},
		"fewer, then more":       {"A: 1\r\nB: 2\r\nC: 3", "A: 1", "A: 2\r\nB: 3\r\nC: 4\r\nD: 5", "A: 3\r\nB: 4\r\nC: 5\r\nD: 6"},
		"one twice":              {"A: 1\r\nB: 2", "A: 1\r\nA: 2", "A: 3\r\nA: 4", "A: 1\r\nB: 2"},
		"one spelled otherwise":  {"a-b: 1", "A-B: 2", "A-b: 3\r\nx: 1"},
		"one that is left alone": {"A: 1\r\nB: 2", "C: 3\r\nExpect: 1", "C: 3\r\nB: 2", "C: 4\r\nB: 5"},
		"a long name":            {"A: 1\r\n" + strings.Repeat("n", 2*maxName) + ": 2\r\nB: 3", "A: 2\r\n" + strings.Repeat("n", 2*maxName) + ": 3\r\nB: 4"},
		"blanks":                 {"A: 1 \r\nB:\t2", "A:1\t\r\nB:   2 3 ", "A: \r\nB:\t"},
	} {
		t.Run(name, func(t *testing.T) {
			var h head
			for _, fields := range heads {
				checkHead(t, &h, []byte(begin+fields+end))
			}
		})
	}
	t.Run("a header that was changed in size", func(t *testing.T) {
		var h head
		checkHead(t, &h, []byte(begin+"A: 1\r\nB: 2"+end))
		h.header.Del("B")
		checkHead(t, &h, []byte(begin+"A: 3\r\nB: 4"+end))
	})
	t.Run("a value that cannot be", func(t *testing.T) {
		var h head
		checkHead(t, &h, []byte(begin+"A: 1\r\nB: 2"+end))
		if h.parse([]byte(begin + "A: 1\r\nB: \x01" + end)) {
			t.Error("taken as plain")
		}
	})
}

func TestLongNamesAreNotRemembered(t *testing.T) {
	var h head
	for i := range maxFields - 1 {
		b := []byte("POST / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("x: 1\r\n", i) + strings.Repeat("n", 60_000) + ": 1\r\n\r\n")
		checkHead(t, &h, b)
	}
	for _, n := range h.names {
		if len(n.sent) > maxName {
			t.Fatalf("a name of %d bytes is kept", len(n.sent))
		}
	}
}

func TestHeadsThatAreLeftToNetHTTP(t *testing.T) {
	for name, text := range map[string]string{
		"another method":          "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"an older version":        "POST / HTTP/1.0\r\nHost: a\r\n\r\n",
		"HTTP/2's preface":        "PRI * HTTP/2.0\r\n\r\n",
		"a query":                 "POST /?a=b HTTP/1.1\r\nHost: a\r\n\r\n",
		"an escaped path":         "POST /a%20b HTTP/1.1\r\nHost: a\r\n\r\n",
		"an absolute target":      "POST http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"an authority for a path": "POST //a/b HTTP/1.1\r\nHost: a\r\n\r\n",
		"no host":                 "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
		"two hosts":               "POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"a host with a path":      "POST / HTTP/1.1\r\nHost: a/b\r\n\r\n",
		"two lengths":             "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
		"a list of lengths":       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n",
		"a signed length":         "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
		"an empty length":         "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
		"a chunked body":          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
		"a length and chunks":     "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
		"an expectation":          "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
		"an upgrade":              "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
		"a connection's end":      "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		"trailers":                "POST / HTTP/1.1\r\nHost: a\r\nTrailer: X\r\n\r\n",
		"a folded field":          "POST / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n",
		"a line feed alone":       "POST / HTTP/1.1\r\nHost: a\r\nX: 1\nY: 2\r\n\r\n",
		"a carriage return":       "POST / HTTP/1.1\r\nHost: a\r\nX: 1\rY: 2\r\n\r\n",
		"a blank before a colon":  "POST / HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n",
		"no colon":                "POST / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
		"no name":                 "POST / HTTP/1.1\r\nHost: a\r\n: 1\r\n\r\n",
		"a zero byte":             "POST / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n",
		"too many fields":         "POST / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: 1\r\n", maxFields) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var h head
			if h.parse([]byte(text)) {
				t.Errorf("taken as plain: %q", text)
			}
		})
	}
}

// checkHead compares a plain head with what net/http makes of it.
func checkHead(t *testing.T, h *head, b []byte) {
	t.Helper()
	if !h.parse(b) {
		return
	}
	want, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
	if err != nil {
		t.Fatalf("taken as plain, net/http: %v\n%q", err, b)
	}
	if want.Method != http.MethodPost || want.Proto != "HTTP/1.1" || want.RequestURI != h.target ||
		*want.URL != h.url || want.Host != h.host || max(want.ContentLength, 0) != h.length ||
		len(want.TransferEncoding) > 0 || want.Close {
		t.Fatalf("got %+v, net/http has %+v\n%q", h, want, b)
	}
	if !maps.EqualFunc(want.Header, h.header, slices.Equal) {
		t.Fatalf("got %q, net/http has %q", h.header, want.Header)
	}
	for _, seen := range []int{0, len(b) / 2} {
		if !beginsPlain(b[:len(b)-1], seen) || !beginsPlain(b[:seen], 0) {
			t.Fatalf("given up before its end: %q", b)
		}
	}
}

// FuzzHead looks for a head that is taken as plain, and that net/http refuses
// or reads otherwise.
func FuzzHead(f *testing.F) {
	f.Add([]byte(sdkHead), []byte(sdkHead))
	f.Add([]byte("POST /a/b HTTP/1.1\r\nhost:[::1]:80\r\ncontent-length: 007\r\nX:\r\n\r\n"), []byte(sdkHead))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nX:\t\x80 \r\n\r\n"), []byte("POST / HTTP/1.1\r\nHOST: a\r\nx: 1\r\nX: 2\r\n\r\n"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var h head
		for _, b := range [][]byte{first, second, first} {
			i := bytes.Index(b, endOfHead)
			if i < 0 {
				return
			}
			checkHead(t, &h, b[:i+len(endOfHead)])
		}
	})
}

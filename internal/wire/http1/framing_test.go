package http1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// follower is a reader of what a framing lets through, in pieces.
type follower struct {
	from   io.Reader
	frames framing
	piece  int
}

func (f *follower) Read(p []byte) (int, error) {
	if f.frames.lost() {
		return 0, io.EOF
	}
	n, err := f.from.Read(p[:min(f.piece, len(p))])
	f.frames.follow(p[:n])
	return n, err
}

// taken is what net/http takes from a connection.
type taken struct {
	requests []string
	ends     []int // where in the stream they end
	err      error
}

func take(r io.Reader) (t taken) {
	counted := &counter{from: r}
	b := bufio.NewReader(counted)
	for {
		request, err := http.ReadRequest(b)
		if err != nil {
			t.err = err
			return t
		}
		body, err := io.ReadAll(io.LimitReader(request.Body, 1<<20))
		if err != nil {
			t.err = err
			return t
		}
		t.requests = append(t.requests, request.Method+" "+request.RequestURI+" "+request.Proto+" "+string(body))
		t.ends = append(t.ends, counted.n-b.Buffered())
	}
}

type counter struct {
	from io.Reader
	n    int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += n
	return n, err
}

var (
	anyLength   = regexp.MustCompile(`(?i)(^|\n)content-length:`)
	anyEncoding = regexp.MustCompile(`(?i)(^|\n)transfer-encoding:`)
)

// checkFraming compares what net/http takes with what it takes behind a framing.
func checkFraming(t *testing.T, stream []byte, piece int) {
	t.Helper()
	want := take(bytes.NewReader(stream))
	got := take(&follower{from: bytes.NewReader(stream), piece: piece})
	if len(got.requests) > len(want.requests) {
		t.Fatalf("%d requests, net/http has %d\n%q", len(got.requests), len(want.requests), stream)
	}
	begin := 0
	for i, request := range got.requests {
		if request != want.requests[i] || got.ends[i] != want.ends[i] {
			t.Fatalf("request %d is %q up to %d, net/http has %q up to %d\n%q", i, request, got.ends[i], want.requests[i], want.ends[i], stream)
		}
		head := headOf(stream[begin:])
		if anyLength.Match(head) && anyEncoding.Match(head) {
			t.Fatalf("taken with two lengths: %q", head)
		}
		begin = got.ends[i]
	}
	if len(got.requests) == len(want.requests) {
		return
	}
	head := headOf(stream[begin:])
	if anyLength.Match(head) && anyEncoding.Match(head) {
		return
	}
	// To find the end of trailers net/http looks ahead, where there may be what it
	// refuses next.
	if strings.Contains(got.err.Error(), "trailer") {
		return
	}
	t.Fatalf("refused (%v), net/http takes %q\n%q", got.err, want.requests[len(got.requests)], stream)
}

// headOf is a head with the line that ends it.
func headOf(b []byte) []byte {
	for i := range b {
		if rest := b[i:]; bytes.HasPrefix(rest, []byte("\n\n")) || bytes.HasPrefix(rest, []byte("\n\r\n")) {
			return b[:i+1]
		}
	}
	return b
}

var streams = []string{
	"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\nHost: a\n\n",
	"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nG: xPOST /b HTTP/1.1\r\nHost: a\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nxGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nabcde\r\n0a \r\n0123456789\r\n0\r\nX: y\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nPOST /c HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /d HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: chunked\r\nX: 1\r\n 2\r\nCONTENT-LENGTH: 3\r\n\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 3\r\n\r\nabcGET /d HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nX: a:b\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
}

func TestFraming(t *testing.T) {
	for _, s := range streams {
		for _, piece := range []int{1, 2, 7, 4096} {
			checkFraming(t, []byte(s), piece)
		}
	}
	if got := take(&follower{from: strings.NewReader(streams[3]), piece: 4096}); len(got.requests) != 1 {
		t.Errorf("%q were taken, behind two lengths", got.requests)
	}
}

// FuzzFraming looks for a connection that net/http reads otherwise than a framing.
func FuzzFraming(f *testing.F) {
	for _, s := range streams {
		f.Add([]byte(s), 1)
		f.Add([]byte(s), 4096)
	}
	f.Fuzz(func(t *testing.T, stream []byte, piece int) {
		checkFraming(t, stream, max(piece, 1))
	})
}

func TestTwoLengthsAreRefused(t *testing.T) {
	_, plain := start(t, echo, nil)
	_, secured := startTLS(t, echo, nil)
	const both = "POST /q HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	for name, before := range map[string]string{
		"at once":                       "",
		"after a plain one":             request("x"),
		"behind a line's end":           "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n\r\n",
		"where net/http is":             "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
		"behind another's chunked body": "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
	} {
		refused := func(t *testing.T, c client) {
			t.Helper()
			c.send(before + both + request("smuggled"))
			if before != "" {
				r, err := http.ReadResponse(c.Reader, nil)
				if err != nil || r.StatusCode != http.StatusOK {
					t.Fatal(r, err)
				}
				io.Copy(io.Discard, r.Body)
			}
			c.answer(400, "400 Bad Request")
			c.ended()
		}
		t.Run(name, func(t *testing.T) { refused(t, dial(t, plain)) })
		t.Run(name+", over TLS", func(t *testing.T) { refused(t, dialTLS(t, secured, "http/1.1")) })
		t.Run(name+", over TLS without a protocol", func(t *testing.T) { refused(t, dialTLS(t, secured)) })
	}
}

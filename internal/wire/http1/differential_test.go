package http1

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/test/soak"
)

// TestDifferential sends the same random bytes to this server and to one of net/http
// alone: requests of all kinds, several on a connection, damaged, in pieces. Both hand
// the same requests to their handlers, and answer the same.
func TestDifferential(t *testing.T) {
	var plain, all atomic.Int64
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all.Add(1)
		if _, ok := w.(*response); ok {
			plain.Add(1)
		}
		var fields []string
		for name, values := range r.Header {
			fields = append(fields, fmt.Sprintf("%s=%q", name, values))
		}
		slices.Sort(fields)
		body, err := io.ReadAll(r.Body)
		if len(body) > 1000 { // a long answer may be cut off by what comes behind an error
			body = fmt.Appendf(nil, "%d bytes, %x", len(body), sha256.Sum256(body))
		}
		w.Header().Set("Content-Type", "text/plain") // which net/http guesses, and we do not
		answer := fmt.Appendf(nil, "%s %s %s %s %q %d %v %q %v", r.Method, r.RequestURI, r.Proto, r.Host, fields, r.ContentLength, r.TransferEncoding, body, err != nil)
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = w.Write(answer)
	})
	_, ours := start(t, h, nil)
	theirs := startOther(t, h)
	soak.Campaign(t, 2, func(t *testing.T, seed uint64) {
		r := soak.Rand(seed, 0)
		var clients sync.WaitGroup
		for range 200 { // net/http waits half a second before it closes a connection on which an error came
			stream, pieces := drawStream(r), 1+r.IntN(3)
			clients.Go(func() {
				var got, want []string
				clients := sync.WaitGroup{}
				clients.Go(func() { got = answersTo(t, ours, stream, pieces) })
				clients.Go(func() { want = answersTo(t, theirs, stream, pieces) })
				clients.Wait()
				got, want = cutShort(got, want), cutShort(want, got)
				if !slices.Equal(got, want) {
					same := 0
					for same < min(len(got), len(want)) && got[same] == want[same] {
						same++
					}
					t.Errorf("%.5000q\nis answered, behind %d alike,\n%.3000q\nby net/http\n%.3000q", stream, same, got[same:], want[same:])
				}
			})
		}
		clients.Wait()
	})
	t.Logf("%d requests, %d of them plain", all.Load(), plain.Load())
	if soak.Enabled() && plain.Load() < all.Load()/10 {
		t.Error("hardly any request was plain: the comparison proves nothing")
	}
}

func startOther(t *testing.T, h http.Handler) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(Framed(l)) // until it is closed; whether net/http takes everything else as before is FuzzFraming's to find out
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return l.Addr().String()
}

// answersTo sends a stream in pieces, and nothing more, and tells the answers.
func answersTo(t *testing.T, addr string, stream []byte, pieces int) (all []string) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer c.Close()
	_ = c.SetDeadline(clock.System.Now().Add(30 * time.Second))
	go func() {
		size := len(stream)/pieces + 1
		for piece := range slices.Chunk(stream, size) {
			if _, err := c.Write(piece); err != nil {
				return // it has closed, and said why
			}
		}
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
				all = append(all, "nothing for 30 s")
			}
			return all
		}
		body, _ := io.ReadAll(r.Body) // may end in a reset, if there was more to read behind an error
		r.Header.Del("Date")
		all = append(all, fmt.Sprintf("%d %q %q", r.StatusCode, r.Header, dateLine.ReplaceAll(body, nil)))
	}
}

// dateLine is in what is read as the body of an answer to a HEAD: the answer after it.
var dateLine = regexp.MustCompile(`\r\nDate: [^\r]*`)

// cutShort leaves out what tells somebody who stopped in the middle of a head: who does
// depends on how much of it there was.
func cutShort(answers, other []string) []string {
	if n := len(answers) - 1; n == len(other) && strings.HasPrefix(answers[n], "400 ") {
		return answers[:n]
	}
	return answers
}

// drawStream draws one to three requests.
func drawStream(r *rand.Rand) []byte {
	var b bytes.Buffer
	for range 1 + r.IntN(3) {
		b.Write(drawRequest(r))
	}
	stream := b.Bytes()
	switch r.IntN(10) {
	case 0:
		stream = stream[:r.IntN(len(stream)+1)]
	case 1:
		for range 1 + r.IntN(3) {
			stream[r.IntN(len(stream))] = byte(r.IntN(256))
		}
	case 2:
		at := r.IntN(len(stream))
		stream = slices.Insert(stream, at, []byte(pick(r, "\r\n", "\n", "\r", "\x00", " ", "\t", ":", "\r\n\r\n", "\xff", "0\r\n\r\n", "GET / HTTP/1.1\r\n"))...)
	}
	return stream
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// rarely picks the usual, and once in n times something else.
func rarely(r *rand.Rand, n int, usual string, other ...string) string {
	if r.IntN(n) > 0 {
		return usual
	}
	return pick(r, other...)
}

func drawRequest(r *rand.Rand) []byte {
	var b bytes.Buffer
	end := rarely(r, 60, "\r\n", "\n", "\r", "\r\r\n")
	b.WriteString(rarely(r, 12, "POST", "GET", "PUT", "HEAD", "OPTIONS", "CONNECT", "PRI", "post", "PO ST", "P\x00ST", "", "POST\t") + rarely(r, 50, " ", "  ", "\t", "") +
		rarely(r, 10, "/000000000000/q", "/", "*", "//", "/a%20b?x=1", "/%zz", "http://h/x", "https://[::1]:1/", "/\x7f", "/é", "/a b", "?", "", "/..//x", "/#f", strings.Repeat("/x", 3000)) + rarely(r, 50, " ", "", "  ") +
		rarely(r, 20, "HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", "HTTP/01.1", "HTTP/0.9", "HTTP/1", "") + end)
	body := make([]byte, r.IntN(200))
	for i := range body {
		body[i] = "abc{}\":0123\r\n"[r.IntN(13)]
	}
	if r.IntN(30) == 0 {
		body = bytes.Repeat([]byte("0123456789abcdef"), 1+r.IntN(20_000))
	}
	length := strconv.Itoa(len(body))
	lines := []string{rarely(r, 25, "Host: localhost:4566", "", "Host:", "Host: a\r\nHost: b", "host: [::1", "Host: a b", "Host: a/b", "Host: \x00", "Host : a", "Host: é")}
	if r.IntN(8) > 0 {
		lines = append(lines, rarely(r, 12, "Content-Length: "+length, "Content-Length: +"+length, "Content-Length: 0"+length, "Content-Length: -1", "Content-Length: ", "Content-Length: "+length+", "+length,
			"Content-Length: "+length+"\r\nContent-Length: "+length, "Content-Length: 1\r\nContent-Length: 2", "content-length:"+length, "Content-Length: 99999999999999999999", "Content-Length: 0x10", "Content_Length: 3", "Content-Length\t: 3", "Content-Length: "+length+"\t"))
	} else if r.IntN(2) == 0 {
		lines = append(lines, rarely(r, 3, "Transfer-Encoding: chunked", "Transfer-Encoding: Chunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding:\x0bchunked", "Transfer-Encoding: chunked\r\nTrailer: X"))
		body = fmt.Appendf(nil, "%s\r\n%s\r\n%s\r\n%s\r\n", strconv.FormatInt(int64(len(body)), 16)+rarely(r, 5, "", ";a=b", " ", "; x", "\t"), body, rarely(r, 8, "0", "00", "", "-1", "g"), rarely(r, 8, "", "X: y\r\n", "Content-Length: 5\r\n"))
	} else {
		body = nil
	}
	for range r.IntN(5) {
		lines = append(lines, rarely(r, 4, pick(r, "Content-Type: application/x-amz-json-1.0", "X-Amz-Target: AmazonSQS.SendMessage", "X: a", "x: b", "Accept-Encoding: gzip", "User-Agent: u"),
			"Connection: close", "Connection: keep-alive", "Connection: Upgrade", "Connection: close, x", "Expect: 100-continue", "Expect: x", "Upgrade: h2c", "Proxy-Connection: x", "Keep-Alive: 1", "X", ": y", " folded", "\tfolded", "X y: z", "X: \x01", "X:\x80",
			"X: "+strings.Repeat("v", r.IntN(9000)), strings.Repeat("n", r.IntN(300))+": v", "Trailer: X", "TE: trailers", "Cookie: a=b", "X-Y\x00: z", "X: a\rb", "é: x"))
	}
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for _, line := range lines {
		if line != "" {
			b.WriteString(line + rarely(r, 100, end, "\n", "\r"))
		}
	}
	b.WriteString(end)
	b.Write(body)
	return b.Bytes()
}

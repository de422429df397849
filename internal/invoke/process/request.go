package process

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"strconv"
	"strings"
)

// request has the parts of a request that the Runtime API needs. There are two for each
// invocation, so that net/http's parser would be too slow.
type request struct {
	method, path string
	kind         string // Lambda-Runtime-Function-Error-Type
	length       int64  // of the body, in bytes; -1: chunked
	expect       bool   // the client waits before it sends the body
	close        bool   // the connection ends with the answer
	body         io.Reader
}

// unasked refuses the body: a client that waits for 100 Continue does not send it, and no
// request can follow.
func (r *request) unasked() { r.close = r.close || r.expect }

var errMalformed = errors.New("no HTTP/1 request")

// maxFields bounds the header lines of a request.
const maxFields = 256

// readRequest reads the head of a request.
func readRequest(in *bufio.Reader) (*request, error) {
	line, err := readLine(in)
	if err != nil {
		return nil, err
	}
	method, rest, ok := bytes.Cut(line, []byte{' '})
	path, protocol, ok2 := bytes.Cut(rest, []byte{' '})
	if !ok || !ok2 || !bytes.HasPrefix(protocol, []byte("HTTP/1.")) || len(method) == 0 || len(path) == 0 || path[0] != '/' {
		return nil, errMalformed
	}
	path, _, _ = bytes.Cut(path, []byte{'?'})
	r := &request{path: string(path), close: string(protocol) == "HTTP/1.0"}
	switch string(method) {
	case "GET", "POST":
		r.method = string(method)
	}
	for range maxFields {
		line, err := readLine(in)
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			r.open(in)
			return r, nil
		}
		if err := r.field(line); err != nil {
			return nil, err
		}
	}
	return nil, errMalformed
}

// field parses a header line.
func (r *request) field(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte{':'})
	if !ok {
		return errMalformed
	}
	value = bytes.TrimSpace(value)
	switch {
	case fold(name, "content-length"):
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || n < 0 {
			return errMalformed
		}
		if r.length >= 0 {
			r.length = n
		}
	case fold(name, "transfer-encoding"):
		if !fold(value, "chunked") {
			return errMalformed
		}
		r.length = -1
	case fold(name, "expect"):
		r.expect = fold(value, "100-continue")
	case fold(name, "connection"):
		r.close = r.close && !fold(value, "keep-alive") || fold(value, "close")
	case fold(name, "lambda-runtime-function-error-type"):
		r.kind = string(value)
	}
	return nil
}

func fold(b []byte, lower string) bool {
	return len(b) == len(lower) && strings.EqualFold(string(b), lower)
}

// open prepares reading the body.
func (r *request) open(in *bufio.Reader) {
	if r.length >= 0 {
		r.body = io.LimitReader(in, r.length)
		return
	}
	r.body = &chunks{in: in, data: httputil.NewChunkedReader(in)}
}

// chunks is a chunked body, with its trailers.
type chunks struct {
	in    *bufio.Reader
	data  io.Reader
	ended bool
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.ended {
		return 0, io.EOF
	}
	n, err := c.data.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	c.ended = true
	for range maxFields { // trailers, which are ignored
		line, err := readLine(c.in)
		if err != nil {
			return n, err
		}
		if len(line) == 0 {
			return n, io.EOF
		}
	}
	return n, errMalformed
}

// readLine reads a line without its end. A line longer than the buffer is truncated.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
	}
	if errors.Is(err, io.EOF) && len(line) > 0 {
		err = io.ErrUnexpectedEOF
	}
	return bytes.TrimRight(line, "\r\n"), err
}

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// operation is one kind of request: what is the same in all requests for it.
type operation struct {
	service     string // "sqs", "sns", "lambda" and so on
	path        string // empty: the root
	contentType string
	target      string // X-Amz-Target; empty in the Query protocol
	// prove writes the headers of a request that is not signed as AWS's are, without the
	// last line's end.
	prove func(dst, body []byte) []byte
}

const (
	requestTimeout = 30 * time.Second // beyond what the server may wait
	idleLimit      = 5 * time.Second  // after which a connection is not used again
	pollWait       = 20 * time.Second // the longest WaitTimeSeconds
)

// What an SDK sends beside what is signed. Encodings are refused so that no
// server's figures hold a compression that others do not do.
const sdkHeaders = "User-Agent: aws-sdk-go-v2/1.47.6 ua/2.1 os/linux lang/go#1.26.8 md/GOOS#linux md/GOARCH#amd64 api/sqs#1.52.9 m/E,g\r\n" +
	"Accept-Encoding: identity\r\n"

const invocationID = "7b6b3f6e-0b0c-4f5a-9f43-0c1a2f8a1d55"

// conn is one keep-alive HTTP/1.1 connection, which signs what it sends. It is
// for one goroutine, except abort. A request that fails is not sent again: here
// an error is a result.
type conn struct {
	host    string
	signers map[string]*signer // by service

	nc      net.Conn
	br      *bufio.Reader
	used    time.Time
	expires time.Time // deadline that nc has
	aborted atomic.Bool
	current atomic.Pointer[net.Conn] // nc, for abort

	out, body []byte
	signed    []header
}

func newConn(host string) *conn {
	c := &conn{host: host, signers: map[string]*signer{}}
	for _, service := range []string{"sqs", "sns", "lambda", "logs", "firehose", "cloudformation"} {
		c.signers[service] = &signer{accessKey: "test", secret: "test", region: "us-east-1", service: service}
	}
	return c
}

// do sends a request and returns the answer's body, valid until the next call.
// Any status but one of success is an error.
func (c *conn) do(op *operation, body []byte) ([]byte, error) {
	now := time.Now()
	if c.nc != nil && now.Sub(c.used) > idleLimit {
		c.close()
	}
	if c.nc == nil {
		if err := c.dial(); err != nil {
			return nil, err
		}
	}
	if c.expires.Sub(now) < pollWait+requestTimeout/2 {
		c.expires = now.Add(pollWait + requestTimeout)
		if err := c.nc.SetDeadline(c.expires); err != nil {
			return nil, err
		}
	}
	c.compose(op, now, body)
	status, keep, err := c.exchange()
	if err != nil {
		c.close()
		return nil, err
	}
	c.used = now
	if !keep {
		c.close()
	}
	if status < 200 || status > 299 {
		return nil, fmt.Errorf("%s: status %d: %.300s", op.name(), status, c.body)
	}
	return c.body, nil
}

func (op *operation) name() string {
	if op.target == "" {
		return op.service
	}
	return op.target
}

// compose writes head and body into c.out.
func (c *conn) compose(op *operation, now time.Time, body []byte) {
	length := strconv.Itoa(len(body))
	if op.prove != nil {
		b := append(append(append(c.out[:0], "POST "...), op.path...), " HTTP/1.1\r\nHost: "...)
		b = append(append(append(b, c.host...), "\r\nContent-Type: "...), op.contentType...)
		b = append(append(append(b, "\r\nContent-Length: "...), length...), "\r\n"...)
		c.out = append(append(op.prove(b, body), "\r\n\r\n"...), body...)
		return
	}
	date := now.UTC().Format(dateForm)
	c.signed = append(c.signed[:0],
		header{"amz-sdk-invocation-id", invocationID},
		header{"amz-sdk-request", "attempt=1; max=3"},
		header{"content-length", length},
		header{"content-type", op.contentType},
		header{"host", c.host},
		header{"x-amz-date", date})
	if op.target != "" {
		c.signed = append(c.signed, header{"x-amz-target", op.target})
	}
	path := cmp.Or(op.path, "/")
	b := append(append(append(c.out[:0], "POST "...), path...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, c.host...), "\r\n"+sdkHeaders...)
	b = append(append(b, "Content-Length: "...), length...)
	b = append(b, "\r\nAmz-Sdk-Invocation-Id: "+invocationID+"\r\nAmz-Sdk-Request: attempt=1; max=3\r\nAuthorization: "...)
	b = c.signers[op.service].authorize(b, now, "POST", path, "", c.signed, body)
	b = append(append(b, "\r\nContent-Type: "...), op.contentType...)
	b = append(append(b, "\r\nX-Amz-Date: "...), date...)
	if op.target != "" {
		b = append(append(b, "\r\nX-Amz-Target: "...), op.target...)
	}
	c.out = append(append(b, "\r\n\r\n"...), body...)
}

func (c *conn) dial() error {
	if c.aborted.Load() {
		return net.ErrClosed
	}
	nc, err := net.DialTimeout("tcp", c.host, requestTimeout)
	if err != nil {
		return err
	}
	c.nc, c.expires = nc, time.Time{}
	c.current.Store(&nc)
	if c.aborted.Load() { // it came while we dialled, and missed nc
		_ = nc.Close()
		return net.ErrClosed
	}
	if c.br == nil {
		c.br = bufio.NewReaderSize(nc, 4096)
	}
	c.br.Reset(nc)
	return nil
}

func (c *conn) close() {
	if c.nc != nil {
		_ = c.nc.Close()
		c.nc = nil
	}
}

// abort ends a request under way; the connection can't be used any more.
func (c *conn) abort() {
	c.aborted.Store(true)
	if nc := c.current.Load(); nc != nil {
		_ = (*nc).Close()
	}
}

// exchange sends c.out and reads the answer into c.body. Keep says that the
// connection can be used again.
func (c *conn) exchange() (status int, keep bool, err error) {
	if _, err = c.nc.Write(c.out); err != nil {
		return 0, false, err
	}
	line, err := c.line()
	if err != nil {
		return 0, false, err
	}
	if len(line) < 12 || string(line[:7]) != "HTTP/1." {
		return 0, false, fmt.Errorf("no HTTP/1 answer: %.40q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, false, fmt.Errorf("no status: %.40q", line)
	}
	keep = line[7] == '1'
	length, chunked := -1, false
	for {
		if line, err = c.line(); err != nil {
			return 0, false, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case asciiFold(name, "content-length"):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return 0, false, fmt.Errorf("bad content-length %q", value)
			}
		case asciiFold(name, "transfer-encoding"):
			chunked = asciiFold(value, "chunked")
		case asciiFold(name, "connection"):
			keep = keep && !asciiFold(value, "close")
		}
	}
	switch {
	case chunked:
		err = c.readChunks()
	case length >= 0:
		c.body = c.body[:0]
		err = c.read(length)
	default:
		keep = false
		c.body, err = io.ReadAll(c.br)
	}
	return status, keep, err
}

func asciiFold(b []byte, lower string) bool {
	return len(b) == len(lower) && strings.EqualFold(string(b), lower)
}

var errLineTooLong = errors.New("header line of the answer is too long")

// line reads up to the next CRLF, which it leaves out.
func (c *conn) line() ([]byte, error) {
	b, err := c.br.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errLineTooLong
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(b, "\r\n"), nil
}

// maxAnswer bounds an answer: ten messages of the largest size with escapes
// would be more, but the benchmark never sends them.
const maxAnswer = 4 << 20

// read appends n bytes to c.body.
func (c *conn) read(n int) error {
	have := len(c.body)
	if n > maxAnswer-have {
		return fmt.Errorf("answer of over %d bytes", maxAnswer)
	}
	c.body = append(c.body, make([]byte, n)...)
	_, err := io.ReadFull(c.br, c.body[have:])
	return err
}

func (c *conn) readChunks() error {
	c.body = c.body[:0]
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 31)
		if err != nil {
			return fmt.Errorf("bad chunk: %w", err)
		}
		if err := c.read(int(n)); err != nil {
			return err
		}
		if line, err = c.line(); err != nil { // the end of the chunk, or of the trailers
			return err
		}
		for n == 0 && len(line) > 0 {
			if line, err = c.line(); err != nil {
				return err
			}
		}
		if n == 0 {
			return nil
		}
	}
}

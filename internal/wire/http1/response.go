package http1

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// An answer is collected in a buffer of at most maxPooled bytes that later
// answers use too. One of largeAnswer bytes or more with a Content-Length is
// sent as its handler writes it, from where that lies.
const (
	maxPooled   = 128 << 10
	largeAnswer = 16 << 10
)

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2<<10); return &b }}

// timedWriter is a connection that goes by the time when it writes, and can be given it.
type timedWriter interface {
	WriteNow(now time.Time, p []byte) (int, error)
}

// buffersWriter is a connection that is not net's own, and can write several buffers
// at once as that can.
type buffersWriter interface {
	WriteBuffers(*net.Buffers) (int64, error)
}

// response is what a handler writes its answer to.
type response exchange

// Header is the answer's header. What is set after WriteHeader is sent too,
// unless the answer was large.
func (w *response) Header() http.Header { return w.conn.answer }

// WriteHeader fixes the status. Only the first call counts; informational
// statuses are not sent.
func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

// Write adds to the answer's body.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.bodiless() {
		return 0, http.ErrBodyNotAllowed
	}
	if w.sent {
		return w.continueWith(p)
	}
	if w.out == nil {
		if n := w.declared(); n >= largeAnswer && n >= len(p) && len(p) > 0 {
			w.due = n - len(p)
			return len(p), w.send(p)
		}
		w.out = buffers.Get().(*[]byte)
	}
	*w.out = append(*w.out, p...)
	return len(p), nil
}

// continueWith writes more of an answer that is sent as it comes.
func (w *response) continueWith(p []byte) (int, error) {
	if len(p) > w.due {
		return 0, http.ErrContentLength
	}
	n, err := w.conn.tcp.Write(p)
	w.conn.sentAt = time.Time{} // the beginning may have been sent long ago
	w.due -= n
	w.last = w.last || err != nil
	return n, err
}

// bodiless reports whether the status forbids a body.
func (w *response) bodiless() bool {
	return w.status == http.StatusNoContent || w.status == http.StatusNotModified
}

// declared is the answer's length by its header; 0: it gives none.
func (w *response) declared() int {
	lengths := w.conn.answer["Content-Length"]
	if len(lengths) != 1 {
		return 0
	}
	n, err := strconv.Atoi(lengths[0])
	if err != nil {
		return 0
	}
	return n
}

// SetReadDeadline moves the time until which the body must be read; zero means
// none. It is for http.ResponseController.
func (w *response) SetReadDeadline(t time.Time) error {
	// What is left of the body may be read already. With nothing left, what was read is the watch's.
	if w.left > 0 && w.left > int64(w.conn.to-w.conn.from) {
		w.fixed.read = true
		w.conn.setReadDeadline(t)
	}
	return nil
}

// SetWriteDeadline moves the time until which the answer must be written; zero
// means none. It is for http.ResponseController.
func (w *response) SetWriteDeadline(t time.Time) error {
	w.fixed.write = true
	w.conn.writeUntil = t
	return w.conn.tcp.SetWriteDeadline(t)
}

// finish sends the answer if it is not sent, and reports whether another
// request may follow.
func (x *exchange) finish() (again bool) {
	w := (*response)(x)
	w.WriteHeader(http.StatusOK)
	if !x.sent {
		var body []byte
		if x.out != nil {
			body = *x.out
		}
		w.due = max(w.declared()-len(body), 0)
		if w.bodiless() {
			w.due = 0
		}
		_ = w.send(body) // a caller that is gone does not want to know
	}
	if x.out != nil {
		release(x.out)
	}
	if x.due > 0 { // its handler has not written all: that must not look complete
		return false
	}
	if x.last {
		x.linger()
	}
	return !x.last && !x.failed
}

// send writes the answer, behind which w.due bytes of it follow.
func (w *response) send(body []byte) (err error) {
	w.sent = true
	c := w.conn
	w.last = c.server.stopping.Load() || !(*exchange)(w).discard()
	now := clock.System.Now()
	if !w.fixed.write {
		c.limitWrite(now)
	}
	buffer := buffers.Get().(*[]byte)
	defer release(buffer)
	*buffer = w.appendHead((*buffer)[:0], len(body)+w.due, now)
	c.sentAt = time.Time{}
	if len(body) < largeAnswer {
		*buffer = append(*buffer, body...)
		if timed, ok := c.tcp.(timedWriter); ok {
			_, err = timed.WriteNow(now, *buffer)
		} else {
			_, err = c.tcp.Write(*buffer)
		}
		c.sentAt = now
	} else {
		parts := net.Buffers{*buffer, body}
		if all, ok := c.tcp.(buffersWriter); ok {
			_, err = all.WriteBuffers(&parts)
		} else {
			_, err = parts.WriteTo(c.tcp)
		}
	}
	w.last = w.last || err != nil
	return err
}

// limitWrite bounds the writing of an answer that begins now.
func (c *conn) limitWrite(now time.Time) {
	switch t := c.server.other.WriteTimeout; {
	case t > 0 && late(c.writeUntil, now, t):
		c.writeUntil = now.Add(t)
	case t <= 0 && !c.writeUntil.IsZero():
		c.writeUntil = time.Time{}
	default:
		return
	}
	_ = c.tcp.SetWriteDeadline(c.writeUntil) // a closed connection says so when it is written to
}

func release(buffer *[]byte) {
	if cap(*buffer) <= maxPooled {
		*buffer = (*buffer)[:0]
		buffers.Put(buffer)
	}
}

// appendHead appends the answer's head for a body of length bytes.
func (w *response) appendHead(b []byte, length int, now time.Time) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(w.status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(w.status)...)
	b = append(b, "\r\n"...)
	for key, values := range w.conn.answer {
		if key == "Content-Length" || key == "Date" || key == "Transfer-Encoding" {
			continue // said below
		}
		for _, value := range values {
			if key == "Connection" && value == "close" {
				w.last = true // said below
				continue
			}
			b = appendField(b, key, value)
		}
	}
	b = appendField(b, "Date", w.conn.server.dateAt(now))
	if w.last {
		b = appendField(b, "Connection", "close")
	}
	if !w.bodiless() {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(length), 10)
		b = append(b, "\r\n"...)
	}
	return append(b, "\r\n"...)
}

// appendField appends a field; a line break in its value becomes blanks.
func appendField(b []byte, key, value string) []byte {
	b = append(b, key...)
	b = append(b, ": "...)
	start := len(b)
	b = append(b, value...)
	for i := start; i < len(b); i++ {
		if b[i] == '\r' || b[i] == '\n' {
			b[i] = ' '
		}
	}
	return append(b, "\r\n"...)
}

// linger lets a caller that may still be sending read the last answer: to close
// at once could take it away.
func (x *exchange) linger() {
	if x.conn.tcp.CloseWrite() == nil && readOn(x.conn.tcp) { // he sends on
		<-after(lingerTime)
	}
}

// readOn discards what still comes on a connection that has had its last answer, as far as the
// constants allow, and reports whether that was too much.
func readOn(tcp net.Conn) (tooMuch bool) {
	end := clock.System.Now().Add(longestLinger)
	for range maxLinger / lingerStep {
		now := clock.System.Now()
		if now.After(end) {
			break
		}
		_ = tcp.SetReadDeadline(now.Add(lingerTime)) // a closed connection says so when it is read
		if _, err := io.CopyN(io.Discard, tcp, lingerStep); err != nil {
			return false
		}
	}
	return true
}

package conns

import (
	"net/http"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// paced writes an answer of HTTP/2. A client may leave one stream unread while it reads others of
// its connection, which the connection's deadline does not see: so each write has to proceed at
// the minimum rate on its own stream. net/http resets a stream at its write deadline also while
// nothing is written; so it is only set during a write, and is the handler's at other times.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	window  time.Duration
	least   int       // bytes that must be sent in a window
	given   time.Time // the handler's deadline; zero: none
}

// minPiece is the size of net/http's buffer of a stream: a smaller write may send nothing.
const minPiece = 4 << 10

func pace(w http.ResponseWriter, r *http.Request, l *Listener) *paced {
	p := &paced{
		ResponseWriter: w, control: http.NewResponseController(w), window: l.options.Window,
		least: int(max(min(l.minPerWindow(), writeSize), minPiece)),
	}
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 {
		p.given = clock.System.Now().Add(s.WriteTimeout) // as net/http has set it
	}
	return p
}

// Unwrap is for http.ResponseController.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Write implements http.ResponseWriter.
func (p *paced) Write(b []byte) (n int, err error) {
	defer p.restore()
	for {
		p.limit()
		m, err := p.ResponseWriter.Write(b[n:min(len(b), n+p.least)])
		n += m
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// FlushError is for http.ResponseController.
func (p *paced) FlushError() error {
	defer p.restore()
	p.limit()
	return p.control.Flush()
}

// SetWriteDeadline is for http.ResponseController. It bounds the answer in addition to the window.
func (p *paced) SetWriteDeadline(t time.Time) error {
	p.given = t
	return p.control.SetWriteDeadline(t)
}

// SetReadDeadline is for callers that do not look behind the writer.
func (p *paced) SetReadDeadline(t time.Time) error { return p.control.SetReadDeadline(t) }

// limit sets the deadline of what is written now.
func (p *paced) limit() {
	until := clock.System.Now().Add(p.window)
	if !p.given.IsZero() && p.given.Before(until) {
		until = p.given
	}
	_ = p.control.SetWriteDeadline(until) // every stream of HTTP/2 has one
}

func (p *paced) restore() { _ = p.control.SetWriteDeadline(p.given) }

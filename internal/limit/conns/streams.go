package conns

import (
	"net/http"

	"godwit.dev/godwit/internal/limit"
)

// fieldBytes is the overhead of a field of a head beside its name and value, as HTTP/2 counts.
const fieldBytes = 32

// Streams bounds HTTP/2 requests, of which a connection has many at once: the bounds are those
// of connections, in total and per address, and the memory of their unpacked heads counts with
// that of others. Like a connection, each of their answers must be read at the minimum rate.
func Streams(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor < 2 {
			next.ServeHTTP(w, r)
			return
		}
		c, ok := limit.PeerOf(r.Context()).(*Conn)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		head := max(unpacked(r)-freeHead, 0)
		defer c.end(head)
		if why := c.begin(head); why != "" {
			w.Header().Set("Retry-After", "1")
			http.Error(w, string(why), http.StatusServiceUnavailable)
			return
		}
		answer := pace(w, r, c.listener)
		next.ServeHTTP(answer, r)
		answer.limit() // of what net/http has buffered, and sends next
	})
}

const (
	fullOfStreams refusal = "The server has as many requests of HTTP/2 under way as it may (--max-connections, " +
		"--max-connections-per-address). Try later."
	fullOfHeads refusal = "The heads of requests under way take as much memory as they may (--max-bytes-in-flight). Try later."
)

// begin counts a request, also beyond the limit; end takes it back.
func (c *Conn) begin(head int64) refusal {
	l := c.listener
	full := l.all.exceeds(l.max.Load())
	if c.of != nil && c.of.exceeds(l.perAddress.Load()) {
		full = true
	}
	switch {
	case full:
		l.heads.Add(head)
		l.refusedStreams.Add(1)
		return fullOfStreams
	case l.heads.Add(head) > l.options.HeadBytes && head > 0:
		l.refusedHeads.Add(1)
		return fullOfHeads
	}
	return ""
}

func (c *Conn) end(head int64) {
	c.listener.heads.Add(-head)
	c.listener.all.streams.Add(-1)
	if c.of != nil {
		c.of.streams.Add(-1)
	}
}

// exceeds counts a request, and reports whether there are more than limit; 0: no bound.
func (s *set) exceeds(limit int64) bool { return s.streams.Add(1) > limit && limit > 0 }

// unpacked is how much memory a request's head takes, in bytes.
func unpacked(r *http.Request) int64 {
	n := len(r.Method) + len(r.RequestURI) + len(r.Host) + 3*fieldBytes
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + fieldBytes
		}
	}
	return int64(n)
}

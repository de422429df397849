package queues

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"sync"

	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
)

// A receipt handle is the base64 of: shard, incarnation, sequence, lane, the
// number of the receive, the epoch of the shard, and an authentication code
// over them, so that nobody can make one up or use it on another queue.
const (
	handleBody = 2 + 8 + 8 + 8 + 4 + 4
	handleCode = 16
)

// Strict, so that each handle has one spelling only.
var handleEncoding = base64.StdEncoding.Strict()

// handleSealer makes and checks receipt handles.
type handleSealer struct {
	codes sync.Pool // of hash.Hash, keyed
}

// newHandleSealer makes one whose handles only the holder of the key can make.
func newHandleSealer(key []byte) *handleSealer {
	s := &handleSealer{}
	s.codes.New = func() any { return hmac.New(sha256.New, key) }
	return s
}

func (s *handleSealer) code(dst, body []byte) []byte {
	h := s.codes.Get().(hash.Hash)
	h.Reset()
	h.Write(body)
	var sum [sha256.Size]byte
	dst = append(dst, h.Sum(sum[:0])[:handleCode]...)
	s.codes.Put(h)
	return dst
}

// seal makes the handle of a receive.
func (s *handleSealer) seal(shard uint16, inc layout.Incarnation, l queue.Lease) string {
	buf := make([]byte, 0, handleBody+handleCode)
	buf = binary.BigEndian.AppendUint16(buf, shard)
	buf = binary.BigEndian.AppendUint64(buf, uint64(inc))
	buf = binary.BigEndian.AppendUint64(buf, l.Sequence)
	buf = binary.BigEndian.AppendUint64(buf, uint64(l.Lane))
	buf = binary.BigEndian.AppendUint32(buf, l.Receives)
	buf = binary.BigEndian.AppendUint32(buf, l.Epoch)
	buf = s.code(buf, buf)
	return handleEncoding.EncodeToString(buf)
}

// Open reads a handle of the given queue; ok is false for anything else.
func (s *handleSealer) Open(handle string, shard uint16, inc layout.Incarnation) (h queue.Handle, ok bool) {
	var space [handleBody + handleCode + 2]byte
	if len(handle) != handleEncoding.EncodedLen(handleBody+handleCode) {
		return h, false
	}
	n, err := handleEncoding.Decode(space[:], []byte(handle))
	if err != nil || n != handleBody+handleCode {
		return h, false
	}
	var code [handleCode]byte
	if !hmac.Equal(s.code(code[:0], space[:handleBody]), space[handleBody:n]) {
		return h, false
	}
	p := space[:]
	if binary.BigEndian.Uint16(p) != shard || binary.BigEndian.Uint64(p[2:]) != uint64(inc) {
		return h, false
	}
	return queue.Handle{
		Sequence: binary.BigEndian.Uint64(p[10:]),
		Lane:     layout.Lane(binary.BigEndian.Uint64(p[18:])),
		Receives: binary.BigEndian.Uint32(p[26:]),
		Epoch:    binary.BigEndian.Uint32(p[30:]),
	}, true
}

package envelope

import (
	"bytes"

	"godwit.dev/godwit/internal/queue/message"
)

// Keep is the signature that a signed body got in the place of what u says, to
// be stored and used again.
func Keep(body []byte, u *message.Unsigned) []byte {
	return append(keptName(u), body[u.Offset:u.Offset+SignatureSize]...)
}

// Reuse puts a signature from Keep into a body that lacks the very same; false
// if it is another, or none.
func Reuse(body []byte, u *message.Unsigned, kept []byte) bool {
	text, ok := bytes.CutPrefix(kept, keptName(u))
	if !ok || len(text) != SignatureSize {
		return false
	}
	copy(body[u.Offset:], text)
	return true
}

// keptName says what a signature is made with and over.
func keptName(u *message.Unsigned) []byte {
	name := make([]byte, 0, len(u.Key)+2+len(u.Digest)+SignatureSize)
	name = append(append(name, u.Key[:]...), u.Version, byte(len(u.Digest)))
	return append(name, u.Digest...)
}

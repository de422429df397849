package envelope

import (
	"bytes"

	"godwit.dev/godwit/internal/queue/message"
)

// Keep is the persisted form of the signature of a signed body, which u describes.
func Keep(body []byte, u *message.Unsigned) []byte {
	return append(keptName(u), body[u.Offset:u.Offset+SignatureSize]...)
}

// Reuse inserts a signature from Keep into a body with the same digest and key; false: they
// differ, or there is none.
func Reuse(body []byte, u *message.Unsigned, kept []byte) bool {
	text, ok := bytes.CutPrefix(kept, keptName(u))
	if !ok || len(text) != SignatureSize {
		return false
	}
	copy(body[u.Offset:], text)
	return true
}

// keptName identifies a signature's key and digest.
func keptName(u *message.Unsigned) []byte {
	name := make([]byte, 0, len(u.Key)+2+len(u.Digest)+SignatureSize)
	name = append(append(name, u.Key[:]...), u.Version, byte(len(u.Digest)))
	return append(name, u.Digest...)
}

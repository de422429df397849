package mutation

import "encoding/binary"

// AppendText appends a text behind its length, as a varint.
func AppendText[T string | []byte](buf []byte, text T) []byte {
	buf = binary.AppendUvarint(buf, uint64(len(text)))
	return append(buf, text...)
}

// TakeText takes a text that AppendText has written from the beginning of p; rest is what
// follows.
func TakeText(p []byte) (text string, rest []byte, ok bool) {
	n, w := binary.Uvarint(p)
	if w <= 0 || n > uint64(len(p)-w) {
		return "", nil, false
	}
	return string(p[w : w+int(n)]), p[w+int(n):], true
}

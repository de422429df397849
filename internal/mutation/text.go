package mutation

import "encoding/binary"

// AppendText appends a text after its length, as a varint.
func AppendText[T string | []byte](buf []byte, text T) []byte {
	buf = binary.AppendUvarint(buf, uint64(len(text)))
	return append(buf, text...)
}

// TakeText decodes a text of AppendText at the beginning of p; rest is the remainder.
func TakeText(p []byte) (text string, rest []byte, ok bool) {
	n, w := binary.Uvarint(p)
	if w <= 0 || n > uint64(len(p)-w) {
		return "", nil, false
	}
	return string(p[w : w+int(n)]), p[w+int(n):], true
}

// Package fastjson reads JSON for decoders by hand, and writes texts and numbers of JSON. The Scanner
// knows only the usual: it fails on anything else, so that its user can turn
// to a complete decoder, which also finds the right words for what is wrong.
package fastjson

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain returns the index of the first byte of s at or behind i that is no
// plain character of a JSON string: a quote, a backslash, a control character
// or a part of a multi-byte character; len(s) if there is none.
func plain(s []byte, i int) int {
	// Eight bytes at once: each term's high bits mark the bytes looked for. A
	// borrow can mark a byte above a marked one by mistake, never the lowest.
	for ; i+8 <= len(s); i += 8 {
		w := binary.LittleEndian.Uint64(s[i:])
		quote := w ^ ones*'"'
		backslash := w ^ ones*'\\'
		marks := ((w-ones*' ')&^w | (quote-ones)&^quote | (backslash-ones)&^backslash | w) & highs
		if marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

// AppendString appends s to dst as a JSON string. Bytes that are not UTF-8
// become U+FFFD; what XML has no form for is escaped, so that SQS takes the JSON as a body.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := len(dst)
	dst = append(dst, s...)
	stop := plain(dst, start)
	if stop < len(dst) {
		dst = appendEscaped(dst[:stop], s[stop-start:])
	}
	return append(dst, '"')
}

// appendEscaped continues where the plain beginning of a string ends.
func appendEscaped(dst []byte, s string) []byte {
	for len(s) > 0 {
		c := s[0]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0')
			dst = hex.AppendEncode(dst, []byte{c})
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, size := utf8.DecodeRuneInString(s)
			switch r {
			case 0xFFFE:
				dst = append(dst, `\ufffe`...)
			case 0xFFFF:
				dst = append(dst, `\uffff`...)
			default:
				dst = utf8.AppendRune(dst, r)
			}
			s = s[size:]
			continue
		}
		s = s[1:]
	}
	return dst
}

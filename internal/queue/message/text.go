package message

import (
	"unicode/utf8"
	"unsafe"
)

// ValidText reports whether s is UTF-8 of the characters that SQS allows in bodies and text
// attributes.
func ValidText(s string) bool {
	for i := 0; i < len(s); {
		if i+8 <= len(s) && printable8(s[i:i+8]) {
			i += 8
			continue
		}
		for end := min(i+8, len(s)); i < end; i++ {
			if c := s[i]; c < ' ' && c != '\t' && c != '\n' && c != '\r' {
				return false
			} else if c >= utf8.RuneSelf {
				return validWide(s[i:])
			}
		}
	}
	return true
}

// printable8 reports whether 8 bytes have no control character and none beyond ASCII.
func printable8(s string) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	_ = s[7]
	w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	return ((w-ones*' ')&^w|w)&highs == 0
}

// validWide is ValidText for text that is not ASCII.
func validWide(s string) bool {
	if !utf8.ValidString(s) { // this also excludes surrogates
		return false
	}
	for _, r := range s {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return true
}

// takes reports whether SQS allows a body or a text attribute.
func takes(text []byte) bool {
	return len(text) > 0 && ValidText(unsafe.String(unsafe.SliceData(text), len(text))) //nolint:gosec // it is read here only
}

// Sendable reports whether SendMessage would take the body and the values of the attributes.
func (m *Message) Sendable() bool {
	for i := range m.Attributes {
		if a := &m.Attributes[i]; !a.Binary() && !takes(a.Value) {
			return false
		}
	}
	return takes(m.Body)
}

package fastjson

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// ErrUnusual reports input that the Scanner leaves to a complete decoder. It
// does not mean that the input is wrong.
var ErrUnusual = errors.New("fastjson: unusual input")

// Scanner walks over one JSON value. Its methods each consume a value of the
// kind that they are named after. After a failure they all return zero values
// and End reports it. Nothing that they return aliases the input, except keys and
// what Text returns.
//
//	for key, ok := s.Object(); ok; key, ok = s.Key() {
//		switch string(key) {
//		case "Id":
//			x.ID = s.String()
//		default:
//			s.Fail()
//		}
//	}
//	return s.End()
type Scanner struct {
	buf    []byte
	pos    int
	failed bool
}

// Scan starts at the beginning of buf.
func Scan(buf []byte) Scanner { return Scanner{buf: buf} }

// Fail gives up: the input is not what this user expects.
func (s *Scanner) Fail() {
	s.failed = true
	s.pos = len(s.buf)
}

// End reports whether all went well and nothing is left: nil or ErrUnusual.
func (s *Scanner) End() error {
	if s.next() != 0 || s.failed {
		return ErrUnusual
	}
	return nil
}

// Object enters an object and returns its first key; ok is false if it is
// empty or there is no object.
func (s *Scanner) Object() (key []byte, ok bool) {
	if !s.take('{') {
		return nil, false
	}
	if s.next() == '}' {
		s.pos++
		return nil, false
	}
	return s.key()
}

// Key returns the next key of the object whose value was just read; ok is
// false at the object's end, which is consumed.
func (s *Scanner) Key() (key []byte, ok bool) {
	switch s.next() {
	case ',':
		s.pos++
		return s.key()
	case '}':
		s.pos++
	default:
		s.Fail()
	}
	return nil, false
}

func (s *Scanner) key() (key []byte, ok bool) {
	key, escaped := s.raw()
	if escaped || !s.take(':') {
		s.Fail()
		return nil, false
	}
	return key, true
}

// Array enters an array; more is false if it is empty or there is none.
func (s *Scanner) Array() (more bool) {
	if !s.take('[') {
		return false
	}
	if s.next() == ']' {
		s.pos++
		return false
	}
	return true
}

// More reports whether another element follows the one just read; false at
// the array's end, which is consumed.
func (s *Scanner) More() bool {
	switch s.next() {
	case ',':
		s.pos++
		return true
	case ']':
		s.pos++
	default:
		s.Fail()
	}
	return false
}

// Int reads a whole number of at most 18 digits, without fraction or exponent.
func (s *Scanner) Int() int {
	negative := s.next() == '-'
	if negative {
		s.pos++
	}
	start, n := s.pos, 0
	for s.pos < len(s.buf) && s.buf[s.pos]-'0' <= 9 {
		n = n*10 + int(s.buf[s.pos]-'0')
		s.pos++
		if s.pos-start > 18 {
			s.Fail()
			return 0
		}
	}
	switch digits := s.pos - start; {
	case digits == 0, digits > 1 && s.buf[start] == '0':
		s.Fail()
	case s.pos < len(s.buf) && (s.buf[s.pos] == '.' || s.buf[s.pos]|0x20 == 'e'):
		s.Fail()
	}
	if s.failed {
		return 0
	}
	if negative {
		n = -n
	}
	return n
}

// String reads a string of valid UTF-8.
func (s *Scanner) String() string {
	raw, escaped := s.raw()
	if !escaped {
		return string(raw)
	}
	return s.unescape(raw)
}

// Text is String without a copy: what it returns is valid as long as the input is
// not changed.
func (s *Scanner) Text() string {
	raw, escaped := s.raw()
	if !escaped {
		return unsafe.String(unsafe.SliceData(raw), len(raw)) //nolint:gosec // see above
	}
	return s.unescape(raw)
}

// raw reads a string and returns what stands between its quotes.
func (s *Scanner) raw() (raw []byte, escaped bool) {
	if !s.take('"') {
		return nil, false
	}
	start, multibyte := s.pos, false
	for i := start; ; {
		i = plain(s.buf, i)
		if i >= len(s.buf) || s.buf[i] < ' ' {
			s.Fail()
			return nil, false
		}
		switch c := s.buf[i]; c {
		case '"':
			raw = s.buf[start:i]
			if multibyte && !utf8.Valid(raw) {
				s.Fail()
				return nil, false
			}
			s.pos = i + 1
			return raw, escaped
		case '\\':
			escaped = true
			i += 2
		default:
			multibyte = true
			for i < len(s.buf) && s.buf[i] >= utf8.RuneSelf {
				i++
			}
		}
	}
}

func (s *Scanner) unescape(raw []byte) string {
	var b strings.Builder
	b.Grow(len(raw))
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			b.Write(raw)
			return b.String()
		}
		b.Write(raw[:i])
		raw = raw[i+1:] // not empty: raw() skipped a byte behind each backslash
		c := raw[0]
		raw = raw[1:]
		switch c {
		case '"', '\\', '/':
			b.WriteByte(c)
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			r, ok := hex4(raw)
			if ok {
				raw = raw[4:]
			}
			if ok && utf16.IsSurrogate(r) {
				if ok = len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u'; ok {
					var low rune
					low, ok = hex4(raw[2:])
					r = utf16.DecodeRune(r, low)
					ok = ok && r != utf8.RuneError
					raw = raw[6:]
				}
			}
			if !ok {
				s.Fail()
				return ""
			}
			b.WriteRune(r)
		default:
			s.Fail()
			return ""
		}
	}
}

func hex4(p []byte) (r rune, ok bool) {
	if len(p) < 4 {
		return 0, false
	}
	for _, c := range p[:4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// next skips white space and returns the byte behind it, 0 at the end.
func (s *Scanner) next() byte {
	for s.pos < len(s.buf) {
		c := s.buf[s.pos]
		if c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			if c == 0 {
				s.Fail() // a NUL is not the end
			}
			return c
		}
		s.pos++
	}
	return 0
}

func (s *Scanner) take(c byte) bool {
	if s.next() != c {
		s.Fail()
		return false
	}
	s.pos++
	return true
}

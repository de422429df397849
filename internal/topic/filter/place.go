package filter

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Most of AWS's errors contain the position of its parser. The parser reads the policy without
// the spaces between its tokens. It reads a string only up to its opening quote, until the text
// is needed; and with a member's name it reads the beginning of its value. The functions below
// return such positions as offsets in the policy as it was written.

// reached is the position if a value, or the name before it, is the last token read.
func (c *compiler) reached(v at) uint32 {
	if n := &c.nodes[v]; n.kind != '"' && n.kind != '{' && n.kind != '[' {
		return n.end
	}
	return c.nodes[v].start + 1
}

// behind is the position after a complete value.
func (c *compiler) behind(v at) uint32 { return c.nodes[v].end }

// reachedIn is the position if the i-th element of an array is the last token read, or, after
// the last element, its bracket.
func (c *compiler) reachedIn(array at, elements []at, i int) uint32 {
	if i < len(elements) {
		return c.reached(elements[i])
	}
	return c.behind(array)
}

// refuse adds the position of AWS's error.
func (c *compiler) refuse(offset uint32, err error) error {
	read := c.source[:offset]
	c.work += len(read)
	return ErrAt.With(err, 1+compactLength(read))
}

// compactLength is the length of the beginning of a document without the spaces between its
// tokens, in characters as Java counts them.
func compactLength(beginning string) (n int) {
	quoted := false
	for i := 0; i < len(beginning); {
		r, size := utf8.DecodeRuneInString(beginning[i:])
		switch {
		case r == '"':
			quoted = !quoted
		case r == '\\' && quoted && i+1 < len(beginning): // the next one does not end the string
			n++
			i++
			r, size = utf8.DecodeRuneInString(beginning[i:])
		case !quoted && strings.ContainsRune(" \t\r\n", r):
			n--
		}
		n += max(utf16.RuneLen(r), 1)
		i += size
	}
	return n
}

// JSONFault is AWS's error for a document that is not a JSON object, with the position if it is
// known.
func JSONFault(document string) error {
	rest := strings.TrimLeft(document, " \t\r\n")
	first, _ := utf8.DecodeRuneInString(rest)
	switch {
	case json.Valid([]byte(document)):
		return ErrJSON
	case first == '{':
		rest = strings.TrimLeft(rest[1:], " \t\r\n")
		next, size := utf8.DecodeRuneInString(rest)
		if size == 0 || next == '"' || next == '}' {
			return ErrJSON
		}
		return ErrAt.With(ErrMemberName.With(next, next), 1+compactLength(document[:len(document)-len(rest)]))
	case unicode.IsLetter(first):
		end := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '$' })
		if end < 0 {
			end = len(rest)
		}
		if word := rest[:end]; word != "true" && word != "false" && word != "null" {
			return ErrAt.With(ErrWord.With(word), 1+compactLength(word))
		}
	}
	return ErrJSON
}

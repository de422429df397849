package filter

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// AWS tells with most refusals how far its parser had read. It reads the policy without
// the space between its tokens; a string only as far as its opening quote, until it asks
// for the text; and with a member's name the beginning of its value. The functions below
// give such places as offsets in the policy as it was written.

// reached is the place when a value is the token that was read last, or the name before
// it is.
func (c *compiler) reached(v at) uint32 {
	if n := &c.nodes[v]; n.kind != '"' && n.kind != '{' && n.kind != '[' {
		return n.end
	}
	return c.nodes[v].start + 1
}

// behind is the place when all of a value was read.
func (c *compiler) behind(v at) uint32 { return c.nodes[v].end }

// reachedIn is the place when the i-th element of an array is the token that was read
// last, or behind the last one its bracket.
func (c *compiler) reachedIn(array at, elements []at, i int) uint32 {
	if i < len(elements) {
		return c.reached(elements[i])
	}
	return c.behind(array)
}

// refuse is a refusal with the place where AWS sees its reason.
func (c *compiler) refuse(offset uint32, err error) error {
	read := c.source[:offset]
	c.work += len(read)
	return ErrAt.With(err, 1+compactLength(read))
}

// compactLength is how many characters the beginning of a document has without the
// space between its tokens, as Java counts them.
func compactLength(beginning string) (n int) {
	quoted := false
	for i := 0; i < len(beginning); {
		r, size := utf8.DecodeRuneInString(beginning[i:])
		switch {
		case r == '"':
			quoted = !quoted
		case r == '\\' && quoted && i+1 < len(beginning): // what follows is no end of the string
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

// JSONFault is what AWS says of a document that is no JSON object, with the place where
// that is known.
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

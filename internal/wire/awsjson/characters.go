package awsjson

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// OnlyCharacters is an input whose operation refuses texts that are not of characters alone.
// Bytes that are no UTF-8, and halves of surrogate pairs, are U+FFFF in it, which is no
// character, where encoding/json would have them pass for U+FFFD, which is one.
type OnlyCharacters interface{ OnlyCharacters() }

// noCharacter is the escape of U+FFFF.
const noCharacter = `\uffff`

// markNoCharacters replaces in a JSON text what is no character by U+FFFF.
func markNoCharacters(body []byte) []byte {
	marked, done := []byte(nil), 0
	for i := 0; i < len(body); {
		size, fine := characterAt(body[i:])
		if !fine {
			marked = append(append(marked, body[done:i]...), noCharacter...)
			done = i + size
		}
		i += size
	}
	if done == 0 {
		return body
	}
	return append(marked, body[done:]...)
}

// characterAt is the size of what b begins with, a byte, an escape, or the escapes of a
// surrogate pair; fine is false if it is no character.
func characterAt(b []byte) (size int, fine bool) {
	if b[0] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(b)
		return size, r != utf8.RuneError || size > 1
	}
	if b[0] != '\\' {
		return 1, true
	}
	unit, ok := escapedUnit(b)
	switch {
	case !ok:
		return min(2, len(b)), true
	case !utf16.IsSurrogate(unit):
		return len(noCharacter), true
	}
	low, _ := escapedUnit(b[len(noCharacter):])
	if utf16.DecodeRune(unit, low) == utf8.RuneError {
		return len(noCharacter), false
	}
	return 2 * len(noCharacter), true
}

// escapedUnit is the unit of UTF-16 whose escape (\ud83d) b begins with.
func escapedUnit(b []byte) (unit rune, ok bool) {
	if len(b) < len(noCharacter) || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:len(noCharacter)]), 16, 16)
	return rune(n), err == nil
}

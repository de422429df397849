package sms

import (
	"unicode/utf16"
	"unicode/utf8"
)

// MaxCharacters is the maximum length of a text. Source: the SNS developer guide, "Publishing
// to a mobile phone".
const MaxCharacters = 1600

// Alphabet is the encoding of a text's characters.
type Alphabet byte

// The alphabets. Source: 3GPP TS 23.038.
const (
	GSM7 Alphabet = iota // here an octet for each septet, as in SMPP
	UCS2                 // UTF-16, big-endian: characters beyond the BMP take two units
)

// The sizes of parts, in septets of GSM7 and 16-bit units of UCS2: of a text with one part, and
// of one with several, each of which has a header.
const (
	wholeGSM7, partGSM7 = 160, 153
	wholeUCS2, partUCS2 = 70, 67
)

// Text is a text divided into parts.
type Text struct {
	Alphabet Alphabet
	Parts    []string // together the whole text
}

// Cut divides a text into parts, after words if possible. ok is false if it is too long.
func Cut(text string) (t Text, ok bool) {
	if utf8.RuneCountInString(text) > MaxCharacters {
		return t, false
	}
	whole, part, width := wholeGSM7, partGSM7, septets
	for _, r := range text {
		if septets(r) == 0 {
			t.Alphabet = UCS2
			whole, part, width = wholeUCS2, partUCS2, utf16.RuneLen
			break
		}
	}
	size := 0
	for _, r := range text {
		size += width(valid(r))
	}
	if size <= whole {
		t.Parts = []string{text}
		return t, true
	}
	for len(text) > 0 {
		n := fitting(text, part, width)
		t.Parts = append(t.Parts, text[:n])
		text = text[n:]
	}
	return t, true
}

// fitting is the length of the next part of a text, in bytes.
func fitting(text string, left int, width func(rune) int) int {
	word := 0 // after the last blank that fits
	for i, r := range text {
		left -= width(valid(r))
		if left < 0 {
			if word > 0 {
				return word
			}
			return i
		}
		if r == ' ' || r == '\n' {
			word = i + 1
		}
	}
	return len(text)
}

func valid(r rune) rune {
	if utf16.RuneLen(r) < 0 {
		return utf8.RuneError
	}
	return r
}

// Encode is the wire form of a part.
func (a Alphabet) Encode(part string) []byte {
	b := make([]byte, 0, 2*len(part))
	if a == UCS2 {
		for _, u := range utf16.Encode([]rune(part)) {
			b = append(b, byte(u>>8), byte(u))
		}
		return b
	}
	for _, r := range part {
		code := gsm7[r]
		if code >= escape<<8 {
			b = append(b, escape)
		}
		b = append(b, byte(code))
	}
	return b
}

// septets is the length of a character in GSM7; 0: it is not in the alphabet.
func septets(r rune) int {
	code, ok := gsm7[r]
	switch {
	case !ok:
		return 0
	case code >= escape<<8:
		return 2
	default:
		return 1
	}
}

// escape precedes the characters of the extension table.
const escape = 0x1b

const (
	basic     = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\x00ÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	extension = "\f\x0a^\x14{\x28}\x29\\\x2f[\x3c~\x3d]\x3e|\x40€\x65" // pairs of a character and its code
)

var gsm7 = func() map[rune]uint16 {
	all := map[rune]uint16{}
	code := uint16(0)
	for _, r := range basic {
		if code != escape {
			all[r] = code
		}
		code++
	}
	pairs := []rune(extension)
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = escape<<8 | uint16(pairs[i+1])
	}
	return all
}()

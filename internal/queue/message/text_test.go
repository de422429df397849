package message_test

import (
	"testing"
	"unicode/utf8"

	"godwit.dev/godwit/internal/queue/message"
)

func TestValidText(t *testing.T) {
	for s, want := range map[string]bool{
		"": true, "plain": true, "\t\n\r": true, "\x7f": true, "é€😀": true, "\ud7ff\ue000\ufffd": true,
		"\U00010000\U0010ffff": true,
		"\x00":                 false, "a\x08": false, "\x0b": false, "\x1f": false, "é\x01": false,
		"\ufffe": false, "x\uffff": false, "\xff": false, "a\xed\xa0\x80": false, "é\xc3": false,
	} {
		if message.ValidText(s) != want {
			t.Errorf("ValidText(%q) = %t", s, !want)
		}
	}
}

// FuzzValidText compares with the rule as SQS states it, character by character.
func FuzzValidText(f *testing.F) {
	for _, s := range []string{"", "a\tb", "é\x01", "\ufffe", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := utf8.ValidString(s)
		for _, r := range s {
			switch {
			case r == 0x9, r == 0xA, r == 0xD:
			case r >= 0x20 && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD, r >= 0x10000 && r <= 0x10FFFF:
			default:
				want = false
			}
		}
		if message.ValidText(s) != want {
			t.Errorf("ValidText(%q) = %t", s, !want)
		}
	})
}

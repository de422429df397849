package sms

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestNumber(t *testing.T) {
	for text, want := range map[string]string{
		"+123123123": "+123123123", "+1234567890": "+1234567890", "+12/34-567.890": "+1234567890", "+15/55-123.4567": "+15551234567",
		"+15--551234567": "", "NAA+15551234567": "", "+15551234567.": "", "/+15551234567": "", "+/15551234567": "", "invalid-number": "",
		"+1": "", "+1234567": "", "+12345678": "+12345678", "+01234567890": "", "+1a234": "", "": "", "+": "", "15551234567": "", "+1234567890123456": "", "+1 555": "", "+١٢٣": "",
	} {
		if got, ok := Number(text); got != want || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", text, got, ok, want)
		}
	}
}

// Parts are as long as a phone takes, and end behind words where there are any.
func TestCut(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		alphabet   Alphabet
		sizes      []int // of the parts, in characters
	}{
		{"nothing", "", GSM7, []int{0}},
		{"one part", strings.Repeat("x", 160), GSM7, []int{160}},
		{"a word that is too long", strings.Repeat("x", 161), GSM7, []int{153, 8}},
		{"words", strings.Repeat("word ", 40), GSM7, []int{150, 50}},
		{"the extension table counts twice", strings.Repeat("€", 80), GSM7, []int{80}},
		{"and is not cut", strings.Repeat("€", 81), GSM7, []int{76, 5}},
		{"UCS-2", strings.Repeat("я", 70), UCS2, []int{70}},
		{"long UCS-2", strings.Repeat("я", 71), UCS2, []int{67, 4}},
		{"beyond the plane", strings.Repeat("🙂", 36), UCS2, []int{33, 3}},
		{"a line ends a word", strings.Repeat("x", 100) + "\n" + strings.Repeat("y", 100), GSM7, []int{101, 100}},
	} {
		got, ok := Cut(tt.text)
		var sizes []int
		for _, p := range got.Parts {
			sizes = append(sizes, utf8.RuneCountInString(p))
		}
		if !ok || got.Alphabet != tt.alphabet || !slices.Equal(sizes, tt.sizes) || strings.Join(got.Parts, "") != tt.text {
			t.Errorf("%s: %v %v %v", tt.name, ok, got.Alphabet, sizes)
		}
	}
	if _, ok := Cut(strings.Repeat("x", 1600)); !ok {
		t.Error("1,600 are too many")
	}
	if _, ok := Cut(strings.Repeat("x", 1601)); ok {
		t.Error("1,601 are taken")
	}
}

func TestEncode(t *testing.T) {
	if d := cmp.Diff([]byte("\x00\x02\x0d\x1b\x65\x11a\x1b\x28"), GSM7.Encode("@$\r€_a{")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]byte{0x04, 0x1f, 0xd8, 0x3d, 0xde, 0x42}, UCS2.Encode("П🙂")); d != "" {
		t.Error(d)
	}
	for code, r := range []rune(basic) {
		if code != escape && int(gsm7[r]) != code {
			t.Errorf("%q is %#x, want %#x", r, gsm7[r], code)
		}
	}
}

// Whatever the text, nothing of it is lost, and each part fits.
func FuzzCut(f *testing.F) {
	f.Add("hello")
	f.Add(strings.Repeat("a word of ü ", 30))
	f.Add(strings.Repeat("🙂 €\n", 60))
	f.Add("\xff\xfe" + strings.Repeat("x", 200))
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := Cut(text)
		if !ok {
			return
		}
		if strings.Join(got.Parts, "") != text {
			t.Errorf("%q became %q", text, got.Parts)
		}
		for _, p := range got.Parts {
			most := 140
			if len(got.Parts) > 1 {
				most = 134
			}
			b := got.Alphabet.Encode(p)
			if got.Alphabet == GSM7 {
				most = most * 8 / 7
			}
			if len(b) > most || got.Alphabet == UCS2 && utf8.ValidString(p) && string(utf16.Decode(units(b))) != p {
				t.Errorf("a part of %d: %q", len(b), p)
			}
		}
	})
}

func units(b []byte) (u []uint16) {
	for i := 0; i+1 < len(b); i += 2 {
		u = append(u, uint16(b[i])<<8|uint16(b[i+1]))
	}
	return u
}

// TestUSD: an amount is a decimal number, and none of Go's own forms.
func TestUSD(t *testing.T) {
	for _, text := range []string{"", "-1", "1_0", "0x1p4", "inf", "NaN", "1e10"} {
		if m, ok := ParseUSD(text); ok {
			t.Errorf("%q is taken for %v", text, m)
		}
	}
	if m, ok := ParseUSD("0.25"); !ok || m != 250_000 {
		t.Error(m, ok)
	}
}

// Money is reserved while a message is sent, so that many at once do not spend too much.
func TestSpending(t *testing.T) {
	a, now := NewAccount(), time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC)
	reserve := func(cost MicroUSD, want Refusal) {
		t.Helper()
		if got := a.Reserve("+1", cost, -1, false, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	reserve(600_000, "")
	reserve(600_000, SpendingRefusal)
	a.Spend(600_000, 0, now)
	reserve(600_000, "")
	a.Spend(600_000, 600_000, now)
	reserve(600_000, SpendingRefusal)
	reserve(400_000, "")
	a.Spend(400_000, 400_000, now)
	reserve(1, SpendingRefusal)
	now = now.Add(time.Hour)
	reserve(1, "")
	if got := a.Reserve("+1", 5, 4, false, now); got != PriceRefusal {
		t.Errorf("%q", got)
	}
	a.OptOut("+2")
	if got := a.Reserve("+2", 0, -1, false, now); got != OptedOutRefusal {
		t.Errorf("%q", got)
	}
	if got := a.Reserve("+3", 0, -1, true, now); got != SandboxRefusal {
		t.Errorf("%q", got)
	}
}

// A one-time password is good for few tries, and for a day.
func TestVerify(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := NewAccount()
	if err := a.AddDestination("+1", "111111", now); err != nil {
		t.Fatal(err)
	}
	for i := range maxTries {
		if changed, err := a.Verify("+1", "000000", now); !changed || !errors.Is(err, ErrPassword) {
			t.Errorf("try %d: %v %v", i, changed, err)
		}
	}
	if changed, err := a.Verify("+1", "111111", now); changed || !errors.Is(err, ErrPassword) {
		t.Errorf("after too many: %v %v", changed, err)
	}
	if err := a.AddDestination("+1", "222222", now); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Verify("+1", "222222", now.Add(passwordLife+1)); !errors.Is(err, ErrPassword) {
		t.Errorf("a day later: %v", err)
	}
	if _, err := a.Verify("+1", "222222", now); err != nil {
		t.Error(err)
	}
}

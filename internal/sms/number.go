// Package sms has the rules of text messages: phone numbers, the division of a text into parts,
// and the settings of an account. It is pure.
package sms

import (
	"slices"
	"strings"
)

// The number of digits of a phone number. Sources: ITU-T E.164 for the maximum, and the pattern
// of PhoneNumberString in SNS's API for the minimum.
const (
	minDigits = 8
	maxDigits = 15
)

// Number parses a phone number in international form, "+" and 8 to 15 digits, the first not
// zero, with optional single separators between them, and returns it without these. ok is false
// if it is invalid.
func Number(text string) (number string, ok bool) {
	rest, ok := strings.CutPrefix(text, "+")
	if !ok {
		return "", false
	}
	var b strings.Builder
	b.WriteByte('+')
	separated := true // no separator before the first digit
	for i := range len(rest) {
		switch c := rest[i]; {
		case c >= '0' && c <= '9':
			b.WriteByte(c)
			separated = false
		case strings.IndexByte("/-.", c) >= 0 && !separated:
			separated = true
		default:
			return "", false
		}
	}
	number = b.String()
	if separated || len(number) < minDigits+1 || len(number) > maxDigits+1 || number[1] == '0' {
		return "", false
	}
	return number, true
}

// Masked is a number as a log shows it: its last four digits.
func Masked(number string) string {
	if len(number) <= 4 {
		return "…"
	}
	return "…" + number[len(number)-4:]
}

// optOuts are the words that opt a phone out. Source: the SNS developer guide, "Managing phone
// numbers and SMS subscriptions".
var optOuts = []string{"ARRET", "CANCEL", "END", "OPT-OUT", "OPTOUT", "QUIT", "REMOVE", "STOP", "TD", "UNSUBSCRIBE"}

// IsOptOut reports whether a phone's message is an opt-out.
func IsOptOut(text string) bool {
	return slices.Contains(optOuts, strings.ToUpper(strings.TrimSpace(text)))
}

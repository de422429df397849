// Package sms has the rules of text messages: what is a phone number, how a text is cut
// into parts that fit, and which settings an account has. It is pure.
package sms

import (
	"slices"
	"strings"
)

// How many digits a phone number has. Sources: ITU-T E.164 for the most, and the pattern of
// PhoneNumberString in SNS's API for the least.
const (
	minDigits = 8
	maxDigits = 15
)

// Number reads a phone number in international form, "+" and 8 to 15 digits, the first of which
// is no zero, between which single separators may stand, and gives it without these. ok is false for what is none.
func Number(text string) (number string, ok bool) {
	rest, ok := strings.CutPrefix(text, "+")
	if !ok {
		return "", false
	}
	var b strings.Builder
	b.WriteByte('+')
	separated := true // nothing may stand before the first digit
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

// optOuts are the words by which a phone asks for no more messages. Source: the SNS
// developer guide, "Managing phone numbers and SMS subscriptions".
var optOuts = []string{"ARRET", "CANCEL", "END", "OPT-OUT", "OPTOUT", "QUIT", "REMOVE", "STOP", "TD", "UNSUBSCRIBE"}

// IsOptOut reports whether a message from a phone asks for no more.
func IsOptOut(text string) bool {
	return slices.Contains(optOuts, strings.ToUpper(strings.TrimSpace(text)))
}

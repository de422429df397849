package filter

import "strings"

// Numbers are compared with five decimal places, between −10⁹ and 10⁹ (AWS's documented range),
// and so are stored as integer multiples of 10⁻⁵. Further digits are dropped.
const (
	decimals  = 5
	maxNumber = 1e9 * 1e5
)

// parseNumber parses a decimal number, as in JSON or a Number attribute, in multiples of 10⁻⁵.
// ok is false if it is invalid, or out of range.
func parseNumber(text string) (n int64, ok bool) {
	rest, negative := strings.CutPrefix(text, "-")
	if !negative {
		rest = strings.TrimPrefix(rest, "+")
	}
	mantissa, exponent := rest, 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa = rest[:i]
		if exponent, ok = parseExponent(rest[i+1:]); !ok {
			return 0, false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if len(whole)+len(fraction) == 0 || !digits(whole) || !digits(fraction) {
		return 0, false
	}
	// The number is 0.d₁d₂d₃… × 10^point, with d₁ not zero.
	point := len(whole) + exponent
	d := whole + fraction
	significant := strings.TrimLeft(d, "0")
	point -= len(d) - len(significant)
	if significant == "" || point+decimals <= 0 {
		return 0, true
	}
	if point > 10 {
		return 0, false
	}
	for i := range point + decimals {
		n *= 10
		if i < len(significant) {
			n += int64(significant[i] - '0')
		}
	}
	if n > maxNumber {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

// parseExponent parses an exponent. An exponent that no mantissa of a document can outweigh is
// used for all beyond it.
func parseExponent(text string) (e int, ok bool) {
	const enough = 1 << 24
	rest, negative := strings.CutPrefix(text, "-")
	if !negative {
		rest = strings.TrimPrefix(rest, "+")
	}
	if rest == "" || !digits(rest) {
		return 0, false
	}
	for _, c := range []byte(rest) {
		e = min(10*e+int(c-'0'), enough)
	}
	if negative {
		e = -e
	}
	return e, true
}

func digits(text string) bool {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

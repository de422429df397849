// Package decimal parses numbers as AWS's services take them.
package decimal

import (
	"strconv"
	"strings"
)

// Parse parses a decimal number, with an exponent or not. It fails for anything else, Go's own forms of
// numbers (hexadecimal, underscores, infinities) included, and for what a float64 cannot hold.
func Parse(text string) (n float64, ok bool) {
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

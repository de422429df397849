package iam

import (
	"strconv"
	"strings"
	"unicode"
)

func itoa(n int) string { return strconv.Itoa(n) }

// isTagText reports whether a text has only what the keys and values of tags may.
func isTagText(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.Is(unicode.Z, c) && !unicode.IsNumber(c) && !strings.ContainsRune("_.:/=+-@", c)
	})
}

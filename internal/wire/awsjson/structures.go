package awsjson

import (
	"bytes"

	"godwit.dev/godwit/internal/fault"
)

// What a body may hold in all. A structure takes two bytes there, and hundreds in
// memory; an element of a list two, and sixteen. AWS's largest inputs, 1,000 datapoints
// with 30 dimensions each or with 150 values and their counts, stay below both.
const (
	maxStructures = 50_000 // and maps
	maxItems      = 400_000
)

// checkStructures refuses a body that would take far more memory than it has bytes.
func checkStructures(body []byte) error {
	if len(body) <= 2*maxStructures || bytes.Count(body, []byte("{")) <= maxStructures && bytes.Count(body, []byte(",")) <= maxItems {
		return nil
	}
	structures, items := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{':
			structures++
		case ',':
			items++
		case '"':
			i += skipText(body[i+1:])
		}
		if structures > maxStructures || items > maxItems {
			return fault.Newf(fault.MalformedInput, "The request has more than %d structures and maps, or more than %d items.", maxStructures, maxItems)
		}
	}
	return nil
}

// skipText is how far the end of a text is away that begins with b, its closing quote
// included.
func skipText(b []byte) int {
	for at := 0; ; {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return len(b)
		}
		at += n + 1
		escapes := 0
		for i := at - 2; i >= 0 && b[i] == '\\'; i-- {
			escapes++
		}
		if escapes%2 == 0 { // else the quote is one of the text
			return at
		}
	}
}

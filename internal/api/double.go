package api

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"

	"godwit.dev/godwit/internal/decimal"
)

// Double is a number in an operation's input that may be NaN or infinite, for which JSON has
// texts. A handler that cannot use these must refuse them.
type Double float64

// UnmarshalJSON decodes a number, "NaN", "Infinity" or "-Infinity".
func (d *Double) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "null": // in a list; as a member, null means absent
		return &json.UnmarshalTypeError{Value: "null", Type: reflect.TypeFor[float64]()}
	case `"NaN"`:
		*d = Double(math.NaN())
	case `"Infinity"`:
		*d = Double(math.Inf(1))
	case `"-Infinity"`:
		*d = Double(math.Inf(-1))
	default:
		return json.Unmarshal(text, (*float64)(d))
	}
	return nil
}

// ParseDouble parses a decimal number, "NaN", "Infinity" or "-Infinity". It fails for anything
// else, Go's own forms of numbers (hexadecimal, underscores, inf) included, and for a number
// that is out of range.
func ParseDouble(text string) (float64, error) {
	switch text {
	case "NaN", "Infinity", "-Infinity":
		return strconv.ParseFloat(text, 64)
	}
	n, ok := decimal.Parse(text)
	if !ok {
		return 0, &strconv.NumError{Func: "ParseDouble", Num: text, Err: strconv.ErrSyntax}
	}
	return n, nil
}

package fastjson

import (
	"bytes"
	"math"
	"strconv"
)

// AppendFloat appends a number as encoding/json does, in decimals or with an exponent
// where those would be many, but never as an integer: AWS writes 30.0, and who compares
// answers tells 30 from that. What is no number becomes null.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	form := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		form = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, form, -1, 64)
	if !bytes.ContainsAny(dst[start:], ".e") {
		dst = append(dst, ".0"...)
	}
	return dst
}

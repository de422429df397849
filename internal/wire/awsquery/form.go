// Package awsquery reads shapes from the forms of the AWS Query protocol and
// writes them as its XML. A form's keys are paths: Entries.member.1.Id, or,
// where a list or map is flat, Entry.1.Id.
package awsquery

import (
	"bytes"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/fault"
)

// MaxParameters bounds how many parameters a form may have.
const MaxParameters = 10_000

// Form is a parsed form, in the order of its keys.
type Form []parameter

type parameter struct{ key, value string }

// Parse reads the form in a request's body and then that in the query of its
// URL. Of a key that is given twice the first counts. The form does not keep
// body. Errors are fault.MalformedInput.
func Parse(body []byte, query string) (Form, error) {
	// All keys and values are cut from one string.
	var text strings.Builder
	text.Grow(len(body) + len(query))
	var ends []int // in text, of a key and of its value, alternately
	for _, part := range [][]byte{body, []byte(query)} {
		for len(part) > 0 {
			var pair []byte
			pair, part, _ = bytes.Cut(part, and)
			if len(pair) == 0 {
				continue
			}
			if len(ends) == 2*MaxParameters {
				return nil, fault.Newf(fault.MalformedInput, "The request has more than %d parameters.", MaxParameters)
			}
			key, value, _ := bytes.Cut(pair, equals)
			keyOK := unescape(&text, key)
			ends = append(ends, text.Len())
			valueOK := unescape(&text, value)
			ends = append(ends, text.Len())
			if !keyOK || !valueOK {
				return nil, fault.New(fault.MalformedInput, "The request contains a parameter with an invalid escape sequence.")
			}
		}
	}
	form := make(Form, len(ends)/2)
	all, start := text.String(), 0
	for i := range form {
		key, value := ends[2*i], ends[2*i+1]
		form[i] = parameter{all[start:key], all[key:value]}
		start = value
	}
	slices.SortStableFunc(form, func(a, b parameter) int { return strings.Compare(a.key, b.key) })
	return form, nil
}

var and, equals = []byte("&"), []byte("=")

// unescape writes what the escapes of a form stand for, and reports whether
// they are valid.
func unescape(to *strings.Builder, s []byte) (ok bool) {
	// Most of a text stands for itself: it is copied in runs. What is looked for is
	// looked for once, however often the other one comes before it.
	plus, percent := next(s, 0, '+'), next(s, 0, '%')
	for from := 0; ; {
		i := min(plus, percent)
		to.Write(s[from:i])
		switch {
		case i == len(s):
			return true
		case i == plus:
			to.WriteByte(' ')
			from = i + 1
			plus = next(s, from, '+')
		default:
			if len(s) < i+3 {
				return false
			}
			high, low := digits[s[i+1]], digits[s[i+2]]
			if high < 0 || low < 0 {
				return false
			}
			to.WriteByte(byte(high)<<4 | byte(low))
			from = i + 3
			percent = next(s, from, '%')
		}
	}
}

// next is where c comes next in s[from:], or the end of s.
func next(s []byte, from int, c byte) int {
	if i := bytes.IndexByte(s[from:], c); i >= 0 {
		return from + i
	}
	return len(s)
}

// digits are the values of hexadecimal digits; of other bytes -1.
var digits = func() (d [256]int8) {
	for i := range d {
		d[i] = -1
	}
	for i := range 10 {
		d['0'+i] = int8(i)
	}
	for i := range 6 {
		d['a'+i], d['A'+i] = int8(10+i), int8(10+i)
	}
	return d
}()

// Get returns the value of key; empty when it is absent.
func (f Form) Get(key string) string {
	i, found := slices.BinarySearchFunc(f, key, func(p parameter, key string) int { return strings.Compare(p.key, key) })
	if !found {
		return ""
	}
	return f[i].value
}

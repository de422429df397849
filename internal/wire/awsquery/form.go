// Package awsquery reads shapes from the forms of the AWS Query protocol and
// writes them as its XML. A form's keys are paths: Entries.member.1.Id, or,
// where a list or map is flat, Entry.1.Id.
package awsquery

import (
	"net/url"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/fault"
)

// MaxParameters bounds how many parameters a form may have.
const MaxParameters = 10_000

// Form is a parsed form, in the order of its keys.
type Form []parameter

type parameter struct{ key, value string }

// Parse reads forms, each as in a request's body or the query of its URL. Of
// a key that is given twice the first counts. Errors are fault.MalformedInput.
func Parse(encoded ...string) (Form, error) {
	var form Form
	for _, part := range encoded {
		for pair := range strings.SplitSeq(part, "&") {
			if pair == "" {
				continue
			}
			if len(form) == MaxParameters {
				return nil, fault.Newf(fault.MalformedInput, "The request has more than %d parameters.", MaxParameters)
			}
			key, value, _ := strings.Cut(pair, "=")
			key, err := url.QueryUnescape(key)
			if err == nil {
				value, err = url.QueryUnescape(value)
			}
			if err != nil {
				return nil, fault.New(fault.MalformedInput, "The request contains a parameter with an invalid escape sequence.")
			}
			form = append(form, parameter{key, value})
		}
	}
	slices.SortStableFunc(form, func(a, b parameter) int { return strings.Compare(a.key, b.key) })
	return form, nil
}

// Get returns the value of key; empty when it is absent.
func (f Form) Get(key string) string {
	i, found := slices.BinarySearchFunc(f, key, func(p parameter, key string) int { return strings.Compare(p.key, key) })
	if !found {
		return ""
	}
	return f[i].value
}

package stack

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/stack/parameter"
)

// mask replaces the value of a hidden parameter.
const mask = "****"

// shown are properties as JSON for events, with the values of hidden parameters masked.
func (m *Machine) shown(properties map[string]any) string {
	masked, _ := m.masked(properties).(map[string]any)
	if text := asJSON(masked); len(text) <= mostShown {
		return text
	}
	return ""
}

// mostShown bounds the properties in an event, in bytes: a page has a hundred events.
const mostShown = 64 << 10

// Secrets are the values of a stack's hidden parameters.
func Secrets(s *Stack) []string {
	values := s.Input.hidden(slices.Clone(s.Hidden))
	if s.Former != nil {
		values = s.Former.hidden(values)
	}
	return values
}

// Masked is a value with the values of a stack's hidden parameters masked.
func Masked(s *Stack, v any) any { return masking(v, formsOf(Secrets(s))) }

// masks are hidden values with their forms. These are kept, as they cost more than what is masked.
type masks struct{ values, forms []string }

// masked is Masked of the machine's stack.
func (m *Machine) masked(v any) any {
	if values := Secrets(&m.Stack); !slices.Equal(values, m.masks.values) {
		m.masks = masks{values, formsOf(values)}
	}
	return masking(v, m.masks.forms)
}

// Conceal has the parameters be hidden whose values have one of the values to be hidden.
func (in *Input) Conceal(values []string) {
	hidden := formsOf(values)
	for i := range in.Parameters {
		p := &in.Parameters[i]
		if text := cmp.Or(p.Resolved, p.Value); !p.NoEcho && masking(text, hidden) != text {
			p.NoEcho = true
		}
	}
}

// formsOf are the forms of hidden values, in the order in which they are masked.
func formsOf(values []string) (hidden []string) {
	for _, value := range values {
		hidden = append(hidden, forms(value)...)
	}
	// Of two values of which one begins the other, the shorter one would leave the rest.
	slices.SortStableFunc(hidden, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return hidden
}

// asInText writes what JSON escapes for HTML as it is.
var asInText = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// forms are a hidden value and what it is written as elsewhere: the items of a list, and, within JSON
// and in the reasons of failures, with its quotation marks escaped.
func forms(value string) []string {
	all := []string{value}
	if strings.Contains(value, ",") {
		all = append(all, parameter.Split(value)...)
	}
	for _, one := range slices.Clone(all) {
		quoted := strconv.Quote(one)
		text, _ := json.Marshal(one) //nolint:errchkjson // a text can always be written
		plain := asInText.Replace(string(text))
		for _, escaped := range []string{quoted, string(text), plain} {
			all = append(all, escaped[1:len(escaped)-1])
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(one string) bool { return one == "" })
}

// maskedText is a text, such as a reason, with these masked.
func (m *Machine) maskedText(text string) string {
	masked, _ := m.masked(text).(string)
	return masked
}

// hide keeps hiding the values of an input that is replaced: resources made from it have yet to
// be deleted, or are incomplete.
func (m *Machine) hide() {
	m.unhide()
	m.Hidden = m.Input.hidden(m.Hidden)
}

// unhide forgets hidden values that no resource has any more.
func (m *Machine) unhide() {
	m.Hidden = slices.DeleteFunc(slices.Clone(m.Hidden), func(value string) bool { // others read the former slice
		hidden := forms(value)
		for _, r := range m.Resources {
			versions := append([]Version{r.Version}, r.Spares...)
			if r.Before != nil {
				versions = append(versions, *r.Before)
			}
			if slices.ContainsFunc(versions, func(v Version) bool { return occurs(v.Properties, hidden) }) {
				return false
			}
		}
		return true
	})
}

// hidden adds the values of hidden parameters.
func (in *Input) hidden(values []string) []string {
	for _, p := range in.Parameters {
		if value := p.Value; p.NoEcho && value != "" {
			if p.Resolved != "" {
				value = p.Resolved
			}
			if !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
	}
	return values
}

// within is the minimum length of a value, in bytes, that is also masked within other texts:
// shorter ones occur in unrelated texts.
const within = 6

// occurs reports that a value has one of the forms of a hidden value to mask.
func occurs(v any, hidden []string) bool {
	switch v := v.(type) {
	case string:
		return slices.ContainsFunc(hidden, func(one string) bool { return v == one || len(one) >= within && strings.Contains(v, one) })
	case json.Number:
		return occurs(v.String(), hidden)
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return occurs(one, hidden) })
	case map[string]any:
		for _, one := range v {
			if occurs(one, hidden) {
				return true
			}
		}
	}
	return false
}

func masking(v any, hidden []string) any {
	if len(hidden) == 0 {
		return v
	}
	switch v := v.(type) {
	case string:
		for _, value := range hidden {
			if v == value {
				return mask
			}
			if len(value) >= within {
				v = strings.ReplaceAll(v, value, mask)
			}
		}
		return v
	case json.Number:
		if slices.Contains(hidden, v.String()) {
			return mask
		}
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			all[i] = masking(one, hidden)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, one := range v {
			all[name] = masking(one, hidden)
		}
		return all
	}
	return v
}

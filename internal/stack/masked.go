package stack

import "strings"

// mask is what is shown of a parameter that is not to be shown.
const mask = "****"

// shown are properties as JSON for events, in which values of parameters that are not to be
// shown are masked.
func (m *Machine) shown(properties map[string]any) string {
	hidden := m.Source.hidden(nil)
	if m.Former != nil {
		hidden = m.Former.hidden(hidden)
	}
	if len(hidden) == 0 {
		return asJSON(properties)
	}
	masked, _ := masking(properties, hidden).(map[string]any)
	return asJSON(masked)
}

// hidden adds the values of parameters that are not to be shown.
func (s *Source) hidden(values []string) []string {
	for _, p := range s.Parameters {
		if value := p.Value; p.NoEcho && value != "" {
			if p.Resolved != "" {
				value = p.Resolved
			}
			values = append(values, value)
		}
	}
	return values
}

// within is how long a value is, in bytes, that is looked for within others too: shorter ones are
// parts of what has nothing to do with them.
const within = 6

func masking(v any, hidden []string) any {
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

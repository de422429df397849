package checklist

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Shape is a shape of a service model: what a member of a request or an answer is.
type Shape struct {
	Type    string           // structure, list, map, string, boolean, integer, long, float, double, timestamp or blob
	Enum    []string         `json:",omitempty"` // of a string
	Members map[string]Shape `json:",omitempty"` // of a structure
	Always  []string         `json:",omitempty"` // those of the members that an answer cannot lack
	Of      *Shape           `json:",omitempty"` // of a list's entries and a map's values
}

// Exchange is what an action takes and answers; either may be an empty structure.
type Exchange struct{ Input, Output Shape }

// Shapes reads what the actions of a service take and answer, of those that Godwit has.
func Shapes(service string) (map[string]Exchange, error) {
	var all map[string]Exchange
	err := read(service+".shapes.json", &all)
	return all, err
}

// Walk compares a decoded answer (by encoding/json) with a shape, member by member. It
// reports what is not as the shape says, and calls note with the path of every member that
// is there, such as logGroups.arn, and of every list and map that is not: clients take one
// that is empty, and many fail on one that is missing.
func (s Shape) Walk(path string, value any, note func(path string, there bool)) (wrong []string) {
	tell := func(want string) []string { return []string{fmt.Sprintf("%s is %#v, want %s", path, value, want)} }
	switch s.Type {
	case "structure":
		members, ok := value.(map[string]any)
		if !ok {
			return tell("an object")
		}
		for name, member := range members {
			at := join(path, name)
			shape, known := s.Members[name]
			if !known {
				wrong = append(wrong, at+" is no member")
				continue
			}
			note(at, true)
			wrong = append(wrong, shape.Walk(at, member, note)...)
		}
		for name, shape := range s.Members {
			if _, there := members[name]; there {
				continue
			}
			if at := join(path, name); slices.Contains(s.Always, name) {
				wrong = append(wrong, at+" is missing")
			} else if shape.Of != nil {
				note(at, false)
			}
		}
	case "list":
		entries, ok := value.([]any)
		if !ok {
			return tell("a list")
		}
		for _, entry := range entries {
			wrong = append(wrong, s.Of.Walk(path, entry, note)...)
		}
	case "map":
		entries, ok := value.(map[string]any)
		if !ok {
			return tell("an object")
		}
		for name, entry := range entries {
			wrong = append(wrong, s.Of.Walk(path, entry, note)...)
			// Attributes are texts, booleans too; clients compare them as they are.
			if text, ok := entry.(string); ok && text != strings.ToLower(text) && strings.HasSuffix(path, ".Attributes") &&
				(strings.EqualFold(text, "true") || strings.EqualFold(text, "false")) {
				wrong = append(wrong, fmt.Sprintf("%s has %s, a boolean in capitals: %s", path, name, text))
			}
		}
	case "string", "blob":
		text, ok := value.(string)
		if !ok || len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
			return tell(fmt.Sprintf("a string %v", s.Enum))
		}
	case "boolean":
		if _, ok := value.(bool); !ok {
			return tell("true or false")
		}
	case "integer", "long":
		if n, ok := value.(float64); !ok || n != math.Trunc(n) {
			return tell("a whole number")
		}
	case "float", "double", "timestamp":
		if _, ok := value.(float64); !ok {
			return tell("a number")
		}
	default:
		return []string{path + ": unknown type " + s.Type}
	}
	return wrong
}

// Paths are those of all members, in order.
func (s Shape) Paths(path string) (all []string) {
	if s.Of != nil {
		return s.Of.Paths(path)
	}
	for name, member := range s.Members {
		at := join(path, name)
		all = append(append(all, at), member.Paths(at)...)
	}
	slices.Sort(all)
	return all
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

var _ json.Unmarshaler = (*Shape)(nil)

// UnmarshalJSON reads the short form of testdata: the name of a type; {"enum": […]};
// {"list": …}; {"map": …}; {"members": {…}, "always": […]}.
func (s *Shape) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &s.Type)
	}
	var long struct {
		Enum    []string         `json:"enum"`
		List    *Shape           `json:"list"`
		Map     *Shape           `json:"map"`
		Members map[string]Shape `json:"members"`
		Always  []string         `json:"always"`
	}
	if err := json.Unmarshal(text, &long); err != nil {
		return err
	}
	switch {
	case long.Enum != nil:
		*s = Shape{Type: "string", Enum: long.Enum}
	case long.List != nil:
		*s = Shape{Type: "list", Of: long.List}
	case long.Map != nil:
		*s = Shape{Type: "map", Of: long.Map}
	default:
		*s = Shape{Type: "structure", Members: long.Members, Always: long.Always}
	}
	return nil
}

// MarshalJSON writes the short form.
func (s Shape) MarshalJSON() ([]byte, error) {
	switch {
	case s.Enum != nil:
		return json.Marshal(map[string]any{"enum": s.Enum})
	case s.Type == "list" || s.Type == "map":
		return json.Marshal(map[string]any{s.Type: s.Of})
	case s.Type == "structure" && len(s.Always) > 0:
		return json.Marshal(map[string]any{"members": s.Members, "always": s.Always})
	case s.Type == "structure":
		return json.Marshal(map[string]any{"members": s.Members})
	}
	return json.Marshal(s.Type)
}

package step

import (
	"encoding/json"

	"godwit.dev/godwit/internal/stack/resource"
)

// Text is what an attribute is set to for a property.
func Text(value any) string {
	if s, ok := resource.Scalar(value); ok {
		return s
	}
	if value == nil {
		return ""
	}
	out, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(out)
}

// List are the texts of a property that is a list of them.
func List(value any) (texts []string) {
	items, _ := value.([]any)
	for _, item := range items {
		texts = append(texts, Text(item))
	}
	return texts
}

// Tags are those of a property.
func Tags(value any) map[string]string {
	items, _ := value.([]any)
	found := map[string]string{}
	for _, item := range items {
		if tag, ok := item.(map[string]any); ok {
			found[Text(tag["Key"])] = Text(tag["Value"])
		}
	}
	return found
}

// Retagged says which tags to set and which to take away.
func Retagged(was, now any) (set map[string]string, gone []string) {
	old, all := Tags(was), Tags(now)
	set = map[string]string{}
	for key, value := range all {
		if before, ok := old[key]; !ok || before != value {
			set[key] = value
		}
	}
	for key := range old {
		if _, ok := all[key]; !ok {
			gone = append(gone, key)
		}
	}
	return set, gone
}

// Optional is the text of a property; nil: it has none.
func Optional(value any) *string {
	if value == nil {
		return nil
	}
	s := Text(value)
	return &s
}

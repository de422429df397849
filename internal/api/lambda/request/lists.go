package request

import (
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/function"
)

// MaxItems is the largest page size that a request may have.
const MaxItems = 10000

// CheckPage validates the page size in a request.
func CheckPage(asked *int) error {
	var c Constraints
	c.Between("maxItems", asked, 1, MaxItems)
	return c.Err()
}

// ReadMarker returns the position in a list's marker.
func ReadMarker(list string, marker *string) (string, error) {
	after, ok := api.ReadToken(list, marker)
	if !ok {
		return "", Invalid("The Marker is not valid.")
	}
	return after, nil
}

// The limits of tags, in characters. Source: the Lambda developer guide, "Using
// tags on Lambda functions".
const (
	maxTagKey   = 128
	maxTagValue = 256
)

// CheckTags validates the tags of a request.
func CheckTags(tags map[string]string) error {
	if len(tags) > function.MaxTags {
		return function.ErrTooManyTags
	}
	for key, value := range tags {
		if n := utf8.RuneCountInString(key); n < 1 || n > maxTagKey {
			return Invalid("The key of a tag must have 1 to %d characters.", maxTagKey)
		}
		if utf8.RuneCountInString(value) > maxTagValue {
			return Invalid("The value of a tag must have at most %d characters.", maxTagValue)
		}
		if len(key) >= 4 && key[:4] == "aws:" {
			return Invalid("The prefix aws: of tags is reserved.")
		}
	}
	return nil
}

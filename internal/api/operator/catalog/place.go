package catalog

import (
	"encoding/base64"
	"encoding/json"
)

// maxPlace bounds a place in text, in bytes.
const maxPlace = 8 << 10

// WritePlace is a place in a stream, as the id of an event.
func WritePlace(place any) string {
	text, err := json.Marshal(place)
	if err != nil {
		panic(err) // the types can always be marshalled
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// ReadPlace reads what WritePlace has written; false: there is none, or not of this version.
func ReadPlace(text string, place any) bool {
	if text == "" || len(text) > maxPlace {
		return false
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && json.Unmarshal(decoded, place) == nil
}

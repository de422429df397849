package pattern

import (
	"encoding/json"
	"strings"
)

// Event is an event that patterns are matched with. It is decoded once for all of them, and not to be
// used by several goroutines at once.
type Event struct {
	message       string
	value         any // of one in JSON
	decoded, good bool
}

// NewEvent makes an event of its message.
func NewEvent(message string) *Event { return &Event{message: message} }

// json is the object or array that an event is; ok is false of one that is none.
func (e *Event) json() (value any, ok bool) {
	if !e.decoded {
		e.decoded = true
		e.value, e.good = decode(e.message)
	}
	return e.value, e.good
}

func decode(message string) (value any, ok bool) {
	// Most events that are not JSON are recognised by their first character.
	message = strings.TrimSpace(message)
	if message == "" || message[0] != '{' && message[0] != '[' {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(message))
	d.UseNumber()
	if d.Decode(&value) != nil || d.More() {
		return nil, false
	}
	return value, true
}

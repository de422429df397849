package subscription

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
)

// Event is an event as it is handed over.
type Event struct {
	ID        string `json:"id"`
	Timestamp int64  `json:"timestamp"` // epoch milliseconds
	Message   string `json:"message"`

	Sequence uint64 `json:"-"` // in its group
}

// message is what destinations get, compressed.
type message struct {
	MessageType         string   `json:"messageType"`
	Owner               string   `json:"owner"`
	LogGroup            string   `json:"logGroup"`
	LogStream           string   `json:"logStream"`
	SubscriptionFilters []string `json:"subscriptionFilters"`
	LogEvents           []Event  `json:"logEvents"`
}

// Source is where events come from.
type Source struct{ Owner, Group, Stream, Filter string }

// Part is a compressed message.
type Part struct {
	Body   []byte
	Events int
	Last   uint64 // the sequence of its last event
}

const (
	// roughBytes is how many bytes of messages are compressed together, roughly.
	roughBytes = 1 << 20
	// maxEvents bounds the events of a part: a function has to hold them, decompressed.
	maxEvents = 10_000
)

// Parts are the messages of events: each at most limit bytes, compressed. An event that exceeds that alone
// is left out.
func Parts(from Source, events []Event, limit int) (parts []Part, left int) {
	for len(events) > 0 {
		n, size := 0, 0
		for n < min(len(events), maxEvents) && (n == 0 || size+len(events[n].Message) <= roughBytes) {
			size += len(events[n].Message)
			n++
		}
		some, over := split(from, events[:n], limit)
		parts, left, events = append(parts, some...), left+over, events[n:]
	}
	return parts, left
}

// split halves events until the parts fit.
func split(from Source, events []Event, limit int) (parts []Part, left int) {
	body := compress(&message{"DATA_MESSAGE", from.Owner, from.Group, from.Stream, []string{from.Filter}, events})
	if len(body) <= limit {
		return []Part{{Body: body, Events: len(events), Last: events[len(events)-1].Sequence}}, 0
	}
	if len(events) == 1 {
		return nil, 1
	}
	half := len(events) / 2
	parts, left = split(from, events[:half], limit)
	others, over := split(from, events[half:], limit)
	return append(parts, others...), left + over
}

// Control is the message that asks whether a delivery stream takes any, compressed. now is in epoch
// milliseconds.
func Control(now int64) []byte {
	return compress(&message{
		MessageType: "CONTROL_MESSAGE", Owner: "CloudwatchLogs", SubscriptionFilters: []string{},
		LogEvents: []Event{{Timestamp: now, Message: "CWL CONTROL MESSAGE: Checking health of destination Firehose."}},
	})
}

func compress(m *message) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level is one
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(m) // strings and numbers always encode, and a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

const before, behind = `{"awslogs":{"data":"`, `"}}`

// Event is the payload of a function's invocation.
func (p *Part) Event() []byte {
	v := make([]byte, 0, len(before)+base64.StdEncoding.EncodedLen(len(p.Body))+len(behind))
	return append(base64.StdEncoding.AppendEncode(append(v, before...), p.Body), behind...)
}

// EventLimit is the largest part whose payload has at most so many bytes.
func EventLimit(payload int) int { return (payload - len(before) - len(behind)) / 4 * 3 }

package smssender

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/deliver/outbox"
	"godwit.dev/godwit/internal/sms"
)

// Outbox stores texts, as JSON, and sends none. It implements Carrier.
type Outbox struct{ box *outbox.Box }

// OpenOutbox opens an outbox in a directory, which it creates; empty: in memory.
func OpenOutbox(dir string, c clock.Clock) (*Outbox, error) {
	box, err := outbox.Open(dir, ".json", c)
	return &Outbox{box}, err
}

// Host implements Carrier.
func (o *Outbox) Host() string { return "SMS outbox" }

// Kept is a text of an outbox.
type Kept struct {
	ID       string    `json:"id,omitempty"` // of the entry
	At       time.Time `json:"at,omitzero"`
	To       string    `json:"to"`
	From     string    `json:"from"`
	Text     string    `json:"text"`
	Parts    []string  `json:"parts"`
	Alphabet string    `json:"alphabet"` // GSM7 or UCS2
	Type     string    `json:"type"`
	Message  string    `json:"message"` // the same for each attempt at a message
}

var alphabets = [...]string{sms.GSM7: "GSM7", sms.UCS2: "UCS2"}

// Deliver stores a text.
func (o *Outbox) Deliver(_ context.Context, t *Text) Result {
	item, err := json.Marshal(&Kept{
		To: t.To, From: t.From, Text: t.Body, Parts: t.Parts, Alphabet: alphabets[t.Alphabet], Type: t.Type, Message: hex.EncodeToString(t.ID[:]),
	})
	if err == nil {
		err = o.box.Keep(item)
	}
	if err != nil {
		return Result{Outcome: deliver.Outcome{Detail: "the outbox cannot be written"}}
	}
	return Result{Outcome: deliver.Outcome{Class: deliver.Success}}
}

// List returns the newest texts, at most limit, to one number if it is not empty.
func (o *Outbox) List(to string, limit int) ([]Kept, error) {
	all := []Kept{}
	err := o.box.Each(func(name string, at time.Time, item []byte) bool {
		if len(all) >= limit {
			return false
		}
		var k Kept
		if json.Unmarshal(item, &k) == nil && (to == "" || to == k.To) {
			k.ID, k.At = name, at
			all = append(all, k)
		}
		return true
	})
	return all, err
}

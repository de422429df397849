package pushsender

import (
	"context"
	"encoding/json"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/deliver/outbox"
)

// Outbox stores notifications, as JSON, and sends none. It implements Gateway.
type Outbox struct{ box *outbox.Box }

// OpenOutbox opens an outbox in a directory, which it creates; empty: in memory.
func OpenOutbox(dir string, c clock.Clock) (*Outbox, error) {
	box, err := outbox.Open(dir, ".json", c)
	return &Outbox{box}, err
}

// Kept is a notification of an outbox.
type Kept struct {
	At       time.Time         `json:"at"`
	ID       string            `json:"messageId"`
	Endpoint string            `json:"endpoint"`
	Platform string            `json:"platform"`
	Token    string            `json:"token"`
	Header   map[string]string `json:"headers,omitempty"` // of a request to APNs
	Payload  json.RawMessage   `json:"payload"`
}

// Push stores a notification.
func (o *Outbox) Push(_ context.Context, n *Notification) (deliver.Outcome, bool) {
	err := o.box.Keep(jsonOf(Kept{
		ID: n.ID.String(), Endpoint: n.Endpoint.String(), Platform: n.Platform, Token: n.Token, Header: n.Header, Payload: n.Payload,
	}))
	if err != nil {
		return deliver.Outcome{Detail: "the outbox cannot be written"}, false
	}
	return deliver.Outcome{Class: deliver.Success, Status: 200}, false
}

// List returns the newest notifications, at most limit, to one endpoint if it is not empty.
func (o *Outbox) List(endpoint string, limit int) ([]Kept, error) {
	all := []Kept{}
	err := o.box.Each(func(_ string, at time.Time, item []byte) bool {
		if len(all) >= limit {
			return false
		}
		var k Kept
		if json.Unmarshal(item, &k) == nil && (endpoint == "" || k.Endpoint == endpoint) {
			k.At = at
			all = append(all, k)
		}
		return true
	})
	return all, err
}

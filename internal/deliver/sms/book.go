package smssender

import (
	"strings"
	"sync"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/shard"
)

// Receipt is a carrier's receipt for an accepted text message.
type Receipt struct {
	ID        string // the carrier's id of the text
	Delivered bool   // to the phone
	Response  string // for the delivery status log; empty: the default
}

// Responses in a delivery status log, for receipts. Source: the SNS developer guide, "SMS
// delivery failure reasons".
const (
	PhoneHasIt       = "Message has been accepted by phone"
	PhoneUnreachable = "Phone is currently unreachable/unavailable"
	CarrierBlocked   = "Phone carrier has blocked this message"
	UnknownReason    = "Unknown error attempting to reach phone"
)

// half is the capacity of either half of a Book. When the newer half is full, the older one
// is dropped, so that at least this many receipts may be outstanding.
const half = 32_768

// longestID bounds the length of a carrier's id, in bytes, as receipts are untrusted input.
// Those of SMPP have at most 64 (3.4, 5.2.23), and those of providers 36.
const longestID = 256

// Book remembers accepted texts until their receipts arrive, and reports those as further
// events of the delivery. It implements deliver.Events. It is in memory: after a restart,
// receipts are of unknown texts, and are ignored.
type Book struct {
	clock  clock.Clock
	report func(*deliver.Event)

	mu    sync.Mutex
	sent  [2]map[string]*sent   // by the carrier's id; the newer half first
	early [2]map[string]Receipt // receipts that arrived before the event
}

// sent is a text with parts that have no receipt yet.
type sent struct {
	event deliver.Event
	left  int
}

var _ deliver.Events = (*Book)(nil)

// NewBook makes a book. It calls report concurrently.
func NewBook(c clock.Clock, report func(*deliver.Event)) *Book {
	return &Book{clock: c, report: report}
}

// Published implements deliver.Events.
func (b *Book) Published(*shard.Published) {}

// Delivery remembers an accepted text.
func (b *Book) Delivery(e *deliver.Event) {
	if e.Text == nil || e.Receipt != nil || e.State != shard.DeliveryDelivered || len(e.Text.IDs) == 0 {
		return
	}
	text := *e.Text
	text.MonthSpent, text.Unknown = 0, 0
	s := &sent{left: len(text.IDs), event: deliver.Event{
		Subscription: e.Subscription.Own(), Protocol: e.Protocol, Kind: e.Kind, MessageID: e.MessageID, Published: e.Published, Size: e.Size,
		At: e.At, Feedback: e.Feedback, Endpoint: strings.Clone(e.Endpoint), Number: e.Number, Text: &text,
	}}
	var events []*deliver.Event
	b.mu.Lock()
	for _, id := range text.IDs {
		if len(id) > longestID {
			continue // its receipt will be ignored
		}
		if r, ok := take(&b.early, id); ok {
			events = append(events, b.receipt(s, r))
			continue
		}
		remember(&b.sent, id, s)
	}
	b.mu.Unlock()
	b.emitAll(events)
}

// Receipt handles a receipt. It does not block.
func (b *Book) Receipt(r Receipt) {
	if r.ID == "" || len(r.ID) > longestID {
		return
	}
	var events []*deliver.Event
	b.mu.Lock()
	if s, ok := take(&b.sent, r.ID); ok {
		events = append(events, b.receipt(s, r))
	} else {
		remember(&b.early, r.ID, r)
	}
	b.mu.Unlock()
	b.emitAll(events)
}

// receipt handles the receipt of a part. The event is nil until the result is known: with the
// last delivered part, or the first one that is not delivered.
func (b *Book) receipt(s *sent, r Receipt) *deliver.Event {
	if s.left <= 0 {
		return nil
	}
	if s.left--; r.Delivered && s.left > 0 {
		return nil
	}
	s.left = 0
	e, text := s.event, *s.event.Text
	text.Response = r.Response
	if text.Response == "" {
		text.Response = map[bool]string{true: PhoneHasIt, false: UnknownReason}[r.Delivered]
	}
	now := b.clock.Now()
	text.AckMs = max(now.Sub(e.At).Milliseconds(), 0)
	e.Text, e.At, e.Receipt, e.GaveUp = &text, now, &deliver.Receipt{Delivered: r.Delivered}, !r.Delivered
	return &e
}

func (b *Book) emitAll(all []*deliver.Event) {
	for _, e := range all {
		if e != nil {
			b.report(e)
		}
	}
}

// take removes and returns the entry of an id.
func take[T any](halves *[2]map[string]T, id string) (v T, ok bool) {
	for _, m := range halves {
		if v, ok = m[id]; ok {
			delete(m, id)
			return v, true
		}
	}
	return v, false
}

// remember adds the entry of an id; if the newer half is full, it drops the older one.
func remember[T any](halves *[2]map[string]T, id string, v T) {
	if halves[0] == nil || len(halves[0]) >= half {
		halves[0], halves[1] = map[string]T{}, halves[0]
	}
	halves[0][strings.Clone(id)] = v
}

package smssender

import (
	"strings"
	"sync"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/shard"
)

// Receipt is what a carrier says has become of a text that it had taken.
type Receipt struct {
	ID        string // the carrier's own, by which it has taken the text
	Delivered bool   // the phone has it
	Response  string // what a delivery status log says; empty: what it says of either
}

// The words of a delivery status log about what a phone has, or has not. Source: the SNS
// developer guide, "SMS delivery failure reasons".
const (
	PhoneHasIt       = "Message has been accepted by phone"
	PhoneUnreachable = "Phone is currently unreachable/unavailable"
	CarrierBlocked   = "Phone carrier has blocked this message"
	UnknownReason    = "Unknown error attempting to reach phone"
)

// half is how many texts of either half of a Book are remembered. The older half goes when
// the newer is full, so that at least so many receipts may be outstanding.
const half = 32_768

// longestID is the longest id of a carrier's that is remembered, in bytes: what a receipt says
// is untrusted input. SMPP's have 64 at most (3.4, 5.2.23), and those of providers 36.
const longestID = 256

// Book remembers which texts were taken, to report what became of them when a receipt comes:
// as one more event of the delivery. It implements deliver.Events. It is in memory: a
// receipt that comes after a restart is of an unknown text, and is ignored.
type Book struct {
	clock  clock.Clock
	report func(*deliver.Event)

	mu    sync.Mutex
	sent  [2]map[string]*sent   // by the carrier's ids; the newer first
	early [2]map[string]Receipt // that came before the event
}

// sent is a text whose parts have not all been accounted for.
type sent struct {
	event deliver.Event
	left  int
}

var _ deliver.Events = (*Book)(nil)

// NewBook makes a book. report is called concurrently.
func NewBook(c clock.Clock, report func(*deliver.Event)) *Book {
	return &Book{clock: c, report: report}
}

// Published implements deliver.Events.
func (b *Book) Published(*shard.Published) {}

// Delivery notes a text that was taken.
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
			continue // it stays unknown what became of it
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

// Receipt takes what became of a text. It does not wait for anything.
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

// receipt accounts for a part. The event is nil until the text's end is known: with the
// last part that the phone has, or the first that it has not.
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

// take removes what is remembered under an id.
func take[T any](halves *[2]map[string]T, id string) (v T, ok bool) {
	for _, m := range halves {
		if v, ok = m[id]; ok {
			delete(m, id)
			return v, true
		}
	}
	return v, false
}

// remember remembers something under an id, and forgets the older half where it has to.
func remember[T any](halves *[2]map[string]T, id string, v T) {
	if halves[0] == nil || len(halves[0]) >= half {
		halves[0], halves[1] = map[string]T{}, halves[0]
	}
	halves[0][strings.Clone(id)] = v
}

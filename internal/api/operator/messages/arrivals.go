package messages

import (
	"cmp"
	"context"
	"math"
	"slices"

	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/shard/inspect"
)

// Arrivals find new messages of a queue with each poll, without changing the queue.
type Arrivals struct {
	messages *Messages
	caller   *rest.Call
	queue    arn.ARN
	picked   func(*inspect.Message) bool // nil: all

	place arrival
}

// arrival is how far messages of a queue were reported.
type arrival struct {
	Incarnation layout.Incarnation `json:"i"` // of the queue: sequences of another one are others
	Since       uint64             `json:"s"` // earlier messages were reported
	Until       uint64             `json:"u"` // of a poll that several calls continue: where the first one ended
	From        inspect.Cursor     `json:"f"` // where the next poll continues
}

// arrived bounds the messages that one poll reports, and how much of each body.
const (
	arrived      = 100
	arrivedBytes = 4096
)

// Arrive begins to watch a queue; existing messages are not reported, or, with the place of an
// earlier watch, those that it has reported. A search filters messages as in a list. Errors:
// QueueDoesNotExist.
func (m *Messages) Arrive(ctx context.Context, c *rest.Call, name, search, place string) (*Arrivals, error) {
	queue, err := catalog.ParseQueue(name)
	if err != nil {
		return nil, err
	}
	found, err := m.Inspect.Scan(ctx, inspect.Query{Queue: queue, Limit: 1, Since: math.MaxUint64})
	if err != nil {
		return nil, err
	}
	a := &Arrivals{messages: m, caller: c, queue: queue, picked: Picking(search, "", "")}
	if !catalog.ReadPlace(place, &a.place) {
		a.place = arrival{Incarnation: found.Incarnation, Since: found.End}
	}
	return a, nil
}

// Place is how far News has come, for Arrive.
func (a *Arrivals) Place() string { return catalog.WritePlace(&a.place) }

// News are the messages that were sent since the last poll and are still in the queue, in the
// order of sending. None is reported twice. Errors: QueueDoesNotExist.
func (a *Arrivals) News(ctx context.Context) ([]Message, error) {
	p := &a.place
	found, err := a.messages.Inspect.Scan(ctx, inspect.Query{
		Queue: a.queue, Limit: arrived, Since: p.Since, From: p.From, Caller: a.caller.Caller, Match: a.picked,
	})
	if err != nil {
		return nil, err
	}
	if found.Incarnation != p.Incarnation { // the queue was deleted and created again
		*p = arrival{Incarnation: found.Incarnation}
		return nil, nil
	}
	if p.Until == 0 {
		p.Until = found.End
	}
	slices.SortFunc(found.Messages, func(x, y inspect.Message) int { return cmp.Compare(x.Sequence, y.Sequence) })
	var news []Message
	for i := range found.Messages {
		if one := &found.Messages[i]; one.Sequence < p.Until { // later ones are reported by the next round
			news = append(news, shown(one, found.Origin, a.queue.FIFO(), arrivedBytes))
		}
	}
	if found.Next != nil {
		p.From = *found.Next
		return news, nil
	}
	*p = arrival{Incarnation: p.Incarnation, Since: p.Until}
	return news, nil
}

package messages

import (
	"cmp"
	"context"
	"math"
	"slices"

	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard/inspect"
)

// Arrivals find new messages of a queue with each poll, without changing the queue.
type Arrivals struct {
	messages *Messages
	caller   *rest.Call
	queue    arn.ARN
	picked   func(*inspect.Message) bool // nil: all

	since uint64         // earlier messages were reported
	until uint64         // of a poll that several calls continue: where the first one ended
	from  inspect.Cursor // where the next poll continues
}

// arrived bounds the messages that one poll reports, and how much of each body.
const (
	arrived      = 100
	arrivedBytes = 4096
)

// Arrive begins to watch a queue; existing messages are not reported. A search filters
// messages as in a list. Errors: QueueDoesNotExist.
func (m *Messages) Arrive(ctx context.Context, c *rest.Call, name, search string) (*Arrivals, error) {
	queue, err := catalog.ParseQueue(name)
	if err != nil {
		return nil, err
	}
	found, err := m.Inspect.Scan(ctx, inspect.Query{Queue: queue, Limit: 1, Since: math.MaxUint64})
	if err != nil {
		return nil, err
	}
	return &Arrivals{messages: m, caller: c, queue: queue, picked: Picking(search, "", ""), since: found.End}, nil
}

// News are the messages that were sent since the last poll and are still in the queue, in the
// order of sending. None is reported twice. Errors: QueueDoesNotExist.
func (a *Arrivals) News(ctx context.Context) ([]Message, error) {
	found, err := a.messages.Inspect.Scan(ctx, inspect.Query{
		Queue: a.queue, Limit: arrived, Since: a.since, From: a.from, Caller: a.caller.Caller, Match: a.picked,
	})
	if err != nil {
		return nil, err
	}
	if found.End < a.since { // the queue was deleted and created again
		a.since, a.until, a.from = 0, 0, inspect.Cursor{}
		return nil, nil
	}
	if a.until == 0 {
		a.until = found.End
	}
	slices.SortFunc(found.Messages, func(x, y inspect.Message) int { return cmp.Compare(x.Sequence, y.Sequence) })
	var news []Message
	for i := range found.Messages {
		if one := &found.Messages[i]; one.Sequence < a.until { // later ones are reported by the next round
			news = append(news, shown(one, found.Origin, a.queue.FIFO(), arrivedBytes))
		}
	}
	if found.Next != nil {
		a.from = *found.Next
		return news, nil
	}
	a.since, a.until, a.from = a.until, 0, inspect.Cursor{}
	return news, nil
}

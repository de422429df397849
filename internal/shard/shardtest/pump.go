package shardtest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/topic"
)

// Pump is a consumer that works when it is called: it carries SQS
// deliveries to their queues, and lets the script decide about the rest.
type Pump struct {
	Engine *shard.Engine
	mu     sync.Mutex
	ready  []arn.ARN
	Decide func(d *backlog.Delivery) // for what is no SQS delivery
	Every  bool                      // or for all
	NewID  func() message.ID
}

// Ready implements backlog.Consumer.
func (p *Pump) Ready(sub arn.ARN) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.ready, sub) {
		p.ready = append(p.ready, sub)
	}
}

// Forget forgets what was said to be due, as a process does that ends.
func (p *Pump) Forget() { p.Keep(func(arn.ARN) bool { return false }) }

// Keep forgets all of what was said to be due but some.
func (p *Pump) Keep(some func(a arn.ARN) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = slices.DeleteFunc(p.ready, func(a arn.ARN) bool { return !some(a) })
}

// Run takes until nothing is due.
func (p *Pump) Run(t testing.TB) (made int) {
	for {
		p.mu.Lock()
		if len(p.ready) == 0 {
			p.mu.Unlock()
			return made
		}
		slices.SortFunc(p.ready, func(a, b arn.ARN) int { return strings.Compare(a.Resource, b.Resource) })
		sub := p.ready[0]
		p.ready = p.ready[1:]
		p.mu.Unlock()
		for more := true; more; {
			var ds []*backlog.Delivery
			var err error
			ds, more, err = p.Engine.Take(sub, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range ds {
				made++
				p.deliver(t, d)
			}
		}
	}
}

func (p *Pump) deliver(t testing.TB, d *backlog.Delivery) {
	a := backlog.Attempt{At: time.UnixMilli(1), Outcome: "success"}
	if d.Subscription.Protocol != topic.SQS || p.Every {
		p.Decide(d)
		return
	}
	dest, err := arn.Parse(d.Subscription.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	if d.Message.Notice.Replayed && d.Message.Notice.Sequence%5 == 4 && d.Attempt == 1 { // its group waits for the next one
		a.Outcome = "server-error"
		p.Engine.Retry(d, a, p.Engine.Clock.Now().Add(time.Second))
		return
	}
	m, _ := p.Render(d.Message)
	if err := p.Engine.Transfer(context.Background(), d, dest, m, backlog.Ending{Attempt: a, State: backlog.DeliveryDelivered}); err != nil {
		p.Engine.Drop(d, a, err.Error())
	}
}

// Render is what a queue gets of a notification.
func (p *Pump) Render(n *message.Message) (*message.Message, error) {
	m := &message.Message{ID: p.NewID(), Sender: n.Sender, Group: n.Group, Dedup: n.Dedup, Body: n.Body}
	m.Seal()
	return m, nil
}

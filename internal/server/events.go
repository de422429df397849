package server

import (
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/shard"
)

// deliveryEvents forward every event of publishes and deliveries to all listeners.
type deliveryEvents []deliver.Events

func (all deliveryEvents) Delivery(e *deliver.Event) {
	for _, one := range all {
		one.Delivery(e)
	}
}

func (all deliveryEvents) Published(p *shard.Published) {
	for _, one := range all {
		one.Published(p)
	}
}

// functionEvents forward every event of a function to all listeners.
type functionEvents []invoke.Events

func (all functionEvents) add(e invoke.Event) {
	for _, one := range all {
		one(e)
	}
}

// accepted reports an event in a function's queue.
func (all functionEvents) accepted(function arn.ARN, qualifier string, at time.Time) {
	all.add(invoke.Event{Function: function, Qualifier: qualifier, Kind: invoke.AsyncEventsReceived, At: at, Value: 1})
}

// laterEvents forward events to a listener that is made after the engine.
type laterEvents struct {
	to atomic.Pointer[deliver.Events]
}

func (l *laterEvents) set(to deliver.Events) { l.to.Store(&to) }

func (l *laterEvents) Delivery(e *deliver.Event) {
	if to := l.to.Load(); to != nil {
		(*to).Delivery(e)
	}
}

func (l *laterEvents) Published(p *shard.Published) {
	if to := l.to.Load(); to != nil {
		(*to).Published(p)
	}
}

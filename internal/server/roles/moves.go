package roles

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
)

// Moves asks whether who asked for a move task still may what it does. Tasks run while
// the engine, which knows the queues' policies, is being opened: they wait until there is
// an authorizer.
type Moves struct {
	clock  clock.Clock
	strict bool
	ready  chan struct{}

	// Set once ready is closed.
	asked  *authorize.Authorizer
	failed error
}

// NewMoves makes it; without strict everybody may. Open must be called.
func NewMoves(c clock.Clock, strict bool) *Moves {
	return &Moves{clock: c, strict: strict, ready: make(chan struct{})}
}

// Open lets tasks continue, unless the engine could not be opened.
func (m *Moves) Open(a *authorize.Authorizer, failed error) {
	m.asked, m.failed = a, failed
	close(m.ready)
}

// May refuses to move messages from a queue to another one, or back to a subscription, with
// AccessDenied. Nobody waits for a task, and a step of one is not interrupted: there is no
// context that could end meanwhile.
func (m *Moves) May(by *caller.Caller, from, to arn.ARN) error {
	if !m.strict {
		return nil
	}
	<-m.ready
	if m.failed != nil {
		return m.failed
	}
	needs := []authorize.Need{{Action: "sqs:ReceiveMessage", Resource: from.String()}, {Action: "sqs:DeleteMessage", Resource: from.String()}}
	for i := range needs {
		needs[i].Account = from.Account
	}
	putting := authorize.Need{Action: "sqs:SendMessage", Resource: to.String(), Account: to.Account, Shared: true}
	if topic, _, ok := to.SplitSubscription(); ok { // back to a subscription: as what is published again
		putting.Action, putting.Resource = "sns:Publish", topic.String()
	}
	needs = append(needs, putting)
	for i := range needs {
		result, err := m.asked.Decide(context.Background(), &needs[i], &authorize.Context{Caller: by, Region: from.Region, Now: m.clock.Now().UnixMilli()})
		if err != nil {
			return err
		}
		if !result.Allowed() {
			return api.Denied(by, &needs[i], &result)
		}
	}
	return nil
}

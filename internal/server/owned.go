package server

import (
	"context"
	"errors"

	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/shard"
)

// errNotOwned reports that another process owns the state.
var errNotOwned = errors.New("another node owns the state now")

// owned reports that the process owns the state, as far as it knows.
func (d *Deps) owned() bool { return d.World.Owned == nil || d.World.Owned() }

// deliveries are those of a state that another process may take over: after that no attempt
// begins.
type deliveries struct {
	*shard.Engine
	owned func() bool
}

// Current implements deliver.Engine.
func (e deliveries) Current(d *shard.Delivery) bool { return e.owned() && e.Engine.Current(d) }

// ofOwner runs functions while the process owns the state.
type ofOwner struct {
	invoke.Invoker
	owned func() bool
}

// Invoke implements invoke.Invoker.
func (i ofOwner) Invoke(ctx context.Context, in invoke.Invocation) (invoke.Outcome, error) {
	if !i.owned() {
		return invoke.Outcome{}, errNotOwned
	}
	return i.Invoker.Invoke(ctx, in)
}

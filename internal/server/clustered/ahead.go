package clustered

import (
	"context"
	"fmt"
	"time"

	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/replica"
)

// aheadPoll is the time between two looks at whether the replica stands still: an owner writes more
// often, if only that it is there.
const aheadPoll = time.Second

// watchReplica asks the other nodes who owns the state while this node's replica stands still, until
// ctx ends.
func (p *part) watchReplica(ctx context.Context) {
	look := p.lookAhead()
	for pause(ctx, aheadPoll) {
		look(ctx)
	}
}

// lookAhead returns a look at the replica. One that has not moved since the look before may be held up by
// a full disk, which takes no record. Then it does not read in the log who owns the state either, and
// where that was this node it serves on, and answers nobody. The other nodes have read it.
func (p *part) lookAhead() (look func(context.Context)) {
	var before node.State
	return func(ctx context.Context) {
		s, ok := p.front.stateOf()
		stands := ok && s.Epoch == before.Epoch && s.Number == before.Number
		before = s
		known := p.front.ahead.Load()
		later := known != nil && known.Epoch > s.Epoch
		if !ok || !stands && !later {
			return
		}
		all := p.front.status(ctx)
		found := all.Cells[0]
		if found.Epoch <= s.Epoch {
			if later && all.Reached() { // the log has lost it, and who had read it follows anew
				p.front.ahead.CompareAndSwap(known, nil)
			}
			return
		}
		if known == nil || found.Epoch > known.Epoch { // who told of that may not have answered
			p.front.ahead.Store(&found)
		}
		r := p.replica.Load()
		if r == nil {
			return
		}
		if owner := r.Owner(); owner != nil && owner.Epoch() < found.Epoch {
			owner.StepDown(fmt.Errorf("%w: %s, epoch %d, as other nodes say", replica.ErrReplaced, found.Owner, found.Epoch))
		}
	}
}

// whose is the name of the node that owns the state: as the replica has it, or a node that is ahead of
// it. Empty: nobody does, or this node did.
func (f *front) whose(s node.State) string {
	if ahead := f.ahead.Load(); ahead != nil && ahead.Epoch > s.Epoch {
		return ahead.Owner
	}
	if s.Owner == f.part.node.Name && !s.Own {
		return ""
	}
	return s.Owner
}

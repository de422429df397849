package topics

import (
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/topics/coalesce"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/topic"
)

// What tests of the package from outside know of it.
const (
	FanoutStep   = fanoutStep
	DeferredStep = deferredStep
	FanoutBytes  = fanoutBytes
	MaxPassed    = maxPassed
	SlowDepth    = slowDepth
	MaxSlow      = maxSlow
	MaxDeferred  = maxDeferred
	ExpiryStep   = expiryStep
	CollectStep  = collectStep
)

type Fanout = fanout

var (
	DeletedTopicsKey = deletedTopicsKey
	QueueOf          = queueOf
)

// NewFanout is one that was tried without success before.
func NewFanout(r publication.Record, later bool, delivered int) Fanout {
	return fanout{Record: r, later: later, delivered: delivered}
}

func (f *fanout) State() (later bool, delivered int) { return f.later, f.delivered }

// PlannedDelivery is one publication for one subscription.
type PlannedDelivery struct {
	Publication int
	To          *topic.Subscription
}

func (sh *Shard) Plan(fs []Fanout) (publications int, shards []uint16, deliveries []PlannedDelivery) {
	p := sh.newPlan(fs)
	for _, s := range p.shards {
		shards = append(shards, s.ID)
	}
	for i := range p.deliveries {
		d := p.nth(i)
		deliveries = append(deliveries, PlannedDelivery{d.n, d.sub})
	}
	return p.publications, shards, deliveries
}

func (sh *Shard) Fanning() *bool                              { return &sh.fanning }
func (sh *Shard) Reclaiming() *bool                           { return &sh.reclaiming }
func (sh *Shard) Fanouts() int                                { return len(sh.fanouts) }
func (sh *Shard) FanningOut() map[arn.ARN]int                 { return sh.fanningOut }
func (sh *Shard) Reached() int                                { return len(sh.reached) }
func (sh *Shard) Planned() int                                { return sh.planned }
func (sh *Shard) Publishers() *coalesce.Coalescer[*publisher] { return &sh.publishers }
func (sh *Shard) StartFanouts()                               { sh.startFanouts(nil) }
func (sh *Shard) Reclaim()                                    { sh.reclaim() }

func (sh *Shard) Spread(f *Fanout, limit int) bool { return sh.enqueueStep(f, limit, nil) }

func (sh *Shard) PublishInSteps(tx *kernel.Tx, fs []Fanout) (*journal.Commit, bool, error) {
	return sh.publishInSteps(tx, fs)
}

package topics

import (
	"sync"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/protect"
)

// maxKnown is how many topics of a shard are remembered.
const maxKnown = 1024

// known is what a publish needs of its topic before it takes the shard's lock.
type known struct {
	key        string          // as the topic's attribute names it
	protection *protect.Policy // nil: there is none
}

// knownTopics remembers topics, so that a publish need not take its shard's lock once more.
type knownTopics struct {
	mu sync.Mutex // guards what follows
	of uint64     // the generation of the shard's catalog
	by map[arn.ARN]known
}

// knownOf is what is known of a topic; ok is false if there is no such topic. It may be as
// of a moment before, when the call began.
func (sh *Shard) knownOf(t arn.ARN) (of known, ok bool) {
	k := &sh.known
	k.mu.Lock()
	if k.of == sh.Generation.Load() {
		of, ok = k.by[t]
	}
	k.mu.Unlock()
	if ok {
		return of, true
	}
	var generation uint64
	sh.View(func() {
		generation = sh.Generation.Load()
		var found *topic.Topic
		if found, ok = sh.Topics.Topic(t); ok {
			of = known{key: found.Key(), protection: found.Protection}
		}
	})
	if !ok {
		return known{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of < generation || len(k.by) >= maxKnown || k.by == nil {
		k.of, k.by = generation, map[arn.ARN]known{}
	}
	if k.of == generation {
		k.by[t.Own()] = of
	}
	return of, true
}

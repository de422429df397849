package topics

import (
	"math"
	"sync"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/protect"
)

// maxCachedTopics bounds the topics in the cache of a shard.
const maxCachedTopics = 1024

// cachedTopic has the properties of a topic that a publish needs before it takes the shard's
// lock.
type cachedTopic struct {
	key        string          // as the topic's attribute names it
	protection *protect.Policy // nil: there is none
	maxSize    int             // of a message, in bytes
}

// topicCache caches topics, so that a publish takes its shard's lock once less. It is valid for
// one generation of the catalog.
type topicCache struct {
	mu sync.Mutex // guards what follows
	of uint64     // the generation of the shard's catalog
	by map[arn.ARN]cachedTopic
}

// lookupTopic finds a topic, in the cache or under the shard's lock; ok is false if there is no
// such topic. It may miss a concurrent change.
func (sh *Shard) lookupTopic(t arn.ARN) (of cachedTopic, ok bool) {
	k := &sh.topicCache
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
			of = cachedTopic{key: found.Key(), protection: found.Protection, maxSize: found.MaxMessageSize()}
		}
	})
	if !ok {
		return cachedTopic{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of < generation || len(k.by) >= maxCachedTopics || k.by == nil {
		k.of, k.by = generation, map[arn.ARN]cachedTopic{}
	}
	if k.of == generation {
		k.by[t.Own()] = of
	}
	return of, true
}

// MaxMessageSize bounds a message that is published to a topic, and all those of a batch
// together, in bytes. A topic that is not there has no bound: Publish reports it.
func (e *Topics) MaxMessageSize(t arn.ARN) int {
	if of, ok := e.ShardOf(t).lookupTopic(t); ok {
		return of.maxSize
	}
	return math.MaxInt
}

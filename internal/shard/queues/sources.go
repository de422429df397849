package queues

import (
	"context"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard/kernel"
)

// linkDeadLetter updates the index of dead-letter queues for a source; the zero ARN is none.
// Each shard has such an index of its own queues in memory, made from their records.
func (sh *Shard) linkDeadLetter(source, before, after arn.ARN) {
	if before == after {
		return
	}
	if names, i, found := sh.sourcesOf(before, source.Resource); found {
		if len(names) == 1 {
			delete(sh.sources, before)
		} else {
			sh.sources[before] = slices.Delete(names, i, i+1)
		}
	}
	if after.IsZero() {
		return
	}
	if names, i, found := sh.sourcesOf(after, source.Resource); !found {
		if sh.sources == nil {
			sh.sources = map[arn.ARN][]string{}
		}
		sh.sources[after] = slices.Insert(names, i, source.Resource)
	}
}

// sourcesOf lists the names of the shard's queues whose dead-letter queue is dlq, in order, and
// finds a name among them. A dead-letter queue has the account and region of its sources.
func (sh *Shard) sourcesOf(dlq arn.ARN, name string) (names []string, i int, found bool) {
	names = sh.sources[dlq]
	i, found = slices.BinarySearch(names, name)
	return names, i, found
}

// DeadLetterSources lists the names of the queues whose dead-letter queue is
// dlq, in ascending order, up to limit of them behind the name after. Its cost
// grows with the page, not with the queues there are. Errors: QueueDoesNotExist.
func (q *Queues) DeadLetterSources(ctx context.Context, dlq arn.ARN, after string, limit int) ([]string, bool, error) {
	if _, err := q.QueueConfig(ctx, dlq); err != nil {
		return nil, false, err
	}
	return kernel.MergePages(ctx, &q.Shards, limit, strings.Compare, func(sh *Shard) ([]string, bool) {
		names, i, found := sh.sourcesOf(dlq, after)
		if found {
			i++
		}
		page := names[i:min(i+limit, len(names))]
		return slices.Clone(page), i+limit < len(names)
	})
}

package queues

import (
	"context"
	"maps"

	"godwit.dev/godwit/internal/arn"
)

// MaxTags is how many tags a queue can have. Source: the SQS quotas.
const MaxTags = 50

// TagQueue adds tags to a queue, replacing those with the same keys.
// Errors: QueueDoesNotExist; InvalidParameter for more than MaxTags in all.
func (q *Queues) TagQueue(ctx context.Context, a arn.ARN, tags map[string]string) error {
	return q.retag(ctx, a, func(all map[string]string) { maps.Copy(all, tags) })
}

// UntagQueue removes tags from a queue by their keys; those that it does not
// have are ignored. Errors: QueueDoesNotExist.
func (q *Queues) UntagQueue(ctx context.Context, a arn.ARN, keys []string) error {
	return q.retag(ctx, a, func(all map[string]string) {
		for _, key := range keys {
			delete(all, key)
		}
	})
}

func (q *Queues) retag(ctx context.Context, a arn.ARN, change func(all map[string]string)) error {
	return q.WithCatalog(ctx, a, func(sh *Shard) error {
		qs, err := sh.Lookup(a)
		if err != nil {
			return err
		}
		tags := make(map[string]string, len(qs.Record.Tags))
		maps.Copy(tags, qs.Record.Tags)
		change(tags)
		if len(tags) > MaxTags {
			return ErrTooManyTags.With(a.Resource)
		}
		record := *qs.Record
		record.Tags = tags
		qs.Record = &record
		sh.writeQueue(qs)
		return nil
	})
}

// QueueTags are the tags of a queue. Errors: QueueDoesNotExist.
func (q *Queues) QueueTags(ctx context.Context, a arn.ARN) (tags map[string]string, err error) {
	err = q.ReadCatalog(ctx, a, func(sh *Shard) error {
		qs, err := sh.Lookup(a)
		if err == nil {
			tags = maps.Clone(qs.Record.Tags)
		}
		return err
	})
	return tags, err
}

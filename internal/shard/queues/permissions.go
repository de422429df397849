package queues

import (
	"context"
	"maps"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/shard/queues/queuepolicy"
)

// AddPermission adds a statement to a queue's policy. Errors:
// QueueDoesNotExist; InvalidParameter when the label is taken; OverLimit when
// the policy would grow too large.
func (q *Queues) AddPermission(ctx context.Context, a arn.ARN, p queuepolicy.Permission) error {
	return q.editPolicy(ctx, a, func(doc string) (string, error) { return queuepolicy.Add(doc, a, p) })
}

// RemovePermission removes the statements with a label from a queue's policy,
// and with the last one the policy itself.
// Errors: QueueDoesNotExist; InvalidParameter when there is none.
func (q *Queues) RemovePermission(ctx context.Context, a arn.ARN, label string) error {
	return q.editPolicy(ctx, a, func(doc string) (string, error) { return queuepolicy.Remove(doc, label) })
}

func (q *Queues) editPolicy(ctx context.Context, a arn.ARN, edit func(doc string) (string, error)) error {
	return q.WithCatalog(ctx, a, func(sh *Shard) error {
		qs, err := sh.Lookup(a)
		if err != nil {
			return err
		}
		doc, err := edit(qs.Record.Attributes[attribute.Policy])
		if err != nil {
			return err
		}
		compiled, err := queuepolicy.Parse(doc)
		if err != nil {
			return err
		}
		record := *qs.Record
		record.Attributes = make(map[string]string, len(qs.Record.Attributes)+1)
		maps.Copy(record.Attributes, qs.Record.Attributes)
		record.Attributes[attribute.Policy], record.Modified = doc, sh.Now()
		if doc == "" {
			delete(record.Attributes, attribute.Policy)
		}
		qs.Record, qs.Policy = &record, compiled
		sh.writeQueue(qs)
		return nil
	})
}

package queues

import (
	"context"
	"errors"
	"maps"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/queue/attribute"
)

// maxPolicyBytes bounds a queue's policy. Source: the quotas of SQS policies.
const maxPolicyBytes = 8192

// Permission lets accounts call actions on a queue or topic.
type Permission struct {
	Label    string   // the Sid of its statement
	Accounts []string // 12 digits each
	Actions  []string // without the service: "SendMessage", …, or "*"
}

// Grant is the permission as a statement, with the prefix of the service, which
// AWS writes in capitals.
func (p *Permission) Grant(prefix string, resource arn.ARN) policy.Grant {
	g := policy.Grant{Sid: p.Label, Accounts: p.Accounts, Resource: resource.String()}
	for _, action := range p.Actions {
		g.Actions = append(g.Actions, prefix+action)
	}
	return g
}

// AddPermission adds a statement to a queue's policy. Errors:
// QueueDoesNotExist; InvalidParameter when the label is taken; OverLimit when
// the policy would grow too large.
func (e *Queues) AddPermission(ctx context.Context, a arn.ARN, p Permission) error {
	return e.editPolicy(ctx, a, func(doc string) (string, error) { return addStatement(doc, a, p) })
}

// RemovePermission removes the statements with a label from a queue's policy,
// and with the last one the policy itself.
// Errors: QueueDoesNotExist; InvalidParameter when there is none.
func (e *Queues) RemovePermission(ctx context.Context, a arn.ARN, label string) error {
	return e.editPolicy(ctx, a, func(doc string) (string, error) { return removeStatement(doc, label) })
}

func (e *Queues) editPolicy(ctx context.Context, a arn.ARN, edit func(doc string) (string, error)) error {
	return e.WithCatalog(ctx, a, func(sh *Shard) error {
		qs, err := sh.Lookup(a)
		if err != nil {
			return err
		}
		doc, err := edit(qs.Record.Attributes[attribute.Policy])
		if err != nil {
			return err
		}
		compiled, err := ParseQueuePolicy(doc)
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
		return sh.WriteQueue(qs)
	})
}

// addStatement adds a permission to the policy of a queue, which may be empty.
func addStatement(doc string, a arn.ARN, p Permission) (string, error) {
	edited, err := policy.Add(doc, a.String()+"/SQSDefaultPolicy", p.Grant("SQS:", a))
	if errors.Is(err, policy.ErrTaken) {
		return "", ErrLabelTaken.With(p.Label)
	}
	if err != nil {
		return "", err
	}
	if err := attribute.CheckPolicy(edited); err != nil {
		return "", err
	}
	if len(edited) > maxPolicyBytes {
		return "", ErrPolicyTooLong.With(len(edited), maxPolicyBytes)
	}
	return edited, nil
}

// removeStatement removes the statements with a label from a policy.
func removeStatement(doc, label string) (string, error) {
	edited, err := policy.Remove(doc, label)
	if errors.Is(err, policy.ErrNoStatement) {
		return "", ErrNoLabel.With(label)
	}
	return edited, err
}

// Package queuepolicy reads the policies of queues, and adds and removes permissions.
package queuepolicy

import (
	"errors"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/queue/attribute"
)

// What is refused, with the fields of each.
var (
	ErrLabelTaken = fault.NewRule(fault.InvalidParameter, "queues: the policy has the label")   // the label
	ErrNoLabel    = fault.NewRule(fault.InvalidParameter, "queues: the policy lacks the label") // the label
	ErrTooMany    = fault.NewRule(fault.OverLimit, "queues: too many statements in the policy") // their number, the limit
)

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

// DenyAll stands for a stored policy that cannot be read.
var DenyAll = &policy.Policy{}

// Parse compiles the attribute Policy of a queue; nil for none.
// Errors: InvalidAttributeValue for what is no policy, and for one about
// actions of another service.
func Parse(doc string) (*policy.Policy, error) {
	if doc == "" {
		return nil, nil
	}
	p, err := policy.ParseLoose(doc)
	if err != nil {
		return nil, errNoPolicy
	}
	for _, s := range p.Statements() {
		for _, action := range s.Actions {
			if prefix, _, named := strings.Cut(action, ":"); named && !strings.EqualFold(prefix, "sqs") {
				return nil, errNoPolicy
			}
		}
	}
	return p, nil
}

var errNoPolicy = attribute.ErrValue.With(attribute.Policy)

// Add adds a permission to the policy of a queue, which may be empty.
func Add(doc string, a arn.ARN, p Permission) (string, error) {
	edited, err := policy.Add(doc, a.String()+"/SQSDefaultPolicy", p.Grant("SQS:", a))
	if errors.Is(err, policy.ErrTaken) {
		return "", ErrLabelTaken.With(p.Label)
	}
	if err != nil {
		return "", err
	}
	err = attribute.CheckPolicy(edited)
	if r, ok := errors.AsType[*fault.Refusal](err); ok && r.Rule == attribute.ErrTooManyStatements { // nobody has submitted this policy
		return "", ErrTooMany.With(r.Fields[0], r.Fields[1])
	}
	if err != nil {
		return "", err
	}
	return edited, nil
}

// Remove removes the statements with a label from a policy.
func Remove(doc, label string) (string, error) {
	edited, err := policy.Remove(doc, label)
	if errors.Is(err, policy.ErrNoStatement) {
		return "", ErrNoLabel.With(label)
	}
	return edited, err
}

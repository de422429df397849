package shard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/attribute"
)

// maxPolicyBytes bounds a queue's policy. Source: the quotas of SQS policies.
const maxPolicyBytes = 8192

// Permission lets accounts call actions on a queue.
type Permission struct {
	Label    string   // the Sid of its statement
	Accounts []string // 12 digits each
	Actions  []string // "SendMessage", …, or "*"
}

// AddPermission adds a statement to a queue's policy. Errors:
// QueueDoesNotExist; InvalidParameter when the label is taken; OverLimit when
// the policy would grow too large.
func (e *Engine) AddPermission(ctx context.Context, a arn.ARN, p Permission) error {
	return e.editPolicy(ctx, a, func(doc string) (string, error) { return addStatement(doc, a, p) })
}

// RemovePermission removes the statements with a label from a queue's policy,
// and with the last one the policy itself.
// Errors: QueueDoesNotExist; InvalidParameter when there is none.
func (e *Engine) RemovePermission(ctx context.Context, a arn.ARN, label string) error {
	return e.editPolicy(ctx, a, func(doc string) (string, error) { return removeStatement(doc, label) })
}

func (e *Engine) editPolicy(ctx context.Context, a arn.ARN, edit func(doc string) (string, error)) error {
	return e.withCatalog(ctx, a, func(sh *shard) error {
		qs, err := sh.lookup(a)
		if err != nil {
			return err
		}
		doc, err := edit(qs.record.Attributes[attribute.Policy])
		if err != nil {
			return err
		}
		record := *qs.record
		record.Attributes = make(map[string]string, len(qs.record.Attributes)+1)
		maps.Copy(record.Attributes, qs.record.Attributes)
		record.Attributes[attribute.Policy], record.Modified = doc, sh.now()
		if doc == "" {
			delete(record.Attributes, attribute.Policy)
		}
		qs.record = &record
		return sh.writeQueue(qs)
	})
}

// policyDocument is a policy taken apart as far as statements are added to it
// and removed from it. Everything else in it stays as its owner wrote it.
type policyDocument struct {
	members    map[string]json.RawMessage
	statements []json.RawMessage
}

// policyOrder is how a policy's members are written.
var policyOrder = []string{"Version", "Id", "Statement"}

func parsePolicy(doc string) (p policyDocument, err error) {
	if doc == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(doc), &p.members); err != nil {
		return p, err
	}
	all, ok := p.members["Statement"]
	if !ok {
		return p, nil
	}
	if err := json.Unmarshal(all, &p.statements); err != nil { // a single one may stand without a list
		p.statements = []json.RawMessage{all}
	}
	return p, nil
}

func (p *policyDocument) encode() (string, error) {
	// Joined by hand: json.Marshal would rewrite what the owner wrote.
	p.members["Statement"] = slices.Concat([]byte{'['}, bytes.Join(rawBytes(p.statements), []byte{','}), []byte{']'})
	names := slices.Sorted(maps.Keys(p.members))
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	out := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return "", err
		}
		out = append(append(append(out, key...), ':'), p.members[name]...)
	}
	return string(append(out, '}')), nil
}

func rawBytes(all []json.RawMessage) [][]byte {
	out := make([][]byte, len(all))
	for i := range all {
		out[i] = all[i]
	}
	return out
}

func rank(name string) int {
	if i := slices.Index(policyOrder, name); i >= 0 {
		return i
	}
	return len(policyOrder)
}

// sid is the label of a statement; empty for one without, or no statement.
func sid(statement json.RawMessage) string {
	var s struct{ Sid string }
	_ = json.Unmarshal(statement, &s)
	return s.Sid
}

// oneOrMany is a list in the form of IAM: a single string stands by itself.
type oneOrMany []string

// MarshalJSON writes the list.
func (l oneOrMany) MarshalJSON() ([]byte, error) {
	if len(l) == 1 {
		return json.Marshal(l[0])
	}
	return json.Marshal([]string(l))
}

// statement is a permission in the form of IAM.
type statement struct {
	Sid       string
	Effect    string
	Principal struct{ AWS oneOrMany }
	Action    oneOrMany
	Resource  string
}

func addStatement(doc string, a arn.ARN, permission Permission) (string, error) {
	p, err := parsePolicy(doc)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(p.statements, func(s json.RawMessage) bool { return sid(s) == permission.Label }) {
		return "", fault.Newf(fault.InvalidParameter, "Value %s for parameter Label is invalid. Reason: Already exists.", permission.Label)
	}
	s := statement{Sid: permission.Label, Effect: "Allow", Resource: a.String()}
	for _, account := range permission.Accounts {
		s.Principal.AWS = append(s.Principal.AWS, "arn:"+arn.Partition+":iam::"+account+":root")
	}
	for _, action := range permission.Actions {
		s.Action = append(s.Action, "SQS:"+action)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	if p.members == nil {
		p.members = map[string]json.RawMessage{
			"Version": json.RawMessage(`"2008-10-17"`),
			"Id":      fmt.Appendf(nil, "%q", a.String()+"/SQSDefaultPolicy"),
		}
	}
	p.statements = append(p.statements, text)
	edited, err := p.encode()
	if err != nil {
		return "", err
	}
	if err := attribute.CheckPolicy(edited); err != nil {
		return "", err
	}
	if len(edited) > maxPolicyBytes {
		return "", fault.Newf(fault.OverLimit, "The policy would be %d bytes long, maximum allowed is %d.", len(edited), maxPolicyBytes)
	}
	return edited, nil
}

func removeStatement(doc, label string) (string, error) {
	p, err := parsePolicy(doc)
	if err != nil {
		return "", err
	}
	n := len(p.statements)
	p.statements = slices.DeleteFunc(p.statements, func(s json.RawMessage) bool { return sid(s) == label })
	if len(p.statements) == n {
		return "", fault.Newf(fault.InvalidParameter, "Value %s for parameter Label is invalid. Reason: can't find label.", label)
	}
	if len(p.statements) == 0 {
		return "", nil
	}
	return p.encode()
}

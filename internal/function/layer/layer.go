// Package layer is the catalog of Lambda layers: the versions of all layers of one shard, with their
// policies.
//
// It is pure, as package function is. A version's content is stored elsewhere: the version has the id of
// its upload. A version that was deleted stays, and its content, until no function has it any more: who
// knows the functions says so by Drop.
package layer

import (
	"cmp"
	"slices"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/sorted"
)

// MaxLayers bounds the layers of a function. Source: the Lambda developer guide, "Managing Lambda
// dependencies with layers".
const MaxLayers = 5

// The errors of commands, with the fields of each.
var (
	ErrNotFound = fault.NewRule(fault.ResourceNotFound, "layer: not found")
	ErrNoPolicy = fault.NewRule(fault.ResourceNotFound, "layer: no policy")
	// ErrVersionUnknown is the refusal of operations on a policy.
	ErrVersionUnknown    = fault.NewRule(fault.ResourceNotFound, "layer: not found, for its policy")      // the ARN
	ErrStatementExists   = fault.NewRule(fault.ResourceConflict, "layer: the policy has the statement")   // the statement's id
	ErrStatementNotFound = fault.NewRule(fault.ResourceNotFound, "layer: the policy lacks the statement") // the statement's id
	ErrPolicyTooLong     = fault.NewRule(fault.PolicyLengthExceeded, "layer: the policy is too long")     // its size, the limit
	ErrPolicyOutdated    = fault.NewRule(fault.PreconditionFailed, "layer: not the latest revision of the policy")
)

// Version is a version of a layer. Callers read it; only commands change it.
type Version struct {
	Number        uint64
	Description   string
	License       string
	Runtimes      []string // that it is for; none: any
	Architectures []string
	Created       time.Time
	Code          function.Code
	Deleted       bool // it is only there for functions that have it
	// Token is the one that it was published under; empty: none.
	Token string

	permissions []function.Permission
	revision    string // of the policy; empty: it never had one
}

// Policy is the version's policy, and its revision; empty: there is none.
func (v *Version) Policy() (doc, revision string) {
	return function.Document(v.permissions), v.revision
}

// Filter says which versions a list has: those for a runtime and an architecture. Empty: any.
type Filter struct{ Runtime, Architecture string }

func (f Filter) matches(v *Version) bool {
	return !v.Deleted && (f.Runtime == "" || slices.Contains(v.Runtimes, f.Runtime)) &&
		(f.Architecture == "" || slices.Contains(v.Architectures, f.Architecture))
}

// Layer is a layer with the versions that it has left.
type Layer struct {
	ARN      arn.ARN
	versions sorted.List[*Version]
}

// State has all layers of one shard.
type State struct {
	shard  uint16
	layers map[arn.ARN]*Layer
	order  sorted.List[*Layer] // by account, region, name
	bytes  map[place]int64     // of the contents
}

type place struct{ account, region string }

// New makes the empty state of a shard.
func New(shard uint16) *State {
	return &State{
		shard: shard, layers: map[arn.ARN]*Layer{}, bytes: map[place]int64{},
		order: sorted.List[*Layer]{Compare: func(a, b *Layer) int { return arn.Compare(a.ARN, b.ARN) }},
	}
}

// CodeBytes is the size of the contents of an account in a region, also of versions that were deleted and
// that functions still have.
func (s *State) CodeBytes(account, region string) int64 { return s.bytes[place{account, region}] }

// Uploads calls use with the ids of all contents.
func (s *State) Uploads(use func(upload uint64)) {
	for _, l := range s.order.Items {
		for _, v := range l.versions.Items {
			use(v.Code.Upload)
		}
	}
}

// Deleted are the ARNs of the versions that were deleted and are still there.
func (s *State) Deleted() (all []arn.ARN) {
	for _, l := range s.order.Items {
		for _, v := range l.versions.Items {
			if v.Deleted {
				all = append(all, l.ARN.LayerVersion(v.Number))
			}
		}
	}
	return all
}

// Find finds a version, also one that was deleted; ok is false if there is none.
func (s *State) Find(layer arn.ARN, number uint64) (v *Version, ok bool) {
	l := s.layers[layer]
	if l == nil {
		return nil, false
	}
	list := l.versions.From(func(v *Version) bool { return v.Number < number })
	if len(list) == 0 || list[0].Number != number {
		return nil, false
	}
	return list[0], true
}

// Version finds a version. Errors: ResourceNotFound.
func (s *State) Version(layer arn.ARN, number uint64) (*Version, error) {
	if v, ok := s.Find(layer, number); ok && !v.Deleted {
		return v, nil
	}
	return nil, ErrNotFound
}

// Publish is the command that makes a version.
type Publish struct {
	Layer                arn.ARN
	Last                 uint64 // the highest number that the layer ever had: DecodeNumber
	Description, License string
	Runtimes             []string
	Architectures        []string
	Code                 function.Code
	// Token names the request: whenever it is carried out again, it finds the version that it made at first:
	// Published. Empty: the request has none.
	Token string
}

// Published is the version that was made under a token, nil if none was, or it was deleted.
func (s *State) Published(layer arn.ARN, token string) *Version {
	l := s.layers[layer]
	if l == nil || token == "" {
		return nil
	}
	for _, v := range slices.Backward(l.versions.Items) {
		if v.Token == token && !v.Deleted {
			return v
		}
	}
	return nil
}

// Publish makes the next version of a layer, and the layer if it is the first.
func (s *State) Publish(now time.Time, cmd Publish, b *mutation.Batch) *Version {
	last := cmd.Last
	if l := s.layers[cmd.Layer]; l != nil { // the record may have been removed, but functions still have versions
		last = max(last, l.versions.Items[len(l.versions.Items)-1].Number)
	}
	v := &Version{
		Number: last + 1, Description: cmd.Description, License: cmd.License, Runtimes: cmd.Runtimes, Architectures: cmd.Architectures,
		Created: now.UTC().Truncate(time.Millisecond), Code: cmd.Code, Token: cmd.Token,
	}
	s.add(cmd.Layer, v)
	b.Set(s.NumberKey(cmd.Layer), encode(numberRecord{v.Number}))
	s.put(b, cmd.Layer, v)
	return v
}

// Delete deletes a version, if there is one: functions that have it keep it, until Drop.
func (s *State) Delete(layer arn.ARN, number uint64, b *mutation.Batch) {
	if v, ok := s.Find(layer, number); ok && !v.Deleted {
		v.Deleted, v.permissions = true, nil
		s.put(b, layer, v)
	}
}

// Drop removes a version that was deleted, as no function has it any more. It returns its upload; 0: there
// is no such version, or it was not deleted.
func (s *State) Drop(layer arn.ARN, number uint64, b *mutation.Batch) (upload uint64) {
	v, ok := s.Find(layer, number)
	if !ok || !v.Deleted {
		return 0
	}
	l := s.layers[layer]
	l.versions.Remove(v)
	s.count(layer, -v.Code.Size)
	if len(l.versions.Items) == 0 {
		s.order.Remove(l)
		delete(s.layers, layer)
	}
	b.Delete(s.key(layer, number))
	return v.Code.Upload
}

// Listed is a layer in a list, with its newest version that a filter lets through.
type Listed struct {
	Layer   arn.ARN
	Version *Version
}

// Layers is a page of an account's layers in a region, ordered by name: up to limit after the name after.
// more says that there are further ones.
func (s *State) Layers(account, region, after string, f Filter, limit int) (page []Listed, more bool) {
	start := arn.Layer(region, account, after)
	for _, l := range s.order.From(func(l *Layer) bool { return arn.Compare(l.ARN, start) <= 0 }) {
		if l.ARN.Account != account || l.ARN.Region != region {
			break
		}
		for _, v := range slices.Backward(l.versions.Items) {
			if !f.matches(v) {
				continue
			}
			if len(page) == limit {
				return page, true
			}
			page = append(page, Listed{l.ARN, v})
			break
		}
	}
	return page, false
}

// Versions is a page of a layer's versions, the newest first: up to limit below the number before; 0: from
// the newest on. A layer that is not there has none.
func (s *State) Versions(layer arn.ARN, before uint64, f Filter, limit int) (page []*Version, more bool) {
	l := s.layers[layer]
	if l == nil {
		return nil, false
	}
	for _, v := range slices.Backward(l.versions.Items) {
		if before != 0 && v.Number >= before || !f.matches(v) {
			continue
		}
		if len(page) == limit {
			return page, true
		}
		page = append(page, v)
	}
	return page, false
}

// Permit is the command that adds a statement to a version's policy.
type Permit struct {
	Layer      arn.ARN
	Number     uint64
	RevisionID string // must be that of the policy; empty: any
	Permission function.Permission
	Revision   string // of the policy from then on
}

// Permit adds a statement to a version's policy. Errors: ResourceNotFound; ResourceConflict for a label that
// is taken; PreconditionFailed; PolicyLengthExceeded.
func (s *State) Permit(cmd Permit, b *mutation.Batch) error {
	v, err := s.policyOf(cmd.Layer, cmd.Number)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(v.permissions, func(p function.Permission) bool { return p.Sid == cmd.Permission.Sid }) {
		return ErrStatementExists.With(cmd.Permission.Sid)
	}
	if cmd.RevisionID != "" && cmd.RevisionID != v.revision {
		return ErrPolicyOutdated
	}
	all := append(slices.Clone(v.permissions), cmd.Permission)
	if n := len(function.Document(all)); n > function.MaxPolicyBytes {
		return ErrPolicyTooLong.With(n, function.MaxPolicyBytes)
	}
	v.permissions, v.revision = all, cmd.Revision
	s.put(b, cmd.Layer, v)
	return nil
}

// Forbid is the command that removes a statement from a version's policy.
type Forbid struct {
	Layer      arn.ARN
	Number     uint64
	RevisionID string
	Sid        string
	Revision   string
}

// Forbid removes a statement from a version's policy. Errors: ResourceNotFound, PreconditionFailed.
func (s *State) Forbid(cmd Forbid, b *mutation.Batch) error {
	v, err := s.policyOf(cmd.Layer, cmd.Number)
	if err != nil {
		return err
	}
	switch left := slices.DeleteFunc(slices.Clone(v.permissions), func(p function.Permission) bool { return p.Sid == cmd.Sid }); {
	case len(v.permissions) == 0:
		return ErrNoPolicy
	case cmd.RevisionID != "" && cmd.RevisionID != v.revision:
		return ErrPolicyOutdated
	case len(left) == len(v.permissions):
		return ErrStatementNotFound.With(cmd.Sid)
	default:
		v.permissions, v.revision = left, cmd.Revision
		s.put(b, cmd.Layer, v)
		return nil
	}
}

// ShowPolicy is a version's policy with its revision. Errors: ResourceNotFound, also without a policy.
func (s *State) ShowPolicy(layer arn.ARN, number uint64) (doc, revision string, err error) {
	v, err := s.policyOf(layer, number)
	if err != nil {
		return "", "", err
	}
	if doc, revision = v.Policy(); doc == "" {
		return "", "", ErrNoPolicy
	}
	return doc, revision, nil
}

func (s *State) policyOf(layer arn.ARN, number uint64) (*Version, error) {
	v, err := s.Version(layer, number)
	if err != nil {
		return nil, ErrVersionUnknown.With(layer.LayerVersion(number))
	}
	return v, nil
}

func (s *State) add(layer arn.ARN, v *Version) {
	l := s.layers[layer]
	if l == nil {
		l = &Layer{ARN: layer, versions: sorted.List[*Version]{Compare: func(a, b *Version) int { return cmp.Compare(a.Number, b.Number) }}}
		s.layers[layer] = l
		s.order.Add(l)
	}
	l.versions.Add(v)
	s.count(layer, v.Code.Size)
}

func (s *State) count(layer arn.ARN, bytes int64) {
	at := place{layer.Account, layer.Region}
	if s.bytes[at] += bytes; s.bytes[at] == 0 {
		delete(s.bytes, at)
	}
}

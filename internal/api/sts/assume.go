package sts

import (
	"context"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/shard/identity"
)

// The limits of a session. Source: IAM and AWS STS quotas.
const (
	defaultDuration = 3_600 // seconds
	chainedDuration = 3_600 // the limit, for a role that a role's session assumes

	maxPolicies = 10
	maxTags     = 50
	maxTagKey   = 128 // characters
	maxTagValue = 256
	maxPolicy   = 2_048 // characters
	// maxPacked bounds the sum of a session's policies and tags, in bytes.
	maxPacked = 8_192
)

// isName reports whether a text is a valid session name or source identity.
func isName(text string) bool {
	const least, most = 2, 64
	return len(text) >= least && len(text) <= most && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("_+=,.@-", c)
	})
}

// passed are the session policies and session tags that a caller passes for a session.
type passed struct {
	policy     *string // a document; nil: none
	managed    []PolicyARN
	tags       []Tag
	transitive []string // the keys of those tags that sessions chained to this one keep
}

// limit puts the session policies and tags into a session, and reports how much of their
// packed size limit they use, in percent; nil if there are none.
func (s *Service) limit(session *identity.Session, p passed) (packed *int, err error) {
	if p.policy != nil {
		if len([]rune(*p.policy)) > maxPolicy {
			return nil, check.Invalid("1 validation error detected: Value '%s' at 'policy' failed to satisfy constraint: Member must have length less than or equal to %d", *p.policy, maxPolicy)
		}
		if err := iam.CheckDocument(iam.Identity, *p.policy); err != nil {
			return nil, err
		}
		if err := identity.CheckPolicy(iam.Identity, *p.policy); err != nil {
			return nil, err
		}
		session.Policies = append(session.Policies, *p.policy)
	}
	if err := s.limitManaged(session, p.managed); err != nil {
		return nil, err
	}
	if err := setTags(session, p.tags, p.transitive); err != nil {
		return nil, err
	}
	size := 0
	for _, text := range slices.Concat(session.Policies, session.Managed) {
		size += len(text)
	}
	for k, v := range session.Tags {
		size += len(k) + len(v)
	}
	if size == 0 {
		return nil, nil //nolint:nilnil // nothing caps it, and that is no mistake
	}
	percent := (size*100 + maxPacked - 1) / maxPacked
	if percent > 100 {
		return nil, fault.Newf(fault.PackedPolicyTooLarge, "Serialized token too large for session: %d%% of the space for policies and tags", percent)
	}
	return &percent, nil
}

func (s *Service) limitManaged(session *identity.Session, managed []PolicyARN) error {
	if len(managed) > maxPolicies {
		return check.Invalid("1 validation error detected: Value at 'policyArns' failed to satisfy constraint: Member must have length less than or equal to %d", maxPolicies)
	}
	return s.engine.Read(session.Account, func(a *iam.Account) error {
		for _, p := range managed {
			if _, err := a.Managed(api.Deref(p.ARN)); err != nil {
				return fault.Newf(fault.MalformedPolicyDocument, "Invalid policy ARN: %s", api.Deref(p.ARN))
			}
			session.Managed = append(session.Managed, *p.ARN)
		}
		return nil
	})
}

func setTags(session *identity.Session, tags []Tag, transitive []string) error {
	if len(tags) > maxTags {
		return check.Invalid("1 validation error detected: Value at 'tags' failed to satisfy constraint: Member must have length less than or equal to %d", maxTags)
	}
	given := map[string]bool{}
	for _, t := range tags {
		name, value := api.Deref(t.Key), api.Deref(t.Value)
		switch {
		case name == "" || len([]rune(name)) > maxTagKey || len([]rune(value)) > maxTagValue: // of a token; those of requests were validated before
			return badToken("The ID Token has a tag that is none")
		case given[strings.ToLower(name)]:
			return fault.New(fault.InvalidParameter, "Duplicate tag keys found. Please note that Tag keys are case insensitive.")
		}
		given[strings.ToLower(name)] = true
		if _, inherited := keyOf(session.Tags, name); inherited {
			return fault.New(fault.InvalidParameter, "One of the specified transitive tag keys can't be set because it conflicts with a transitive tag key from the calling session.")
		}
		if session.Tags == nil {
			session.Tags = map[string]string{}
		}
		session.Tags[name] = value
	}
	for _, name := range transitive {
		spelled, ok := keyOf(session.Tags, name)
		if !ok || !given[strings.ToLower(name)] {
			return fault.New(fault.InvalidParameter, "The specified transitive tag key must be included in the requested tags.")
		}
		session.Transitive = append(session.Transitive, spelled)
	}
	return nil
}

// keyOf is a tag's key as it is spelled among tags: keys of sessions' tags are
// case-insensitive.
func keyOf(tags map[string]string, name string) (key string, ok bool) {
	for key := range tags {
		if strings.EqualFold(key, name) {
			return key, true
		}
	}
	return "", false
}

// errRoot refuses the account's root, also in a session of GetSessionToken, whatever the role's
// trust policy says. Source: the API reference of AssumeRole.
var errRoot = fault.New(fault.AccessDenied, "Roles may not be assumed by root accounts.")

// denied is the error for a role that the caller may not assume.
func denied(c *caller.Caller, role string) error {
	return fault.Newf(fault.AccessDenied, "User: %s is not authorized to perform: sts:AssumeRole on resource: %s", c.ARN, role)
}

// lasting is the duration of a role's session.
func lasting(asked *int, role *iam.Entity, chained bool) (time.Duration, error) {
	lasts := duration(asked, defaultDuration)
	switch {
	case lasts > time.Duration(role.Role.MaxSession)*time.Second:
		return 0, check.Invalid("The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
	case chained && lasts > chainedDuration*time.Second:
		return 0, check.Invalid("The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining.")
	}
	return lasts, nil
}

// isARN reports whether a text has the form of an ARN.
func isARN(text string) bool {
	parts := strings.SplitN(text, ":", 6)
	return len(parts) == 6 && parts[0] == "arn" && parts[1] != "" && parts[2] != "" && parts[5] != ""
}

// assumeRole answers AssumeRole. Where policies are evaluated, the role's trust policy has
// allowed the call before; an unknown role cannot be assumed.
func (s *Service) assumeRole(_ context.Context, call *api.Call, in *AssumeRoleInput) (*AssumeRoleOutput, error) {
	if !isARN(*in.RoleArn) {
		return nil, check.Invalid("%s is invalid", *in.RoleArn)
	}
	if err := noMFA(in.SerialNumber, in.TokenCode); err != nil {
		return nil, err
	}
	c := call.Caller
	if call.Authorized && c.Kind == caller.Root { // where nobody is verified most callers are the root
		return nil, errRoot
	}
	role := s.engine.RoleOf(*in.RoleArn)
	if role == nil {
		return nil, denied(c, *in.RoleArn)
	}
	lasts, err := lasting(in.DurationSeconds, role, c.Kind == caller.Session)
	if err != nil {
		return nil, err
	}
	session := &identity.Session{
		Kind: caller.Session, Account: role.Account, Of: role.ID, Name: *in.RoleSessionName, Source: api.Deref(in.SourceIdentity),
	}
	if before := s.engine.SessionOf(call.AccessKey, call.SessionToken); before != nil {
		if session.Source != "" && before.Source != "" && session.Source != before.Source {
			return nil, denied(c, *in.RoleArn) // a session's source identity cannot change
		}
		inherit(session, before)
	}
	credentials, packed, err := s.begin(call, session, lasts, passed{in.Policy, in.PolicyArns, in.Tags, in.TransitiveTagKeys})
	if err != nil {
		return nil, err
	}
	return &AssumeRoleOutput{credentials, assumed(role, session), packed, session.Source}, nil
}

// begin limits a session of a role, and makes its credentials. This counts as a use of the
// role.
func (s *Service) begin(call *api.Call, session *identity.Session, lasts time.Duration, p passed) (*Credentials, *int, error) {
	packed, err := s.limit(session, p)
	if err != nil {
		return nil, nil, err
	}
	credentials, err := s.issue(session, lasts)
	if err != nil {
		return nil, nil, err
	}
	s.engine.Used(session.Of, "", call.Region)
	return credentials, packed, nil
}

// inherit sets what a chained session keeps of the session before.
func inherit(session, before *identity.Session) {
	for _, name := range before.Transitive {
		key, ok := keyOf(before.Tags, name) // older tokens have the spelling of TransitiveTagKeys
		if !ok {
			continue
		}
		if session.Tags == nil {
			session.Tags = map[string]string{}
		}
		session.Tags[key] = before.Tags[key]
	}
	session.Transitive = slices.Clone(before.Transitive)
	if session.Source == "" {
		session.Source = before.Source
	}
}

func assumed(role *iam.Entity, session *identity.Session) *AssumedRole {
	return &AssumedRole{role.ID + ":" + session.Name, identity.RoleSessionARN(role.Account, role.Name, session.Name)}
}

package sts

import (
	"context"
	"slices"
	"strconv"
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
	minDuration     = 900 // seconds
	maxDuration     = 43_200
	defaultDuration = 3_600
	chainedDuration = 3_600 // at most, of a role that a role's session assumes

	maxPolicies = 10
	maxTags     = 50
	maxPolicy   = 2_048 // characters
	// maxPacked is what a session's policies and tags may take together, in bytes.
	maxPacked = 8_192
)

// checkText refuses a text that is too short, too long, or has others than word
// characters, +=,.@- and those of also.
func checkText(member, value string, least, most int, also string) error {
	switch n := len([]rune(value)); {
	case n < least:
		return check.Constraint(value, member, "Member must have length greater than or equal to "+strconv.Itoa(least))
	case n > most:
		return check.Constraint(value, member, "Member must have length less than or equal to "+strconv.Itoa(most))
	}
	if strings.ContainsFunc(value, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("_+=,.@-"+also, c)
	}) {
		return check.Constraint(value, member, `Member must satisfy regular expression pattern: [\w+=,.@`+also+`-]*`)
	}
	return nil
}

// limit puts into a session what caps it and its tags, and tells how much of the room for
// those they take, in percent; nil if there are none.
func (s *Service) limit(session *identity.Session, policy *string, managed []PolicyARN, tags []Tag, transitive []string) (packed *int, err error) {
	if policy != nil {
		if n := len([]rune(*policy)); n < 1 || n > maxPolicy {
			return nil, check.Constraint(*policy, "policy", "Member must have length between 1 and "+strconv.Itoa(maxPolicy))
		}
		if err := iam.CheckDocument(iam.Identity, *policy); err != nil {
			return nil, err
		}
		if err := identity.CheckPolicy(iam.Identity, *policy); err != nil {
			return nil, err
		}
		session.Policies = append(session.Policies, *policy)
	}
	if err := s.limitManaged(session, managed); err != nil {
		return nil, err
	}
	if err := setTags(session, tags, transitive); err != nil {
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
		return check.Constraint("", "policyArns", "Member must have length less than or equal to "+strconv.Itoa(maxPolicies))
	}
	return s.engine.Read(session.Account, func(a *iam.Account) error {
		for _, p := range managed {
			if _, err := a.Managed(api.Deref(p.ARN)); err != nil {
				return iam.ErrDocument.With("Invalid policy ARN: " + api.Deref(p.ARN))
			}
			session.Managed = append(session.Managed, *p.ARN)
		}
		return nil
	})
}

func setTags(session *identity.Session, tags []Tag, transitive []string) error {
	if len(tags) > maxTags {
		return check.Constraint("", "tags", "Member must have length less than or equal to "+strconv.Itoa(maxTags))
	}
	given := map[string]bool{}
	for i, t := range tags {
		name, value := api.Deref(t.Key), api.Deref(t.Value)
		at := "tags." + strconv.Itoa(i+1) + ".member."
		switch {
		case name == "" || len([]rune(name)) > 128:
			return check.Constraint(name, at+"key", "Member must have length between 1 and 128")
		case len([]rune(value)) > 256:
			return check.Constraint(value, at+"value", "Member must have length less than or equal to 256")
		case given[strings.ToLower(name)]:
			return check.Invalid("Duplicate tag keys found. Please note that Tag keys are case insensitive.")
		}
		given[strings.ToLower(name)] = true
		for inherited := range session.Tags {
			if strings.EqualFold(inherited, name) {
				return fault.New(fault.AccessDenied, "One of the specified transitive tag keys can't be set because it conflicts with a transitive tag key from the calling session.")
			}
		}
		if session.Tags == nil {
			session.Tags = map[string]string{}
		}
		session.Tags[name] = value
	}
	for _, name := range transitive {
		if !given[strings.ToLower(name)] {
			return check.Invalid("The specified transitive tag key must be included in the requested tags.")
		}
		session.Transitive = append(session.Transitive, name)
	}
	return nil
}

// denied refuses to let anybody assume a role.
func denied(c *caller.Caller, role string) error {
	return fault.Newf(fault.AccessDenied, "User: %s is not authorized to perform: sts:AssumeRole on resource: %s", c.ARN, role)
}

// lasting is how long a session of a role is to last.
func lasting(asked *int, role *iam.Entity, chained bool) (time.Duration, error) {
	lasts, err := duration(asked, defaultDuration, minDuration, maxDuration)
	switch {
	case err != nil:
		return 0, err
	case lasts > time.Duration(role.Role.MaxSession)*time.Second:
		return 0, check.Invalid("The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
	case chained && lasts > chainedDuration*time.Second:
		return 0, check.Invalid("The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining.")
	}
	return lasts, nil
}

// assumeRole answers AssumeRole. Who may is decided by the role's trust policy, before
// this is called and where anything is decided at all; a role that is not there is
// nobody's to assume.
func (s *Service) assumeRole(_ context.Context, call *api.Call, in *AssumeRoleInput) (*AssumeRoleOutput, error) {
	if err := checkText("roleSessionName", *in.RoleSessionName, 2, 64, ""); err != nil {
		return nil, err
	}
	if in.ExternalId != nil {
		if err := checkText("externalId", *in.ExternalId, 2, 1224, ":/"); err != nil {
			return nil, err
		}
	}
	if in.SourceIdentity != nil {
		if err := checkText("sourceIdentity", *in.SourceIdentity, 2, 64, ""); err != nil {
			return nil, err
		}
	}
	if !strings.HasPrefix(*in.RoleArn, "arn:") {
		return nil, check.Invalid("%s is invalid", *in.RoleArn)
	}
	if err := noMFA(in.SerialNumber, in.TokenCode); err != nil {
		return nil, err
	}
	c := call.Caller
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
			return nil, denied(c, *in.RoleArn) // it stays what it was when it was set
		}
		inherit(session, before)
	}
	credentials, packed, err := s.begin(call, session, lasts, in.Policy, in.PolicyArns, in.Tags, in.TransitiveTagKeys)
	if err != nil {
		return nil, err
	}
	return &AssumeRoleOutput{credentials, assumed(role, session), packed, session.Source}, nil
}

// begin caps a session of a role and makes its credentials, which is a use of the role.
func (s *Service) begin(
	call *api.Call, session *identity.Session, lasts time.Duration, policy *string, managed []PolicyARN, tags []Tag, transitive []string,
) (*Credentials, *int, error) {
	packed, err := s.limit(session, policy, managed, tags, transitive)
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

// inherit takes over what a further session of another role keeps.
func inherit(session, before *identity.Session) {
	for _, name := range before.Transitive {
		if session.Tags == nil {
			session.Tags = map[string]string{}
		}
		session.Tags[name] = before.Tags[name]
	}
	session.Transitive = slices.Clone(before.Transitive)
	if session.Source == "" {
		session.Source = before.Source
	}
}

func assumed(role *iam.Entity, session *identity.Session) *AssumedRole {
	return &AssumedRole{role.ID + ":" + session.Name, identity.RoleSessionARN(role.Account, role.Name, session.Name)}
}

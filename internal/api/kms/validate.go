package kms

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/policy"
)

// Limits.
const (
	maxShown   = 300 // of a value in an error message
	listed     = 100 // the default page size
	maxListed  = 1000
	listedTags = 50
)

func invalid(format string, args ...any) error {
	return fault.Newf(fault.ValidationFailed, format, args...)
}

func shorten(text string) string {
	return fault.Excerpt(text, maxShown, "…")
}

// constraint is the error of AWS's validation for a member.
func constraint(member, value, rule string) error {
	return invalid("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: %s", shorten(value), member, rule)
}

func is(flag *bool) bool { return flag != nil && *flag }

func isAlias(name string) bool {
	return strings.HasPrefix(name, kms.AliasPrefix) || strings.HasPrefix(name, "arn:") && strings.Contains(name, ":"+kms.AliasPrefix)
}

var keyID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// checkKeyID refuses an invalid key id, alias or ARN.
func checkKeyID(call *api.Call, name string) error {
	switch {
	case strings.HasPrefix(name, "arn:"):
		if strings.Count(name, ":") < 5 || !strings.Contains(name, ":kms:") {
			return fault.Newf(fault.InvalidARN, "%s is not a valid ARN of a key", shorten(name))
		}
		if region := strings.Split(name, ":")[3]; region != call.Region {
			return fault.Newf(fault.KMSNotFound, "Invalid arn %s", shorten(region))
		}
	case !strings.HasPrefix(name, kms.AliasPrefix) && !keyID.MatchString(name):
		return fault.Newf(fault.KMSNotFound, "Invalid keyId '%s'", shorten(name))
	}
	return nil
}

// limit validates a page size; the model has the bounds of most lists.
func limit(value *int, usual, maximum int) (int, error) {
	switch {
	case value == nil:
		return usual, nil
	case *value > maximum:
		return 0, constraint("limit", strconv.Itoa(*value), "Member must have value less than or equal to "+strconv.Itoa(maximum))
	}
	return *value, nil
}

// from is the position where a page begins.
func from(list string, marker *string) (string, error) {
	after, ok := api.ReadToken(list, marker)
	if !ok {
		return "", fault.New(fault.InvalidMarker, "The marker is not one of this list.")
	}
	return after, nil
}

// next is the marker of the next page; empty: there is none.
func next(list, last string, more bool) string {
	if !more {
		return ""
	}
	return api.NextToken(list, last)
}

func readTags(all []Tag) (map[string]string, error) {
	tags := make(map[string]string, len(all))
	for _, tag := range all {
		key, value := api.Deref(tag.TagKey), api.Deref(tag.TagValue)
		if strings.HasPrefix(strings.ToLower(key), "aws:") {
			return nil, fault.New(fault.InvalidTag, "Tags beginning with aws: are reserved")
		}
		if _, twice := tags[key]; twice {
			return nil, fault.New(fault.InvalidTag, "Duplicate tag keys")
		}
		tags[key] = value
	}
	return tags, nil
}

// readPolicy validates a key policy, and replaces its principals by their unique ids. Unless
// bypass is set, it refuses a policy that would not let the caller, or, if policies are not
// evaluated, anybody change it again. key is the key's ARN.
func (s *Service) readPolicy(call *api.Call, doc string, bypass bool, key string) (bound string, err error) {
	if len(doc) > kms.MaxPolicy {
		return "", fault.Newf(fault.LimitExceeded, "The policy is longer than %d bytes.", kms.MaxPolicy)
	}
	p, err := policy.ParseLoose(doc)
	if err != nil {
		return "", fault.New(fault.MalformedPolicyDocument, "The policy cannot be read: "+strings.TrimPrefix(err.Error(), "malformed policy: ")+".")
	}
	bound, unknown := s.principals.BindPolicy(doc)
	if unknown != "" {
		return "", fault.New(fault.MalformedPolicyDocument, "Policy contains a statement with one or more invalid principals.")
	}
	if bypass {
		return bound, nil
	}
	if call.Authorized {
		return bound, s.locksOut(call, bound, key)
	}
	for _, st := range p.Statements() {
		named := slices.ContainsFunc(st.Actions, func(a string) bool { return policy.MatchAction(a, "kms:PutKeyPolicy") })
		if !st.Deny && named != st.NotAction {
			return bound, nil
		}
	}
	return "", errLockout
}

var errLockout = fault.New(fault.MalformedPolicyDocument, "The new key policy will not allow you to update the key policy in the future.")

// locksOut refuses a key policy that lets neither the caller change it again nor its account,
// which would let the caller's own policies decide. key is the key's ARN.
func (s *Service) locksOut(call *api.Call, bound, key string) error {
	p, err := policy.ParseLoose(bound)
	if err != nil {
		return err
	}
	who := who(call)
	known := authorize.Context{
		Caller: who, Account: call.Account, Region: call.Region, Now: call.Time.UnixMilli(), Address: call.RemoteAddr, Transport: call.Transport(),
		Need: &authorize.Need{Keys: []authorize.Key{condition("kms:calleraccount", who.Account), condition("kms:bypasspolicylockoutsafetycheck", "false")}},
	}
	if p.Evaluate(&policy.Request{Caller: who, Owner: call.Account, Action: "kms:PutKeyPolicy", Resource: key, Context: &known}) != policy.Allow {
		return errLockout
	}
	return nil
}

// checkContext refuses an encryption context that is too large.
func checkContext(context map[string]string) error {
	const most = 8192
	size := 0
	for key, value := range context {
		size += len(key) + len(value)
		if key == "" {
			return invalid("An encryption context has a key without a name.")
		}
	}
	if size > most {
		return invalid("The encryption context is longer than %d bytes.", most)
	}
	return nil
}

// dryRun is the error of a successful dry run.
func dryRun(wanted *bool) error {
	if is(wanted) {
		return fault.New(fault.DryRun, "")
	}
	return nil
}

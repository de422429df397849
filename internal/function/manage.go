package function

import (
	"maps"
	"strconv"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
)

// MaxTags bounds the tags of a function. Source: the Lambda developer guide, "Using tags on
// Lambda functions".
const MaxTags = 50

// Tag adds tags to a function; one with the key of another replaces it. If that changes them,
// $LATEST has the revision. It fails with ResourceNotFound, or with InvalidParameter for more
// than MaxTags in all.
func (s *State) Tag(name arn.ARN, tags map[string]string, revision string, b *mutation.Batch) error {
	return s.retag(name, revision, b, func(all map[string]string) { maps.Copy(all, tags) })
}

// Untag removes tags by key, as Tag adds them; unknown keys are ignored. Errors:
// ResourceNotFound.
func (s *State) Untag(name arn.ARN, keys []string, revision string, b *mutation.Batch) error {
	return s.retag(name, revision, b, func(all map[string]string) {
		for _, key := range keys {
			delete(all, key)
		}
	})
}

func (s *State) retag(name arn.ARN, revision string, b *mutation.Batch, change func(all map[string]string)) error {
	f, err := s.function(name)
	if err != nil {
		return err
	}
	tags := make(map[string]string, len(f.Tags))
	maps.Copy(tags, f.Tags)
	change(tags)
	if len(tags) > MaxTags {
		return ErrTooManyTags
	}
	if maps.Equal(tags, f.Tags) {
		return nil
	}
	f.Tags, f.latest.Revision = tags, revision
	s.put(b, f)
	return nil
}

// Reserve sets a function's reserved concurrency; nil: none. The caller checks what the
// account has left. Errors: ResourceNotFound.
func (s *State) Reserve(name arn.ARN, executions *int, b *mutation.Batch) error {
	f, err := s.function(name)
	switch {
	case err != nil && executions != nil:
		return ErrNotFound.With(name.Qualify(Latest))
	case err != nil:
		return err
	}
	s.change(f, func() { f.Reserved = executions })
	s.put(b, f)
	return nil
}

// Listed is an entry in a list of functions: a function, and a version of it.
type Listed struct {
	Function *Function
	Version  *Version
}

// Functions is a page of an account's functions in a region, ordered by name: up to limit
// after the name after. more says that there are further ones.
func (s *State) Functions(account, region, after string, limit int) (page []Listed, more bool) {
	start := arn.Function(region, account, after)
	for _, f := range s.order.From(func(f *Function) bool { return arn.Compare(f.ARN, start) <= 0 }) {
		if f.ARN.Account != account || f.ARN.Region != region {
			break
		}
		if len(page) == limit {
			return page, true
		}
		page = append(page, Listed{f, f.Latest()})
	}
	return page, false
}

// AllVersions is like Functions, with all versions of each function, $LATEST first: up to
// limit after the version number of the function after.
func (s *State) AllVersions(account, region, after string, number uint64, limit int) (page []Listed, more bool) {
	start := arn.Function(region, account, after)
	for _, f := range s.order.From(func(f *Function) bool { return arn.Compare(f.ARN, start) < 0 }) {
		if f.ARN.Account != account || f.ARN.Region != region {
			break
		}
		versions := f.versions.Items
		switch {
		case f.ARN == start:
			versions = f.versions.From(func(v *Version) bool { return v.Number <= number })
		case len(page) == limit:
			return page, true
		default:
			page = append(page, Listed{f, f.Latest()})
		}
		for _, v := range versions {
			if len(page) == limit {
				return page, true
			}
			page = append(page, Listed{f, v})
		}
	}
	return page, false
}

// Versions is a page of a function's versions, $LATEST first, then by number: those behind the
// version after; empty: from the first one. Errors: ResourceNotFound.
func (s *State) Versions(name arn.ARN, after string, limit int) (page []Listed, more bool, err error) {
	f, err := s.function(name)
	if err != nil {
		return nil, false, err
	}
	if after == "" {
		page = append(page, Listed{f, f.Latest()})
	}
	number, _ := strconv.ParseUint(after, 10, 64) // 0 of $LATEST, which stands before all numbers
	for _, v := range f.versions.From(func(v *Version) bool { return v.Number <= number }) {
		if len(page) == limit {
			return page, true, nil
		}
		page = append(page, Listed{f, v})
	}
	return page, false, nil
}

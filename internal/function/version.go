package function

import (
	"maps"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
)

// Update is the command that changes $LATEST.
type Update struct {
	ARN arn.ARN
	// RevisionID must be that of the latest version; empty: any.
	RevisionID string
	// Change edits a copy of the configuration, or returns an error. May be nil.
	Change func(c *Config) error
	Code   *Code // nil: unchanged
	// Unzipped is the unpacked size of the code that it has, where that is not known: earlier versions of
	// this program have not noted it.
	Unzipped int64
	Publish  bool // also as a version
	// Revision is the revision of the update, ReadyRevision the one after completion.
	Revision, ReadyRevision string
	ReadyAt                 time.Time
}

// CheckUpdate reports whether an update would fail. Errors: ResourceNotFound;
// ResourceConflict while the function is being created or updated; PreconditionFailed.
func (s *State) CheckUpdate(name arn.ARN, revision string) (*Function, error) {
	f, err := s.function(name)
	switch {
	case err != nil:
		return nil, err
	case f.latest.Pending:
		return nil, ErrPending
	case f.next != nil:
		return nil, ErrUpdating.With(name)
	}
	return f, checkRevision(revision, f.latest.Revision)
}

// Update begins to change $LATEST, and returns it with the version for the answer. Until
// completion the previous one is invoked. Errors: as CheckUpdate, and those of Change.
func (s *State) Update(now time.Time, cmd Update, b *mutation.Batch) (*Function, *Version, error) {
	f, err := s.CheckUpdate(cmd.ARN, cmd.RevisionID)
	if err != nil {
		return nil, nil, err
	}
	next := *f.latest
	if cmd.Change != nil {
		config := *f.latest.Config
		config.Environment = maps.Clone(config.Environment)
		if err := cmd.Change(&config); err != nil {
			return nil, nil, err
		}
		next.Config = &config
	}
	if cmd.Code != nil {
		next.Code = *cmd.Code
	}
	if next.Code.Unzipped == 0 {
		next.Code.Unzipped = cmd.Unzipped
	}
	if err := CheckUnzipped(next.Config, next.Code); err != nil {
		return nil, nil, err
	}
	next.Revision, next.readyRevision, next.Modified, next.build = cmd.Revision, cmd.ReadyRevision, now, s.newBuild()
	v := &next
	s.change(f, func() {
		f.next, f.changed = &next, true
		s.use(f, &next, +1)
		if cmd.Publish {
			v = s.publish(now, f, &next, cmd.Revision)
			v.Pending = true
			s.putVersion(b, f, v)
		}
		f.readyBy(cmd.ReadyAt)
	})
	s.put(b, f)
	return f, v, nil
}

// readyBy sets the completion time, not earlier than a time.
func (f *Function) readyBy(at time.Time) {
	if at.After(f.readyAt) {
		f.readyAt = at
	}
}

// Publish is the command that publishes $LATEST as a version.
type Publish struct {
	ARN         arn.ARN
	RevisionID  string // must be that of the latest version; empty: any
	CodeSHA256  string // in base64, must be that of the latest version; empty: any
	Description *string
	Revision    string // of the new version, for good
	Latest      string // of the latest version from then on
	// Token names the request: whenever it is carried out again, it finds the version that it made
	// at first, whatever has become of the latest one since. Empty: the request has none.
	Token string
}

// Publish publishes $LATEST as a version, or returns the last published one if there was no
// update since. Errors: as CheckUpdate, and InvalidParameter for other code.
func (s *State) Publish(now time.Time, cmd Publish, b *mutation.Batch) (*Function, *Version, error) {
	if f, v := s.Published(cmd.ARN, cmd.Token); v != nil {
		return f, v, nil
	}
	f, err := s.CheckUpdate(cmd.ARN, cmd.RevisionID)
	if err != nil {
		return nil, nil, err
	}
	if have := f.latest.Code.Base64(); cmd.CodeSHA256 != "" && cmd.CodeSHA256 != have {
		return nil, nil, ErrCodeDiffers.With(cmd.CodeSHA256, have)
	}
	description := f.latest.Config.Description
	if cmd.Description != nil {
		description = *cmd.Description
	}
	if v := f.published(); v != nil {
		return f, v, nil
	}
	var v *Version
	s.change(f, func() {
		v = s.publish(now, f, f.latest, cmd.Revision)
		v.Token = cmd.Token
		if description != v.Config.Description {
			config := *v.Config
			config.Description = description
			v.Config = &config
		}
		f.latest.Revision = cmd.Latest
	})
	s.putVersion(b, f, v)
	s.put(b, f)
	return f, v, nil
}

// Published is the version that was made under a token, nil if none was.
func (s *State) Published(name arn.ARN, token string) (*Function, *Version) {
	f, err := s.function(name)
	if err != nil || token == "" {
		return nil, nil
	}
	for _, v := range slices.Backward(f.versions.Items) {
		if v.Token == token {
			return f, v
		}
	}
	return nil, nil
}

// published is the version that the latest one was published as, nil if it was
// updated since. Records of earlier versions of this program do not report
// updates: what differs shows them.
func (f *Function) published() *Version {
	n := len(f.versions.Items)
	if n == 0 || f.changed {
		return nil
	}
	last := f.versions.Items[n-1]
	if last.Number != f.last || !last.Code.same(f.latest.Code) || !last.Config.equal(f.latest.Config) {
		return nil
	}
	return last
}

// publish makes a version from from.
func (s *State) publish(now time.Time, f *Function, from *Version, revision string) *Version {
	f.last++
	f.changed = false
	v := &Version{Number: f.last, Config: from.Config, Code: from.Code, Revision: revision, Modified: now, build: s.newBuild()}
	f.versions.Add(v)
	s.use(f, v, +1)
	return v
}

// DeleteVersion deletes a numbered version, if it exists, and returns the unused uploads.
// Errors: ResourceNotFound for an unknown function; InvalidParameter for $LATEST and for an
// alias; ResourceConflict for the version of an alias.
func (s *State) DeleteVersion(name arn.ARN, qualifier string, b *mutation.Batch) (gone []uint64, err error) {
	if qualifier == Latest { // whether or not the function exists
		return nil, ErrLatestIsPermanent
	}
	f, err := s.function(name)
	if err != nil {
		return nil, err
	}
	if _, ok := f.Alias(qualifier); ok {
		return nil, ErrNotAVersion
	}
	v, ok := f.Version(qualifier)
	if !ok {
		return nil, nil
	}
	if names := f.aliasesOf(qualifier); len(names) > 0 {
		return nil, ErrVersionHasAliases.With(strings.Join(names, ", "))
	}
	s.change(f, func() {
		f.versions.Remove(v)
		s.use(f, v, -1)
	})
	b.Delete(s.versionKey(f, v.Number))
	if _, ok := f.policies[qualifier]; f.forgetEventInvoke(qualifier) || ok {
		delete(f.policies, qualifier)
		s.put(b, f)
	}
	return f.unusedUploads(v.Code), nil
}

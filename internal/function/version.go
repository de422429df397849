package function

import (
	"maps"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
)

// Update is the command that changes a function's latest version.
type Update struct {
	ARN arn.ARN
	// RevisionID must be that of the latest version; empty: any.
	RevisionID string
	// Change edits the configuration, a copy, and says why it cannot. May be nil.
	Change  func(c *Config) error
	Code    *Code // nil: stays
	Publish bool  // also as a version
	// Revision is the one of the update, Settled the one once it is over.
	Revision, Settled string
	SettleAt          time.Time
}

// CheckUpdate says whether an update would be refused. It fails with
// ResourceNotFound; with ResourceConflict while the function is being created or
// another update is under way; with PreconditionFailed.
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

// Update begins to change a function's latest version, and returns it with the
// version that the caller asked for. What served goes on until the update
// settles. Errors: as CheckUpdate, and those of Change.
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
	next.Revision, next.settled, next.Modified = cmd.Revision, cmd.Settled, now
	v := &next
	s.change(f, func() {
		f.next = &next
		f.use(next.Code, +1)
		if cmd.Publish {
			var fresh bool
			if v, fresh = f.publishChanged(now, &next, next.Config.Description, cmd.Revision, cmd.Settled); fresh {
				s.putVersion(b, f, v)
			}
		}
		f.settleBy(cmd.SettleAt)
	})
	s.put(b, f)
	return f, v, nil
}

// settleBy makes the function settle not before a moment.
func (f *Function) settleBy(at time.Time) {
	if at.After(f.settleAt) {
		f.settleAt = at
	}
}

// Publish is the command that makes a version of the latest one.
type Publish struct {
	ARN               arn.ARN
	RevisionID        string // must be that of the latest version; empty: any
	CodeSHA256        string // in base64, must be that of the latest version; empty: any
	Description       *string
	Revision, Settled string
	SettleAt          time.Time
}

// Publish makes a version of the latest one, or finds the one that was made last
// if nothing has changed since. Errors: as CheckUpdate, and InvalidParameter for
// other code.
func (s *State) Publish(now time.Time, cmd Publish, b *mutation.Batch) (*Function, *Version, error) {
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
	var v *Version
	fresh := false
	s.change(f, func() {
		if v, fresh = f.publishChanged(now, f.latest, description, cmd.Revision, cmd.Settled); fresh {
			f.settleBy(cmd.SettleAt)
		}
	})
	if fresh {
		s.putVersion(b, f, v)
		s.put(b, f)
	}
	return f, v, nil
}

// publishChanged makes a version of from, unless the last one is equal.
func (f *Function) publishChanged(now time.Time, from *Version, description, revision, settled string) (v *Version, fresh bool) {
	if n := len(f.versions.Items); n > 0 {
		last := f.versions.Items[n-1]
		if last.Number == f.last && last.Code.same(from.Code) && last.Config.equal(from.Config) {
			return last, false
		}
	}
	v = f.publish(now, from, revision, settled)
	if description != v.Config.Description {
		config := *v.Config
		config.Description = description
		v.Config = &config
	}
	return v, true
}

func (f *Function) publish(now time.Time, from *Version, revision, settled string) *Version {
	f.last++
	v := &Version{
		Number: f.last, Config: from.Config, Code: from.Code, Revision: revision, settled: settled, Modified: now, Pending: true,
	}
	f.versions.Add(v)
	f.use(v.Code, +1)
	return v
}

// DeleteVersion removes a numbered version, if it is there, and returns the
// uploads that nothing uses any more. Errors: ResourceNotFound for no function;
// InvalidParameter for the latest version and for an alias; ResourceConflict for
// a version that an alias leads to.
func (s *State) DeleteVersion(name arn.ARN, qualifier string, b *mutation.Batch) (gone []uint64, err error) {
	f, err := s.function(name)
	if err != nil {
		return nil, err
	}
	if qualifier == Latest {
		return nil, ErrLatestIsPermanent
	}
	if _, ok := f.Alias(qualifier); ok {
		return nil, ErrNotAVersion
	}
	v, ok := f.Version(qualifier)
	if !ok {
		return nil, nil
	}
	if names := f.aliasesOf(qualifier); len(names) > 0 {
		return nil, ErrVersionHasAliases.With(names)
	}
	s.change(f, func() {
		f.versions.Remove(v)
		f.use(v.Code, -1)
	})
	b.Delete(s.versionKey(f, v.Number))
	if _, ok := f.policies[qualifier]; f.forgetEventInvoke(qualifier) || ok {
		delete(f.policies, qualifier)
		s.put(b, f)
	}
	return f.unusedUploads(v.Code), nil
}

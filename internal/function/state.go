package function

import (
	"cmp"
	"iter"
	"strconv"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/sorted"
)

// State has all functions of one shard.
type State struct {
	shard     uint16
	sealer    Sealer // of environments; nil: no encryption
	functions map[arn.ARN]*Function
	order     sorted.List[*Function] // by account, region, name
	changing  sorted.List[*Function] // changes in progress, next completion first
	usage     map[place]Usage
	urls      map[string]urlOwner // by the ids of URLs
	builds    uint64              // counter for build ids
	layerUse  func(layer arn.ARN, n int)
}

// place is the scope of usage counts: account and region.
type place struct{ account, region string }

// Usage is the usage of an account's functions in a region.
type Usage struct {
	Functions int
	CodeBytes int64
	Reserved  int // concurrent executions
}

// Add adds other.
func (u *Usage) Add(other Usage) {
	u.Functions += other.Functions
	u.CodeBytes += other.CodeBytes
	u.Reserved += other.Reserved
}

// New makes the empty state of a shard.
func New(shard uint16) *State {
	return &State{
		shard:     shard,
		functions: map[arn.ARN]*Function{},
		order:     sorted.List[*Function]{Compare: func(a, b *Function) int { return arn.Compare(a.ARN, b.ARN) }},
		changing: sorted.List[*Function]{Compare: func(a, b *Function) int {
			return cmp.Or(a.readyAt.Compare(b.readyAt), arn.Compare(a.ARN, b.ARN))
		}},
		usage: map[place]Usage{},
		urls:  map[string]urlOwner{},
	}
}

// CountLayers sets a function that is called with each version of a layer that n more versions of functions
// have, or, if n is negative, fewer. Where one version takes another's place, the new one is counted first.
func (s *State) CountLayers(use func(layer arn.ARN, n int)) { s.layerUse = use }

// Usage is the usage of an account in a region, by functions of this shard.
func (s *State) Usage(account, region string) Usage { return s.usage[place{account, region}] }

// Function finds a function by its ARN without a qualifier.
func (s *State) Function(name arn.ARN) (*Function, bool) {
	f, ok := s.functions[name]
	return f, ok
}

// FailureTargets are the dead-letter targets of all versions, and the destinations on
// failure. One may be yielded several times.
func (s *State) FailureTargets() iter.Seq[arn.ARN] {
	return func(yield func(arn.ARN) bool) {
		for _, f := range s.order.Items {
			if to := f.Latest().Config.DeadLetter; !to.IsZero() && !yield(to) {
				return
			}
			for _, v := range f.versions.Items {
				if !v.Config.DeadLetter.IsZero() && !yield(v.Config.DeadLetter) {
					return
				}
			}
			for _, c := range f.eventInvokes {
				if !c.OnFailure.IsZero() && !yield(c.OnFailure) {
					return
				}
			}
		}
	}
}

// function finds a function. Errors: ResourceNotFound.
func (s *State) function(name arn.ARN) (*Function, error) {
	if f, ok := s.functions[name]; ok {
		return f, nil
	}
	return nil, ErrNotFound.With(name)
}

// All returns all functions, ordered by name.
func (s *State) All() []*Function { return s.order.Items }

// Find finds the function and the version of a qualifier, and its alias, if it is one; an
// empty qualifier means $LATEST. Errors: ResourceNotFound.
func (s *State) Find(name arn.ARN, qualifier string) (*Function, *Version, *Alias, error) {
	f, ok := s.functions[name]
	if !ok {
		return nil, nil, nil, ErrNotFound.With(name.Qualify(qualifier))
	}
	if qualifier == "" {
		return f, f.Latest(), nil, nil
	}
	if v, ok := f.Version(qualifier); ok {
		return f, v, nil, nil
	}
	if a, ok := f.Alias(qualifier); ok {
		if v, ok := f.Version(a.Version); ok {
			return f, v, a, nil
		}
	}
	return nil, nil, nil, ErrNotFound.With(name.Qualify(qualifier))
}

// Resolve finds the target of an invocation. draw, in [0, 1), picks one of an alias's two
// versions. Errors: ResourceNotFound; ResourceConflict while the version is being created.
func (s *State) Resolve(name arn.ARN, qualifier string, draw float64) (Target, error) {
	f, ok := s.functions[name]
	if !ok {
		return Target{}, ErrNotFound.With(name.Qualify(qualifierOr(qualifier)))
	}
	version := qualifierOr(qualifier)
	if a, ok := f.Alias(qualifier); ok {
		version = a.pick(draw)
	}
	v, ok := f.Version(version)
	if !ok {
		return Target{}, ErrNotFound.With(name.Qualify(qualifierOr(qualifier)))
	}
	if v.Number == 0 {
		v = f.latest // without the update in progress
	}
	if v.Pending {
		return Target{}, ErrPending
	}
	t := f.target(v)
	t.Qualifier = qualifier
	return t, nil
}

// newBuild returns a new build id.
func (s *State) newBuild() string {
	s.builds++
	return strconv.FormatUint(s.builds, 10)
}

func (f *Function) target(v *Version) Target {
	c := v.Config
	return Target{
		Function: f.ARN, Name: f.Name(), Version: v.Name(), Incarnation: f.Incarnation, Build: v.build,
		Role: c.Role, Runtime: c.Runtime, Handler: c.Handler, MemoryMB: c.MemoryMB, EphemeralMB: c.EphemeralMB,
		Timeout: time.Duration(c.TimeoutS) * time.Second, Environment: c.Environment, Cipher: c.Cipher,
		Code: v.Code, Layers: c.Layers, Reserved: f.Reserved, DeadLetter: c.DeadLetter, Logging: c.Logging,
	}
}

// Create is the command that creates a function.
type Create struct {
	ARN         arn.ARN
	Incarnation uint64
	Config      Config
	Code        Code
	Tags        map[string]string
	Publish     bool // also as a version
	// Last is the highest number of the versions of a deleted function of this name: DecodeDeleted.
	Last uint64
	// Revision is the first revision, ReadyRevision the one after completion.
	Revision, ReadyRevision string
	ReadyAt                 time.Time
}

// CheckCreate reports whether Create would fail. Errors: ResourceConflict for an existing
// name.
func (s *State) CheckCreate(name arn.ARN) error {
	if _, ok := s.functions[name]; ok {
		return ErrExists.With(name.FunctionName())
	}
	return nil
}

// Create creates a function, which is pending until completion, and returns it with the
// version for the answer. Errors: as CheckCreate.
func (s *State) Create(now time.Time, cmd Create, b *mutation.Batch) (*Function, *Version, error) {
	if err := s.CheckCreate(cmd.ARN); err != nil {
		return nil, nil, err
	}
	if err := CheckUnzipped(&cmd.Config, cmd.Code); err != nil {
		return nil, nil, err
	}
	f := newFunction(cmd.ARN)
	f.Incarnation, f.Tags, f.last = cmd.Incarnation, cmd.Tags, cmd.Last
	config := cmd.Config
	f.latest = &Version{
		Config: &config, Code: cmd.Code, Revision: cmd.Revision, Modified: now, Pending: true, readyRevision: cmd.ReadyRevision, build: s.newBuild(),
	}
	s.use(f, f.latest, +1)
	v := f.latest
	if cmd.Publish {
		v = s.publish(now, f, f.latest, cmd.Revision)
		v.Pending = true
		s.putVersion(b, f, v)
	}
	f.readyAt = cmd.ReadyAt
	s.add(f)
	s.put(b, f)
	if cmd.Last > 0 {
		b.Delete(s.DeletedKey(cmd.ARN))
	}
	return f, v, nil
}

// CompleteChanges completes due changes, of up to limit functions, fewer if their records are
// large, and returns the unused uploads.
func (s *State) CompleteChanges(now time.Time, limit int, b *mutation.Batch) (gone []uint64) {
	for n := 0; n < limit && b.Size() < mutation.StepBytes; n++ {
		if len(s.changing.Items) == 0 || s.changing.Items[0].readyAt.After(now) {
			break
		}
		f := s.changing.Items[0]
		gone = append(gone, s.complete(f, b)...)
	}
	return gone
}

func (s *State) complete(f *Function, b *mutation.Batch) (gone []uint64) {
	s.change(f, func() {
		f.readyAt = time.Time{}
		if f.next != nil {
			before := f.latest
			s.use(f, before, -1)
			f.latest, f.next = f.next, nil
			gone = f.unusedUploads(before.Code)
		}
		f.latest.complete()
		for _, v := range f.versions.Items {
			if v.Pending {
				v.complete()
				s.putVersion(b, f, v)
			}
		}
	})
	s.put(b, f)
	return gone
}

func (v *Version) complete() {
	v.Pending = false
	if v.readyRevision != "" {
		v.Revision, v.readyRevision = v.readyRevision, ""
	}
}

// NextCompletion is the time of the next CompleteChanges; ok is false if there is no change.
func (s *State) NextCompletion() (at time.Time, ok bool) {
	if len(s.changing.Items) == 0 {
		return time.Time{}, false
	}
	return s.changing.Items[0].readyAt, true
}

// Delete deletes a function with all its records and returns it. What is left is the highest number of its
// versions. Errors: ResourceNotFound.
func (s *State) Delete(name arn.ARN, b *mutation.Batch) (*Function, error) {
	f, err := s.function(name)
	if err != nil {
		return nil, err
	}
	s.remove(f)
	for _, v := range f.all() {
		s.countLayers(v, -1)
	}
	b.Delete(s.key(functionTag, name))
	for _, tag := range [...]byte{versionTag, aliasTag} {
		start, end := s.within(tag, name)
		b.DeleteRange(start, end)
	}
	if f.last > 0 {
		b.Set(s.DeletedKey(name), encode(deletedRecord{f.last}))
	}
	return f, nil
}

// Uploads are the ids of all zips that are in use.
func (s *State) Uploads() map[uint64]bool {
	used := map[uint64]bool{}
	for _, f := range s.order.Items {
		for upload := range f.uploads {
			used[upload] = true
		}
	}
	return used
}

// Uploads are the ids of the zips of a function's versions.
func (f *Function) Uploads() []uint64 {
	all := make([]uint64, 0, len(f.uploads))
	for upload := range f.uploads {
		all = append(all, upload)
	}
	return all
}

// add and remove update all indexes; change calls them around a change of a function.
func (s *State) add(f *Function) {
	s.functions[f.ARN] = f
	for qualifier, u := range f.urls {
		s.urls[u.ID] = urlOwner{f.ARN, qualifier}
	}
	s.order.Add(f)
	s.index(f)
}

func (s *State) remove(f *Function) {
	delete(s.functions, f.ARN)
	for _, u := range f.urls {
		delete(s.urls, u.ID)
	}
	s.order.Remove(f)
	s.unindex(f)
}

func (s *State) change(f *Function, edit func()) {
	s.unindex(f)
	edit()
	s.index(f)
}

func (s *State) index(f *Function) {
	if !f.readyAt.IsZero() {
		s.changing.Add(f)
	}
	s.count(f, +1)
}

func (s *State) unindex(f *Function) {
	if !f.readyAt.IsZero() {
		s.changing.Remove(f)
	}
	s.count(f, -1)
}

func (s *State) count(f *Function, n int) {
	at := place{f.ARN.Account, f.ARN.Region}
	u := s.usage[at]
	u.Functions += n
	u.CodeBytes += int64(n) * f.CodeSize()
	if f.Reserved != nil {
		u.Reserved += n * *f.Reserved
	}
	s.usage[at] = u
	if u.Functions == 0 {
		delete(s.usage, at)
	}
}

package function

import (
	"cmp"
	"iter"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/sorted"
)

// State is all functions of one shard.
type State struct {
	shard     uint16
	sealer    Sealer // of environments; nil: they are kept in clear
	functions map[arn.ARN]*Function
	order     sorted.List[*Function] // by account, region, name
	changing  sorted.List[*Function] // those with a change under way, the next to be complete first
	usage     map[place]Usage
	builds    uint64 // names given
}

// place is where functions are counted: per account and region.
type place struct{ account, region string }

// Usage is what the functions of an account in a region take.
type Usage struct {
	Functions int
	CodeBytes int64
	Reserved  int // concurrent executions
}

// Add adds what other takes.
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
		order:     sorted.List[*Function]{Compare: func(a, b *Function) int { return compareNames(a.ARN, b.ARN) }},
		changing: sorted.List[*Function]{Compare: func(a, b *Function) int {
			return cmp.Or(a.readyAt.Compare(b.readyAt), compareNames(a.ARN, b.ARN))
		}},
		usage: map[place]Usage{},
	}
}

// compareNames orders functions as their records are: by account, region, name.
func compareNames(a, b arn.ARN) int {
	return cmp.Or(
		strings.Compare(a.Account, b.Account),
		strings.Compare(a.Region, b.Region),
		strings.Compare(a.Resource, b.Resource),
	)
}

// Usage is what the functions of an account in a region take, as far as they
// are of this shard.
func (s *State) Usage(account, region string) Usage { return s.usage[place{account, region}] }

// Function finds a function by its ARN without a qualifier.
func (s *State) Function(name arn.ARN) (*Function, bool) {
	f, ok := s.functions[name]
	return f, ok
}

// FailureTargets are where events go that no attempt succeeded with: the dead-letter targets of
// all versions, and the destinations on failure. One may come several times.
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

// function finds a function or says that it is not there.
func (s *State) function(name arn.ARN) (*Function, error) {
	if f, ok := s.functions[name]; ok {
		return f, nil
	}
	return nil, ErrNotFound.With(name)
}

// All are all functions, in the order of their names.
func (s *State) All() []*Function { return s.order.Items }

// Find finds the function and the version that a qualifier names, and the alias
// if it is one's; the empty qualifier names the latest version. It fails with
// ResourceNotFound.
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

// Resolve finds what an invocation runs now. draw, in [0, 1), picks the version
// of an alias that leads to two. It fails with ResourceNotFound, and with
// ResourceConflict while the version is being created.
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
		v = f.latest // what serves until the update is complete
	}
	if v.Pending {
		return Target{}, ErrPending
	}
	t := f.target(v)
	t.Qualifier = qualifier
	return t, nil
}

// newBuild names what a version runs.
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
		Code: v.Code, Reserved: f.Reserved, DeadLetter: c.DeadLetter, Logging: c.Logging,
	}
}

// Create is the command that makes a function.
type Create struct {
	ARN         arn.ARN
	Incarnation uint64
	Config      Config
	Code        Code
	Tags        map[string]string
	Publish     bool // also as version 1
	// Revision is the first one, ReadyRevision the one once it has been created.
	Revision, ReadyRevision string
	ReadyAt                 time.Time
}

// CheckCreate says whether Create would be refused. It fails with
// ResourceConflict if there is a function of that name.
func (s *State) CheckCreate(name arn.ARN) error {
	if _, ok := s.functions[name]; ok {
		return ErrExists.With(name.FunctionName())
	}
	return nil
}

// Create makes a function, which is pending until that is complete, and returns it with
// the version that the caller asked for. Errors: as CheckCreate.
func (s *State) Create(now time.Time, cmd Create, b *mutation.Batch) (*Function, *Version, error) {
	if err := s.CheckCreate(cmd.ARN); err != nil {
		return nil, nil, err
	}
	f := newFunction(cmd.ARN)
	f.Incarnation, f.Tags = cmd.Incarnation, cmd.Tags
	config := cmd.Config
	f.latest = &Version{
		Config: &config, Code: cmd.Code, Revision: cmd.Revision, Modified: now, Pending: true, readyRevision: cmd.ReadyRevision, build: s.newBuild(),
	}
	f.use(cmd.Code, +1)
	v := f.latest
	if cmd.Publish {
		v = s.publish(now, f, f.latest, cmd.Revision)
		v.Pending = true
		s.putVersion(b, f, v)
	}
	f.readyAt = cmd.ReadyAt
	s.add(f)
	s.put(b, f)
	return f, v, nil
}

// CompleteChanges finishes the changes that are due by now, of up to most functions, of fewer if
// their records are large, and returns the uploads that nothing uses any more.
func (s *State) CompleteChanges(now time.Time, most int, b *mutation.Batch) (gone []uint64) {
	for n := 0; n < most && b.Size() < mutation.StepBytes; n++ {
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
			before := f.latest.Code
			f.use(before, -1)
			f.latest, f.next = f.next, nil
			gone = f.unusedUploads(before)
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

// NextCompletion is when CompleteChanges has something to do; ok is false if never.
func (s *State) NextCompletion() (at time.Time, ok bool) {
	if len(s.changing.Items) == 0 {
		return time.Time{}, false
	}
	return s.changing.Items[0].readyAt, true
}

// Delete removes a function with all that it has and returns it, or the zero
// value for none. Errors: ResourceNotFound.
func (s *State) Delete(name arn.ARN, b *mutation.Batch) (*Function, error) {
	f, err := s.function(name)
	if err != nil {
		return nil, err
	}
	s.remove(f)
	b.Delete(s.key(functionKind, name))
	for _, kind := range [...]byte{versionKind, aliasKind} {
		start, end := s.within(kind, name)
		b.DeleteRange(start, end)
	}
	return f, nil
}

// Uploads are the names of all zips that are in use.
func (s *State) Uploads() map[uint64]bool {
	used := map[uint64]bool{}
	for _, f := range s.order.Items {
		for upload := range f.uploads {
			used[upload] = true
		}
	}
	return used
}

// Uploads are the names of all zips that the versions of a function have.
func (f *Function) Uploads() []uint64 {
	all := make([]uint64, 0, len(f.uploads))
	for upload := range f.uploads {
		all = append(all, upload)
	}
	return all
}

// add and remove keep every index in step; change does where what they hold of a
// function may change.
func (s *State) add(f *Function) {
	s.functions[f.ARN] = f
	s.order.Add(f)
	s.index(f)
}

func (s *State) remove(f *Function) {
	delete(s.functions, f.ARN)
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

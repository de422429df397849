// Package functions is the module of functions: their code, versions and policies, the queues
// of their events, and the event-source mappings.
package functions

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/layer"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/transfer"
	"godwit.dev/godwit/internal/store"
)

// FunctionLimits are the quotas of an account in a region.
type FunctionLimits struct {
	// CodeBytes bounds the code of all versions of all functions; 0: no bound.
	CodeBytes int64
	// Executions bounds the concurrent executions, of which Unreserved cannot be reserved.
	Executions, Unreserved int
}

// FunctionInfo describes a version of a function.
type FunctionInfo struct {
	ARN      arn.ARN // of the function, without a qualifier
	Version  string
	Config   *function.Config // read only
	Code     function.Code
	Revision string
	Modified time.Time
	Pending  bool // it is being created
	Updating bool // an update is in progress: this is its result
	Tags     map[string]string
	Reserved *int   // concurrent executions of the function
	Token    string // that the version was published under; empty: none
}

func functionInfo(f *function.Function, v *function.Version) FunctionInfo {
	return FunctionInfo{
		ARN: f.ARN, Version: v.Name(), Config: v.Config, Code: v.Code, Revision: v.Revision, Modified: v.Modified,
		Pending: v.Pending, Updating: v.Number == 0 && f.Updating(), Tags: f.Tags, Reserved: f.Reserved,
		Token: v.Token,
	}
}

// Function finds the code and configuration for an invocation now; the empty qualifier is the
// latest version. Errors: ResourceNotFound, ResourceConflict while the version is being
// created, and injected faults.
func (e *Functions) Function(ctx context.Context, fn arn.ARN, qualifier string) (t function.Target, err error) {
	var draw float64
	if qualifier != "" && e.options.Draw != nil {
		draw = e.options.Draw()
	}
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) (err error) {
		t, err = sh.Functions.Resolve(fn, qualifier, draw)
		return cmp.Or(err, e.Injected(fn))
	})
	return t, err
}

// FunctionInfo reports the version that a qualifier names; the empty one is
// the latest. Errors: ResourceNotFound.
func (e *Functions) FunctionInfo(ctx context.Context, fn arn.ARN, qualifier string) (info FunctionInfo, err error) {
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) error {
		f, v, _, err := sh.Functions.Find(fn, qualifier)
		if err == nil {
			info = functionInfo(f, v)
		}
		return err
	})
	return info, err
}

// CreateFunction makes a function of a zip, or of none if its code is a URL. The shard assigns
// its incarnation and its completion time. Errors: ResourceConflict, CodeStorageExceeded,
// InsufficientStorage.
func (e *Functions) CreateFunction(ctx context.Context, cmd function.Create, zip []byte) (FunctionInfo, error) {
	check := func(sh *Shard) error { return sh.Functions.CheckCreate(cmd.ARN) }
	info, err := e.withCode(ctx, cmd.ARN, &cmd.Code, zip, check, func(sh *Shard) (FunctionInfo, error) {
		cmd.Incarnation, cmd.ReadyAt = sh.NextIncarnation(), sh.readyAt()
		var err error
		if cmd.Last, err = sh.lastNumber(sh.Functions.DeletedKey(cmd.ARN), function.DecodeDeleted); err != nil {
			return FunctionInfo{}, err
		}
		f, v, err := sh.Functions.Create(clock.Time(sh.Now()), cmd, &sh.Batch)
		if err != nil {
			return FunctionInfo{}, err
		}
		info := functionInfo(f, v)
		sh.completeAtOnce()
		return info, nil
	})
	return info, e.EmitCreation(cmd.ARN, err)
}

// lastNumber is the highest number of the versions that a function or a layer ever had, by its record.
func (sh *Shard) lastNumber(key []byte, decode func(record []byte) (uint64, error)) (uint64, error) {
	sh.FlushAppended() // the change, if it was just now
	record, ok, err := sh.module.Store.Get(nil, key)
	if err != nil {
		sh.module.Fatal(err)
	}
	if err != nil || !ok {
		return 0, err
	}
	return decode(record)
}

// ForgetVersions forgets which versions the deleted functions and layers of an account in a region had, so
// that those of the same names begin with 1 again.
func (e *Functions) ForgetVersions(ctx context.Context, account, region string) error {
	for _, sh := range e.Shards {
		for _, prefix := range [...][]byte{function.DeletedPrefix(sh.ID, account, region), layer.NumberPrefix(sh.ID, account, region)} {
			if err := e.forget(ctx, sh, keyspace.Prefix(prefix)); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget removes the records of a span, if there are any.
func (e *Functions) forget(ctx context.Context, sh *Shard, span keyspace.Span) error {
	sh.View(sh.FlushAppended)
	found, err := false, ctx.Err()
	if err != nil {
		return err
	}
	err = store.Each(e.Store, span, func(_, _ []byte) error {
		found = true
		return store.ErrStop
	})
	if err == nil && found {
		err = sh.RunDurable(func(*kernel.Tx) error {
			sh.Batch.DeleteRange(span.Lower, span.Upper)
			return nil
		})
	}
	return err
}

// UpdateFunctionCode replaces the code of a function's latest version. Errors:
// those of function.State.CheckUpdate, CodeStorageExceeded, InsufficientStorage.
func (e *Functions) UpdateFunctionCode(ctx context.Context, cmd function.Update, zip []byte) (FunctionInfo, error) {
	check := func(sh *Shard) error {
		_, err := sh.Functions.CheckUpdate(cmd.ARN, cmd.RevisionID)
		return err
	}
	return e.withCode(ctx, cmd.ARN, cmd.Code, zip, check, func(sh *Shard) (FunctionInfo, error) { return sh.updateFunction(cmd) })
}

// UpdateFunctionConfiguration changes the configuration of a function's latest
// version. Errors: those of function.State.Update.
func (e *Functions) UpdateFunctionConfiguration(ctx context.Context, cmd function.Update) (info FunctionInfo, err error) {
	err = e.WithCatalog(ctx, cmd.ARN, func(sh *Shard) (err error) {
		info, err = sh.updateFunction(cmd)
		return err
	})
	return info, err
}

func (sh *Shard) updateFunction(cmd function.Update) (FunctionInfo, error) {
	cmd.ReadyAt = sh.readyAt()
	f, v, err := sh.Functions.Update(clock.Time(sh.Now()), cmd, &sh.Batch)
	if err != nil {
		return FunctionInfo{}, err
	}
	info := functionInfo(f, v)
	sh.completeAtOnce()
	return info, nil
}

// withCode runs a command with new code. It runs check before it writes the zip, and again
// after that, since other commands may have come in between.
func (e *Functions) withCode(ctx context.Context, fn arn.ARN, code *function.Code, zip []byte, check func(*Shard) error,
	command func(*Shard) (FunctionInfo, error),
) (info FunctionInfo, err error) {
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) error {
		if e.Full() {
			return kernel.ErrFull
		}
		return check(sh)
	})
	if err != nil {
		return info, err
	}
	if len(zip) > 0 {
		code.Upload, code.Size = e.upload(e.ShardOf(fn), zip), int64(len(zip))
	}
	e.quotas.Lock()
	defer e.quotas.Unlock()
	used := e.FunctionUsage(fn.Account, fn.Region)
	err = e.WithCatalog(ctx, fn, func(sh *Shard) (err error) {
		if most := e.options.Limits.CodeBytes; most > 0 && used.CodeBytes+code.Size > most {
			err = ErrCodeStorage
		} else {
			info, err = command(sh)
		}
		return err
	})
	if err != nil && code.Upload != 0 { // also where ctx ended, so that the command did not run
		sh := e.ShardOf(fn)
		sh.RunLazy(func() { sh.dropUploads(code.Upload) })
	}
	return info, err
}

// readyAt is when a change that begins now is complete.
func (sh *Shard) readyAt() time.Time {
	return clock.Time(sh.Now()).Add(sh.module.options.Updates)
}

// completeAtOnce completes the changes of the current command if changes take no time, so that
// they are complete when the caller gets its answer.
func (sh *Shard) completeAtOnce() {
	if sh.module.options.Updates == 0 {
		sh.dropUploads(sh.Functions.CompleteChanges(clock.Time(sh.Now()), completionStep, &sh.Batch)...)
	}
}

// completionStep bounds the functions whose changes one command completes.
const completionStep = 256

// completeFunctions finishes the creations and updates that are due.
func (sh *Shard) completeFunctions() {
	if at, ok := sh.Functions.NextCompletion(); !ok || at.After(clock.Time(sh.Now())) {
		return
	}
	sh.dropUploads(sh.Functions.CompleteChanges(clock.Time(sh.Now()), completionStep, &sh.Batch)...)
	sh.CatalogChanged(sh.Append(journal.Eager))
}

// FunctionUsage is the resource usage of the functions and layers of an account in a region.
func (e *Functions) FunctionUsage(account, region string) (u function.Usage) {
	for _, sh := range e.Shards {
		sh.View(func() {
			u.Add(sh.Functions.Usage(account, region))
			u.CodeBytes += sh.Layers.CodeBytes(account, region)
		})
	}
	return u
}

// ReservedExecutions is how many concurrent executions the functions of an account
// in a region have reserved. It costs the same however many functions there are.
func (e *Functions) ReservedExecutions(account, region string) int {
	if n, ok := e.reserved.Load([2]string{account, region}); ok {
		return int(n.(*atomic.Int64).Load())
	}
	return 0
}

// countReserved runs a command that may change the reserved executions of a function.
func (sh *Shard) countReserved(fn arn.ARN, command func() error) error {
	before := sh.Functions.Usage(fn.Account, fn.Region).Reserved
	err := command()
	if change := sh.Functions.Usage(fn.Account, fn.Region).Reserved - before; change != 0 {
		sh.module.reserve(fn, change)
	}
	return err
}

func (e *Functions) reserve(fn arn.ARN, change int) {
	n, _ := e.reserved.LoadOrStore([2]string{fn.Account, fn.Region}, new(atomic.Int64))
	n.(*atomic.Int64).Add(int64(change))
}

// DeleteFunction removes a function with all its versions, aliases and events, or, if the
// qualifier is not empty, one version. Errors: ResourceNotFound, InvalidParameter,
// ResourceConflict.
func (e *Functions) DeleteFunction(ctx context.Context, fn arn.ARN, qualifier string) error {
	err := e.WithCatalog(ctx, fn, func(sh *Shard) error {
		delete(sh.functionPolicies, fn)
		if qualifier != "" {
			gone, err := sh.Functions.DeleteVersion(fn, qualifier, &sh.Batch)
			sh.dropUploads(gone...)
			return err
		}
		var f *function.Function
		err := sh.countReserved(fn, func() (err error) {
			f, err = sh.Functions.Delete(fn, &sh.Batch)
			return err
		})
		if err != nil {
			return err
		}
		sh.DropBacklog(layout.Incarnation(f.Incarnation))
		for _, upload := range f.Uploads() {
			sh.AppendIfLarge() // after a crash the next start removes the rest
			sh.dropUploads(upload)
		}
		return nil
	})
	if deleted := e.deletionWatcher.Load(); deleted != nil && err == nil {
		(*deleted)(fn, qualifier)
	}
	return err
}

// SetDeletionWatcher sets a function that is called with each function that was deleted, or with the
// version of it that was.
func (e *Functions) SetDeletionWatcher(deleted func(fn arn.ARN, version string)) {
	e.deletionWatcher.Store(&deleted)
}

// PublishVersion makes a version of the latest one. Errors: those of
// function.State.Publish, CodeStorageExceeded, and InsufficientStorage.
func (e *Functions) PublishVersion(ctx context.Context, cmd function.Publish) (info FunctionInfo, err error) {
	e.quotas.Lock()
	defer e.quotas.Unlock()
	used := e.FunctionUsage(cmd.ARN.Account, cmd.ARN.Region)
	err = e.WithCatalog(ctx, cmd.ARN, func(sh *Shard) error {
		if e.Full() {
			return kernel.ErrFull
		}
		_, again := sh.Functions.Published(cmd.ARN, cmd.Token)
		if f, ok := sh.Functions.Function(cmd.ARN); ok && again == nil {
			if most := e.options.Limits.CodeBytes; most > 0 && used.CodeBytes+f.Latest().Code.Size > most {
				return ErrCodeStorage
			}
		}
		f, v, err := sh.Functions.Publish(clock.Time(sh.Now()), cmd, &sh.Batch)
		if err == nil {
			info = functionInfo(f, v)
		}
		return err
	})
	return info, err
}

// ListFunctions lists an account's functions in a region by name, up to limit of them after the
// name after.
func (e *Functions) ListFunctions(ctx context.Context, region, account, after string, limit int) ([]FunctionInfo, bool, error) {
	return kernel.MergePages(ctx, &e.Shards, limit, compareInfo, func(sh *Shard) ([]FunctionInfo, bool) {
		page, more := sh.Functions.Functions(account, region, after, limit)
		return functionInfos(page), more
	})
}

// ListFunctionVersions is like ListFunctions, with every version of each function: those after
// the version number of the function after.
func (e *Functions) ListFunctionVersions(ctx context.Context, region, account, after string, number uint64, limit int) ([]FunctionInfo, bool, error) {
	return kernel.MergePages(ctx, &e.Shards, limit, compareInfo, func(sh *Shard) ([]FunctionInfo, bool) {
		page, more := sh.Functions.AllVersions(account, region, after, number, limit)
		return functionInfos(page), more
	})
}

// ListVersions lists the versions of a function, $LATEST first, then by number: those behind the
// version after; empty: from the first one. Errors: ResourceNotFound.
func (e *Functions) ListVersions(ctx context.Context, fn arn.ARN, after string, limit int) (infos []FunctionInfo, more bool, err error) {
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) error {
		page, rest, err := sh.Functions.Versions(fn, after, limit)
		infos, more = functionInfos(page), rest
		return err
	})
	return infos, more, err
}

func functionInfos(page []function.Listed) []FunctionInfo {
	infos := make([]FunctionInfo, len(page))
	for i, l := range page {
		infos[i] = functionInfo(l.Function, l.Version)
	}
	return infos
}

// compareInfo orders versions by their functions' names and their numbers, $LATEST first.
func compareInfo(a, b FunctionInfo) int {
	return cmp.Or(strings.Compare(a.ARN.Resource, b.ARN.Resource), cmp.Compare(versionOrder(a.Version), versionOrder(b.Version)),
		strings.Compare(a.Version, b.Version))
}

// versionOrder is the length of a version's name: of two numbers the longer one is greater.
func versionOrder(name string) int {
	if name == function.Latest {
		return 0
	}
	return len(name)
}

// CreateAlias makes an alias. Errors: those of function.State.CreateAlias, and
// InsufficientStorage.
func (e *Functions) CreateAlias(ctx context.Context, cmd function.CreateAlias) (a function.Alias, err error) {
	err = e.WithCatalog(ctx, cmd.Function, func(sh *Shard) error {
		if e.Full() {
			return kernel.ErrFull
		}
		made, err := sh.Functions.CreateAlias(cmd, &sh.Batch)
		if err == nil {
			a = *made
		}
		return err
	})
	return a, e.EmitCreation(cmd.Function, err)
}

// UpdateAlias changes an alias. Errors: those of function.State.UpdateAlias.
func (e *Functions) UpdateAlias(ctx context.Context, cmd function.UpdateAlias) (a function.Alias, err error) {
	err = e.WithCatalog(ctx, cmd.Function, func(sh *Shard) error {
		changed, err := sh.Functions.UpdateAlias(cmd, &sh.Batch)
		if err == nil {
			a = *changed
		}
		return err
	})
	return a, err
}

// Alias finds an alias. Errors: ResourceNotFound.
func (e *Functions) Alias(ctx context.Context, fn arn.ARN, name string) (a function.Alias, err error) {
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) error {
		_, found, err := sh.Functions.FindAlias(fn, name)
		if err == nil {
			a = *found
		}
		return err
	})
	return a, err
}

// ListAliases lists the aliases of a function by name, up to limit of them after the name
// after; if version is not empty, only those that route to it. Errors: ResourceNotFound.
func (e *Functions) ListAliases(ctx context.Context, fn arn.ARN, version, after string, limit int) (page []function.Alias, more bool, err error) {
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) (err error) {
		page, more, err = sh.Functions.Aliases(fn, version, after, limit)
		return err
	})
	return page, more, err
}

// DeleteAlias removes an alias; it is idempotent. Errors: ResourceNotFound if there is no such
// function.
func (e *Functions) DeleteAlias(ctx context.Context, fn arn.ARN, name string) error {
	return e.WithCatalog(ctx, fn, func(sh *Shard) error {
		delete(sh.functionPolicies, fn)
		return sh.Functions.DeleteAlias(fn, name, &sh.Batch)
	})
}

// TagFunction adds tags to a function, which then has the revision. Errors: ResourceNotFound,
// InvalidParameter.
func (e *Functions) TagFunction(ctx context.Context, fn arn.ARN, tags map[string]string, revision string) error {
	return e.WithCatalog(ctx, fn, func(sh *Shard) error { return sh.Functions.Tag(fn, tags, revision, &sh.Batch) })
}

// UntagFunction removes tags from a function, which then has the revision. Errors:
// ResourceNotFound.
func (e *Functions) UntagFunction(ctx context.Context, fn arn.ARN, keys []string, revision string) error {
	return e.WithCatalog(ctx, fn, func(sh *Shard) error { return sh.Functions.Untag(fn, keys, revision, &sh.Batch) })
}

// FunctionTags are the tags of a function. Errors: ResourceNotFound.
func (e *Functions) FunctionTags(ctx context.Context, fn arn.ARN) (map[string]string, error) {
	info, err := e.FunctionInfo(ctx, fn, "")
	return maps.Clone(info.Tags), err
}

// ReserveExecutions sets the reserved concurrent executions of a function; nil: none. Errors:
// ResourceNotFound; InvalidParameter if too few would be left to the account.
func (e *Functions) ReserveExecutions(ctx context.Context, fn arn.ARN, executions *int) error {
	e.quotas.Lock()
	defer e.quotas.Unlock()
	used, limits := e.FunctionUsage(fn.Account, fn.Region), e.options.Limits
	return e.WithCatalog(ctx, fn, func(sh *Shard) error {
		if f, ok := sh.Functions.Function(fn); ok && executions != nil {
			others := used.Reserved
			if f.Reserved != nil {
				others -= *f.Reserved
			}
			if *executions > limits.Executions-limits.Unreserved-others {
				return ErrReserved.With(limits.Unreserved)
			}
		}
		return sh.countReserved(fn, func() error { return sh.Functions.Reserve(fn, executions, &sh.Batch) })
	})
}

// Options configure the module.
type Options struct {
	// Accepted is called for every event that a function is to be invoked with, if it is not
	// nil. It may be called concurrently, and must be quick.
	Accepted func(function arn.ARN, qualifier string, at time.Time)
	// Limits are the quotas of functions.
	Limits FunctionLimits
	// Updates is how long the creation or an update of a function takes.
	Updates time.Duration
	// Draw returns random numbers in [0, 1), by which invocations are routed to versions.
	// Without it the first version gets all.
	Draw func() float64
	// Sign puts the signature into the body of a message that is Unsigned.
	Sign func(body []byte, u *message.Unsigned) error
}

// Functions is the module of functions: their code, their events, and their event-source
// mappings.
type Functions struct {
	*backlog.Backlogs
	kernel.Parts[*Shard]
	options         Options
	mappingWatcher  atomic.Pointer[func(arn.ARN, *mapping.Mapping)]
	deletionWatcher atomic.Pointer[func(fn arn.ARN, version string)]
	reserved        sync.Map   // [account, region] → *atomic.Int64: reserved executions
	quotas          sync.Mutex // held while a count with a quota may grow
	layerUses       layerUses
}

// Shard is the module's part in a shard.
type Shard struct {
	*backlog.Shard
	module    *Functions
	Functions *function.State
	Layers    *layer.State
	mappings  *mapping.State
	// functionPolicies are the policies that were used, by function and qualifier.
	functionPolicies map[arn.ARN]map[string]*policy.Policy
}

// New adds the module to the shards, after that of backlogs.
func New(below *backlog.Backlogs, o Options) *Functions {
	e := &Functions{Backlogs: below, options: o}
	for id, sh := range below.Shards {
		s := &Shard{Shard: sh, module: e, Functions: function.New(uint16(id)), Layers: layer.New(uint16(id)), mappings: mapping.New(uint16(id))}
		s.countLayers()
		e.Shards[id] = s
		sh.Add(lifecycle{sh: s})
	}
	below.Sinks["lambda"] = sink{e}
	return e
}

// sink moves messages to the queues of functions' events.
type sink struct{ e *Functions }

func (s sink) Home(dest arn.ARN) *transfer.Shard {
	fn, _, _ := dest.SplitFunction()
	return s.e.ShardOf(fn).OfTransfers()
}

func (s sink) Open(dest arn.ARN) (*queues.Queue, error) {
	fn, qualifier, _ := dest.SplitFunction()
	sh := s.e.ShardOf(fn)
	f, err := sh.invokable(fn, qualifier)
	if err != nil {
		return nil, err
	}
	return sh.openEvents(f), nil
}

func (s sink) Arrived(dest arn.ARN, m *message.Message) {
	if accepted := s.e.options.Accepted; accepted != nil {
		fn, qualifier, _ := dest.SplitFunction()
		accepted(fn, qualifier, clock.Time(m.Sent))
	}
}

// lifecycle is how the kernel runs a Shard of this package.
type lifecycle struct {
	kernel.NopLifecycle
	sh *Shard
}

func (l lifecycle) Load() error {
	return cmp.Or(l.sh.loadMappings(), l.sh.loadFunctions(), l.sh.loadEvents())
}

func (l lifecycle) NextDue() (at int64) {
	if next, ok := l.sh.mappings.NextCompletion(); ok {
		at = next.UnixMilli()
	}
	if next, ok := l.sh.Functions.NextCompletion(); ok && (at == 0 || next.UnixMilli() < at) {
		at = next.UnixMilli()
	}
	return at
}

func (l lifecycle) Tick(int64) {
	l.sh.completeFunctions()
	l.sh.completeMappings()
}

package functions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// SetMappingWatcher registers a function that is called for each mapping that changes, with its
// new state; nil if it was deleted. It is called under a shard's lock: it must be quick, not
// call the engine, and not keep the mapping.
func (e *Functions) SetMappingWatcher(changed func(a arn.ARN, now *mapping.Mapping)) {
	e.mappingWatcher.Store(&changed)
}

// mappingChanged reports a change. If changes take no time, it is complete before its caller
// gets an answer.
func (sh *Shard) mappingChanged(a arn.ARN) {
	if sh.module.options.Updates == 0 {
		sh.mappings.CompleteChanges(clock.Time(sh.Now()), completionStep, &sh.Batch)
	}
	sh.notifyMapping(a)
}

func (sh *Shard) notifyMapping(a arn.ARN) {
	if changed := sh.module.mappingWatcher.Load(); changed != nil {
		m, _ := sh.mappings.Mapping(a) // nil if it was deleted
		(*changed)(a, m)
	}
}

// CreateMapping makes an event-source mapping; the shard assigns its state. Errors:
// InvalidParameter for an unknown function or queue, or a queue whose visibility timeout is
// shorter than the function's timeout; ResourceConflict for a mapping of the same queue and
// function.
func (e *Functions) CreateMapping(ctx context.Context, m mapping.Mapping) (made mapping.Mapping, err error) {
	e.quotas.Lock()
	defer e.quotas.Unlock()
	if err := e.checkMapping(ctx, m.Queue, m.Function, m.Settings); err != nil {
		return made, err
	}
	if err := e.checkUnique(ctx, m.ARN, m.Queue, m.Function); err != nil {
		return made, err
	}
	err = e.WithCatalog(ctx, m.ARN, func(sh *Shard) error {
		if e.Full() {
			return kernel.ErrFull
		}
		made = *sh.mappings.Create(clock.Time(sh.Now()), sh.readyAt(), m, &sh.Batch)
		sh.mappingChanged(m.ARN)
		return nil
	})
	return made, err
}

// checkMapping refuses a mapping that cannot work. Errors: InvalidParameter.
func (e *Functions) checkMapping(ctx context.Context, queue, fn arn.ARN, set mapping.Settings) error {
	whole, qualifier, _ := fn.SplitFunction()
	info, err := e.FunctionInfo(ctx, whole, qualifier)
	if fault.KindOf(err) == fault.ResourceNotFound {
		return ErrMappedFunction
	}
	if err != nil {
		return err
	}
	q, err := e.QueueConfig(ctx, queue)
	if fault.KindOf(err) == fault.QueueDoesNotExist {
		return ErrMappedQueue
	}
	if err != nil {
		return err
	}
	if timeout := time.Duration(info.Config.TimeoutS) * time.Second; q.Visibility < timeout {
		return ErrMappedTimeout.With(int64(q.Visibility/time.Second), int64(timeout/time.Second))
	}
	if fifo := queue.FIFO(); fifo && set.Window > 0 {
		return ErrWindowOfFIFO
	}
	if most := 10; set.BatchSize > most && set.Window == 0 {
		return ErrBatchNeedsWindow.With(most)
	}
	return nil
}

// checkUnique refuses a second mapping of a queue and a function.
func (e *Functions) checkUnique(ctx context.Context, self, queue, fn arn.ARN) error {
	all, err := e.Mappings(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if m := &all[i]; m.ARN != self && m.Queue == queue && m.Function == fn {
			whole, _, _ := fn.SplitFunction()
			return ErrMappingExists.With(queue, whole.FunctionName(), m.UUID())
		}
	}
	return nil
}

// UpdateMapping changes an event-source mapping: edit gets the current mapping and returns the
// change. Errors: those of CreateMapping and mapping.State.Update, and edit's.
func (e *Functions) UpdateMapping(ctx context.Context, a arn.ARN, edit func(mapping.Mapping) (mapping.Update, error)) (made mapping.Mapping, err error) {
	e.quotas.Lock() // other changes of mappings take it too
	defer e.quotas.Unlock()
	before, err := e.Mapping(ctx, a)
	if err != nil {
		return made, err
	}
	cmd, err := edit(before)
	if err != nil {
		return made, err
	}
	fn := cmp.Or(cmd.Function, before.Function)
	// What no longer works can be disabled: it would go on with the next queue of that name.
	if cmd.Enabled || fn != before.Function || !cmd.Settings.Equal(before.Settings) {
		if err := e.checkMapping(ctx, before.Queue, fn, cmd.Settings); err != nil {
			return made, err
		}
	}
	if err := e.checkUnique(ctx, a, before.Queue, fn); err != nil {
		return made, err
	}
	return e.changeMapping(ctx, a, func(sh *Shard) (*mapping.Mapping, error) {
		return sh.mappings.Update(clock.Time(sh.Now()), sh.readyAt(), cmd, &sh.Batch)
	})
}

// DeleteMapping removes an event-source mapping. Errors: ResourceNotFound,
// ResourceInUse.
func (e *Functions) DeleteMapping(ctx context.Context, a arn.ARN) (mapping.Mapping, error) {
	return e.changeMapping(ctx, a, func(sh *Shard) (*mapping.Mapping, error) {
		return sh.mappings.Delete(clock.Time(sh.Now()), sh.readyAt(), a, &sh.Batch)
	})
}

func (e *Functions) changeMapping(ctx context.Context, a arn.ARN, change func(*Shard) (*mapping.Mapping, error)) (made mapping.Mapping, err error) {
	err = e.WithCatalog(ctx, a, func(sh *Shard) error {
		m, err := change(sh)
		if err == nil {
			made = *m
			sh.mappingChanged(a)
		}
		return err
	})
	return made, err
}

// Mapping finds an event-source mapping. Errors: ResourceNotFound.
func (e *Functions) Mapping(ctx context.Context, a arn.ARN) (found mapping.Mapping, err error) {
	err = e.ReadCatalog(ctx, a, func(sh *Shard) error {
		m, err := sh.mappings.Mapping(a)
		if err == nil {
			found = *m
		}
		return err
	})
	return found, err
}

// TagMapping sets and removes tags of an event-source mapping. Errors:
// ResourceNotFound, InvalidParameter.
func (e *Functions) TagMapping(ctx context.Context, a arn.ARN, set map[string]string, remove []string) error {
	return e.WithCatalog(ctx, a, func(sh *Shard) error { return sh.mappings.Tag(a, set, remove, &sh.Batch) })
}

// Mappings are all event-source mappings in the order of their UUIDs.
func (e *Functions) Mappings(ctx context.Context) (all []mapping.Mapping, err error) {
	for _, sh := range e.Shards {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sh.View(func() {
			for m := range sh.mappings.All {
				all = append(all, *m)
			}
		})
		sh.AwaitCatalog()
	}
	slices.SortFunc(all, func(a, b mapping.Mapping) int { return strings.Compare(a.ARN.Resource, b.ARN.Resource) })
	return all, nil
}

// completeMappings finishes the changes of mappings that are due.
func (sh *Shard) completeMappings() {
	if at, ok := sh.mappings.NextCompletion(); !ok || at.After(clock.Time(sh.Now())) {
		return
	}
	completed := sh.mappings.CompleteChanges(clock.Time(sh.Now()), completionStep, &sh.Batch)
	sh.CatalogChanged(sh.Append(journal.Eager))
	for _, a := range completed {
		sh.notifyMapping(a)
	}
}

// loadMappings reads the event-source mappings of the shard.
func (sh *Shard) loadMappings() error {
	if err := store.Each(sh.module.Store, keyspace.Prefix(mapping.Prefix(sh.ID)), sh.mappings.Load); err != nil {
		return fmt.Errorf("event-source mappings: %w", err)
	}
	return nil
}

// Package alarms has the alarms, evaluates them each minute and executes their actions.
//
// A new state, its item in the history and the due actions are one commit. The actions are
// executed after it, each in a commit that also removes it from the store: a crash repeats none
// and loses none.
package alarms

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// MaxTags is how many tags an alarm may have.
const MaxTags = 50

// Reader reads metrics: *metrics.Store.
type Reader interface {
	Read(m metrics.Metric, unit string, from, to, period int64) ([]metrics.Point, error)
	Units(m metrics.Metric) ([]string, error)
}

// Options configure an Engine.
type Options struct {
	Metrics  Reader
	Executor Executor
	// MaxAlarms is how many alarms an account may have in a region; 0: any number.
	MaxAlarms int
	// MaxWaiting bounds the actions of an account's alarms in a region that wait to be retried;
	// 0 means 10,000. Beyond it the oldest action of the longest queue is dropped.
	MaxWaiting int
	// Wake is called when there is an alarm for EvaluateMinutes, and WakeShort when there is
	// one for EvaluateShort.
	Wake, WakeShort func()
}

// ID identifies an alarm.
type ID struct{ Account, Region, Name string }

// Engine has the alarms. It is a module of the kernel, with its own shard.
type Engine struct {
	kernel.NopLifecycle
	kernel  *kernel.Kernel
	options Options
	shard   *kernel.Shard  // whose lock guards what follows
	reader  journal.Reader // sees what the shard has appended

	alarms       map[ID]*alarm.Alarm
	composites   map[ID]*composite
	parents      map[ID]map[ID]bool // of an alarm: the composite alarms that depend on it
	periods      map[ID]time.Time   // of composite alarms: when what suppresses their actions ends
	counts       map[metrics.Scope]int
	sequence     uint32    // distinguishes events of one millisecond
	latest       time.Time // time of the latest write
	actionQueues actionQueues
	damaged      [][]byte // keys of unreadable actions found at the start

	executing sync.Mutex  // held while actions are executed
	started   atomic.Bool // the executor is ready
}

// The keys of this package: the prefix of all, and what follows it.
const (
	prefix     = keyspace.AlarmSpace
	tagAlarm   = keyspace.AlarmRecords  // scope, name → alarm
	tagHistory = keyspace.AlarmHistory  // scope, time, sequence → item
	tagIndex   = keyspace.AlarmIndex    // scope, name, time, sequence → nothing
	tagPending = keyspace.AlarmActions  // time, sequence → pending
	tagLast    = keyspace.AlarmSequence // the last sequence
)

func scopeKey(tag byte, scope metrics.Scope) []byte {
	k := append(make([]byte, 0, 96), prefix, tag)
	k = append(append(k, scope.Account...), 0)
	return append(append(k, scope.Region...), 0)
}

func (id ID) scope() metrics.Scope { return metrics.Scope{Account: id.Account, Region: id.Region} }

func (id ID) key(tag byte) []byte { return append(append(scopeKey(tag, id.scope()), id.Name...), 0) }

// New adds the module to a kernel.
func New(k *kernel.Kernel, o Options) *Engine {
	if o.MaxWaiting == 0 {
		o.MaxWaiting = 10_000
	}
	e := &Engine{
		kernel: k, options: o, shard: k.OwnShard(keyspace.AlarmStream), alarms: map[ID]*alarm.Alarm{}, composites: map[ID]*composite{},
		parents: map[ID]map[ID]bool{}, periods: map[ID]time.Time{}, counts: map[metrics.Scope]int{}, actionQueues: newActionQueues(),
	}
	e.shard.Add(e)
	return e
}

// Load implements kernel.Lifecycle: it reads the alarms that the store has.
func (e *Engine) Load() error {
	e.reader = e.shard.Stream.Reader()
	err := store.Each(e.reader, keyspace.Prefix([]byte{prefix, tagAlarm}), func(_, value []byte) error {
		a, err := decodeAlarm(value)
		if err != nil { // it must not block others
			e.kernel.Logger.Error("an alarm is left out", "reason", err.Error())
			return nil
		}
		id := idOf(a)
		e.alarms[id] = a
		e.counts[id.scope()]++
		e.notePeriod(a)
		if a.Kind() == alarm.Composite {
			if c, err := parse(a); err != nil {
				e.kernel.Logger.Error("a composite alarm cannot be evaluated", "alarm", a.ARN(), "reason", err.Error())
			} else {
				e.connect(id, c)
			}
		}
		for _, at := range []time.Time{a.Configured, a.Updated} {
			if at.After(e.latest) {
				e.latest = at
			}
		}
		return nil
	})
	if err == nil {
		var last []byte
		if last, _, err = e.reader.Get(nil, []byte{prefix, tagLast}); len(last) == 4 {
			e.sequence = binary.BigEndian.Uint32(last)
		}
	}
	if err == nil {
		err = store.Each(e.reader, keyspace.Prefix([]byte{prefix, tagPending}), func(key, value []byte) error {
			var p pending
			if err := decode(value, &p); err != nil { // as above
				e.kernel.Logger.Error("an alarm's action is left out", "reason", err.Error())
				e.damaged = append(e.damaged, bytes.Clone(key))
				return nil
			}
			e.actionQueues.add(p.actionQueue(), bytes.Clone(key))
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("alarms cannot be read: %w", err)
	}
	return nil
}

// Resume implements kernel.Lifecycle.
func (e *Engine) Resume() {
	for _, key := range e.damaged {
		e.shard.Batch.Delete(key)
	}
	e.damaged = nil
}

// Latest is the time of the latest write. A virtual clock must not start before it.
func (e *Engine) Latest() (latest time.Time) {
	e.shard.View(func() { latest = e.latest })
	return latest
}

// Start is called when the executor is ready: it executes the actions that were due when the
// process ended, and begins to evaluate alarms.
func (e *Engine) Start() error {
	e.started.Store(true)
	if e.busy() {
		e.options.Wake()
	}
	if e.hasShort() {
		e.options.WakeShort()
	}
	return e.Execute(context.Background())
}

// hasShort reports whether there are alarms with periods below a minute.
func (e *Engine) hasShort() (short bool) {
	e.shard.View(func() {
		for _, a := range e.alarms {
			short = short || a.Short()
		}
	})
	return short
}

// busy reports whether there is work each minute.
func (e *Engine) busy() (busy bool) {
	e.shard.View(func() { busy = len(e.alarms) > 0 || len(e.actionQueues.all) > 0 })
	return busy
}

func (e *Engine) now() time.Time { return e.kernel.Clock.Now().Truncate(time.Millisecond) }

// run runs a command, and returns once all that it read and changed is durable: no answer
// reports a state that a crash could undo.
func (e *Engine) run(command func() error) error {
	return e.shard.RunDurableReads(func(*kernel.Tx) error { return command() })
}

// commit collects a change of alarms, in a transaction. Without apply it has no effect.
type commit struct {
	e     *Engine
	now   time.Time
	batch mutation.Batch
	due   []due

	alarms  map[ID]*alarm.Alarm // that are other ones after it
	entered []ID                // in order, those whose state has changed
	place   map[ID]int          // of those in entered: the last place there, from 1 on
}

// due is an action that becomes due by the change.
type due struct {
	actionQueue queueID
	key         []byte
}

func (e *Engine) begin() *commit {
	return &commit{e: e, now: clock.Time(e.shard.Now()), alarms: map[ID]*alarm.Alarm{}, place: map[ID]int{}}
}

// alarm is an alarm as it is after the change; nil: there is none.
func (c *commit) alarm(id ID) *alarm.Alarm {
	if a, ok := c.alarms[id]; ok {
		return a
	}
	return c.e.alarms[id]
}

func (c *commit) stamp(key []byte) []byte {
	c.e.sequence++
	key = binary.BigEndian.AppendUint64(key, uint64(c.now.UnixMilli()))
	return binary.BigEndian.AppendUint32(key, c.e.sequence)
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types of this package can always be encoded
	}
	return text
}

func idOf(a *alarm.Alarm) ID { return ID{a.Account, a.Region, a.Name} }

// put writes an alarm.
func (c *commit) put(a *alarm.Alarm) {
	c.batch.Set(idOf(a).key(tagAlarm), encodeAlarm(a))
	c.alarms[idOf(a)] = a
}

// note writes an item of an alarm's history.
func (c *commit) note(id ID, item alarm.Item) {
	key := c.stamp(scopeKey(tagHistory, id.scope()))
	c.batch.Set(key, encode(item))
	c.batch.Set(append(id.key(tagIndex), key[len(key)-stampSize:]...), nil)
	c.prune(id.scope())
}

// enter changes the state of an alarm, and executes its actions if the state is new and nothing
// suppresses them.
func (c *commit) enter(a *alarm.Alarm, s alarm.Status) {
	before := *a
	if a.Enter(s, c.now) {
		c.note(idOf(a), a.Changed(before.Status))
		c.changed(idOf(a))
		if a.Suppress(true, c.suppressing(a), c.now) {
			c.act(a, &before)
		}
	}
	c.put(a)
}

// changed has the composite alarms that depend on an alarm be evaluated.
func (c *commit) changed(id ID) {
	c.entered = append(c.entered, id)
	c.place[id] = len(c.entered)
}

// act executes the actions of an alarm that is not any more what it was before.
func (c *commit) act(a, before *alarm.Alarm) {
	for _, action := range a.Actions(a.State) {
		p := pending{ID: idOf(a), Since: a.Updated, Of: a.Kind(), Action: Action{ARN: action, Source: a.ARN(), Account: a.Account}}
		if isFunction(action) {
			p.Message = a.Event(before)
		} else {
			p.Subject, p.Message = a.Subject(), a.Notification(before.State)
		}
		key := c.stamp([]byte{prefix, tagPending})
		c.batch.Set(key, encode(p))
		c.due = append(c.due, due{p.actionQueue(), key})
	}
}

func isFunction(action string) bool { return strings.HasPrefix(action, "arn:aws:lambda:") }

// apply adds the change to the transaction, and what follows of it for composite alarms.
func (c *commit) apply() {
	c.settle()
	if c.batch.Len() == 0 {
		return
	}
	c.batch.Set([]byte{prefix, tagLast}, binary.BigEndian.AppendUint32(nil, c.e.sequence))
	c.e.shard.Batch.Append(&c.batch)
	for _, d := range c.due {
		c.e.actionQueues.add(d.actionQueue, d.key)
	}
	for id, a := range c.alarms {
		c.e.alarms[id] = a
		c.e.notePeriod(a)
	}
	if c.now.After(c.e.latest) {
		c.e.latest = c.now
	}
}

// Put makes an alarm, or replaces the configuration of an existing one of the same kind, or of one
// that is lost; state and tags stay. A composite alarm is then evaluated. It fails with LimitExceeded,
// with ValidationFailed, and as package rule does.
func (e *Engine) Put(id ID, config alarm.Config, tags map[string]string) error {
	err := e.run(func() error { return e.put(id, config, tags) })
	if err != nil || config.Kind() == alarm.Metric { // which is evaluated at the end of its period
		return err
	}
	return e.Execute(e.kernel.Running)
}

func (e *Engine) put(id ID, config alarm.Config, tags map[string]string) error {
	c := e.begin()
	var a alarm.Alarm
	before, ok := e.alarms[id]
	if ok {
		if before.Kind() != config.Kind() && !lost(before) {
			return ErrOtherKind.With(id.Name, before.Kind())
		}
		a = *before
		a.Reconfigure(config, c.now)
	} else {
		if e.kernel.Full() {
			return kernel.ErrFull
		}
		if most := e.options.MaxAlarms; most > 0 && e.counts[id.scope()] >= most {
			return ErrTooMany.With(most)
		}
		a = alarm.New(id.Account, id.Region, id.Name, config, tags, c.now)
	}
	var on *composite // nil: it is on metrics
	if a.Kind() == alarm.Composite {
		var err error
		if on, err = e.checked(&a); err != nil {
			return err
		}
	}
	wasCyclic := e.cyclic(id)
	if ok {
		c.note(id, a.Reconfigured(before, c.now))
		e.disconnect(id)
	} else {
		c.note(id, a.Created(c.now))
		e.counts[id.scope()]++
	}
	if on != nil {
		e.connect(id, on)
		c.evaluate(&a, before)
		if wasCyclic && !e.cyclic(id) {
			c.changed(id) // the cycle kept those that depend on it from being evaluated
		}
	} else {
		c.put(&a)
	}
	c.apply()
	e.options.Wake()
	if a.Short() {
		e.options.WakeShort()
	}
	return nil
}

// Delete removes those of the alarms that exist. It fails with NotFound if none of several does,
// and with ValidationFailed if a composite alarm that is not among them depends on one.
func (e *Engine) Delete(ids []ID) error {
	return e.run(func() error { return e.remove(ids) })
}

func (e *Engine) remove(ids []ID) error {
	c := e.begin()
	gone := map[ID]bool{}
	for _, id := range ids {
		if e.alarms[id] != nil {
			gone[id] = true
		}
	}
	if len(gone) == 0 && len(ids) > 0 {
		return ErrNotFound
	}
	if needed := e.neededBeyond(gone); len(needed) > 0 {
		return errNeeded(needed)
	}
	for _, id := range ids {
		if !gone[id] {
			continue
		}
		delete(gone, id)
		c.batch.Delete(id.key(tagAlarm))
		c.note(id, e.alarms[id].Deleted(c.now))
		e.disconnect(id)
		delete(e.alarms, id)
		delete(e.periods, id)
		if e.counts[id.scope()]--; e.counts[id.scope()] == 0 {
			delete(e.counts, id.scope())
		}
	}
	c.apply()
	return nil
}

// Errors of commands.
var (
	ErrTooMany  = fault.NewRule(fault.LimitExceeded, "alarms: there are too many") // the limit
	ErrNotFound = fault.NewRule(fault.NotFound, "alarms: there is no such alarm")
	ErrUntagged = fault.NewRule(fault.ResourceNotFound, "alarms: there is no such alarm to tag")

	ErrOtherKind  = fault.NewRule(fault.ValidationFailed, "alarms: there is one of the other kind")      // its name, its kind
	ErrNoChildren = fault.NewRule(fault.ValidationFailed, "alarms: a rule's alarms do not exist")        // their names
	ErrParents    = fault.NewRule(fault.ValidationFailed, "alarms: too many composite alarms depend on") // the name, the limit
	ErrNeeded     = fault.NewRule(fault.ValidationFailed, "alarms: composite alarms depend on it")       // its name
	ErrAllNeeded  = fault.NewRule(fault.ValidationFailed, "alarms: composite alarms depend on them")     // their names
	ErrSuppressor = fault.NewRule(fault.ValidationFailed, "alarms: the suppressor does not exist")       // as it was given
)

// SetState sets the state of an alarm until its next evaluation, and executes the actions if
// the state is new. It fails with NotFound.
func (e *Engine) SetState(ctx context.Context, id ID, s alarm.Status) error {
	err := e.change(id, func(c *commit, a *alarm.Alarm) { c.enter(a, s) })
	if err != nil {
		return err
	}
	return e.Execute(ctx)
}

// Enable switches the actions of alarms on or off. Unknown alarms are ignored.
func (e *Engine) Enable(ids []ID, enabled bool) error {
	for _, id := range ids {
		err := e.change(id, func(c *commit, a *alarm.Alarm) {
			before := *a
			if a.Disabled == enabled {
				a.Disabled, a.Configured = !enabled, c.now
				c.note(id, a.Reconfigured(&before, c.now))
				c.put(a)
			}
		})
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
	}
	return nil
}

// Tag changes the tags of an alarm: f gets a copy. It fails with ResourceNotFound, and with f's
// error.
func (e *Engine) Tag(id ID, f func(tags map[string]string) error) error {
	var refused error
	err := e.change(id, func(c *commit, a *alarm.Alarm) {
		tags := maps.Clone(a.Tags)
		if tags == nil {
			tags = map[string]string{}
		}
		if refused = f(tags); refused == nil {
			a.Tags = tags
			c.put(a)
		}
	})
	if fault.KindOf(err) == fault.NotFound {
		return ErrUntagged
	}
	return cmp.Or(err, refused)
}

// change runs a command on an alarm. It fails with NotFound.
func (e *Engine) change(id ID, f func(c *commit, a *alarm.Alarm)) error {
	return e.run(func() error {
		found, ok := e.alarms[id]
		if !ok {
			return ErrNotFound
		}
		c, a := e.begin(), *found
		f(c, &a)
		c.apply()
		return nil
	})
}

// Get is an alarm as it is now.
func (e *Engine) Get(id ID) (a alarm.Alarm, ok bool) {
	_ = e.run(func() error {
		var found *alarm.Alarm
		if found, ok = e.alarms[id]; ok {
			a = *found
		}
		return nil
	})
	return a, ok
}

// List returns the alarms of a scope that f accepts, by name.
func (e *Engine) List(scope metrics.Scope, f func(a *alarm.Alarm) bool) []alarm.Alarm {
	var all []alarm.Alarm
	_ = e.run(func() error {
		for id, a := range e.alarms {
			if id.scope() == scope && f(a) {
				all = append(all, *a)
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b alarm.Alarm) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Package stacks has the stacks of resources and executes their steps. It is the module over
// the rules of package stack, with its own lock and stream of the journal. A step is durable
// before a Worker executes it, and its result before anything follows. A start after a crash
// gives the Worker the unfinished steps again, with the same names, as they may have been
// executed.
package stacks

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/store"
)

// Limits of stacks.
const (
	maxStacks  = 2000 // of an account in a region
	maxChanges = 1000 // change sets of a stack

	// kept is how long a deleted stack can be described, as AWS documents it.
	kept = 90 * 24 * time.Hour

	// atOnce bounds the steps that run concurrently.
	atOnce = 32
)

// Errors of commands.
var (
	ErrNone    = fault.NewRule(fault.ValidationFailed, "stacks: there is no such stack")
	ErrNoStack = fault.NewRule(fault.ValidationFailed, "stacks: there is no stack to have change sets")
	ErrExists  = fault.NewRule(fault.ResourceAlreadyExists, "stacks: there is one of that name")
	ErrTooMany = fault.NewRule(fault.LimitExceeded, "stacks: there are as many as there may be")
	ErrNothing = fault.NewRule(fault.ValidationFailed, "stacks: nothing would change")

	ErrExistsAlready = fault.NewRule(fault.ValidationFailed, "stacks: a change set cannot create what there is")
	ErrNotUpdatable  = fault.NewRule(fault.ValidationFailed, "stacks: its status forbids an update")
	ErrRetyped       = fault.NewRule(fault.ValidationFailed, "stacks: a resource stays of its type")
	ErrChanged       = fault.NewRule(fault.ValidationFailed, "stacks: it was changed since it was looked at")
	ErrNotDeletable  = fault.NewRule(fault.ValidationFailed, "stacks: its status forbids a deletion")
	ErrNotKept       = fault.NewRule(fault.ValidationFailed, "stacks: resources are kept of what could not be deleted only")
	ErrNotCancelable = fault.NewRule(fault.ValidationFailed, "stacks: no update is under way")
	ErrNoResource    = fault.NewRule(fault.ValidationFailed, "stacks: it has no such resource")
	ErrNotSkipped    = fault.NewRule(fault.ValidationFailed, "stacks: only what could not be rolled back is skipped")
	ErrNotRolling    = fault.NewRule(fault.ValidationFailed, "stacks: its status forbids a rollback")

	ErrProtected        = fault.NewRule(fault.ValidationFailed, "stacks: it is protected")
	ErrRootProtected    = fault.NewRule(fault.ValidationFailed, "stacks: the one around it is protected")
	ErrNestedProtection = fault.NewRule(fault.ValidationFailed, "stacks: the protection of a nested one is that of the one around it")

	ErrNoChanges = fault.NewRule(fault.NotFound, "stacks: there is no such change set")
	ErrChanges   = fault.NewRule(fault.ResourceAlreadyExists, "stacks: there is a change set of that name")
	ErrNoChange  = fault.NewRule(fault.ValidationFailed, "stacks: the change set would change nothing")
	ErrState     = fault.NewRule(fault.InvalidState, "stacks: the change set cannot be executed")
)

// Purpose is the purpose that the records of stacks are sealed for: properties and parameters
// may be secrets.
const Purpose = "stacks"

type stackID [16]byte

// entry is a stack in memory. The module's lock guards it.
type entry struct {
	stack.Machine

	id      stackID
	changes map[stackID]*ChangeSet
}

// stackName identifies a stack that is not deleted.
type stackName struct{ account, region, name string }

func (e *entry) stackName() stackName { return stackName{e.Account, e.Region, e.Name} }

// Module has the stacks. It is a module of the kernel, with its own shard.
type Module struct {
	kernel.NopLifecycle
	kernel *kernel.Kernel
	shard  *kernel.Shard // whose lock guards what follows
	sealer *seal.Sealer
	// sentence is what a client reads of an error.
	sentence func(err error) string

	byID    map[stackID]*entry
	byName  map[stackName]*entry // without deleted ones
	stores  map[stackID]*entry   // those that have or had parameters, or inline policies
	steps   uint64               // the highest order of a step in progress
	worker  Worker               // nil: no step is executed yet
	reader  Reader               // nil: no resource is compared
	running chan struct{}        // holds a token for each step that runs
	// ending are closed when no operation of a stack is in progress any more.
	ending map[stackID][]chan struct{}
}

// New adds the module to a kernel. The sealer is for Purpose; nil: records are in clear. sentence
// is what a client reads of an error.
func New(k *kernel.Kernel, sealer *seal.Sealer, sentence func(err error) string) *Module {
	m := &Module{kernel: k, shard: k.OwnShard(keyspace.StackStream), sealer: sealer, sentence: sentence, running: make(chan struct{}, atOnce), ending: map[stackID][]chan struct{}{}}
	m.byID, m.byName, m.stores = map[stackID]*entry{}, map[stackName]*entry{}, map[stackID]*entry{}
	m.shard.Add(m)
	return m
}

// uuid parses the id at the end of an ARN.
func uuid(text string) (id stackID, ok bool) {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != len(id) {
		return id, false
	}
	return stackID(b), true
}

// idOf is the id in the ARN of a stack or of a change set.
func idOf(arn string) (stackID, bool) { return uuid(arn[strings.LastIndexByte(arn, '/')+1:]) }

// Load implements kernel.Lifecycle.
func (m *Module) Load() error {
	m.byID, m.byName, m.stores = map[stackID]*entry{}, map[stackName]*entry{}, map[stackID]*entry{}
	reader := m.shard.Stream.Reader()
	span := func(tag byte) keyspace.Span { return keyspace.Prefix([]byte{keyspace.StackSpace, tag}) }
	err := store.EachOf(reader, keyspace.KindStack, span(keyspace.StackRecords), func(k *keyspace.Key, value []byte) error {
		e := &entry{id: stackID(k.Bytes(keyspace.PartStack)), changes: map[stackID]*ChangeSet{}}
		e.Resources = map[string]*stack.Resource{}
		e.Exports, e.Sentence = exports{m, e}, m.sentence
		m.byID[e.id] = e
		return m.open(k.Encoded(), value, &e.Stack)
	})
	if err != nil {
		return err
	}
	err = store.EachOf(reader, keyspace.KindStackResource, span(keyspace.StackResources), func(k *keyspace.Key, value []byte) error {
		r := &stack.Resource{}
		if err := m.open(k.Encoded(), value, r); err != nil {
			return err
		}
		if e := m.byID[stackID(k.Bytes(keyspace.PartStack))]; e != nil {
			id, _ := k.Text(keyspace.PartLogicalID)
			e.Resources[id] = r
			if r.Next != nil {
				m.steps = max(m.steps, r.Next.Order)
			}
			m.storing(e, r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = store.EachOf(reader, keyspace.KindChangeSet, span(keyspace.StackChanges), func(k *keyspace.Key, value []byte) error {
		c := &ChangeSet{}
		if e := m.byID[stackID(k.Bytes(keyspace.PartStack))]; e != nil {
			e.changes[stackID(k.Bytes(keyspace.PartChangeSet))] = c
		}
		return m.open(k.Encoded(), value, c)
	})
	for _, e := range m.byID {
		if e.Status != stack.DeleteComplete {
			m.byName[e.stackName()] = e
		}
	}
	return err
}

// NextDue implements kernel.Lifecycle.
func (m *Module) NextDue() (at int64) {
	for _, e := range m.byID {
		if e.Status == stack.DeleteComplete {
			if due := e.Deleted + kept.Milliseconds(); at == 0 || due < at {
				at = due
			}
		}
	}
	return at
}

// Tick implements kernel.Lifecycle.
func (m *Module) Tick(now int64) {
	for id, e := range m.byID {
		if e.Status == stack.DeleteComplete && e.Deleted+kept.Milliseconds() <= now {
			m.forget(id)
		}
	}
}

// forget removes a stack and all its records.
func (m *Module) forget(id stackID) {
	for _, tag := range []byte{keyspace.StackChanges, keyspace.StackEvents, keyspace.StackResources, keyspace.StackTemplates} {
		span := keyspace.Prefix(key(tag, id))
		m.shard.Batch.DeleteRange(span.Lower, span.Upper)
	}
	m.shard.Batch.Delete(key(keyspace.StackRecords, id))
	delete(m.byID, id)
	delete(m.stores, id)
}

// exports are the outputs that stacks other than one can import.
type exports struct {
	*Module

	of *entry
}

// Export implements stack.Exports.
func (x exports) Export(name string) (value, owner string, ok bool) {
	e, value := x.exporter(name)
	if e == nil || e.Status == stack.DeleteInProgress {
		return "", "", false
	}
	return value, e.Name, true
}

// Exporter implements stack.Exports.
func (x exports) Exporter(name string) string {
	if e, _ := x.exporter(name); e != nil {
		return e.Name
	}
	return ""
}

func (x exports) exporter(name string) (e *entry, value string) {
	for s, e := range x.byName {
		if s.account != x.of.Account || s.region != x.of.Region {
			continue
		}
		for _, o := range e.Outputs {
			if o.Export == name {
				return e, o.Value
			}
		}
	}
	return nil, ""
}

// Importer implements stack.Exports.
func (x exports) Importer(name string) string {
	var found []string
	for s, e := range x.byName {
		if s.account == x.of.Account && s.region == x.of.Region && slices.Contains(e.Imports, name) {
			found = append(found, e.Name)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found)
}

func sorted[K ~string, V any](of map[K]V) []K { return slices.Sorted(maps.Keys(of)) }

// Package mapping is the state machine of event-source mappings, from queues to functions.
package mapping

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
)

// Settings are the settings of a mapping.
type Settings struct {
	BatchSize      int           `json:"batchSize"`             // 1–10,000; FIFO queues: 1–10
	Window         time.Duration `json:"window,omitempty"`      // how long a batch is filled: 0–300 s
	ReportFailures bool          `json:"report,omitempty"`      // FunctionResponseTypes has ReportBatchItemFailures
	Filters        []string      `json:"filters,omitempty"`     // patterns; a message must match one; none: all match
	Concurrency    int           `json:"concurrency,omitempty"` // MaximumConcurrency: 2–1,000; 0: none
}

// Equal reports whether the two are the same.
func (s Settings) Equal(other Settings) bool { return reflect.DeepEqual(s, other) }

// Mapping is an event-source mapping.
type Mapping struct {
	ARN      arn.ARN // "event-source-mapping:" and a UUID
	Queue    arn.ARN
	Function arn.ARN // with a qualifier, if the request has one
	Settings
	Enabled  bool
	Modified time.Time
	Tags     map[string]string
	Result   string // LastProcessingResult, not stored; empty: none

	change  string // the transitional state; empty: none
	readyAt time.Time
}

// resourceType is the prefix of the resource in a mapping's ARN.
const resourceType = "event-source-mapping:"

// ARN is the ARN of a mapping with a UUID.
func ARN(region, account, uuid string) arn.ARN {
	return arn.ARN{Service: "lambda", Region: region, Account: account, Resource: resourceType + uuid}
}

// Is reports whether an ARN is a mapping's.
func Is(a arn.ARN) bool { return a.Service == "lambda" && strings.HasPrefix(a.Resource, resourceType) }

// UUID is the last part of the mapping's ARN.
func (m *Mapping) UUID() string { return strings.TrimPrefix(m.ARN.Resource, resourceType) }

// The states of a mapping.
const (
	Creating  = "Creating"
	Enabling  = "Enabling"
	Enabled   = "Enabled"
	Disabling = "Disabling"
	Disabled  = "Disabled"
	Updating  = "Updating"
	Deleting  = "Deleting"
)

// State is the reported state of the mapping.
func (m *Mapping) State() string {
	switch {
	case m.change != "":
		return m.change
	case m.Enabled:
		return Enabled
	}
	return Disabled
}

// Active reports whether the queue is polled.
func (m *Mapping) Active() bool {
	return m.Enabled && (m.change == "" || m.change == Updating)
}

// State has all mappings of one shard.
type State struct {
	shard    uint16
	mappings map[arn.ARN]*Mapping
	changing []*Mapping // next completion first
}

// New makes the empty state of a shard.
func New(shard uint16) *State { return &State{shard: shard, mappings: map[arn.ARN]*Mapping{}} }

// The errors of commands, with the fields of each.
var (
	ErrNotFound    = fault.NewRule(fault.ResourceNotFound, "mapping: not found")
	ErrInUse       = fault.NewRule(fault.ResourceInUse, "mapping: it is being changed") // the refused change: "update", "delete"
	ErrTooManyTags = fault.NewRule(fault.InvalidParameter, "mapping: too many tags")
	ErrUntaggable  = fault.NewRule(fault.ResourceNotFound, "mapping: not found, for tags") // the ARN
)

// Mapping finds a mapping. Errors: ResourceNotFound.
func (s *State) Mapping(a arn.ARN) (*Mapping, error) {
	if m, ok := s.mappings[a]; ok {
		return m, nil
	}
	return nil, ErrNotFound
}

// All yields the mappings, unordered.
func (s *State) All(yield func(*Mapping) bool) {
	for _, m := range s.mappings {
		if !yield(m) {
			return
		}
	}
}

// Create adds a mapping; if enabled, it is in creation until readyAt. The caller ensures that
// there is none of the same queue and function.
func (s *State) Create(now, readyAt time.Time, m Mapping, b *mutation.Batch) *Mapping {
	m.Modified = now
	if m.Enabled {
		m.change, m.readyAt = Creating, readyAt
	}
	s.mappings[m.ARN] = &m
	s.put(b, &m)
	return &m
}

// Update is the command that changes a mapping.
type Update struct {
	ARN      arn.ARN
	Function arn.ARN // zero: unchanged
	Settings Settings
	Enabled  bool
}

// Update changes a mapping. Errors: ResourceNotFound; ResourceInUse during another change.
func (s *State) Update(now, readyAt time.Time, cmd Update, b *mutation.Batch) (*Mapping, error) {
	m, err := s.idle(cmd.ARN, "update")
	if err != nil {
		return nil, err
	}
	change := Updating
	switch {
	case cmd.Enabled && !m.Enabled:
		change = Enabling
	case !cmd.Enabled && m.Enabled:
		change = Disabling
	}
	m.Settings, m.Enabled, m.Modified = cmd.Settings, cmd.Enabled, now
	if cmd.Function != (arn.ARN{}) {
		m.Function = cmd.Function
	}
	m.change, m.readyAt = change, readyAt
	s.put(b, m)
	return m, nil
}

// Delete begins to delete a mapping: CompleteChanges removes it. Errors: ResourceNotFound,
// ResourceInUse.
func (s *State) Delete(now, readyAt time.Time, a arn.ARN, b *mutation.Batch) (*Mapping, error) {
	m, err := s.idle(a, "delete")
	if err != nil {
		return nil, err
	}
	m.change, m.readyAt, m.Modified = Deleting, readyAt, now
	s.put(b, m)
	return m, nil
}

// idle finds a mapping without a change in progress.
func (s *State) idle(a arn.ARN, verb string) (*Mapping, error) {
	m, err := s.Mapping(a)
	if err == nil && m.change != "" {
		return nil, ErrInUse.With(verb)
	}
	return m, err
}

// Tag sets and removes tags. Errors: ResourceNotFound, InvalidParameter for more
// than 50 in all.
func (s *State) Tag(a arn.ARN, set map[string]string, remove []string, b *mutation.Batch) error {
	m, ok := s.mappings[a]
	if !ok {
		return ErrUntaggable.With(a)
	}
	tags := map[string]string{}
	for _, from := range []map[string]string{m.Tags, set} {
		maps.Copy(tags, from)
	}
	for _, key := range remove {
		delete(tags, key)
	}
	const most = 50
	if len(tags) > most {
		return ErrTooManyTags
	}
	m.Tags = tags
	s.put(b, m)
	return nil
}

// NextCompletion is the time of the next CompleteChanges; ok is false if there is no change.
func (s *State) NextCompletion() (at time.Time, ok bool) {
	if len(s.changing) == 0 {
		return time.Time{}, false
	}
	return s.changing[0].readyAt, true
}

// CompleteChanges completes the due changes of up to limit mappings, and returns these.
func (s *State) CompleteChanges(now time.Time, limit int, b *mutation.Batch) (completed []arn.ARN) {
	for len(completed) < limit && b.Size() < mutation.StepBytes && len(s.changing) > 0 && !s.changing[0].readyAt.After(now) {
		m := s.changing[0]
		completed = append(completed, m.ARN)
		if m.change == Deleting {
			s.changing = s.changing[1:]
			delete(s.mappings, m.ARN)
			b.Delete(s.key(m.ARN))
			continue
		}
		m.change, m.readyAt = "", time.Time{}
		s.put(b, m)
	}
	return completed
}

// A mapping is one record:
//
//	shard 'L' 'm' account/region/UUID → version, JSON of record
const (
	space   = keyspace.Functions
	kind    = keyspace.FunctionMappings
	version = 1
)

// ErrRecord reports a record that this version did not write.
var ErrRecord = errors.New("mapping: unreadable record")

type record struct {
	Queue    string            `json:"queue"`
	Function string            `json:"function"`
	Settings Settings          `json:"settings"`
	Enabled  bool              `json:"enabled,omitempty"`
	Modified int64             `json:"modified"` // Unix milliseconds
	Tags     map[string]string `json:"tags,omitempty"`
	Change   string            `json:"change,omitempty"`
	ReadyAt  int64             `json:"settleAt,omitempty"` // Unix milliseconds
}

// put writes a mapping and updates the index of changes.
func (s *State) put(b *mutation.Batch, m *Mapping) {
	r := record{
		Queue: m.Queue.String(), Function: m.Function.String(), Settings: m.Settings, Enabled: m.Enabled,
		Modified: m.Modified.UnixMilli(), Tags: m.Tags, Change: m.change,
	}
	if m.change != "" {
		r.ReadyAt = m.readyAt.UnixMilli()
	}
	b.Set(s.key(m.ARN), keyspace.EncodeJSON(version, r))
	s.index(m)
}

func (s *State) index(m *Mapping) {
	s.changing = slices.DeleteFunc(s.changing, func(other *Mapping) bool { return other == m })
	if m.change == "" {
		return
	}
	i, _ := slices.BinarySearchFunc(s.changing, m, func(a, b *Mapping) int {
		return cmp.Or(a.readyAt.Compare(b.readyAt), strings.Compare(a.ARN.Resource, b.ARN.Resource))
	})
	s.changing = slices.Insert(s.changing, i, m)
}

// Prefix is the key prefix of a shard's mappings.
func Prefix(shard uint16) []byte {
	return append(binary.BigEndian.AppendUint16(nil, shard), space, kind)
}

func (s *State) key(a arn.ARN) []byte {
	m := Mapping{ARN: a}
	return append(Prefix(s.shard), a.Account+"/"+a.Region+"/"+m.UUID()...)
}

// Load loads one record. After an error the state is unusable.
func (s *State) Load(key, value []byte) error {
	name, ok := strings.CutPrefix(string(key), string(Prefix(s.shard)))
	parts := strings.Split(name, "/")
	var r record
	if !ok || len(parts) != 3 || keyspace.DecodeJSON(version, value, &r) != nil {
		return fmt.Errorf("%w: key %q", ErrRecord, key)
	}
	queue, err := arn.Parse(r.Queue)
	fn, err2 := arn.Parse(r.Function)
	if cmp.Or(err, err2) != nil || queue.IsZero() || fn.IsZero() {
		return fmt.Errorf("%w: key %q", ErrRecord, key)
	}
	m := &Mapping{
		ARN: ARN(parts[1], parts[0], parts[2]), Queue: queue, Function: fn, Settings: r.Settings, Enabled: r.Enabled,
		Modified: time.UnixMilli(r.Modified).UTC(), Tags: r.Tags, change: r.Change,
	}
	if m.change != "" {
		m.readyAt = time.UnixMilli(r.ReadyAt).UTC()
	}
	s.mappings[m.ARN] = m
	s.index(m)
	return nil
}

package journal

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// Reader reads the store; it cannot write.
type Reader interface {
	store.Reader
	// Snapshot is a fixed view of the present. The caller closes it.
	Snapshot() store.Snapshot
}

// Stream is an ordered sequence of changes with one owner.
type Stream struct {
	journal *Journal
	id      uint16
	finish  func(commit uint64, b *mutation.Batch)
	last    atomic.Pointer[Commit]

	state    State  // guarded by the journal's mu
	sequence uint64 // batches framed; guarded by the journal's applying
}

// State is the durable state of the stream itself, written with each commit.
type State struct {
	Epoch       uint32 // grows by one with each start of the owner
	Now         int64  // the latest time of a command, epoch milliseconds
	Incarnation uint64 // the latest incarnation that was allocated; 0: none yet
}

// Stream opens the stream with a number below keyspace.Streams, and reads its state. If a
// number is opened several times, only the latest Stream may be appended to. Errors: those
// of the store, and of a state record that cannot be read.
//
// finish, unless it is nil, is called by Append for each change of the stream. It adds to the
// stream's batch in the commit of that number what is written once per commit, however many
// changes that has, such as counters: each call overwrites what the one before has added.
func (j *Journal) Stream(id uint16, finish func(commit uint64, b *mutation.Batch)) (*Stream, State, error) {
	s := &Stream{journal: j, id: id, finish: finish}
	value, ok, err := j.store.Get(nil, stateKey(id))
	if err != nil {
		return nil, State{}, fmt.Errorf("journal: stream %d: %w", id, err)
	}
	if ok {
		if s.state, s.sequence, ok = DecodeState(value); !ok {
			return nil, State{}, fmt.Errorf("journal: the record of stream %d is corrupt", id)
		}
	}
	return s, s.state, nil
}

// Append is Journal.Append of one change at the time now, in epoch milliseconds, for an owner
// without a State of its own.
func (s *Stream) Append(when Durability, now int64, b *mutation.Batch) *Commit {
	s.journal.mu.Lock()
	state := s.state
	s.journal.mu.Unlock()
	state.Now = max(state.Now, now)
	return s.journal.Append(when, Change{Stream: s, Batch: b, State: state})
}

// Sync returns once everything that was appended to the stream is durable.
func (s *Stream) Sync() {
	if c := s.Last(); !c.Durable() {
		s.journal.signal()
		c.Wait()
	}
}

// BeginEpoch starts a new epoch for later appends.
func (s *Stream) BeginEpoch() {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	s.state.Epoch++
}

// Last is the latest commit with a change of the stream; nil: none of this process.
func (s *Stream) Last() *Commit { return s.last.Load() }

// Reader reads the store and sees everything that was appended to the stream.
func (s *Stream) Reader() Reader { return streamReader{s} }

// advance merges the state after a change into the stream's; the caller holds the journal's
// mu. It takes the maximum of each field, since several callers' changes may be appended in
// another order than that in which they read the state.
func (s *Stream) advance(to State) State {
	s.state = State{
		Epoch: max(s.state.Epoch, to.Epoch), Now: max(s.state.Now, to.Now), Incarnation: max(s.state.Incarnation, to.Incarnation),
	}
	return s.state
}

type streamReader struct{ s *Stream }

// store is the store, with all appends of the stream applied.
func (r streamReader) store() store.Store {
	if !r.s.last.Load().Applied() {
		r.s.journal.Flush()
	}
	return r.s.journal.store
}

func (r streamReader) Get(dst, key []byte) (value []byte, ok bool, err error) {
	return r.store().Get(dst, key)
}

func (r streamReader) Iter(lower, upper []byte) (store.Iterator, error) {
	return r.store().Iter(lower, upper)
}

func (r streamReader) Snapshot() store.Snapshot { return r.store().Snapshot() }

const stateSize = 8 + 4 + 8 + 8

func stateKey(id uint16) []byte { return keyspace.Shard(id, keyspace.StreamState) }

// Put writes the record of a stream: its state and the sequence of its latest batch. Only
// the journal, Renew and a repair call it.
func (s *State) Put(b *mutation.Batch, id uint16, sequence uint64) {
	var v [stateSize]byte
	binary.BigEndian.PutUint64(v[:], sequence)
	binary.BigEndian.PutUint32(v[8:], s.Epoch)
	binary.BigEndian.PutUint64(v[12:], uint64(s.Now))
	binary.BigEndian.PutUint64(v[20:], s.Incarnation)
	b.Set(stateKey(id), v[:])
}

// DecodeState reads the record of a stream: its state and the sequence of its latest
// batch. ok is false for a record of another length.
func DecodeState(v []byte) (s State, sequence uint64, ok bool) {
	if len(v) != stateSize {
		return s, 0, false
	}
	return State{
		Epoch:       binary.BigEndian.Uint32(v[8:]),
		Now:         int64(binary.BigEndian.Uint64(v[12:])),
		Incarnation: binary.BigEndian.Uint64(v[20:]),
	}, binary.BigEndian.Uint64(v), true
}

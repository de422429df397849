package journal

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// Reader reads the store, and cannot write to it.
type Reader interface {
	store.Reader
	// Snapshot is a fixed view of now. The caller closes it.
	Snapshot() store.Snapshot
}

// Stream is an order of changes under one owner.
type Stream struct {
	journal *Journal
	id      uint16
	finish  func(commit uint64, b *mutation.Batch)
	last    atomic.Pointer[Commit]

	state    State  // guarded by the journal's mu
	sequence uint64 // batches sealed; guarded by the journal's applying
}

// State is what a stream remembers about itself; it is written with each commit.
type State struct {
	Epoch       uint32 // grows with each start of the owner
	Now         int64  // the latest time that a command saw, epoch milliseconds
	Incarnation uint64 // the last number given out
}

// Stream opens a stream, and reads what it remembers. Of the streams that are opened
// under one number only the latest may be appended to.
//
// finish, unless it is nil, is called with each part of the stream and adds to the
// stream's batch what a commit tells once, however many parts it has: commit is the
// commit's number. Its caller is Append.
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

// Append is Journal.Append of one part, whose owner keeps no state but what the stream
// does, at a time in epoch milliseconds.
func (s *Stream) Append(sync bool, now int64, b *mutation.Batch) *Commit {
	s.journal.mu.Lock()
	state := s.state
	s.journal.mu.Unlock()
	state.Now = max(state.Now, now)
	return s.journal.Append(sync, Part{Stream: s, Batch: b, State: state})
}

// Sync returns once everything that was appended to the stream is durable.
func (s *Stream) Sync() {
	if c := s.Last(); !c.Durable() {
		s.journal.signal()
		c.Wait()
	}
}

// Begin takes the stream over: what is appended from now on is of a new epoch.
func (s *Stream) Begin() {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	s.state.Epoch++
}

// Last is the latest commit that the stream was appended to; nil: none of this process.
func (s *Stream) Last() *Commit { return s.last.Load() }

// Reader reads the store and sees everything that was appended to the stream.
func (s *Stream) Reader() Reader { return streamReader{s} }

// advance notes the state behind a part; the journal's mu is held. Parts of several
// callers may come in another order than their states were taken.
func (s *Stream) advance(to State) State {
	s.state = State{
		Epoch: max(s.state.Epoch, to.Epoch), Now: max(s.state.Now, to.Now), Incarnation: max(s.state.Incarnation, to.Incarnation),
	}
	return s.state
}

type streamReader struct{ s *Stream }

// store is the store as the stream sees it.
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

// Put writes the record of a stream: its state and the sequence of its latest batch.
// Beside the journal only a repair does that.
func (s *State) Put(b *mutation.Batch, id uint16, sequence uint64) {
	var v [stateSize]byte
	binary.BigEndian.PutUint64(v[:], sequence)
	binary.BigEndian.PutUint32(v[8:], s.Epoch)
	binary.BigEndian.PutUint64(v[12:], uint64(s.Now))
	binary.BigEndian.PutUint64(v[20:], s.Incarnation)
	b.Set(stateKey(id), v[:])
}

// DecodeState reads the record of a stream: its state and the sequence of its latest
// batch.
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

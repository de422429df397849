package journal

import (
	"bytes"
	"errors"
	"testing"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// A stream takes the latest of each part of its state, in whatever order callers append.
func TestStateOfAStream(t *testing.T) {
	s := memory.New()
	j := Open(Options{Store: s})
	a, _, err := j.Stream(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []State{{Epoch: 5, Now: 1, Incarnation: 3}, {Epoch: 4, Now: 9, Incarnation: 2}, {Epoch: 3, Now: 8, Incarnation: 1}} {
		j.Append(Lazy, Change{Stream: a, Batch: storetest.Sets("k", "v"), State: state})
	}
	if a.Sync(); !a.Last().Durable() {
		t.Error("not durable after Sync")
	}
	if _, got, err := j.Stream(1, nil); err != nil || got != (State{Epoch: 5, Now: 9, Incarnation: 3}) {
		t.Errorf("%+v, %v", got, err)
	}
	j.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.Stream(1, nil); err == nil {
		t.Error("a stream that cannot be read begins anew")
	}
}

// A copy of a store has no key of receipt handles and no fences, and later epochs.
func TestRenew(t *testing.T) {
	s := memory.New()
	handles, fence := keyspace.Shard(0, keyspace.HandleKey), []byte{keyspace.ClusterSpace, keyspace.ClusterFences, 'a'}
	b := storetest.Sets(string(handles), "secret", string(fence), "f", "k", "v")
	state := State{Epoch: 7, Now: 8, Incarnation: 9}
	state.Put(b, 1, 10)
	state.Put(b, keyspace.LogStream, 11)
	if err := s.Apply(store.Sync, b); err != nil {
		t.Fatal(err)
	}
	if err := Renew(s); err != nil {
		t.Fatal(err)
	}
	if h, f, k := get(t, s, string(handles)), get(t, s, string(fence)), get(t, s, "k"); h != "nothing" || f != "nothing" || k != "v" {
		t.Errorf("the key is %q, the fence %q, another record %q", h, f, k)
	}
	state.Epoch += renewedEpochs
	for id, sequence := range map[uint16]uint64{1: 10, keyspace.LogStream: 11} {
		if got, n, ok := DecodeState([]byte(get(t, s, string(stateKey(id))))); got != state || n != sequence || !ok {
			t.Errorf("stream %d: %+v, batch %d", id, got, n)
		}
	}
	if get(t, s, string(stateKey(2))) != "nothing" {
		t.Error("a stream that was never used has a record")
	}
	if err := s.Apply(store.Sync, storetest.Sets(string(stateKey(5)), "?")); err != nil {
		t.Fatal(err)
	}
	if err := Renew(s); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a damaged record: %v", err)
	}
	broken := errors.New("broken")
	for _, key := range [][]byte{handles, stateKey(keyspace.Streams - 1), keyspace.Prefix(fence[:2]).Lower} {
		s := unreadable{memory.New(), key, broken}
		if err := Renew(s); !errors.Is(err, broken) {
			t.Errorf("renewed though %x cannot be read: %v", key, err)
		}
	}
}

// unreadable is a store of which a record, or what begins there, cannot be read.
type unreadable struct {
	store.Store
	key []byte
	err error
}

func (u unreadable) Get(dst, key []byte) ([]byte, bool, error) {
	if bytes.Equal(key, u.key) {
		return nil, false, u.err
	}
	return u.Store.Get(dst, key)
}

func (u unreadable) Iter(lower, upper []byte) (store.Iterator, error) {
	if bytes.Equal(lower, u.key) {
		return nil, u.err
	}
	return u.Store.Iter(lower, upper)
}

package shardtest

import (
	"bytes"
	"sync"
	"testing"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/storetest"
)

// Damaged is a store that loses keys to damage, and says so, as store.Damaged has it.
type Damaged struct {
	store.Store

	mu   sync.Mutex
	lost [][]byte
}

// Lose loses the keys that are matched, and fails the test if there is none.
func (d *Damaged) Lose(t *testing.T, match func(key, value []byte) bool) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	var b mutation.Batch
	for key, value := range storetest.Dump(t, d.Store) {
		if match(key, value) {
			b.Delete(key)
			d.lost = append(d.lost, bytes.Clone(key))
		}
	}
	if err := d.Apply(store.Sync, &b); err != nil || b.Len() == 0 {
		t.Fatal(b.Len(), err)
	}
}

// DamageIn implements store.Damaged.
func (d *Damaged) DamageIn(lower, upper []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range d.lost {
		if (keyspace.Span{Lower: lower, Upper: upper}).Meets(keyspace.Span{Lower: key, Upper: append(bytes.Clone(key), 0)}) {
			return store.ErrDamaged
		}
	}
	return nil
}

package replica

import (
	"errors"

	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// ErrBootstrapped reports a store that is a replica's already.
var ErrBootstrapped = errors.New("it is a node's of a cluster already")

// Bootstrap makes the store of a single node, which nobody else has open, the one replica that
// a cluster's log begins behind. It has no effect on one that was bootstrapped and never led
// since. Errors: ErrBootstrapped.
func Bootstrap(st store.Store, cell uint16) error {
	value, ok, err := st.Get(nil, record.Key(cell))
	if err != nil {
		return err
	}
	first := record.Fence{Epoch: 1, Number: 1, Owner: "single/"}
	if ok {
		if f, err := record.DecodeFence(value); err != nil || f != first {
			return errors.Join(ErrBootstrapped, err)
		}
	}
	var b mutation.Batch
	first.Put(&b, cell)
	return st.Apply(store.Sync, &b)
}

// Standalone makes a replica's store, which nobody else has open, one of a single node.
func Standalone(st store.Store, cell uint16) error {
	var b mutation.Batch
	b.Delete(record.Key(cell))
	return st.Apply(store.Sync, &b)
}

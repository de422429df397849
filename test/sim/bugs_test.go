package sim

import (
	"net/http"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// storeBug is a fault between the journal and the store.
type storeBug struct {
	// rewrite changes or drops one write.
	rewrite func(k keyspace.Key, op mutation.Op, key, value []byte) (newValue []byte, keep bool)
	// sync is done in the place of the store's.
	sync func(s store.Store) error
}

func (b *storeBug) apply(in *mutation.Batch) *mutation.Batch {
	out := new(mutation.Batch)
	err := in.Each(func(op mutation.Op, key, value []byte) error {
		k, err := keyspace.Parse(key)
		if err == nil {
			changed, keep := b.rewrite(k, op, key, value)
			if !keep {
				return nil
			}
			value = changed
		}
		switch op {
		case mutation.Set:
			out.Set(key, value)
		case mutation.Delete:
			out.Delete(key)
		case mutation.SingleDelete:
			out.SingleDelete(key)
		case mutation.DeleteRange:
			out.DeleteRange(key, value)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return out
}

// fault is a planted bug.
type fault struct {
	name string
	// store makes what changes what a machine writes.
	store func(w *world) *storeBug
	// request changes what the server is asked.
	request func(w *world, r *http.Request) *http.Request
}

package journal

import (
	"fmt"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// renewedEpochs is added to the epoch of every stream of a renewed store, so that it never
// reuses an epoch that the server it was copied from has reached since the copy.
const renewedEpochs = 1 << 16

// Renew turns a copy of a server's store into the store of another server, in one batch that
// is durable when it returns. It deletes the key of receipt handles, which the next start
// draws anew: a handle that the original issued must not match a message of the copy. It
// advances all epochs by renewedEpochs, and removes the fences of a cluster. Errors:
// store.ErrDamaged for a stream's record that cannot be read, and those of the store.
func Renew(st store.Store) error {
	b := new(mutation.Batch)
	handles := keyspace.Shard(0, keyspace.HandleKey)
	_, ok, err := st.Get(nil, handles)
	if err != nil {
		return err
	}
	if ok {
		b.Delete(handles)
	}
	for id := range keyspace.Streams {
		value, ok, err := st.Get(nil, stateKey(id))
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		state, sequence, ok := DecodeState(value)
		if !ok {
			return fmt.Errorf("%w: the record of stream %d cannot be read", store.ErrDamaged, id)
		}
		state.Epoch += renewedEpochs
		state.Put(b, id, sequence)
	}
	fences := keyspace.Prefix([]byte{keyspace.ClusterSpace, keyspace.ClusterFences})
	err = store.Each(st, fences, func(key, _ []byte) error {
		b.Delete(key)
		return nil
	})
	if err != nil {
		return err
	}
	return st.Apply(store.Sync, b)
}

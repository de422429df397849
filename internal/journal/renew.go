package journal

import (
	"fmt"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// renewedEpochs is by how much the epochs of a renewed store are ahead of what it was copied
// from: none that the other server has had since is given again.
const renewedEpochs = 1 << 16

// Renew makes a store that is a copy of a server's one of another server, in one batch that is
// durable when it returns. The key of receipt handles goes, so that a start makes another: no
// handle of before means a message that has its place since. Epochs go on beyond all that were
// given. And what was a node's of a cluster is so no more. Errors: store.ErrDamaged.
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
	err = store.Each(st, fences, func(key, _ []byte) bool {
		b.Delete(key)
		return true
	})
	if err != nil {
		return err
	}
	return st.Apply(true, b)
}

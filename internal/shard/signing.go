package shard

import (
	"bytes"
	"sync"

	"godwit.dev/godwit/internal/keyspace"
)

// A message that a queue got of a subscription may be without its signature
// yet: what a publish does in its own commit must not wait for one. It is
// signed on its way to a receiver, the same way each time.

// signingPrefix begins the keys that envelopes are signed with, by their ids,
// among the keys of shard 0. Those of its replays begin alike and are shorter.
var signingPrefix = keyspace.Shard(0, keyspace.SigningKeys)

// SigningKeys are all keys that PutSigningKey was given, by their ids.
func (e *Engine) SigningKeys() (map[[16]byte][]byte, error) {
	keys := map[[16]byte][]byte{}
	err := each(e.store, keyspace.Prefix(signingPrefix), func(key, value []byte) bool {
		var id [16]byte
		if len(key) == len(signingPrefix)+len(id) {
			copy(id[:], key[len(signingPrefix):])
			keys[id] = bytes.Clone(value)
		}
		return true
	})
	return keys, err
}

// PutSigningKey keeps a key that envelopes are signed with, whose form is the
// caller's; it is durable on return.
func (e *Engine) PutSigningKey(id [16]byte, key []byte) error {
	sh := e.shards[0]
	return sh.runDurable(func(*Tx) error {
		sh.batch.Set(append(bytes.Clone(signingPrefix), id[:]...), key)
		return nil
	})
}

// sign completes received messages, those of one receive at the same time. It
// returns an error for each, nil for those that are complete.
func (e *Engine) sign(received []Received) []error {
	errs := make([]error, len(received))
	var wg sync.WaitGroup
	for i := range received {
		m := received[i].Message
		if m.Unsigned == nil {
			continue
		}
		wg.Go(func() {
			if errs[i] = e.options.Sign(m.Body, m.Unsigned); errs[i] == nil {
				m.Unsigned = nil
				m.Seal()
			}
		})
	}
	wg.Wait()
	return errs
}

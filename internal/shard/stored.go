package shard

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/keys"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/topic"
)

// Data that a development server or an earlier version stored in clear is sealed before the
// first start in production serves anything: record by record, in steps, which are commits that
// also have the position. An interrupted rewrite continues from there. Then the files are
// rewritten, since a store keeps overwritten data for a while.

const (
	storedReads = 8 // a step reads at most this many times the bytes that it writes
	// storedApart is the size from which on values may share a file, which is kept as long as
	// any of them is: all of these values are written again.
	storedApart = 512
)

// SealStoredOptions configure SealStored.
type SealStoredOptions struct {
	Journal *journal.Journal
	Sealing *seal.Keys
	// Compact rewrites the files of the store without overwritten data; nil: there is none.
	Compact func() error
	// Step is about how many bytes a step writes; 0: a mebibyte.
	Step int
	// Report is called after each step, with the counts of records found in clear so far.
	Report func(found map[string]int64)
}

// SealStored seals the data that a store has in clear, while no other process has it open. It
// is durable on return, and idempotent. found counts the records, by kind. An unreadable record
// stays as it is. Errors: ctx's, and the store's; it may be retried then.
func SealStored(ctx context.Context, o SealStoredOptions) (found map[string]int64, err error) {
	state, err := keys.ReadStored(o.Journal)
	if err != nil || state.Done {
		return nil, err
	}
	o.Step = cmp.Or(o.Step, mutation.StepBytes)
	r := &rewrite{SealStoredOptions: o, state: state}
	if r.state.Records == nil {
		r.state.Records = map[string]int64{}
	}
	for more := !state.Rewritten; more; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if more, err = r.step(); err != nil {
			return nil, err
		}
		o.Report(r.state.Records)
	}
	if o.Compact != nil {
		if err := o.Compact(); err != nil {
			return nil, err
		}
	}
	r.state.After, r.state.Done = nil, true
	return maps.Clone(r.state.Records), r.commit(nil)
}

// rewrite is a rewrite in progress.
type rewrite struct {
	SealStoredOptions
	state keys.Stored
}

// step seals the next records after its position.
func (r *rewrite) step() (more bool, err error) {
	changed := map[uint16]*mutation.Batch{} // by stream
	read, written := 0, 0
	it, err := r.Journal.Reader().Iter(append(bytes.Clone(r.state.After), 0), nil)
	if err != nil {
		return false, err
	}
	for it.Next() {
		if more = read >= storedReads*r.Step || written >= r.Step; more {
			break
		}
		key, value := bytes.Clone(it.Key()), bytes.Clone(it.Value())
		read += len(key) + len(value)
		r.state.After = key
		k, unknown := keyspace.Parse(key)
		if unknown != nil || k.ID == keyspace.KindStored || k.ID == keyspace.KindStreamState {
			continue
		}
		sealed, err := r.seal(k.ID, key, value)
		switch {
		case err != nil: // it is damaged, and nobody can read it
			continue
		case sealed != nil:
			r.state.Records[k.Kind().Name]++
			value = sealed
		case len(value) < storedApart:
			continue
		}
		stream, ok := keyspace.StreamOf(key)
		if !ok { // no owner replays it
			continue
		}
		if changed[stream] == nil {
			changed[stream] = &mutation.Batch{}
		}
		changed[stream].Set(key, value)
		written += len(key) + len(value)
	}
	if err := it.Close(); err != nil {
		return false, err
	}
	r.state.Rewritten = !more
	return more, r.commit(changed)
}

// seal seals what is in clear in a record; nil: nothing is.
func (r *rewrite) seal(kind keyspace.ID, key, value []byte) ([]byte, error) {
	switch kind {
	case keyspace.KindMessage:
		return r.sealMessage(value)
	case keyspace.KindFanout, keyspace.KindArchive:
		return publication.SealRecord(value, r.encrypt)
	case keyspace.KindSubscription:
		return topic.SealRecord(key, value, r.Sealing.Sealer(endpointsPurpose))
	case keyspace.KindFunction, keyspace.KindVersion:
		return function.SealRecord(key, value, r.Sealing.Sealer(environmentsPurpose))
	case keyspace.KindSMSDestination:
		return texts.SealRecord(key, value, r.Sealing.Sealer(texts.Purpose))
	default:
		return nil, nil
	}
}

func (r *rewrite) encrypt(m *message.Message) error { return keys.EncryptStored(r.Sealing, m) }

// sealMessage seals a message, and the original that it contains.
func (r *rewrite) sealMessage(value []byte) ([]byte, error) {
	m, err := message.DecodeRecord(value)
	if err != nil {
		return nil, err
	}
	changed := false
	if len(m.Origin) > 0 {
		if origin, err := r.sealMessage(m.Origin); err == nil && origin != nil {
			m.Origin, changed = origin, true
		}
	}
	if m.Cipher == nil {
		if err := r.encrypt(m); err != nil {
			return nil, err
		}
		changed = true
	}
	if !changed {
		return nil, nil
	}
	return m.AppendRecord(nil), nil
}

// commit writes a step, with its position, as one commit.
func (r *rewrite) commit(changed map[uint16]*mutation.Batch) error {
	if changed == nil {
		changed = map[uint16]*mutation.Batch{}
	}
	if changed[keyspace.KMSStream] == nil {
		changed[keyspace.KMSStream] = &mutation.Batch{}
	}
	r.state.Put(changed[keyspace.KMSStream])
	var changes []journal.Change
	for _, id := range slices.Sorted(maps.Keys(changed)) {
		stream, state, err := r.Journal.Stream(id, nil)
		if err != nil {
			return err
		}
		if state.Epoch == 0 { // every commit needs an epoch; the owner's load begins the next
			state.Epoch = 1
		}
		changes = append(changes, journal.Change{Stream: stream, Batch: changed[id], State: state})
	}
	r.Journal.Append(journal.Awaited, changes...).Wait()
	return nil
}

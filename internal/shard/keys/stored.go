package keys

import (
	"encoding/json"
	"fmt"
	"time"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/seal"
)

var storedKey = []byte{keyspace.KMSSpace, keyspace.KeyStored}

// Stored is the progress of sealing data that a store had in clear. A process that may write in
// clear removes it first.
type Stored struct {
	// After is the key up to which all records are sealed, while the rewrite is in progress.
	After []byte `json:"after,omitempty"`
	// Rewritten says that all records are sealed, but that files may still have the old ones in
	// clear.
	Rewritten bool `json:"rewritten,omitempty"`
	// Done says that files do not have these any more, either.
	Done bool `json:"done,omitempty"`
	// Records counts the records that were found in clear, by kind.
	Records map[string]int64 `json:"records,omitempty"`
}

// ReadStored reads the progress of the rewrite of a store; the zero value: it has not begun, or
// was invalidated.
func ReadStored(log *journal.Journal) (s Stored, err error) {
	text, ok, err := log.Reader().Get(nil, storedKey)
	if err == nil && ok {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fmt.Errorf("reading how far what was stored in clear has been sealed: %w", err)
	}
	return s, nil
}

// Put writes the progress.
func (s *Stored) Put(b *mutation.Batch) {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // it has only types that JSON can encode
	}
	b.Set(storedKey, text)
}

// ForgetStored invalidates the progress, before anything is written in clear. It is durable on
// return.
func ForgetStored(log *journal.Journal, now time.Time) error {
	if _, ok, err := log.Reader().Get(nil, storedKey); err != nil || !ok {
		return err
	}
	stream, _, err := log.Stream(keyspace.KMSStream, nil)
	if err != nil {
		return err
	}
	var b mutation.Batch
	b.Delete(storedKey)
	stream.Append(journal.Eager, now.UnixMilli(), &b).Wait()
	return nil
}

// EncryptStored encrypts a message of any queue under the store's own key; a Messages with the
// same keys can decrypt it.
func EncryptStored(sealing *seal.Keys, m *message.Message) error {
	return encryptUnder(m, "", underStore, dataKey{sealer: sealing.Sealer(messagesPurpose)})
}

// messagesPurpose is the purpose that messages are sealed for.
const messagesPurpose = "messages"

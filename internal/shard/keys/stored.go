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

var storedKey = []byte{keyspace.KeySpace, keyspace.KeyStored}

// Stored says how far what a store had in clear has been sealed. Whoever may write in
// clear removes it first, and with it the promise.
type Stored struct {
	// After is the key up to which all is sealed, while the rewrite is under way.
	After []byte `json:"after,omitempty"`
	// Rewritten says that all is, and that what was in clear may still be in files.
	Rewritten bool `json:"rewritten,omitempty"`
	// Done says that it is not in those any more, either.
	Done bool `json:"done,omitempty"`
	// Records counts what was found in clear, by kinds.
	Records map[string]int64 `json:"records,omitempty"`
}

// ReadStored reads how far the rewrite of a store has come; the zero value: it has not
// begun, or what it did does not hold any more.
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

// Put writes how far it has come.
func (s *Stored) Put(b *mutation.Batch) {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // it holds nothing that JSON cannot
	}
	b.Set(storedKey, text)
}

// ForgetStored takes the promise back, before anything is written in clear. It is durable
// on return.
func ForgetStored(log *journal.Journal, now time.Time) error {
	if _, ok, err := log.Reader().Get(nil, storedKey); err != nil || !ok {
		return err
	}
	stream, _, err := log.Stream(keyspace.KeyStream, nil)
	if err != nil {
		return err
	}
	var b mutation.Batch
	b.Delete(storedKey)
	stream.Append(true, now.UnixMilli(), &b).Wait()
	return nil
}

// EncryptStored encrypts a message of any queue under the store's own key, as a Messages
// made of the same keys can decrypt it.
func EncryptStored(sealing *seal.Keys, m *message.Message) error {
	return encryptUnder(m, "", underStore, dataKey{sealer: sealing.Sealer(messagesPurpose)})
}

// messagesPurpose is the purpose that messages are sealed for.
const messagesPurpose = "messages"

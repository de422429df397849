package keys

import (
	"errors"
	"fmt"
	"time"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/seal"
)

// ErrNotSealed refuses a store that is not sealed with a root key yet.
var ErrNotSealed = errors.New("the data is not sealed with a root key yet")

// RewrapSealing wraps the keys of a store, which no process has open, with another root key. It
// is idempotent. Errors: ErrNotSealed, seal.ErrWrongRoot.
func RewrapSealing(log *journal.Journal, now time.Time, from, to *seal.Root) error {
	text, ok, err := log.Reader().Get(nil, sealingKey)
	switch {
	case err != nil:
		return fmt.Errorf("reading which root key the data is sealed with: %w", err)
	case !ok:
		return ErrNotSealed
	}
	if of, err := seal.RootOf(text); err != nil || of == to.ID() {
		return err
	}
	sealing, err := seal.OpenKeys(from, text)
	if err != nil {
		return err
	}
	if text, err = sealing.Rewrap(to); err != nil {
		return err
	}
	stream, _, err := log.Stream(keyspace.KMSStream, nil)
	if err != nil {
		return err
	}
	var b mutation.Batch
	b.Set(sealingKey, text)
	stream.Append(journal.Eager, now.UnixMilli(), &b).Wait()
	return nil
}

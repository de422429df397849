// Package stored keeps the promise of production that what is stored is sealed, also of a
// data directory that development has written to.
package stored

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/keys"
	"godwit.dev/godwit/internal/store"
)

// Options are what Keep works with.
type Options struct {
	Production bool
	Data       string // the directory; empty: there is none
	Store      store.Store
	Journal    *journal.Journal
	Sealing    *seal.Keys
	Clock      clock.Clock
	Logger     *slog.Logger
}

// reportEvery is how many steps of the rewrite, of about a mebibyte each, one line of the
// log reports.
const reportEvery = 64

// Keep has a store sealed before production serves from it; it continues where one before
// was interrupted. Development, which writes in clear, takes the promise back. Nobody else
// has the store open. Errors: ctx's, and the store's.
func Keep(ctx context.Context, o Options) error {
	if !o.Production {
		state, err := keys.ReadStored(o.Journal)
		if err == nil && (state.After != nil || state.Rewritten) && !state.Done {
			// What was written again has to be so once: what deletes it counts on that.
			err = compact(o.Store)
		}
		if err != nil {
			return err
		}
		return keys.ForgetStored(o.Journal, o.Clock.Now())
	}
	steps := 0
	found, err := shard.SealStored(ctx, shard.SealStoredOptions{
		Journal: o.Journal, Sealing: o.Sealing,
		Compact: func() error { return compact(o.Store) },
		Report: func(found map[string]int64) {
			if steps++; steps%reportEvery == 0 {
				o.Logger.Info("sealing what was stored in clear, before anything is served", "sealed", list(found))
			}
		},
	})
	if err != nil {
		return fmt.Errorf("sealing what was stored in clear: %w", err)
	}
	if len(found) > 0 {
		o.Logger.Info("what was stored in clear is sealed", "sealed", list(found))
	}
	reportFiles(o)
	return reportQueues(o)
}

// reportFiles warns of what development has left in files of its own: mails, texts and push
// messages that were sent to nobody, and objects of delivery streams. They are not the
// store's, and somebody may want them, so that they are not removed.
func reportFiles(o Options) {
	if o.Data == "" {
		return
	}
	for dir, what := range map[string]string{"outbox": "mails, text and push messages", "firehose": "objects of delivery streams"} {
		path := filepath.Join(o.Data, dir)
		left := false
		_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error { // what cannot be read is reported
			left = left || err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && d.Type().IsRegular()
			if left {
				return fs.SkipAll
			}
			return nil
		})
		if left {
			o.Logger.Warn("development has left something in clear in the data directory: remove what nobody needs", "what", what, "directory", path)
		}
	}
}

const maxNamed = 20 // queues in the warning

// reportQueues warns of the queues that are to have their messages in clear: that was asked
// for, but perhaps for development.
func reportQueues(o Options) error {
	arns, all, err := shard.QueuesInClear(o.Journal, maxNamed)
	if err != nil {
		return fmt.Errorf("looking for queues without encryption: %w", err)
	}
	if all > 0 {
		o.Logger.Warn("messages of these queues are stored in clear (SqsManagedSseEnabled is false, and they have no KmsMasterKeyId)", "queues", all, "first", strings.Join(arns, ", "))
	}
	return nil
}

func list(found map[string]int64) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		all = append(all, fmt.Sprintf("%s: %d", kind, found[kind]))
	}
	return strings.Join(all, ", ")
}

// compact rewrites the files of a store without what was overwritten.
func compact(s store.Store) error {
	if c, ok := s.(interface {
		Compact(lower, upper []byte, least uint64) error
	}); ok {
		return c.Compact([]byte{0}, []byte{0xff, 0xff, 0xff, 0xff}, 0)
	}
	return nil
}

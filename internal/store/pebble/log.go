package pebble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"godwit.dev/godwit/internal/store/pebble/badblocks"
	"godwit.dev/godwit/internal/store/pebble/headroom"
	"godwit.dev/godwit/internal/store/pebble/pace"
)

// logger forwards Pebble's log lines and events.
type logger struct {
	log   *slog.Logger
	fatal func(error)

	damaged    func(error) // called for damage found by background work
	merges     func(job int)
	merged     func(job int, err error)
	flushBegan func()
	flushed    func(error)
	l0Changed  func() // called when the number of L0's tables may have changed
	corrupt    func(file string, err error)
	rewrite    func(file string, begins bool) // called for blob files that are rewritten
}

func (l logger) Infof(format string, args ...any)  { l.printf(slog.LevelDebug, format, args) }
func (l logger) Errorf(format string, args ...any) { l.printf(slog.LevelError, format, args) }

// Fatalf is what Pebble calls when it cannot continue: a write or sync of the
// write-ahead log or the manifest failed, or it found its own data corrupt.
func (l logger) Fatalf(format string, args ...any) {
	err := &fatalError{message: fmt.Sprintf(format, args...)}
	for _, a := range args {
		if cause, ok := a.(error); ok {
			err.cause = cause
		}
	}
	l.fatal(err)
}

// fatalError is a line that Pebble logs as fatal; it keeps the cause, which
// Pebble formats with %v.
type fatalError struct {
	message string
	cause   error // may be nil
}

func (e *fatalError) Error() string { return e.message }
func (e *fatalError) Unwrap() error { return e.cause }

func (l logger) printf(level slog.Level, format string, args []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "pebble", "event", fmt.Sprintf(format, args...))
	}
}

// events classifies failures in the background. Pebble calls most of these with its lock held:
// none may use the store.
func (l logger) events() *pebble.EventListener {
	var full, stalled pace.LogLimiter
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			if isDamage(err) {
				// A compaction, which CompactionEnd also reports, or statistics. Its input
				// stays.
				l.damaged(err)
				return
			}
			if !errors.Is(err, syscall.ENOSPC) {
				l.fatal(fmt.Errorf("background work: %w", err))
				return
			}
			// A flush or compaction found no disk space. Nothing is lost: its input stays, and
			// Pebble retries. Refused tables are logged already.
			if _, ok := errors.AsType[*headroom.Error](err); !ok && full.Allow() {
				l.log.Error("the disk is full: the store cannot tidy up", "error", err.Error())
			}
		},
		WriteStallBegin: func(i pebble.WriteStallBeginInfo) {
			if stalled.Allow() {
				l.log.Info("writes come faster than the disk takes them, and wait", "reason", i.Reason)
			}
		},
		DiskSlow: func(i pebble.DiskSlowInfo) {
			l.log.Warn("a disk operation is slow", "operation", i.OpType.String(), "path", i.Path, "duration", i.Duration)
		},
		DataCorruption: func(i pebble.DataCorruptionInfo) { l.corrupt(path.Base(i.Path), i.Details) },
		FlushBegin:     func(pebble.FlushInfo) { l.flushBegan() },
		FlushEnd: func(i pebble.FlushInfo) {
			l.Infof("%s", i)
			l.flushed(i.Err)
			l.l0Changed()
		},
		CompactionBegin: func(i pebble.CompactionInfo) { l.merges(i.JobID) },
		CompactionEnd: func(i pebble.CompactionInfo) {
			l.Infof("%s", i)
			l.l0Changed()
			l.merged(i.JobID, i.Err)
		},
		BlobFileRewriteBegin: func(i pebble.BlobFileRewriteInfo) {
			l.rewrite(valuesFile(i), true)
			l.merges(i.JobID)
		},
		BlobFileRewriteEnd: func(i pebble.BlobFileRewriteInfo) {
			l.rewrite(valuesFile(i), false)
			l.merged(i.JobID, i.Err)
		},
	}
}

// valuesFile is the name of the file that a rewrite reads.
func valuesFile(i pebble.BlobFileRewriteInfo) string {
	return fmt.Sprintf("%06d%s", uint64(i.Input.DiskFileNum), badblocks.ValuesSuffix)
}

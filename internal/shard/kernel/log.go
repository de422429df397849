package kernel

import (
	"context"
	"log/slog"
)

// deferredLog is the handler of a shard's Logger: it turns each line into an event of the
// current command, so that no command waits for a slow log.
type deferredLog struct {
	sh   *Shard
	next slog.Handler
}

func (h deferredLog) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h deferredLog) Handle(_ context.Context, r slog.Record) error {
	h.sh.Emit(logLine{h.next, r.Clone()})
	return nil
}

func (h deferredLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return deferredLog{h.sh, h.next.WithAttrs(attrs)}
}

func (h deferredLog) WithGroup(name string) slog.Handler {
	return deferredLog{h.sh, h.next.WithGroup(name)}
}

type logLine struct {
	to   slog.Handler
	line slog.Record
}

// Emit implements Emitter.
func (l logLine) Emit() { _ = l.to.Handle(context.Background(), l.line) }

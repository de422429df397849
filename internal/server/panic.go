package server

import (
	"log/slog"
	"net/http"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// stateful are the packages that change what is in memory and on disk together, or
// hold a lock without which nothing of theirs goes on; and those below them. A test
// holds this to whoever writes to the journal, but for the shards: their transactions
// see for themselves to a panic.
var stateful = []string{
	reflect.TypeFor[logs.Logs]().PkgPath(), reflect.TypeFor[metrics.Store]().PkgPath(),
	reflect.TypeFor[alarms.Engine]().PkgPath(), reflect.TypeFor[invoke.Pool]().PkgPath(), reflect.TypeFor[journal.Journal]().PkgPath(),
}

// isStateful reports whether a function, named as the runtime names it, is of one of
// the packages that are stateful, or of one below them.
func isStateful(function string) bool {
	return slices.ContainsFunc(stateful, func(pkg string) bool {
		rest, ok := strings.CutPrefix(function, pkg)
		return ok && rest != "" && (rest[0] == '.' || rest[0] == '/')
	})
}

// halfway reports that the panic that its caller recovers from has cut off a
// command: memory may then be ahead of the disk, and a lock be held for ever.
func halfway() bool {
	pcs := make([]uintptr, 512)
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs)
		if n == 0 {
			return false
		}
		frames := runtime.CallersFrames(pcs[:n])
		for more := true; more; {
			var frame runtime.Frame
			frame, more = frames.Next()
			if isStateful(frame.Function) {
				return true
			}
		}
	}
}

// endHalfway ends the process where halfway says so: only a restart brings memory
// and disk together. It is to be called by what recovers from a panic.
func endHalfway(log *slog.Logger, cause any) {
	if halfway() {
		log.Error("a command has panicked: godwit ends, and is to be started again", "panic", cause, "stack", string(debug.Stack()))
		exit(nil)
	}
}

// ending has the process end where a handler panics halfway through a command.
func ending(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if cause := recover(); cause != nil {
				endHalfway(log, cause)
				panic(cause)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

package server

import (
	"log/slog"
	"net/http"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"

	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard"
)

// stateful are the packages that change what is in memory and on disk together, or
// hold a lock without which nothing of theirs goes on.
var stateful = []string{
	reflect.TypeFor[shard.Engine]().PkgPath() + ".", reflect.TypeFor[logs.Logs]().PkgPath() + ".",
	reflect.TypeFor[metrics.Store]().PkgPath() + ".", reflect.TypeFor[alarms.Engine]().PkgPath() + ".",
	reflect.TypeFor[invoke.Pool]().PkgPath() + ".",
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
			for _, prefix := range stateful {
				if strings.HasPrefix(frame.Function, prefix) {
					return true
				}
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

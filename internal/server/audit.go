package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/api/operator"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/audit"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/server/ids"
	"godwit.dev/godwit/internal/wire"
)

// auditStream is the log stream of the audit log.
const auditStream = "audit"

// newTrail makes the audit log; nil if it is off.
func newTrail(deps Deps, groups *logs.Logs, current func(*caller.Caller) *caller.Caller) (*audit.Trail, error) {
	var sinks []audit.Sink
	if path := deps.Config.AuditLog; path != "" {
		file, err := audit.OpenFile(path, audit.Bounds{MaxBytes: deps.Config.AuditMaxBytes, Keep: deps.Config.AuditKeep}, clock.System)
		if err != nil {
			return nil, fmt.Errorf("the audit log cannot be opened (--audit-log): %w", err)
		}
		deps.OnStop("audit log", func(context.Context) error { return file.Close() })
		sinks = append(sinks, file)
	}
	if name := deps.Config.AuditLogGroup; name != "" {
		sinks = append(sinks, auditGroup{groups, arn.LogGroup(deps.Config.Region, deps.Config.Account, name)})
	}
	if len(sinks) == 0 {
		return nil, nil
	}
	return audit.New(audit.Options{Sinks: sinks, Data: deps.Config.AuditDataEvents, Logger: deps.Log, NewID: ids.Text, Current: current}), nil
}

// auditGroup writes records to a log group.
type auditGroup struct {
	groups *logs.Logs
	group  arn.ARN
}

func (a auditGroup) Write(at time.Time, line []byte) error {
	a.groups.Log(a.group, auditStream, at, line)
	return nil
}

// audited records the wire's calls in a trail; nil if it is off.
func audited(trail *audit.Trail) func(call *api.Call, in any, outcome wire.Outcome) {
	if trail == nil {
		return nil
	}
	return func(call *api.Call, in any, outcome wire.Outcome) { trail.Call(call, in, audit.Outcome(outcome)) }
}

// auditChecks are the health checks of the audit log.
func auditChecks(trail *audit.Trail) []admin.Check {
	if trail == nil {
		return nil
	}
	return []admin.Check{{Name: "audit", Failing: trail.Failing}}
}

// operated records changes by unauthenticated operators; nil if the audit log is off.
func operated(deps Deps, trail *audit.Trail) func(r *http.Request) {
	if trail == nil {
		return nil
	}
	return func(r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasPrefix(r.URL.Path, operator.Prefix) {
			trail.Operator(r, nil, deps.Clock.Now(), deps.Config.Region, nil)
		}
	}
}

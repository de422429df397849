// Package monitors shows alarms, metrics, log groups and log events.
package monitors

import (
	"cmp"
	"time"

	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// Options are the dependencies of Monitors, and the default account and region.
type Options struct {
	Alarms          *alarms.Engine
	Metrics         *monitor.Reader
	Logs            *logs.Logs
	Region, Account string
}

// Monitors answers the operations on alarms, metrics and logs.
type Monitors struct{ Options }

// New makes Monitors.
func New(o Options) *Monitors { return &Monitors{o} }

// scope is the given region and account, or their defaults.
func (m *Monitors) scope(region, account string) metrics.Scope {
	return metrics.Scope{Region: cmp.Or(region, m.Region), Account: cmp.Or(account, m.Account)}
}

// milliseconds parses a time parameter; nil: there is none.
func milliseconds(name, text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.UnixMilli() < 0 {
		return nil, rest.BadRequest(name + ": want a time such as 2026-01-31T12:00:00Z")
	}
	n := at.UnixMilli()
	return &n, nil
}

// moment is the time of epoch milliseconds; nil for nil.
func moment(milliseconds *int64) *time.Time {
	if milliseconds == nil {
		return nil
	}
	return rest.Moment(clock.Time(*milliseconds))
}

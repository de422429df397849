// Package monitors shows what is measured and logged: alarms, metrics, log groups and their
// events.
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

// Options are what is shown, and whose by default.
type Options struct {
	Alarms          *alarms.Engine
	Metrics         *monitor.Reader
	Logs            *logs.Logs
	Region, Account string
}

// Monitors answers what is about alarms, metrics and logs.
type Monitors struct{ Options }

// New makes it.
func New(o Options) *Monitors { return &Monitors{o} }

// owner is the region and account that are meant.
func (m *Monitors) owner(region, account string) metrics.Owner {
	return metrics.Owner{Region: cmp.Or(region, m.Region), Account: cmp.Or(account, m.Account)}
}

// milliseconds reads a time that a parameter has; nil for none.
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

// moment is a time of milliseconds; nil for none.
func moment(milliseconds *int64) *time.Time {
	if milliseconds == nil {
		return nil
	}
	return rest.Moment(clock.Time(*milliseconds))
}

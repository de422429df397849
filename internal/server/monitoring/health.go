package monitoring

import (
	"fmt"
	"time"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/monitor/prom"
)

// checkTime bounds the wait of a health check: whoever asks for it may not wait for long.
const checkTime = 100 * time.Millisecond

// tolerated is how far the data may be ahead of the clock in a server that runs.
const tolerated = time.Minute

// Ahead measures how far the latest change is ahead of the machine's clock, which was set back
// since: until the clock has caught up, the time of the data stands still.
func Ahead(latest func() time.Time, c clock.Clock) func() time.Duration {
	var late lateness
	return func() time.Duration {
		at, err := askWithin(checkTime, &late, func() (time.Time, error) { return latest(), nil })
		if err != nil {
			return 0 // not known now
		}
		return max(at.Sub(c.Now()), 0)
	}
}

// ClockCheck fails while the data is ahead of the clock.
func ClockCheck(ahead func() time.Duration) admin.Check {
	return admin.Check{Name: "clock", Failing: func() error {
		if by := ahead(); by > tolerated {
			return fmt.Errorf("the data is %s ahead of this machine's clock: delays, timeouts and retries stand still until the clock has caught up", by.Round(time.Second))
		}
		return nil
	}}
}

// Checked has it tell the health checks, and how far the data is ahead of the clock.
func (p *Prometheus) Checked(ahead func() time.Duration, checks []admin.Check) {
	if p == nil {
		return
	}
	p.FollowHealth(func() prom.Health {
		h := prom.Health{Ahead: ahead(), Failing: map[string]bool{}}
		for _, check := range checks {
			h.Failing[check.Name] = check.Failing() != nil
		}
		return h
	})
}

package monitoring

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
)

// A clock that is set back under the data is told as long as that is ahead of it, and so is each
// check that fails.
func TestClockSetBack(t *testing.T) {
	now := time.Unix(1e9, 0)
	latest := now.Add(-time.Hour)
	ahead := Ahead(func() time.Time { return latest }, clock.NewVirtual(now))
	check := ClockCheck(ahead)
	p := NewPrometheus(PrometheusOptions{Config: config.Config{Prometheus: true}})
	p.Checked(ahead, []admin.Check{check})
	told := func(want ...string) {
		t.Helper()
		w := httptest.NewRecorder()
		p.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		for _, line := range want {
			if !strings.Contains(w.Body.String(), line+"\n") {
				t.Errorf("it does not say %s", line)
			}
		}
	}
	if err := check.Failing(); err != nil {
		t.Error(err)
	}
	told("godwit_clock_ahead_seconds 0", `godwit_check_failing{check="clock"} 0`)
	latest = now.Add(time.Hour)
	if err := check.Failing(); err == nil || !strings.Contains(err.Error(), "1h0m0s ahead") {
		t.Errorf("an hour ahead: %v", err)
	}
	told("godwit_clock_ahead_seconds 3600", `godwit_check_failing{check="clock"} 1`)
}

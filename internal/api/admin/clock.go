package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// advanced is the answer to an advance. Next is null if no timer is pending.
type advanced struct {
	Now  time.Time  `json:"now"`
	Ran  int        `json:"ran"`
	Next *time.Time `json:"next"`
	// Error says why the clock stands still before the end of its way.
	Error string `json:"error,omitempty"`
}

// Clock answers POST {"advance": "23d"}: it moves the virtual clock and
// answers once all that came due has settled, however long that takes, with
// {"now", "ran", "next"}. Before it answers it calls settle, which makes durable
// what the timers may have left for later. A nil clock, which a server on the
// system clock has, is a conflict (409).
func Clock(virtual *clock.Virtual, settle func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if virtual == nil {
			writeError(w, http.StatusConflict,
				"this server runs on the system clock, which nobody can advance; start it with godwit dev --clock virtual")
			return
		}
		var request struct {
			Advance string `json:"advance"`
		}
		if !readJSON(w, r, &request) {
			return
		}
		d, err := ParseDuration(request.Advance)
		if err != nil {
			writeError(w, http.StatusBadRequest, err.Error())
			return
		}
		// Hours of virtual time may take longer than any request should.
		liftDeadlines(w)

		result, err := virtual.Advance(r.Context(), d)
		settle()
		answer, status := advanced{Now: result.Now, Ran: result.Ran}, http.StatusOK
		if !result.Next.IsZero() {
			answer.Next = &result.Next
		}
		if err != nil {
			answer.Error, status = err.Error(), http.StatusServiceUnavailable
		}
		writeJSON(w, status, answer)
	})
}

const day = 24 * time.Hour

var errDuration = errors.New(`advance: want a duration like "23d", "1d12h", "90m" or "1.5s"`)

// ParseDuration reads a duration as Go writes it, with whole or decimal days
// ("1.5d") before all else if wanted. It refuses negative ones and those
// above 292 years, which time.Duration cannot hold.
func ParseDuration(s string) (time.Duration, error) {
	number, rest, hasDays := strings.Cut(s, "d")
	if !hasDays {
		number, rest = "", s
	}
	var d time.Duration
	if hasDays {
		if number == "" || strings.Trim(number, "0123456789.") != "" {
			return 0, errDuration
		}
		days, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, errDuration
		}
		if days >= float64(1<<63-1)/float64(day) {
			return 0, tooLong(s)
		}
		d = time.Duration(days * float64(day))
	}
	if rest == "" && hasDays {
		return d, nil
	}
	after, err := time.ParseDuration(rest)
	if err != nil || after < 0 || (hasDays && strings.ContainsAny(rest[:1], "+-")) {
		return 0, errDuration
	}
	if d += after; d < 0 {
		return 0, tooLong(s)
	}
	return d, nil
}

func tooLong(s string) error { return fmt.Errorf("advance: %s is longer than 292 years", s) }

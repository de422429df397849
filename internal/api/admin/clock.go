package admin

import (
	"net/http"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
)

// advanced is the answer to an advance. Next is null if no timer is pending.
type advanced struct {
	Now  time.Time  `json:"now"`
	Ran  int        `json:"ran"`
	Next *time.Time `json:"next"`
	// Error is why the clock stopped before its target.
	Error string `json:"error,omitempty"`
}

// reading is the answer of ReadClock. Next is null if no timer is pending, and on the
// system clock.
type reading struct {
	Clock string     `json:"clock"` // system or virtual
	Now   time.Time  `json:"now"`
	Next  *time.Time `json:"next"`
}

// ReadClock answers with the server's time, the kind of its clock, and when the next timer of
// a virtual clock is due. A nil virtual means the system clock.
func ReadClock(of clock.Clock, virtual *clock.Virtual) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := reading{Clock: "system"}
		if virtual == nil {
			answer.Now = of.Now()
		} else {
			now, next := virtual.Reading()
			answer.Clock, answer.Now = "virtual", now
			if !next.IsZero() {
				answer.Next = &next
			}
		}
		writeJSON(w, http.StatusOK, answer)
	})
}

// Clock answers POST {"advance": "23d"}: it advances the virtual clock, waits until all due
// timers have run, however long that takes, and answers with {"now", "ran", "next"}. Before
// it answers it calls sync, which makes the writes of the timers durable. A nil clock, as
// with the system clock, is a conflict (409).
func Clock(virtual *clock.Virtual, sync func()) http.Handler {
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
		d, err := config.ParseDuration(request.Advance)
		if err != nil {
			writeError(w, http.StatusBadRequest, "advance: "+err.Error())
			return
		}
		// Hours of virtual time may take longer than a request's deadline.
		removeDeadlines(w)

		result, err := virtual.Advance(r.Context(), d)
		sync()
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

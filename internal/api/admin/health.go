package admin

import (
	"net/http"
)

// Check is a health check of a running server: for example whether the store has space, or
// every shard an owner.
type Check struct {
	Name string
	// Failing returns the problem, or nil. It must be quick, and its text must have no
	// secrets, because anyone may read it.
	Failing func() error
}

// health is the answer of Health: problems by the name of the check.
type health struct {
	Status   string            `json:"status"` // ok or failing
	Version  string            `json:"version"`
	Problems map[string]string `json:"problems,omitempty"`
}

// Health answers 200 if all checks pass, else 503 with the problems. A server that fails a
// check may still be of use: one without disk space still serves receives. Whether a load
// balancer should send requests is the answer of Ready.
func Health(version string, checks ...Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, status := health{Status: "ok", Version: version}, http.StatusOK
		for _, check := range checks {
			err := check.Failing()
			if err == nil {
				continue
			}
			if answer.Problems == nil {
				answer.Problems = map[string]string{}
			}
			answer.Status, status = "failing", http.StatusServiceUnavailable
			answer.Problems[check.Name] = err.Error()
		}
		writeJSON(w, status, answer)
	})
}

type readiness struct {
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"`
}

// Ready answers 200, or 503 once draining is closed: a load balancer should send no more
// requests.
func Ready(draining <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-draining:
			writeJSON(w, http.StatusServiceUnavailable, readiness{Error: "the server is stopping"})
		default:
			writeJSON(w, http.StatusOK, readiness{Ready: true})
		}
	})
}

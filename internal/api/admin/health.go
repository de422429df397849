package admin

import (
	"context"
	"net/http"
)

// Check is one thing that can be wrong with a running server: a store that is
// out of space, a shard without an owner.
type Check struct {
	Name string
	// Failing returns what is wrong, nil if nothing is. It must be quick, and
	// its text holds no secret: anyone may read it.
	Failing func(ctx context.Context) error
}

// health is the answer of Health: a problem's text by its check's name.
type health struct {
	Status   string            `json:"status"` // ok or failing
	Version  string            `json:"version"`
	Problems map[string]string `json:"problems,omitempty"`
}

// Health answers 200 while every check passes and 503 while one fails, with
// the reason of each. A server that fails a check may still be of use: one
// without space still hands out messages. Whether to send it requests is
// Ready's to say.
func Health(version string, checks ...Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, status := health{Status: "ok", Version: version}, http.StatusOK
		for _, check := range checks {
			err := check.Failing(r.Context())
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

// Ready answers 200 until draining is closed, then 503: a load balancer
// should send no more requests.
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

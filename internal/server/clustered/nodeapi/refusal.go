package nodeapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Refusal is the answer of a node that does not do what it is asked.
type Refusal struct {
	URL    string
	Code   int // of HTTP
	Reason string
}

// Error implements error.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s answers %d %s: %s", r.URL, r.Code, http.StatusText(r.Code), r.Reason)
}

// maxReason bounds what is read of a reason, in bytes.
const maxReason = 1000

// refused is the refusal in an answer.
func refused(answer *http.Response) *Refusal {
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxReason))
	r := &Refusal{URL: answer.Request.URL.String(), Code: answer.StatusCode, Reason: strings.TrimSpace(string(text))}
	var problem struct{ Error string } // what operators' other paths answer with
	switch {
	case json.Unmarshal(text, &problem) == nil && problem.Error != "":
		r.Reason = problem.Error
	case err != nil:
		r.Reason = err.Error()
	case r.Code == http.StatusNotFound:
		r.Reason = "it is no node of a cluster, or of an older version"
	}
	return r
}

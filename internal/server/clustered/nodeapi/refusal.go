package nodeapi

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"godwit.dev/godwit/internal/cluster/ca"
)

// Refusal is the answer of a node that does not do what it is asked.
type Refusal struct {
	URL    string
	Code   int // of HTTP
	Reason string
	Later  bool // it may do it when it is asked again
}

// Busy reports that another change is under way at the node.
func (r *Refusal) Busy() bool { return r.Later && r.Code == http.StatusConflict }

// RefuseBusy is the answer of a node at which another change is under way.
func RefuseBusy(w http.ResponseWriter, reason string) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, reason, http.StatusConflict)
}

// Refused reports that a request to one node has failed in a way that asking again does not
// change: it is refused, one end does not trust the other's certificate, or has none.
func Refused(err error) bool {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return !r.Later
	}
	_, invalid := errors.AsType[*tls.CertificateVerificationError](err)
	handshake, ok := errors.AsType[*net.OpError](err)
	return invalid || errors.Is(err, ca.ErrUntrusted) || errors.Is(err, http.ErrSchemeMismatch) || ok && handshake.Op == "remote error" // by which TLS tells of an alert
}

// NotSent reports that a request has reached no node.
func NotSent(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial"
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
	r.Later = r.Code >= http.StatusInternalServerError || answer.Header.Get("Retry-After") != ""
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

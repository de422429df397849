// Package answer delays the answers of a cluster's node until it is confirmed that the node
// owned the state when it answered.
package answer

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"strings"
	"time"

	"godwit.dev/godwit/internal/cluster/replica"
)

// confirmTime bounds the wait for a confirmation: without a majority of nodes none comes.
const confirmTime = 15 * time.Second

// Confirmed delays the answers of h until it is confirmed that the process was still the owner:
// by a record for that purpose, or by a commit. Answers of a replaced owner are withheld.
func Confirmed(owner *replica.Owner, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := commits(r)
		h.ServeHTTP(&confirming{ResponseWriter: w, request: r, commits: c, confirm: func(committed bool) error {
			if committed {
				return owner.Failed()
			}
			// A client that has closed its side of the connection, or whose body is malformed, waits for
			// an answer, though the request's context has ended.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), confirmTime)
			defer cancel()
			return owner.Confirm(ctx)
		}}, r)
	})
}

// commits reports that success of a request implies an accepted commit, if only that of the
// message that it duplicates. Others may succeed without any: a publish without subscriptions,
// an idempotent delete.
func commits(r *http.Request) bool {
	switch r.Header.Get("X-Amz-Target") {
	case "AmazonSQS.SendMessage", "AmazonSQS.SendMessageBatch":
		return true
	}
	return false
}

// confirming delays an answer until it is confirmed.
type confirming struct {
	http.ResponseWriter
	request  *http.Request
	confirm  func(committed bool) error
	commits  bool // success implies a commit
	begun    bool
	flushed  bool  // what was written is confirmed, and what comes next is not
	withheld error // why the answer, or the rest of it, is
}

// Unwrap is for http.ResponseController.
func (w *confirming) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *confirming) begin(status int) bool {
	if !w.begun {
		w.begun = true
		if w.withheld = w.confirm(w.commits && status == http.StatusOK); w.withheld != nil {
			clear(w.Header())
			Unavailable(w.ResponseWriter, w.request, "This node does not own the state any more.")
		}
	}
	return w.withheld == nil
}

// WriteHeader implements http.ResponseWriter.
func (w *confirming) WriteHeader(status int) {
	if w.begin(status) {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (w *confirming) Write(p []byte) (int, error) {
	if !w.begin(http.StatusOK) {
		if w.flushed {
			return 0, w.withheld
		}
		return len(p), nil
	}
	if w.flushed {
		if w.withheld = w.confirm(false); w.withheld != nil {
			return 0, w.withheld
		}
		w.flushed = false
	}
	return w.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController. What follows is an event of a stream, and may be
// read much later.
func (w *confirming) FlushError() error {
	if !w.begin(http.StatusOK) {
		return w.withheld
	}
	w.flushed = true
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unavailable answers with status 503, after which SDKs retry, in the protocol of the request.
func Unavailable(w http.ResponseWriter, r *http.Request, text string) {
	const code = "ServiceUnavailable"
	w.Header().Set("Retry-After", "1")
	if r.Header.Get("X-Amz-Target") != "" || strings.HasPrefix(r.URL.Path, "/_godwit/") {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": code, "message": text})
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, "<ErrorResponse><Error><Type>Receiver</Type><Code>"+code+"</Code><Message>")
	_ = xml.EscapeText(w, []byte(text))
	_, _ = io.WriteString(w, "</Message></Error></ErrorResponse>")
}

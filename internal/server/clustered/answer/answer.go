// Package answer delays the answers of a cluster's node until it is confirmed that the node
// owned the state when it answered.
package answer

import (
	"context"
	"net/http"
	"strings"
	"time"

	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/fastjson"
	"godwit.dev/godwit/internal/wire/awsquery"
	"godwit.dev/godwit/internal/wire/rpccbor"
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
// Only the encodings are wire's: its errors are those of a service, which a handler of the state
// finds, and here is none. SDKs need the code and the text alone.
func Unavailable(w http.ResponseWriter, r *http.Request, text string) {
	const code = "ServiceUnavailable"
	const exception = code + "Exception"
	w.Header().Set("Retry-After", "1")
	var body []byte
	switch {
	case r.Header.Get("X-Amz-Target") != "", strings.HasPrefix(r.URL.Path, "/_godwit/"):
		kind := "application/x-amz-json-1.0"
		if sent := r.Header.Get("Content-Type"); strings.HasPrefix(sent, "application/x-amz-json-") {
			kind = sent
		}
		w.Header().Set("Content-Type", kind)
		body = appendJSON(body, "__type", code, "message", text)
	case r.Header.Get("Smithy-Protocol") == "rpc-v2-cbor":
		w.Header().Set("Content-Type", "application/cbor")
		w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
		body = rpccbor.AppendTexts(body, "__type", code, "message", text)
	case dated(r.URL.Path):
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Amzn-Errortype", exception)
		body = appendJSON(body, "Type", "Service", "Message", text)
	default:
		w.Header().Set("Content-Type", "text/xml")
		body = append(body, "<ErrorResponse><Error><Type>Receiver</Type><Code>"+code+"</Code><Message>"...)
		body = awsquery.AppendEscaped(body, text)
		body = append(body, "</Message></Error></ErrorResponse>"...)
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write(body) // on an error the client has gone
}

// appendJSON appends an object of texts: names and values, alternately.
func appendJSON(dst []byte, texts ...string) []byte {
	for i, text := range texts {
		dst = append(dst, "{:,:"[min(i, 2+i%2)])
		dst = fastjson.AppendString(dst, text)
	}
	return append(dst, '}')
}

// dated reports that a path begins with the date of an API, as those of REST services do.
func dated(path string) bool {
	const form = "/2006-01-02/"
	if len(path) < len(form) || path[len(form)-1] != '/' {
		return false
	}
	_, err := time.Parse(form, path[:len(form)])
	return err == nil
}

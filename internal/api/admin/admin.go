// Package admin answers what lies under /_godwit/: health, readiness, the
// virtual clock, and what only development has. Its bodies are JSON; a
// refusal is {"error": "…"} with a status that fits.
package admin

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxBody is the most that a request's body may have, in bytes.
const maxBody = 64 << 10

// writeJSON answers with v.
func writeJSON(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff") // it shows text that clients sent
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // a caller that is gone needs no answer
}

// writeError answers with a refusal.
func writeError(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, struct {
		Error string `json:"error"`
	}{message})
}

// readJSON reads the request's body into v and refuses members that v does
// not have. If it fails it has answered, and returns false.
func readJSON(w http.ResponseWriter, r *http.Request, v any) bool {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil && !errors.Is(dec.Decode(new(json.RawMessage)), io.EOF) {
		err = errors.New("something follows the object")
	}
	if err == nil {
		return true
	}
	status := http.StatusBadRequest
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		status = http.StatusRequestEntityTooLarge
	}
	writeError(w, status, "the body cannot be read: "+err.Error())
	return false
}

// liftDeadlines lets an answer take as long as it takes.
func liftDeadlines(w http.ResponseWriter) {
	lift := http.NewResponseController(w)
	// Where the writer has no deadlines, there is none to lift.
	_ = lift.SetReadDeadline(time.Time{})
	_ = lift.SetWriteDeadline(time.Time{})
}

// Forbid answers a request that must not be served. The text tells its sender why.
func Forbid(w http.ResponseWriter, text string) { writeError(w, http.StatusForbidden, text) }

// NotFound answers for paths under /_godwit/ that lead nowhere, below /_godwit/v1 as the
// operator's API does.
func NotFound() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := "there is no " + r.Method + " " + r.URL.Path
		if strings.HasPrefix(r.URL.Path, "/_godwit/v1/") {
			writeJSON(w, http.StatusNotFound, struct {
				Error string `json:"error"`
				Code  string `json:"code"`
			}{text, "NotFound"})
			return
		}
		writeError(w, http.StatusNotFound, text)
	})
}

// deprecated is when what Deprecated marks was replaced: 2026-11-23.
const deprecated = "@1795392000"

// Deprecated marks what a path of /_godwit/v1 replaces, as RFC 9745 says. It continues for a
// version.
func Deprecated(successor string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Deprecation", deprecated)
		w.Header().Set("Link", "</_godwit/v1/"+successor+`>; rel="successor-version", </_godwit/v1/openapi.json>; rel="service-desc"`)
		h.ServeHTTP(w, r)
	})
}

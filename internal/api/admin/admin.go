// Package admin serves the paths below /_godwit/: health, readiness, the virtual clock, and
// development's own. Bodies are JSON; an error is {"error": "…"} with a fitting status.
package admin

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 64 << 10

// writeJSON writes v as the answer.
func writeJSON(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff") // it contains text from clients
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // an error means that the client is gone
}

// writeError writes an error as the answer.
func writeError(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, struct {
		Error string `json:"error"`
	}{message})
}

// readJSON decodes the request's body into v, and refuses unknown members. If it fails it has
// written the error, and returns false.
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

// removeDeadlines removes the deadlines of an answer.
func removeDeadlines(w http.ResponseWriter) {
	control := http.NewResponseController(w)
	// The errors mean that the writer has no deadlines.
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
}

// Forbid refuses a request with 403. The text is the reason.
func Forbid(w http.ResponseWriter, text string) { writeError(w, http.StatusForbidden, text) }

// NotFound answers 404 for unknown paths below /_godwit/; below /_godwit/v1 in the form of
// the operator's API.
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

// deprecated is the date of the deprecation: 2026-11-23.
const deprecated = "@1795392000"

// Deprecated marks a path that /_godwit/v1 replaces, by the headers of RFC 9745. It will be
// removed after one more version.
func Deprecated(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Deprecation", deprecated)
		w.Header().Set("Link", "<"+successorOf(r.URL.Path)+`>; rel="successor-version", </_godwit/v1/openapi.json>; rel="service-desc"`)
		h.ServeHTTP(w, r)
	})
}

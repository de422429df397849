package resources

import (
	"bytes"
	"io"
	"net/http"
)

// Within asks a handler of the same process, as from this machine.
func Within(h http.Handler) Doer { return within{h} }

type within struct{ http.Handler }

// Do implements Doer.
func (w within) Do(r *http.Request) (*http.Response, error) {
	r.RemoteAddr, r.RequestURI = "127.0.0.1:0", r.URL.RequestURI()
	a := &answer{header: http.Header{}, status: http.StatusOK}
	w.ServeHTTP(a, r)
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(&a.body)}, nil
}

// answer keeps what a handler answers.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

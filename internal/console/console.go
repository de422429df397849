// Package console serves the web console: a page and its script, built from ui/ by
// tools/console into dist/. Subpackages have its sessions and sign-in. The page has only the
// operator API as its data source; its policy allows no other host and no other script.
package console

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
)

// Path is where the console is.
const Path = "/_godwit/ui/"

// policy is the Content-Security-Policy of the page. Trusted types without a policy prevent
// that text becomes markup or script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

//go:embed dist/*.gz
var dist embed.FS

// page is the file of dist that is loaded first.
const page = "index.html"

// kinds are the media types of the files, by extension.
var kinds = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8"}

// asset is a file of the console.
type asset struct {
	name, kind string
	packed     []byte // compressed by gzip
	plain      []byte
}

// load reads the files of dist.
func load() ([]*asset, error) {
	entries, err := dist.ReadDir("dist")
	if err != nil {
		return nil, err
	}
	var all []*asset
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".gz")
		packed, err := dist.ReadFile("dist/" + e.Name())
		if err != nil {
			return nil, err
		}
		unpacked, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		plain, err := io.ReadAll(unpacked)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, &asset{name: name, kind: kinds[path.Ext(name)], packed: packed, plain: plain})
	}
	return all, nil
}

// serve answers with the file; keep is the Cache-Control header.
func (a *asset) serve(w http.ResponseWriter, r *http.Request, keep string) {
	h := w.Header()
	protect(h)
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", keep)
	h.Set("Vary", "Accept-Encoding")
	body := a.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = a.packed
	}
	_, _ = w.Write(body) // an error means that the client is gone
}

// protect sets the security headers.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// Handlers are the handlers of the console's page and files, by patterns of http.ServeMux.
// They have no data of the server. Each path under Path without a file is the page: its
// script shows what the path names. File names have a digest of their content, so that
// browsers cache them forever.
func Handlers() (map[string]http.Handler, error) {
	all, err := load()
	if err != nil {
		return nil, err
	}
	handlers := map[string]http.Handler{
		"GET " + Path + "assets/": http.NotFoundHandler(), // of another version
	}
	for _, a := range all {
		pattern, keep := "GET "+Path+"assets/"+a.name, "public, max-age=31536000, immutable"
		if a.name == page {
			pattern, keep = "GET "+Path, "no-cache"
		}
		handlers[pattern] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, keep) })
	}
	return handlers, nil
}

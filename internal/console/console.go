// Package console is the web console: a page and its script, made from ui/ by
// tools/console and kept in dist/, and who is signed in to it. The page knows of the
// server what the operator API tells it, and of the world nothing else: no address but
// the server's own may be asked, no script but this one may run.
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

// policy is the Content-Security-Policy of the page. Trusted types without any policy mean
// that nothing makes markup or scripts of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

//go:embed dist/*.gz
var dist embed.FS

// page is the file of dist that names what is loaded at first.
const page = "index.html"

// kinds are the media types of the files, by the ends of their names.
var kinds = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8"}

// asset is a file of the console.
type asset struct {
	name, kind string
	packed     []byte // by gzip
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

// serve answers with the file, which a browser may keep as a Cache-Control header says.
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
	_, _ = w.Write(body) // a browser that is gone needs no answer
}

// protect sets what keeps others out of the page, and the page from others.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// Handlers answers patterns of http.ServeMux with the console's page and its files, which
// hold nothing of the server's state. Each path under Path without a file is the page: its
// script shows what the path names. The name of a file has a digest of what is in it, so that
// a browser never asks for it twice.
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

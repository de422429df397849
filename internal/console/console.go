// Package console is the web console: a page and its script, made from ui/ by
// tools/console and kept in dist/, and who is signed in to it. The page knows of the
// server what the operator API tells it, and of the world nothing else: no address but
// the server's own may be asked, no script but this one may run.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Path is where the console is.
const Path = "/_godwit/ui/"

// policy is the Content-Security-Policy of the page. Trusted types without any policy mean
// that nothing makes markup or scripts of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

//go:embed dist/app.js.gz dist/app.css.gz
var dist embed.FS

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Godwit</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="%s">
<script defer src="%s"></script>
<body>
<div id="app"><noscript>The console needs JavaScript. The godwit command and the operator API do not.</noscript></div>
</html>
`

// asset is a file of the page. Its name has a digest of what is in it, so that a browser
// never asks for it twice.
type asset struct {
	path, kind string
	packed     []byte // by gzip
	plain      []byte
}

// load reads a file of dist.
func load(name, kind string) (*asset, error) {
	packed, err := dist.ReadFile("dist/" + name + ".gz")
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
	digest := sha256.Sum256(plain)
	base, extension, _ := strings.Cut(name, ".")
	return &asset{path: Path + "assets/" + base + "-" + hex.EncodeToString(digest[:8]) + "." + extension, kind: kind, packed: packed, plain: plain}, nil
}

func (a *asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	protect(h)
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
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
// script shows what the path names.
func Handlers() (map[string]http.Handler, error) {
	script, err := load("app.js", "text/javascript; charset=utf-8")
	if err != nil {
		return nil, err
	}
	style, err := load("app.css", "text/css; charset=utf-8")
	if err != nil {
		return nil, err
	}
	shown := fmt.Appendf(nil, page, style.path, script.path)
	return map[string]http.Handler{
		"GET " + script.path: script,
		"GET " + style.path:  style,
		"GET " + Path: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			protect(w.Header())
			if strings.HasPrefix(r.URL.Path, Path+"assets/") { // of another version
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Cache-Control", "no-cache")
			_, _ = w.Write(shown) // a browser that is gone needs no answer
		}),
	}, nil
}

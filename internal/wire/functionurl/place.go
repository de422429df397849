// Package functionurl serves function URLs: a request becomes the event of an invocation, in
// payload format 2.0, and what the function returns becomes the answer.
//
// A request is for a function URL by its Host alone, or else by what its path begins with (Of),
// and then for nothing else: whatever is wrong with it, no other part of the server sees it.
package functionurl

import (
	"net/http"
	"strings"

	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/sigv4"
)

// Place is what a request is for.
type Place struct {
	ID     string // as it was sent, in lower case: there may be no such URL
	Region string // in Host; empty: the request is for a path
	Domain string // Host without its port, in lower case
	Path   string // what the function sees as the path, encoded as it was sent
}

// ByHost reports whether Host names the URL. Then its origin is the URL's own, and else that of the
// server.
func (p *Place) ByHost() bool { return p.Region != "" }

// Is reports whether a request is for a function URL.
func Is(r *http.Request) bool {
	_, ok := Of(r)
	return ok
}

// First serves requests to function URLs, and has next serve all others. It belongs in front of the
// guard against web pages: the Cors of a URL says what pages of other origins may do with it, and a
// request to one reaches nothing but its function. A nil urls: there are none.
func First(urls, next http.Handler) http.Handler {
	if urls == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Is(r) {
			urls.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Of is what a request is for; ok is false if it is not for a function URL. Host decides: with the
// name of a function URL, of whatever domain, all paths are the function's.
func Of(r *http.Request) (p Place, ok bool) {
	if id, region, ok := named(r.Host); ok {
		return Place{ID: strings.ToLower(id), Region: strings.ToLower(region), Domain: domain(r.Host), Path: pathOf(sigv4.RawPath(r))}, true
	}
	if !strings.HasPrefix(r.URL.Path, lambda.URLPath) { // the common case; an encoded prefix is none
		return Place{}, false
	}
	rest, ok := strings.CutPrefix(sigv4.RawPath(r), lambda.URLPath) // URL encodes a path anew that has what it should not
	if !ok {
		return Place{}, false
	}
	id, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		id, path = rest[:i], rest[i:]
	}
	return Place{ID: strings.ToLower(id), Domain: domain(r.Host), Path: pathOf(path)}, true
}

func pathOf(path string) string {
	if !strings.HasPrefix(path, "/") {
		return "/" + path
	}
	return path
}

// named takes a Host of the form ID.lambda-url.REGION.DOMAIN apart.
func named(host string) (id, region string, ok bool) {
	const label, digits = "." + lambda.URLLabel + ".", function.URLIDLength
	if len(host) < digits+len(label) || !strings.EqualFold(host[digits:digits+len(label)], label) {
		return "", "", false
	}
	id = host[:digits]
	for i := range len(id) {
		if c := id[i] | 0x20; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", "", false
		}
	}
	region, rest, ok := strings.Cut(host[digits+len(label):], ".")
	return id, region, ok && rest != "" && sigv4.IsRegion(strings.ToLower(region))
}

// domain is a Host without its port.
func domain(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return strings.ToLower(host)
}

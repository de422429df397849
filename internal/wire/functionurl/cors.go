package functionurl

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/function"
)

// Headers of CORS, as net/http spells them.
const (
	askedMethod      = "Access-Control-Request-Method"
	allowOrigin      = "Access-Control-Allow-Origin"
	allowCredentials = "Access-Control-Allow-Credentials"
	allowMethods     = "Access-Control-Allow-Methods"
	allowHeaders     = "Access-Control-Allow-Headers"
	exposeHeaders    = "Access-Control-Expose-Headers"
	maxAge           = "Access-Control-Max-Age"
)

const anything = "*"

// isPreflight reports whether a browser asks for a page if it may send a request.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get(askedMethod) != ""
}

// preflight answers a preflight. It says nothing to a page that may not ask, which the browser takes
// for a no.
func preflight(c *function.CORS, r *http.Request) *answer {
	a := &answer{status: http.StatusOK, header: http.Header{}}
	method := r.Header.Get(askedMethod)
	if !share(c, r, a.header) || !slices.Contains(c.Methods, anything) && !slices.Contains(c.Methods, method) {
		a.header = http.Header{"Vary": {"Origin"}}
		return a
	}
	a.header.Del(exposeHeaders)
	a.header.Set(allowMethods, strings.Join(c.Methods, ","))
	if len(c.Headers) > 0 {
		a.header.Set(allowHeaders, line(strings.Join(c.Headers, ",")))
	}
	if c.MaxAgeS != nil {
		a.header.Set(maxAge, strconv.Itoa(*c.MaxAgeS))
	}
	return a
}

// share tells a browser whether the page that has asked may read an answer. What the function says
// itself does not count where its URL has a configuration.
func share(c *function.CORS, r *http.Request, h http.Header) bool {
	for _, name := range []string{allowOrigin, allowCredentials, allowMethods, allowHeaders, exposeHeaders, maxAge} {
		delete(h, name)
	}
	origin := r.Header.Get("Origin")
	if !slices.Contains(c.Origins, anything) {
		h.Add("Vary", "Origin")
		if origin == "" || !slices.Contains(c.Origins, origin) {
			return false
		}
		h.Set(allowOrigin, line(origin))
	} else if origin == "" {
		return false
	} else {
		h.Set(allowOrigin, anything)
	}
	if c.Credentials != nil && *c.Credentials {
		h.Set(allowCredentials, "true")
	}
	if len(c.Expose) > 0 {
		h.Set(exposeHeaders, line(strings.Join(c.Expose, ",")))
	}
	return true
}

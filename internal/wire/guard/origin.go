package guard

import (
	"net/http"
	"strings"
)

// origin is what browsers compare: pages of one origin may do all to each other.
type origin struct{ scheme, host, port string }

// String writes an origin as browsers do.
func (o origin) String() string {
	s := strings.ToLower(o.scheme + "://" + o.host)
	if o.port == "" || o.port == defaultPort(o.scheme) {
		return s
	}
	return s + ":" + o.port
}

// parseOrigin reads an origin, and nothing behind it. "null", which is what
// browsers send where they keep an origin to themselves, is none.
func parseOrigin(s string) (o origin, ok bool) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme == "" {
		return origin{}, false
	}
	host, port, ok := splitHost(rest)
	if !ok || !isAddress(host) && !isName(strings.TrimSuffix(host, ".")) {
		return origin{}, false
	}
	return origin{scheme: scheme, host: host, port: port}, true
}

// parseURL reads the origin of a URL.
func parseURL(s string) (o origin, ok bool) {
	if start := strings.Index(s, "://") + len("://"); start >= len("://") {
		if end := strings.IndexAny(s[start:], `/?#\`); end >= 0 {
			s = s[:start+end]
		}
	}
	return parseOrigin(s)
}

func defaultPort(scheme string) string {
	switch {
	case strings.EqualFold(scheme, "http"):
		return "80"
	case strings.EqualFold(scheme, "https"):
		return "443"
	default:
		return ""
	}
}

func (o origin) effectivePort() string {
	if o.port == "" {
		return defaultPort(o.scheme)
	}
	return o.port
}

func (o origin) equals(p origin) bool {
	return strings.EqualFold(o.scheme, p.scheme) && strings.EqualFold(o.host, p.host) && o.effectivePort() == p.effectivePort()
}

// owns reports whether o is the origin that the request was sent to, or the server's
// public one. Where no TLS is seen, a proxy may have ended it.
func (r *Rules) owns(f *Facts, o origin) bool {
	host, port, ok := splitHost(f.Host)
	if ok && (strings.EqualFold(o.scheme, "https") || !f.TLS && strings.EqualFold(o.scheme, "http")) &&
		o.equals(origin{scheme: o.scheme, host: host, port: port}) {
		return true
	}
	return r.public.host != "" && o.equals(r.public)
}

// ownOrigins reports that no value of Origin is another site's.
func (r *Rules) ownOrigins(f *Facts, values []string) bool {
	for _, value := range values {
		if o, ok := parseOrigin(value); !ok || !r.owns(f, o) {
			return false
		}
	}
	return true
}

// ownPages reports that no value of Referer is another site's. An empty one says
// nothing.
func (r *Rules) ownPages(f *Facts, values []string) bool {
	for _, value := range values {
		if o, ok := parseURL(value); value != "" && (!ok || !r.owns(f, o)) {
			return false
		}
	}
	return true
}

// listed returns the origin of the request if the operator listed it.
func (r *Rules) listed(f *Facts, values []string) string {
	if len(values) != 1 || f.Surface == Profiles {
		return ""
	}
	for _, o := range r.cors {
		if values[0] == o {
			return o
		}
	}
	return ""
}

// statesOrigin reports that a header says of what origin the request is.
func statesOrigin(headers ...[]string) bool {
	for _, values := range headers {
		for _, value := range values {
			if value != "" {
				return true
			}
		}
	}
	return false
}

// sameSite reports that, by Sec-Fetch-Site as far as it is there, the request comes
// from a page of the server's own or from the user.
func sameSite(sites []string) bool {
	for _, site := range sites {
		if site != "same-origin" && site != "none" {
			return false
		}
	}
	return true
}

// navigates reports that a link has led to where nothing but reading can happen:
// the page that has it does not see what is there.
func navigates(f *Facts) bool {
	mode := f.Header[headerMode]
	return f.Surface != Profiles && f.Method == http.MethodGet && len(mode) == 1 && mode[0] == "navigate"
}

// followed reports that somebody has followed a link: what is there is shown in the
// place of the page, and not within it.
func followed(h http.Header) bool {
	mode, dest := h[headerMode], h[headerDest]
	return len(mode) == 1 && mode[0] == "navigate" && (len(dest) == 0 || len(dest) == 1 && dest[0] == "document")
}

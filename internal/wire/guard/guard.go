// Package guard keeps web pages from using a server that the browser showing
// them can reach: a page of any site may send requests to localhost and to
// private addresses, in the name of whoever looks at it.
//
// Rules decide on each request before anything else looks at it, by three things
// that a page cannot forge:
//
//   - Host. A page whose name was pointed at the server's address ("DNS
//     rebinding") is of the server's own origin, but sends its own name. So the
//     name must be one that nobody else can own, or one that the operator gave.
//   - Origin, Referer and Sec-Fetch-Site, which show of what origin a page is.
//     Browsers send Origin with every request that is neither GET nor HEAD, and
//     Sec-Fetch-Site with all of them where the address is https or loopback.
//   - Where a GET that changes something comes with none of these headers, a page
//     that hides its address may be behind it: then it has to come from the same
//     machine, where Sec-Fetch-Site would be there, or to be signed.
//
// Programs send none of these headers, and notice nothing but a Host that is not
// known. The decision is a function of Facts; Handler brings it to HTTP.
package guard

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// Settings are what Rules are made of. What has not the form that is asked for
// never matches.
type Settings struct {
	// AllowedHosts are the names that Host may have besides those that nobody else
	// can own: a name stands for itself, *.NAME for the names below it.
	AllowedHosts []string
	// Domains are names that Host may have, with all names below them.
	Domains []string
	// PublicURL is the address of the server as others reach it. Its host is one of
	// the Domains, its origin is the server's own. Empty: there is none.
	PublicURL string
	// CORSOrigins are the origins whose pages may use the server and read what it
	// answers, as scheme://host or scheme://host:port.
	CORSOrigins []string
	// AllowUnsignedGet lets a GET that changes something come from another machine,
	// without a signature and without a header that says of what origin it is.
	AllowUnsignedGet bool
}

// Surface is a part of the server, by the path that a request goes to.
type Surface int

// The surfaces.
const (
	AWS      Surface = iota // the AWS APIs, and all paths that are nobody else's
	Own                     // the admin API, metrics
	Probe                   // health and readiness, which load balancers may ask for without a Host
	Profiles                // profiles of the process: to ask for one costs, so that no page may link to it
)

// Facts are what a decision is made of.
type Facts struct {
	Method  string
	Surface Surface
	Query   string      // of the URL, without the question mark, as it was sent
	Host    string      // of the request line if that is an absolute URL, else of the header
	Header  http.Header // with canonical names
	Peer    string      // who is at the other end of the connection, as IP:port
	TLS     bool
	// Verified says that the request has a valid signature that covers Host.
	Verified bool
}

// Reason is why a request is refused. Its text is for metrics and logs.
type Reason string

// The reasons.
const (
	UnknownHost   Reason = "host"     // Host is nobody's whom the operator named
	ForeignOrigin Reason = "origin"   // by Origin, a page of another origin is behind it
	ForeignSite   Reason = "site"     // by Sec-Fetch-Site
	ForeignPage   Reason = "referer"  // by Referer
	UnsignedGet   Reason = "unsigned" // it changes something, and nothing says who is behind it
)

// Reasons are all of them.
var Reasons = []Reason{UnknownHost, ForeignOrigin, ForeignSite, ForeignPage, UnsignedGet}

// Decision says whether a request is served, refused or answered as a preflight.
type Decision struct {
	// Refused is why it must not be served; empty: it may.
	Refused Reason
	// Origin is the listed origin that the answer is for, which the answer has to name
	// to the browser; empty: it needs not.
	Origin string
	// Preflight says that the browser asks whether it may send a request, and that it
	// may. This request itself is for nobody else.
	Preflight bool
}

// Rules decide. They never change, and may be used from many goroutines.
type Rules struct {
	known    atomic.Pointer[string] // the Host that was last found to be this server's
	hosts    []string               // names that Host may have
	domains  []string               // names that Host may have with those below; with a dot before it, only those
	public   origin                 // its zero value is nobody's
	cors     []string               // origins as browsers write them
	unsigned bool
}

// NewRules makes rules.
func NewRules(s Settings) *Rules {
	r := &Rules{unsigned: s.AllowUnsignedGet}
	for _, host := range s.AllowedHosts {
		if strings.HasPrefix(host, "*.") {
			r.domains = append(r.domains, strings.TrimSuffix(host[1:], "."))
		} else {
			r.hosts = append(r.hosts, strings.TrimSuffix(host, "."))
		}
	}
	domains := s.Domains
	if public, ok := parseURL(s.PublicURL); ok {
		r.public = public
		domains = append(slices.Clip(domains), public.host)
	}
	for _, domain := range domains {
		if domain = strings.TrimSuffix(domain, "."); isName(domain) && !isAddress(domain) {
			r.domains = append(r.domains, domain)
		}
	}
	for _, text := range s.CORSOrigins {
		if o, ok := parseOrigin(text); ok {
			r.cors = append(r.cors, o.String())
		}
	}
	return r
}

// Headers, as net/http spells them.
const (
	headerOrigin  = "Origin"
	headerReferer = "Referer"
	headerSite    = "Sec-Fetch-Site"
	headerMode    = "Sec-Fetch-Mode"
	headerDest    = "Sec-Fetch-Dest"
	headerMethod  = "Access-Control-Request-Method"
)

// Decide decides on a request. An ordinary one of a program costs a check of Host and of three
// headers, and no allocation.
func (r *Rules) Decide(f *Facts) Decision {
	if !r.knows(f) {
		return Decision{Refused: UnknownHost}
	}
	origins, sites, referers := f.Header[headerOrigin], f.Header[headerSite], f.Header[headerReferer]
	read := f.Method == http.MethodGet || f.Method == http.MethodHead
	if len(origins) == 0 && len(sites) == 0 && len(referers) == 0 && (!read || f.Query == "") {
		return Decision{}
	}
	if origin := r.listed(f, origins); origin != "" {
		preflight := f.Method == http.MethodOptions && len(f.Header[headerMethod]) > 0
		return Decision{Origin: origin, Preflight: preflight}
	}
	asked := call{acts: true}
	if read {
		asked = parseCall(f.Query)
	}
	if asked.confirms() && f.Surface == AWS {
		return Decision{}
	}
	if !r.ownOrigins(f, origins) {
		return Decision{Refused: ForeignOrigin}
	}
	leaves := asked.unsubscribes() && f.Surface == AWS
	switch {
	case leaves && followed(f.Header):
		return Decision{}
	case !sameSite(sites) && (asked.acts || !navigates(f)):
		return Decision{Refused: ForeignSite}
	case !asked.acts:
		return Decision{}
	case !r.ownPages(f, referers):
		return Decision{Refused: ForeignPage}
	case read && !statesOrigin(origins, sites, referers) && !leaves && !f.Verified && !r.unsigned && !f.local():
		return Decision{Refused: UnsignedGet}
	}
	return Decision{}
}

// forwarding are the headers that a proxy adds: the peer is then not who asks.
var forwarding = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"}

// local reports that the request comes from the same machine, at an address with
// which browsers send Sec-Fetch-Site.
func (f *Facts) local() bool {
	peer, err := netip.ParseAddrPort(f.Peer)
	if err != nil || !peer.Addr().IsLoopback() {
		return false
	}
	for _, name := range forwarding {
		if len(f.Header[name]) > 0 {
			return false
		}
	}
	host, _, ok := splitHost(f.Host)
	return ok && isLoopback(host)
}

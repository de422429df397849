package guard

import (
	"net/http"
	"strings"
)

// Options are what a Handler is made of. Rules, Next and Refuse are required.
type Options struct {
	Rules *Rules
	Next  http.Handler
	// Refuse answers a request that is not served, in a form that its sender reads.
	Refuse func(w http.ResponseWriter, r *http.Request, refusal Refusal)
	// Surface reports what a path belongs to; nil: all is AWS.
	Surface func(path string) Surface
	// Verified reports that a request has a valid signature that covers Host; nil:
	// none has. It is asked where that decides, and only there.
	Verified func(r *http.Request) bool
}

// Refusal is why a request is not served. Its status is 403.
type Refusal struct {
	Reason  Reason
	Surface Surface
	// Text tells the sender what would allow the request, and names the flag. It
	// repeats what he sent, in printable ASCII and shortened.
	Text string
}

// Handler serves what its rules let through, answers preflights, and tells browsers
// of the origins that are listed.
func Handler(o Options) http.Handler { return &handler{o} }

type handler struct{ Options }

// Header values that are shared by all answers.
var (
	varyOrigin    = []string{headerOrigin}
	varyPreflight = []string{"Origin, Access-Control-Request-Method, Access-Control-Request-Headers, Access-Control-Request-Private-Network"}
	yes           = []string{"true"}
	methods       = []string{"GET, HEAD, POST, PUT, PATCH, DELETE"}
	preflightAge  = []string{"600"} // seconds that a browser need not ask again
	exposed       = []string{"x-amzn-RequestId, x-amzn-query-error, x-amzn-ErrorType, smithy-protocol, " +
		"X-Amz-Function-Error, X-Amz-Log-Result, X-Amz-Executed-Version, Date, Retry-After"}
)

// maxAsked bounds the headers that a preflight may ask for, in bytes.
const maxAsked = 4 << 10

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := Facts{Method: r.Method, Query: r.URL.RawQuery, Host: r.Host, Header: r.Header, Peer: r.RemoteAddr, TLS: r.TLS != nil}
	if h.Surface != nil {
		f.Surface = h.Surface(r.URL.Path)
	}
	v := h.Rules.Decide(&f)
	if v.Refused != "" && h.Verified != nil {
		f.Verified = true
		if signed := h.Rules.Decide(&f); signed.Refused == "" && h.Verified(r) {
			v = signed
		}
	}
	if len(h.Rules.cors) > 0 { // else no answer depends on it
		w.Header()["Vary"] = varyOrigin[:1:1]
	}
	switch {
	case v.Refused != "":
		h.Refuse(w, r, Refusal{Reason: v.Refused, Surface: f.Surface, Text: explain(v.Refused, &f)})
	case v.Preflight:
		preflight(w.Header(), r.Header, v.Origin)
		w.WriteHeader(http.StatusNoContent)
	case v.Origin != "":
		header := w.Header()
		header["Access-Control-Allow-Origin"] = []string{v.Origin}
		header["Access-Control-Expose-Headers"] = exposed[:1:1]
		h.Next.ServeHTTP(w, r)
	default:
		h.Next.ServeHTTP(w, r)
	}
}

// preflight lets a page of a listed origin send what it asks for. Credentials of
// the browser's own, such as cookies, are not among that.
func preflight(answer, asked http.Header, origin string) {
	answer["Vary"] = varyPreflight[:1:1]
	answer["Access-Control-Allow-Origin"] = []string{origin}
	answer["Access-Control-Allow-Methods"] = methods[:1:1]
	answer["Access-Control-Max-Age"] = preflightAge[:1:1]
	if names := strings.Join(asked["Access-Control-Request-Headers"], ","); names != "" && len(names) <= maxAsked {
		answer["Access-Control-Allow-Headers"] = []string{names}
	}
	if asked.Get("Access-Control-Request-Private-Network") == "true" {
		answer["Access-Control-Allow-Private-Network"] = yes[:1:1]
	}
}

// explain tells the sender of a refused request what to do.
func explain(reason Reason, f *Facts) string {
	switch reason {
	case UnknownHost:
		if f.Host == "" {
			return "The request has no Host."
		}
		return "The host " + printable(f.Host) + " is not known to be this server's. If it is, allow it with --allowed-hosts."
	case ForeignOrigin:
		if f.Header.Get(headerOrigin) == "null" {
			return "The request comes from a web page that does not tell its origin (Origin: null), as any page can. " +
				"Serve the page from an address, and allow that with --cors-origins."
		}
		return "The request comes from a web page of another origin, " + printable(strings.Join(f.Header[headerOrigin], ", ")) +
			". If you trust all pages of that origin, allow it with --cors-origins."
	case ForeignSite:
		return "The request comes from a web page of another origin (Sec-Fetch-Site: " + printable(strings.Join(f.Header[headerSite], ", ")) +
			"). If you trust all pages of that origin, allow it with --cors-origins, and have them ask in a way that tells their Origin."
	case ForeignPage:
		return "The request comes from a web page of another origin (Referer). " +
			"If you trust all pages of that origin, allow it with --cors-origins, and have them ask in a way that tells their Origin."
	default:
		return "A GET with an Action is taken from this machine only, at a loopback address or localhost, since a web page may be behind it. " +
			"Use POST, or allow it with --allow-unsigned-get."
	}
}

// printable shortens what a client sent.
func printable(s string) string {
	const most = 128
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, s)
}

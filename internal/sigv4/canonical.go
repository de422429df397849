package sigv4

import (
	"encoding/hex"
	"iter"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
)

const (
	unsignedPayload = "UNSIGNED-PAYLOAD"
	headerPayload   = "X-Amz-Content-Sha256"
)

// form is a form in which a request may have been signed.
type form struct {
	normal bool // the path without "//", "/./" and "/../"
	bare   bool // without the session token in the query, which was added after signing
}

// forms yields the forms that differ for this request, the likeliest first.
func (c *claims) forms(r *Request) iter.Seq[form] {
	return func(yield func(form) bool) {
		normal, bare := !isNormal(r.Path) && (!r.Exact || isRoot(r.Path)), c.presigned && c.token != ""
		_ = normal && (!yield(form{normal: true}) || bare && !yield(form{true, true})) ||
			!yield(form{}) || bare && !yield(form{bare: true})
	}
}

// appendCanonical appends the canonical request.
func (c *claims) appendCanonical(dst []byte, r *Request, f form) []byte {
	dst = append(append(dst, r.Method...), '\n')
	path := r.Path
	if f.normal {
		path = normalize(path)
	}
	dst = append(appendPath(dst, path), '\n')
	dst = append(appendQuery(dst, r.Query, f.bare), '\n')
	for name := range strings.SplitSeq(c.headers, ";") {
		dst = append(append(dst, name...), ':')
		dst = append(c.appendHeader(dst, r, name), '\n')
	}
	dst = append(append(append(dst, '\n'), c.headers...), '\n')
	if sent := r.Header[headerPayload]; len(sent) > 0 && sent[0] == unsignedPayload {
		return append(dst, unsignedPayload...)
	}
	return hex.AppendEncode(dst, r.Payload[:])
}

// payloadMatches reports that x-amz-content-sha256, if present, is the digest of the payload.
// It never is for a payload signed in chunks (STREAMING-…): none of our services accepts one.
func (r *Request) payloadMatches() bool {
	sent := r.Header[headerPayload]
	switch {
	case len(sent) == 0:
		return true
	case len(sent) > 1:
		return false
	case sent[0] == unsignedPayload:
		return r.Unsigned
	}
	var digest [2 * len(r.Payload)]byte
	hex.Encode(digest[:], r.Payload[:])
	return sent[0] == string(digest[:])
}

// appendHeader appends the value of a signed header.
func (c *claims) appendHeader(dst []byte, r *Request, name string) []byte {
	if name == "host" || name == ":authority" {
		return appendValue(dst, r.Host)
	}
	values := lookUp(r.Header, name)
	if len(values) == 0 {
		return c.appendAbsent(dst, r, name)
	}
	for i, value := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendValue(dst, value)
	}
	return dst
}

// appendAbsent appends the value of a signed header that the request does not have: it is
// known, or else empty.
func (c *claims) appendAbsent(dst []byte, r *Request, name string) []byte {
	switch name {
	case "content-length": // net/http may have removed it
		return strconv.AppendInt(dst, max(r.Length, 0), 10)
	case "x-amz-content-sha256": // a client of a presigned URL may not know these two
		return hex.AppendEncode(dst, r.Payload[:])
	case "x-amz-security-token":
		return append(dst, c.token...)
	}
	return dst
}

// lookUp finds a header by its lowercase name.
func lookUp(header http.Header, name string) []string {
	var spelled [64]byte
	if len(name) > len(spelled) {
		return header[textproto.CanonicalMIMEHeaderKey(name)]
	}
	upper := true
	for i := range len(name) {
		b := name[i]
		switch {
		case upper && 'a' <= b && b <= 'z':
			b -= 'a' - 'A'
		case !upper && 'A' <= b && b <= 'Z':
			b += 'a' - 'A'
		}
		spelled[i] = b
		upper = b == '-'
	}
	return header[string(spelled[:len(name)])]
}

// appendValue appends a header's value without leading and trailing spaces, and with runs of
// spaces reduced to one.
func appendValue(dst []byte, value string) []byte {
	if value == "" || value[0] <= ' ' || value[len(value)-1] <= ' ' {
		value = strings.Trim(value, " \t\r\n")
	}
	if !strings.Contains(value, "  ") {
		return append(dst, value...)
	}
	for i := range len(value) {
		if value[i] != ' ' || value[i-1] != ' ' {
			dst = append(dst, value[i])
		}
	}
	return dst
}

// RawPath is the path of a request as it was sent.
func RawPath(r *http.Request) string {
	target := r.RequestURI
	if target == "" || target == "*" { // of a request without a connection
		return r.URL.EscapedPath()
	}
	if target[0] != '/' { // the absolute form
		_, rest, _ := strings.Cut(target, "://")
		slash := strings.IndexAny(rest, "/?")
		if slash < 0 || rest[slash] == '?' {
			return "/"
		}
		target = rest[slash:]
	}
	path, _, _ := strings.Cut(target, "?")
	return path
}

// isNormal reports that a path has no "//", "/./" or "/../".
func isNormal(path string) bool {
	return !strings.Contains(path, "//") && !strings.Contains(path, "/.")
}

// isRoot reports that a path has nothing but slashes. Clients that join an endpoint and a signed
// "/" send "//".
func isRoot(path string) bool { return strings.Trim(path, "/") == "" }

// normalize resolves these.
func normalize(path string) string {
	var kept []string
	directory := true // it ends with a slash
	for part := range strings.SplitSeq(path, "/") {
		directory = false
		switch part {
		case "", ".":
			directory = true
		case "..":
			kept, directory = kept[:max(len(kept)-1, 0)], true
		default:
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return "/"
	}
	normal := "/" + strings.Join(kept, "/")
	if directory {
		normal += "/"
	}
	return normal
}

// appendPath appends a path with all but unreserved bytes encoded: bytes that were encoded are
// encoded twice.
func appendPath(dst []byte, path string) []byte {
	if path == "" {
		return append(dst, '/')
	}
	for i := range len(path) {
		if c := path[i]; c == '/' || unreserved[c] {
			dst = append(dst, c)
		} else {
			dst = appendEscaped(dst, c)
		}
	}
	return dst
}

// appendQuery appends a query in canonical form: without the signature, encoded again,
// sorted by names and then by values.
func appendQuery(dst []byte, query string, bare bool) []byte {
	if query == "" {
		return dst
	}
	type parameter struct{ name, value string }
	parameters := make([]parameter, 0, 1+strings.Count(query, "&"))
	token := bare // it has been seen; a repetition is ignored
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name = unescape(name)
		if name == paramSignature || name == paramToken && token {
			continue
		}
		token = token || name == paramToken
		parameters = append(parameters, parameter{escape(name), escape(unescape(value))})
	}
	slices.SortFunc(parameters, func(a, b parameter) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.value, b.value)
	})
	for i, p := range parameters {
		if i > 0 {
			dst = append(dst, '&')
		}
		dst = append(append(append(dst, p.name...), '='), p.value...)
	}
	return dst
}

func escape(s string) string {
	for i := range len(s) {
		if !unreserved[s[i]] {
			dst := append(make([]byte, 0, len(s)+8), s[:i]...)
			for ; i < len(s); i++ {
				if c := s[i]; unreserved[c] {
					dst = append(dst, c)
				} else {
					dst = appendEscaped(dst, c)
				}
			}
			return string(dst)
		}
	}
	return s
}

func appendEscaped(dst []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	return append(dst, '%', digits[c>>4], digits[c&15])
}

// unreserved are the bytes that are not encoded in a URL.
var unreserved = func() (t [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") {
		t[c] = true
	}
	return t
}()

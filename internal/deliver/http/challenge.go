package httpsender

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/icholy/digest"
)

// authorize makes the Authorization header in response to a 401, for the first supported
// challenge of Digest, or else for Basic. ok is false if there is neither.
func authorize(h http.Header, user *url.Userinfo, uri string, body []byte) (authorization string, ok bool) {
	password, _ := user.Password()
	basic := false
	for _, challenge := range challenges(h) {
		scheme, _, _ := strings.Cut(challenge, " ")
		basic = basic || strings.EqualFold(scheme, "Basic")
		asked, err := digest.ParseChallenge(challenge)
		if err != nil || !digest.CanDigest(asked) {
			continue
		}
		answer, err := digest.Digest(asked, digest.Options{
			Method: http.MethodPost, URI: uri, Username: user.Username(), Password: password,
			GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
		})
		if err == nil {
			return answer.String(), true
		}
	}
	if basic {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)), true
	}
	return "", false
}

// challenges splits the challenges of an answer, several of which may share a line: scheme,
// space, comma-separated parameters. Source: RFC 9110, 11.6.1.
func challenges(h http.Header) (all []string) {
	for _, line := range h.Values("WWW-Authenticate") {
		begun := false
		for part := range parts(line) {
			word, _, more := strings.Cut(part, " ")
			switch {
			case part == "":
			case strings.Contains(word, "=") || more && strings.HasPrefix(strings.TrimLeft(part[len(word):], " "), "="):
				if begun { // a parameter of the last challenge
					all[len(all)-1] += ", " + part
				}
			default:
				all, begun = append(all, part), true
			}
		}
	}
	return all
}

// parts yields the parts of a line between unquoted commas.
func parts(line string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		from, quoted := 0, false
		for i := 0; i < len(line); i++ {
			switch c := line[i]; {
			case c == '\\' && quoted:
				i++
			case c == '"':
				quoted = !quoted
			case c == ',' && !quoted:
				if !yield(strings.TrimSpace(line[from:i])) {
					return
				}
				from = i + 1
			}
		}
		yield(strings.TrimSpace(line[from:]))
	}
}

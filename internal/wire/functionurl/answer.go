package functionurl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// answer is how a function answers a request.
type answer struct {
	status  int
	header  http.Header
	cookies []string // values of Set-Cookie
	body    []byte

	refused, why string // the error's code and, of who may not, its cause, for the audit log; empty: none
}

// maxHead is how many bytes the headers and cookies of an answer may have.
const maxHead = 64 << 10

// read reads the payload that a function has returned; ok is false if that is meant to be an answer, and
// is none. What is no object with a status is a body, a text with its quotes. Names of members are
// exact. Source: the Lambda developer guide, "Invoking Lambda function URLs".
func read(payload []byte) (a answer, ok bool) {
	a = answer{status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}}
	payload = bytes.TrimSpace(payload)
	var has map[string]json.RawMessage
	if len(payload) == 0 || payload[0] != '{' || json.Unmarshal(payload, &has) != nil {
		a.body = payload
		return a, true
	}
	given, ok := has["statusCode"]
	if !ok {
		a.body = payload
		return a, true
	}
	var headers map[string]json.RawMessage
	var encoded bool
	for name, into := range map[string]any{"headers": &headers, "cookies": &a.cookies, "isBase64Encoded": &encoded} {
		if value, ok := has[name]; ok && json.Unmarshal(value, into) != nil {
			return answer{}, false
		}
	}
	status, err := strconv.Atoi(string(plain(given)))
	if err != nil || status < 200 || status > 599 {
		return answer{}, false
	}
	a.status, a.body = status, plain(has["body"])
	if encoded {
		if a.body, err = base64.StdEncoding.DecodeString(string(a.body)); err != nil {
			return answer{}, false
		}
	}
	return a, a.head(headers)
}

// head sets the headers that a function returns, and reports whether they, and the cookies, can be
// those of an answer.
func (a *answer) head(headers map[string]json.RawMessage) bool {
	size := 0
	for _, cookie := range a.cookies {
		size += len(cookie)
	}
	for name, value := range headers {
		if name = http.CanonicalHeaderKey(name); !isToken(name) {
			return false
		}
		text := line(string(plain(value)))
		if size += len(name) + len(text); !ofConnection[name] {
			a.header[name] = []string{text}
		}
	}
	return size <= maxHead
}

// plain is a text without its quotes, or any other value as JSON; empty for null.
func plain(value json.RawMessage) []byte {
	var text string
	switch {
	case len(value) == 0, string(value) == "null":
		return nil
	case value[0] == '"' && json.Unmarshal(value, &text) == nil:
		return []byte(text)
	}
	return value
}

// ofConnection are headers that say how an answer is written on its connection.
var ofConnection = map[string]bool{
	"Connection": true, "Content-Length": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true,
}

// ofOrigin are headers that would act on all of the origin that an answer comes from.
var ofOrigin = []string{
	"Accept-Ch", "Alt-Svc", "Clear-Site-Data", "Nel", "Public-Key-Pins", "Report-To", "Service-Worker-Allowed", "Strict-Transport-Security",
}

// isToken reports whether a text can be a header's name.
func isToken(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

// line is a text without what ends a header's line.
func line(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\t' || c == 0x7f {
			return ' '
		}
		return c
	}, text)
}

// ofServer reports whether a cookie, as in Cookie or Set-Cookie, has a name of the web console's, or
// would have one once a browser sends it: of one without a name, it sends the value alone.
func ofServer(cookie string) bool {
	cookie, _, _ = strings.Cut(cookie, ";")
	name := strings.ToLower(strings.TrimLeft(cookie, "= \t"))
	for _, prefix := range []string{"__host-", "__secure-"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return strings.HasPrefix(name, "godwit-")
}

// isWide reports whether a Set-Cookie is for more hosts than the one that sets it.
func isWide(cookie string) bool {
	for attribute := range strings.SplitSeq(cookie, ";") {
		name, value, _ := strings.Cut(attribute, "=")
		if strings.EqualFold(strings.TrimSpace(name), "domain") && strings.TrimSpace(value) != "" {
			return true
		}
	}
	return false
}

// takes reports whether the web console may get a cookie that is set at a URL: at the server's own
// origin, or from a name below the console's.
func (p *Place) takes(cookie string) bool { return ofServer(cookie) && (!p.ByHost() || isWide(cookie)) }

// sandboxed has a browser take a page for one of no origin: at a path of the server, a function's page
// would otherwise be one of the web console's own origin, and could do what that can.
const sandboxed = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts"

// write writes an answer.
func (a *answer) write(w http.ResponseWriter, p *Place) {
	h := w.Header()
	maps.Copy(h, a.header)
	h.Del("Set-Cookie") // what the function's headers have comes with its cookies
	for _, cookie := range append(a.header["Set-Cookie"], a.cookies...) {
		if cookie = line(cookie); !p.takes(cookie) {
			h.Add("Set-Cookie", cookie)
		}
	}
	if !p.ByHost() {
		for _, name := range ofOrigin {
			h.Del(name)
		}
		h.Add("Content-Security-Policy", sandboxed)
	}
	if a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	if a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		_, _ = w.Write(a.body) // a caller that is gone needs no answer
	}
}

// instead is an answer that the function does not give.
func instead(status int, body string) *answer {
	return &answer{status: status, header: http.Header{"Content-Type": {"application/json"}}, body: []byte(body)}
}

// denied answers who may not invoke; why is for the audit log.
func denied(code, text, why string) *answer {
	a := instead(http.StatusForbidden, message(text))
	a.refused, a.why = code, why
	a.header.Set("X-Amzn-Errortype", code)
	return a
}

// message is the body of most refusals.
func message(text string) string {
	doc, err := json.Marshal(map[string]string{"Message": text})
	if err != nil {
		panic(err) // a text can always be marshalled
	}
	return string(doc)
}

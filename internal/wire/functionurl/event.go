package functionurl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/tracing"
)

// event is a request in payload format 2.0, as function URLs send it. Source: the Lambda developer
// guide, "Invoking Lambda function URLs".
type event struct {
	Version        string            `json:"version"`
	RouteKey       string            `json:"routeKey"`
	RawPath        string            `json:"rawPath"`
	RawQueryString string            `json:"rawQueryString"`
	Cookies        []string          `json:"cookies,omitempty"`
	Headers        map[string]string `json:"headers"`
	Query          map[string]string `json:"queryStringParameters,omitempty"`
	Context        requestContext    `json:"requestContext"`
	Body           *string           `json:"body,omitempty"`
	Base64         bool              `json:"isBase64Encoded"`
}

type requestContext struct {
	AccountID    string      `json:"accountId"`
	APIID        string      `json:"apiId"`
	Authorizer   *authorizer `json:"authorizer,omitempty"`
	DomainName   string      `json:"domainName"`
	DomainPrefix string      `json:"domainPrefix"`
	HTTP         httpContext `json:"http"`
	RequestID    string      `json:"requestId"`
	RouteKey     string      `json:"routeKey"`
	Stage        string      `json:"stage"`
	Time         string      `json:"time"`
	TimeEpoch    int64       `json:"timeEpoch"` // milliseconds
}

type httpContext struct {
	Method    string `json:"method"`
	Path      string `json:"path"`
	Protocol  string `json:"protocol"`
	SourceIP  string `json:"sourceIp"`
	UserAgent string `json:"userAgent"`
}

type authorizer struct {
	IAM iam `json:"iam"`
}

type iam struct {
	AccessKey       string  `json:"accessKey"`
	AccountID       string  `json:"accountId"`
	CallerID        string  `json:"callerId"`
	CognitoIdentity *string `json:"cognitoIdentity"` // null: there is no Cognito
	PrincipalOrgID  *string `json:"principalOrgId"`  // null: there are no organizations
	UserARN         string  `json:"userArn"`
	UserID          string  `json:"userId"`
}

// Values that API Gateway has for what function URLs do not have.
const (
	payloadVersion = "2.0"
	defaultRoute   = "$default"
	anonymous      = "anonymous" // the account of who need not sign
)

// asked is a request that is to be invoked.
type asked struct {
	place Place
	url   *function.QualifiedURL
	who   *caller.Caller // of AWS_IAM; nil: of nobody
	id    string
	at    time.Time
	body  []byte
}

// encode makes the event.
func (a *asked) encode(r *http.Request) ([]byte, error) {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	e := event{
		Version: payloadVersion, RouteKey: defaultRoute, RawPath: a.place.Path, RawQueryString: r.URL.RawQuery,
		Cookies: a.cookies(r.Header), Headers: headers(r, address), Query: parameters(r.URL.RawQuery),
		Context: requestContext{
			AccountID: anonymous, APIID: a.url.ID, DomainName: a.place.Domain, DomainPrefix: a.url.ID,
			HTTP:      httpContext{Method: r.Method, Path: a.place.Path, Protocol: r.Proto, SourceIP: address, UserAgent: r.UserAgent()},
			RequestID: a.id, RouteKey: defaultRoute, Stage: defaultRoute,
			Time: a.at.UTC().Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: a.at.UnixMilli(),
		},
	}
	if who := a.who; who != nil {
		delete(e.Headers, "authorization") // with which the function could send the request again
		e.Context.AccountID = who.Account
		e.Context.Authorizer = &authorizer{iam{
			AccessKey: who.AccessKey, AccountID: who.Account, CallerID: who.ID, UserARN: who.ARN, UserID: who.ID,
		}}
	}
	if len(a.body) > 0 {
		text := ""
		if e.Base64 = !readable(r.Header.Get("Content-Type")) || !utf8.Valid(a.body); e.Base64 {
			text = base64.StdEncoding.EncodeToString(a.body)
		} else {
			text = string(a.body)
		}
		e.Body = &text
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&e); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// readable reports whether a body of a content type is sent as text, and not in base64.
func readable(contentType string) bool {
	contentType = strings.ToLower(contentType)
	for _, kind := range []string{"text", "json", "xml", "javascript"} {
		if strings.Contains(contentType, kind) {
			return true
		}
	}
	return false
}

// cookies are the cookies of a request, each as it was sent. At the server's own origin browsers
// send those of the web console, too, which no function may have.
func (a *asked) cookies(h http.Header) (all []string) {
	for _, line := range h["Cookie"] {
		for one := range strings.SplitSeq(line, ";") {
			one = strings.TrimSpace(one)
			if one != "" && (a.place.ByHost() || !ofServer(one)) {
				all = append(all, one)
			}
		}
	}
	return all
}

// headers are the headers of an event: in lower case, with commas between several values, and with
// those of the connection.
func headers(r *http.Request, address string) map[string]string {
	out := make(map[string]string, len(r.Header)+5)
	for name, values := range r.Header {
		switch name {
		case "Cookie", "Connection", "Transfer-Encoding", "Upgrade", "Keep-Alive", "Proxy-Connection":
		default:
			out[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	out["host"] = r.Host
	proto, port := "http", "80"
	if r.TLS != nil {
		proto, port = "https", "443"
	}
	if _, given, err := net.SplitHostPort(r.Host); err == nil && given != "" {
		port = given
	}
	if before := out["x-forwarded-for"]; before != "" {
		address = before + ", " + address
	}
	out["x-forwarded-for"] = address
	for name, value := range map[string]string{"x-forwarded-proto": proto, "x-forwarded-port": port} {
		if _, given := out[name]; !given {
			out[name] = value
		}
	}
	if trace := out["x-amzn-trace-id"]; len(trace) > tracing.MaxHeader {
		delete(out, "x-amzn-trace-id")
	}
	return out
}

// parameters are the parameters of a query, decoded, with commas between several values of one
// name. What cannot be decoded is left out: the function has the query as it was sent, too.
func parameters(query string) map[string]string {
	if query == "" {
		return nil
	}
	values, _ := url.ParseQuery(query)
	out := make(map[string]string, len(values))
	for name, all := range values {
		out[name] = strings.Join(all, ",")
	}
	return out
}

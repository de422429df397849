package sigv4

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// basicForm is ISO 8601's basic form, the form of signed dates.
const basicForm = "20060102T150405Z"

const terminator = "aws4_request"

// The parameters of a presigned request.
const (
	paramAlgorithm = "X-Amz-Algorithm"
	paramSignature = "X-Amz-Signature"
	paramToken     = "X-Amz-Security-Token"
)

// claims are the request's parameters of its own signature.
type claims struct {
	presigned  bool
	algorithm  string
	credential string
	headers    string // the names of the signed headers, as listed
	signature  string
	date       string // as it was sent
	token      string
	expires    string // as it was sent; empty: not presigned, or it does not say

	at    time.Time
	basic string // at, in the signed form
	scope Scope
}

// read reads the claims of the request.
func (c *claims) read(r *Request) error {
	authorization := r.Header["Authorization"]
	inQuery := r.Query != "" && presigned(r.Query)
	switch {
	case len(authorization) > 0 && inQuery:
		return errBoth
	case inQuery:
		return c.readQuery(r)
	case len(authorization) == 0 || !strings.HasPrefix(strings.TrimLeft(authorization[0], " "), "AWS4-"):
		return errMissing
	case len(authorization) > 1:
		return incomplete("The request has more than one Authorization header.")
	default:
		return c.readHeader(r, authorization[0])
	}
}

func (c *claims) readHeader(r *Request, header string) error {
	rest := strings.TrimLeft(header, " ")
	c.algorithm, rest, _ = strings.Cut(rest, " ")
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, ",")
		if part = strings.Trim(part, " \t"); part == "" {
			continue
		}
		key, value, pair := strings.Cut(part, "=")
		if !pair {
			return incomplete("'" + printable(key) + "' not a valid key=value pair (missing equal-sign) in Authorization header" + hashed(header))
		}
		var place *string
		switch key {
		case "Credential":
			place = &c.credential
		case "SignedHeaders":
			place = &c.headers
		case "Signature":
			place = &c.signature
		default:
			continue
		}
		if *place != "" {
			return incomplete("Authorization header has '" + key + "' more than once" + hashed(header))
		}
		*place = value
	}
	var lacks strings.Builder
	for _, part := range [...]struct{ name, value string }{{"Credential", c.credential}, {"Signature", c.signature}, {"SignedHeaders", c.headers}} {
		if part.value == "" {
			lacks.WriteString("Authorization header requires '" + part.name + "' parameter. ")
		}
	}
	dates := r.Header["X-Amz-Date"]
	if len(dates) == 0 {
		dates = r.Header["Date"]
	}
	if len(dates) == 0 || dates[0] == "" {
		lacks.WriteString("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ")
	}
	if lacks.Len() > 0 {
		return incomplete(strings.TrimRight(lacks.String(), " ") + hashed(header))
	}
	if len(dates) > 1 {
		return incomplete("The request has more than one date.")
	}
	c.date = dates[0]
	return c.readToken(r.Header[paramToken])
}

func (c *claims) readToken(tokens []string) error {
	if len(tokens) > 1 {
		return incomplete("The request has more than one session token.")
	}
	if len(tokens) == 1 {
		c.token = tokens[0]
	}
	return nil
}

// hashed identifies a header in AWS's errors without repeating it.
func hashed(header string) string {
	sum := sha256.Sum256([]byte(header))
	return " (Hashed with SHA-256 and encoded with Base64) Authorization=" + base64.StdEncoding.EncodeToString(sum[:])
}

// presigned reports that a query has one of the parameters of a presigned request.
func presigned(query string) bool {
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		switch unescape(name) {
		case paramAlgorithm, paramSignature, "X-Amz-Credential":
			return true
		}
	}
	return false
}

func (c *claims) readQuery(r *Request) error {
	c.presigned = true
	parameters := [...]struct {
		name  string
		place *string
	}{
		{paramAlgorithm, &c.algorithm},
		{"X-Amz-Credential", &c.credential},
		{paramSignature, &c.signature},
		{"X-Amz-SignedHeaders", &c.headers},
		{"X-Amz-Date", &c.date},
		{"X-Amz-Expires", &c.expires},
		{paramToken, &c.token},
	}
	for pair := range strings.SplitSeq(r.Query, "&") {
		sent, value, _ := strings.Cut(pair, "=")
		name := unescape(sent)
		for _, p := range parameters {
			if p.name != name {
				continue
			}
			value = unescape(value)
			if *p.place != "" && *p.place != value {
				return incomplete("AWS query-string parameters must not include '" + p.name + "' more than once. Re-examine the query-string parameters.")
			}
			*p.place = value
		}
	}
	var lacks strings.Builder
	for _, p := range parameters[:5] {
		if *p.place == "" {
			lacks.WriteString("AWS query-string parameters must include '" + p.name + "'. ")
		}
	}
	if lacks.Len() > 0 {
		return incomplete(lacks.String() + "Re-examine the query-string parameters.")
	}
	if c.token == "" {
		return c.readToken(r.Header[paramToken])
	}
	return nil
}

// check checks the claims themselves, in AWS's order. now is the system's time.
func (c *claims) check(r *Request, now time.Time) error {
	var ok bool
	if c.at, c.basic, ok = parseDate(c.date, c.presigned); !ok {
		return incomplete("Date must be in ISO-8601 'basic format'. Got '" + printable(c.date) + "'. See http://en.wikipedia.org/wiki/ISO_8601")
	}
	if err := c.checkAge(now); err != nil {
		return err
	}
	if !c.signs("host") && !c.signs(":authority") {
		return errHost
	}
	if c.algorithm != Algorithm {
		return incomplete("Unsupported AWS 'algorithm': '" + printable(c.algorithm) + "' (only " + Algorithm + " for now). ")
	}
	return c.checkScope(r)
}

// parseDate parses a date in the basic form, or, in a header, in HTTP's.
func parseDate(s string, presigned bool) (t time.Time, form string, ok bool) {
	if t, ok := parseBasic(s); ok {
		return t, s, true
	}
	if presigned {
		return time.Time{}, "", false
	}
	t, err := http.ParseTime(s)
	return t, basic(t), err == nil
}

// parseBasic is time.Parse for the basic form, which every request has.
func parseBasic(s string) (time.Time, bool) {
	if len(s) != len(basicForm) || s[8] != 'T' || s[15] != 'Z' {
		return time.Time{}, false
	}
	number := func(s string) (n int) {
		for i := range len(s) {
			digit := s[i] - '0'
			if digit > 9 {
				return -1
			}
			n = 10*n + int(digit)
		}
		return n
	}
	year, month, day := number(s[:4]), number(s[4:6]), number(s[6:8])
	hour, minute, second := number(s[9:11]), number(s[11:13]), number(s[13:15])
	if year < 0 || month < 1 || month > 12 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	return t, t.Day() == day // else the month has no such day
}

func (c *claims) checkAge(now time.Time) error {
	now = now.Truncate(time.Second)
	lasts := skew
	if c.expires != "" {
		var err error
		if lasts, err = c.lasts(); err != nil {
			return err
		}
	}
	if lasts == 0 { // nor before its date, beyond a clock's skew
		return mismatch("Request has expired")
	}
	if least := now.Add(-lasts); c.at.Before(least) {
		return mismatch("Signature expired: " + basic(c.at) + " is now earlier than " + basic(least) + " (" + basic(now) + " - " + span(lasts) + ")")
	}
	if most := now.Add(skew); c.at.After(most) {
		return mismatch("Signature not yet current: " + basic(c.at) + " is still later than " + basic(most) + " (" + basic(now) + " + " + span(skew) + ")")
	}
	return nil
}

// lasts is the lifetime of a presigned request by X-Amz-Expires: at most maxExpires.
func (c *claims) lasts() (time.Duration, error) {
	seconds, err := strconv.ParseInt(c.expires, 10, 64)
	switch { // beyond 64 bits it is the minimum or maximum of these
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, incomplete("X-Amz-Expires should be a number")
	case seconds < 0:
		return 0, incomplete("X-Amz-Expires must be non-negative")
	case seconds > int64(maxExpires/time.Second):
		return 0, incomplete("X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than 604800 seconds")
	}
	return time.Duration(seconds) * time.Second, nil
}

func basic(t time.Time) string { return t.UTC().Format(basicForm) }

// span formats a duration as AWS does: in minutes, if they are whole.
func span(d time.Duration) string {
	if d%time.Minute == 0 {
		return strconv.Itoa(int(d/time.Minute)) + " min."
	}
	return strconv.Itoa(int(d/time.Second)) + " sec."
}

// signs reports that a header is among the signed ones.
func (c *claims) signs(name string) bool {
	for signed := range strings.SplitSeq(c.headers, ";") {
		if strings.EqualFold(signed, name) {
			return true
		}
	}
	return false
}

func (c *claims) checkScope(r *Request) error {
	rest := c.credential
	var parts [5]string
	for i := range parts {
		var more bool
		parts[i], rest, more = strings.Cut(rest, "/")
		if parts[i] == "" || more != (i < len(parts)-1) {
			return incomplete("Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '" + printable(c.credential) + "'")
		}
	}
	c.scope = Scope{AccessKey: parts[0], Date: parts[1], Region: parts[2], Service: parts[3]}
	var wrong strings.Builder
	if !r.servesRegion(c.scope.Region) {
		wrong.WriteString("Credential should be scoped to a valid region, not '" + printable(c.scope.Region) + "'. ")
	}
	if r.Service != "" && r.Service != c.scope.Service {
		wrong.WriteString("Credential should be scoped to correct service: '" + r.Service + "'. ")
	}
	if parts[4] != terminator {
		wrong.WriteString("Credential should be scoped with a valid terminator: '" + terminator + "', not '" + printable(parts[4]) + "'. ")
	}
	if sent := c.basic; sent[:len("20060102")] != c.scope.Date {
		wrong.WriteString("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '" +
			printable(c.scope.Date) + "' != '" + sent[:len("20060102")] + "', from '" + sent + "'. ")
	}
	if wrong.Len() > 0 {
		return mismatch(wrong.String())
	}
	return nil
}

func (r *Request) servesRegion(region string) bool {
	if r.Region != "" {
		return region == r.Region
	}
	const longest = 32
	return region == r.Default || len(region) <= longest && IsRegion(region)
}

// IsRegion reports whether s has the form of a region's name: us-gov-west-1.
func IsRegion(s string) bool {
	if strings.Count(s, "-") < 2 || s[len(s)-1]-'0' > 9 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c-'a' > 25 && c-'0' > 9 && c != '-' {
			return false
		}
	}
	return true
}

// unescape decodes a name or a value of a query; an invalid one is returned as it is.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s
	}
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

package attack_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/cloudwatch"
	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/api/logs"
	"godwit.dev/godwit/internal/api/sns"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/wire/shape"
)

// service is one under attack.
type service struct {
	name       string // as test/checklist has it
	target     string // of X-Amz-Target
	version    string // of Query
	scope      string // of credentials
	protocols  []string
	operations []api.Operation
}

const (
	viaJSON  = "json"
	viaQuery = "query"
	viaREST  = "rest"
	viaCBOR  = "cbor"
)

// services are those under attack. Nothing is asked of their operations but names,
// types and routes.
func services() []service {
	return []service{
		{"sqs", "AmazonSQS", "2012-11-05", "sqs", []string{viaJSON, viaJSON, viaQuery}, sqs.New(sqs.Options{}).Operations()},
		{"sns", "", "2010-03-31", "sns", []string{viaQuery}, sns.New(sns.Options{}).Operations()},
		{"cloudwatch", "GraniteServiceVersion20100801", "2010-08-01", "monitoring", []string{viaJSON, viaQuery, viaCBOR}, cloudwatch.New(cloudwatch.Options{}).Operations()},
		{"logs", "Logs_20140328", "", "logs", []string{viaJSON}, logs.New(nil, nil).Operations()},
		{"lambda", "", "", "lambda", []string{viaREST}, lambda.New(lambda.Options{}).Operations()},
	}
}

// request is one call as it goes over the wire.
type request struct {
	service   service
	operation api.Operation
	protocol  string
	mangled   bool // the body was damaged after it was written
	input     object

	method, path string
	header       http.Header
	body         []byte
}

func (r *request) String() string {
	body := r.body
	if len(body) > 3000 {
		body = append(bytes.Clone(body[:3000]), "…"...)
	}
	return fmt.Sprintf("%s.%s in %s: %s %.2000s\n%q", r.service.name, r.operation.Name, r.protocol, r.method, r.path, body)
}

// draw draws a call of any operation.
func (d *drawer) draw(all []service) *request {
	s := pick(d, all...)
	r := &request{service: s, operation: pick(d, s.operations...), protocol: pick(d, s.protocols...)}
	for destroys(r.operation.Name) && !d.chance(8) { // else there is hardly anything to attack
		r.operation = pick(d, s.operations...)
	}
	d.scope = s.scope
	if d.scope == "monitoring" {
		d.scope = "cloudwatch"
	}
	r.input = d.input(shape.Of(r.operation.Input))
	r.write(d)
	if !d.usual && d.chance(3) {
		r.body, r.mangled = d.mangle(r.body), true
	}
	return r
}

func destroys(operation string) bool {
	switch operation {
	case "DeleteQueue", "DeleteTopic", "Unsubscribe", "DeleteFunction", "DeleteEventSourceMapping", "DeleteAlarms", "DeleteLogGroup", "DeleteLogStream", "PurgeQueue":
		return true
	}
	return false
}

// write makes the request of its input.
func (r *request) write(d *drawer) {
	r.method, r.path, r.header = http.MethodPost, "/", http.Header{
		"Authorization": {"AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/" + r.service.scope + "/aws4_request, SignedHeaders=host, Signature=0"},
	}
	switch r.protocol {
	case viaJSON:
		r.header.Set("Content-Type", "application/x-amz-json-1.0")
		r.header.Set("X-Amz-Target", r.service.target+"."+r.operation.Name)
		r.body = appendJSON(nil, r.input)
	case viaQuery:
		r.header.Set("Content-Type", "application/x-www-form-urlencoded")
		f := &form{rand: d.rand, pairs: []string{"Action=" + r.operation.Name, "Version=" + r.service.version}}
		f.put("", nil, r.input)
		r.body = []byte(strings.Join(f.pairs, "&"))
		if d.chance(10) && len(r.body) < 8000 { // a GET
			r.method, r.path, r.body = http.MethodGet, "/?"+string(r.body), nil
		}
	case viaCBOR:
		r.header.Set("Content-Type", "application/cbor")
		r.header.Set("Smithy-Protocol", "rpc-v2-cbor")
		r.path = "/service/" + r.service.target + "/operation/" + r.operation.Name
		r.body = appendCBOR(nil, r.input)
	case viaREST:
		r.writeREST()
	}
}

func (r *request) writeREST() {
	r.header.Set("Content-Type", "application/json")
	r.method, r.path = r.operation.Method, r.operation.Path
	var in object
	query := url.Values{}
	for _, m := range r.input {
		where := shape.Body
		if m.field != nil {
			where = m.field.In
		}
		switch where {
		case shape.URI:
			r.path = strings.Replace(r.path, "{"+m.field.At+"}", url.PathEscape(text(m.value)), 1)
		case shape.Query:
			query.Add(m.field.At, text(m.value))
		case shape.Header:
			if value := text(m.value); isHeader(value) {
				r.header.Set(m.field.At, value)
			}
		case shape.Payload:
			r.body = []byte(text(m.value))
		default:
			in = append(in, m)
		}
	}
	if r.body == nil && len(in) > 0 {
		r.body = appendJSON(nil, in)
	}
	r.path = strings.ReplaceAll(r.path, "{", "%7B")
	if len(r.path) > 8000 {
		r.path = r.path[:8000]
	}
	if len(query) > 0 {
		if q := query.Encode(); len(q) < 8000 {
			separator := "?"
			if strings.Contains(r.path, "?") { // GetLayerVersionByArn's route has a parameter of its own
				separator = "&"
			}
			r.path += separator + q
		}
	}
}

// isHeader reports whether net/http sends s in a header.
func isHeader(s string) bool {
	return len(s) < 8000 && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c >= 0x7f })
}

// mangle damages a body.
func (d *drawer) mangle(body []byte) []byte {
	body = bytes.Clone(body)
	at := d.rand.IntN(len(body) + 1)
	insert := func(s string) []byte { return append(body[:at:at], s+string(body[at:])...) }
	switch d.rand.IntN(9) {
	case 0:
		return body[:at]
	case 1:
		for range 1 + d.rand.IntN(5) {
			if len(body) > 0 {
				body[d.rand.IntN(len(body))] = byte(d.rand.IntN(256))
			}
		}
		return body
	case 2:
		return insert(pick(d, "\xff", "\x00", "\xc3\x28", "\xed\xa0\x80"))
	case 3:
		return insert(strings.Repeat(pick(d, "[", `{"a":`, "\x81", "\xa1\x61a", "\x9f", "\xbf", "\xc2"), pick(d, 20, 10_000, 100_000)))
	case 4:
		return append(body, body...)
	case 5:
		return insert(pick(d, "&", "=", "%", "+", "&&&", "&=&", ".1.", strings.Repeat("a.1.", 1000), strings.Repeat("x&", 10_001)))
	case 6:
		return insert(pick(d, "1e999999999", "-", "0x1", "\\u", "\\ud800", `"`, "\xfb\x7f\xf8\x00\x00\x00\x00\x00\x00", "\x5b\x7f\xff\xff\xff\xff\xff\xff\xff", "\x9b\x00\x00\x00\xff\xff\xff\xff\xff", "\xbb\xff\xff\xff\xff\xff\xff\xff\xff"))
	case 7:
		return []byte(pick(d, "null", "[]", "0", `""`, "{", "", " ", "\xf6", "\x80", "true", "<xml/>"))
	default:
		to := at + d.rand.IntN(len(body)-at+1)
		return append(body[:at:at], body[to:]...)
	}
}

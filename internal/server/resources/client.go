package resources

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"godwit.dev/godwit/internal/clock"
)

// Doer makes requests: an http.Client.
type Doer interface {
	Do(r *http.Request) (*http.Response, error)
}

// Server is a server of AWS's APIs. SQS and SNS are asked by the Query protocol, which AWS
// and everything that stands in for it speaks.
type Server struct {
	Endpoint string // http://HOST:PORT
	Region   string
	// Key, Secret and Token are what requests are signed with.
	Key, Secret, Token string
	HTTP               Doer
	// OperatorEndpoint and OperatorHTTP are those of the operator API, where a server answers it at
	// an address of its own: at --admin-listen. Empty and nil: they are Endpoint and HTTP.
	OperatorEndpoint string
	OperatorHTTP     Doer
}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 64 << 20

// Refusal is what a server refuses.
type Refusal struct {
	Action, Code, Text string
	Status             int
}

// Error implements error.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s: %s", r.Action, cmp.Or(strings.TrimSpace(r.Code+" "+r.Text), "status "+strconv.Itoa(r.Status)))
}

// do asks for an action of AWS's.
func (s *Server) do(ctx context.Context, service, mime string, target string, body []byte) (status int, answer []byte, err error) {
	r, err := request(ctx, http.MethodPost, s.Endpoint, "/", body)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", mime)
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	return s.send(ctx, s.HTTP, service, r, body)
}

func request(ctx context.Context, method, endpoint, path string, body []byte) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, method, strings.TrimRight(endpoint, "/")+path, bytes.NewReader(body))
}

// send signs a request and makes it.
func (s *Server) send(ctx context.Context, by Doer, service string, r *http.Request, body []byte) (status int, answer []byte, err error) {
	sum := sha256.Sum256(body)
	who := aws.Credentials{AccessKeyID: cmp.Or(s.Key, "test"), SecretAccessKey: cmp.Or(s.Secret, "test"), SessionToken: s.Token}
	if err := v4.NewSigner().SignHTTP(ctx, who, r, hex.EncodeToString(sum[:]), service, s.Region, clock.System.Now()); err != nil {
		return 0, nil, err
	}
	resp, err := by.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("%s://%s cannot be asked: %w", r.URL.Scheme, r.URL.Host, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, answer, err
}

// versions of the Query APIs.
var versions = map[string]string{"sqs": "2012-11-05", "sns": "2010-03-31", "sts": "2011-06-15"}

// query asks for an action of SQS or SNS.
func (s *Server) query(ctx context.Context, service, action string, parameters url.Values) (*element, error) {
	form := url.Values{"Action": {action}, "Version": {versions[service]}}
	maps.Copy(form, parameters)
	status, text, err := s.do(ctx, service, "application/x-www-form-urlencoded; charset=utf-8", "", []byte(form.Encode()))
	if err != nil {
		return nil, err
	}
	var found element
	err = xml.Unmarshal(text, &found)
	if status != http.StatusOK {
		r := &Refusal{Action: action, Status: status}
		if e := found.find("Error"); err == nil && e != nil {
			r.Code, r.Text = e.text("Code"), e.text("Message")
		}
		return nil, r
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the answer cannot be read: %w", action, err)
	}
	if result := found.find(action + "Result"); result != nil {
		return result, nil
	}
	return &found, nil
}

// json asks for an action of CloudWatch.
func (s *Server) json(ctx context.Context, action string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	status, text, err := s.do(ctx, "monitoring", "application/x-amz-json-1.0", "GraniteServiceVersion20100801."+action, body)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		var e struct {
			Type    string `json:"__type"`
			Message string `json:"message"`
		}
		_ = json.Unmarshal(text, &e) // else it says its status
		return &Refusal{Action: action, Code: e.Type[strings.LastIndexByte(e.Type, '#')+1:], Text: e.Message, Status: status}
	}
	if out == nil {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(out); err != nil {
		return fmt.Errorf("%s: the answer cannot be read: %w", action, err)
	}
	return nil
}

// element is one of XML.
type element struct {
	XMLName  xml.Name
	Text     string    `xml:",chardata"`
	Elements []element `xml:",any"`
}

// find is the first element of a name that is not within another one of that name.
func (e *element) find(name string) *element {
	if e.XMLName.Local == name {
		return e
	}
	for i := range e.Elements {
		if found := e.Elements[i].find(name); found != nil {
			return found
		}
	}
	return nil
}

// all are the elements of a name that are not within another one of that name.
func (e *element) all(name string) (found []*element) {
	for i := range e.Elements {
		if e.Elements[i].XMLName.Local == name {
			found = append(found, &e.Elements[i])
		} else {
			found = append(found, e.Elements[i].all(name)...)
		}
	}
	return found
}

// text is that of the first element of a name.
func (e *element) text(name string) string {
	if found := e.find(name); found != nil {
		return found.Text
	}
	return ""
}

// pairs reads a map: entries are the elements of a name, with a key and a value each.
func (e *element) pairs(entry, key, value string) map[string]string {
	found := map[string]string{}
	for _, one := range e.all(entry) {
		found[one.text(key)] = one.text(value)
	}
	return found
}

// numbered writes a map or a list as the Query protocol does: PREFIX.1.KEY, PREFIX.1.VALUE.
func numbered(form url.Values, prefix, key, value string, pairs map[string]string) {
	n := 0
	for _, name := range sortedKeys(pairs) {
		n++
		form.Set(fmt.Sprintf("%s.%d.%s", prefix, n, key), name)
		form.Set(fmt.Sprintf("%s.%d.%s", prefix, n, value), pairs[name])
	}
}

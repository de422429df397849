// Package upgrade holds that a server opens the data directory of an earlier version
// with everything in it. testdata has such directories, each with what the version that
// wrote it answered about them; Command generate makes them.
package upgrade

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Account, Region are those of everything in the directories.
const (
	Account = "000000000000"
	Region  = "us-east-1"
)

// Object is a JSON object.
type Object = map[string]any

// Server is one that is asked.
type Server struct {
	Base string // http://HOST:PORT
}

// Answer is what a call was answered: the status, and the body as a tree of maps, lists
// and texts, without what differs from call to call.
type Answer struct {
	Call   string
	Status int
	Body   any
}

func (s Server) call(name, method, path string, header map[string]string, body []byte) (Answer, error) {
	req, err := http.NewRequest(method, s.Base+path, strings.NewReader(string(body)))
	if err != nil {
		return Answer{}, err
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Call: name, Status: resp.StatusCode}
	switch kind := resp.Header.Get("Content-Type"); {
	case len(text) == 0:
	case strings.Contains(kind, "xml"):
		a.Body, err = tree(text)
	case strings.Contains(kind, "json"):
		err = json.Unmarshal(text, &a.Body)
	default:
		a.Body = base64.StdEncoding.EncodeToString(text)
	}
	if err != nil {
		return a, fmt.Errorf("%s: %w: %s", name, err, text)
	}
	a.Body = s.normalize("", a.Body)
	return a, nil
}

// normalize takes out what differs from call to call, and from server to server.
func (s Server) normalize(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"RequestId", "ResponseMetadata", "latencyMs"} {
			delete(v, key)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			v[key] = s.normalize(key, v[key])
		}
		return v
	case []any:
		for i := range v {
			v[i] = s.normalize("", v[i])
		}
		return v
	case string:
		switch name {
		case "ReceiptHandle", "Location": // the latter has a token
			return "…"
		}
		return strings.ReplaceAll(v, s.Base, "http://SERVER")
	}
	return v
}

// tree reads an XML document: an element with others in it is a map of lists, another
// one is its text.
func tree(text []byte) (any, error) {
	d := xml.NewDecoder(strings.NewReader(string(text)))
	type element struct {
		children Object
		text     strings.Builder
	}
	stack := []*element{{children: Object{}}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return stack[0].children, nil
		} else if err != nil {
			return nil, err
		}
		top := stack[len(stack)-1]
		switch token := token.(type) {
		case xml.StartElement:
			stack = append(stack, &element{children: Object{}})
		case xml.CharData:
			top.text.Write(token)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
			var v any = top.children
			if len(top.children) == 0 {
				v = top.text.String()
			}
			parent := stack[len(stack)-1].children
			list, _ := parent[token.Name.Local].([]any)
			parent[token.Name.Local] = append(list, v)
		}
	}
}

// targets are the beginnings of X-Amz-Target by service.
var targets = map[string]string{"sqs": "AmazonSQS.", "monitoring": "GraniteServiceVersion20100801.", "logs": "Logs_20140328."}

func credentials(service string) string {
	return "AWS4-HMAC-SHA256 Credential=test/20260101/" + Region + "/" + service + "/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + strings.Repeat("0", 64)
}

// json calls an operation in AWS JSON.
func (s Server) json(service, operation string, in Object) (Answer, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return Answer{}, err
	}
	version := "1.0"
	if service == "logs" {
		version = "1.1"
	}
	return s.call(service+" "+operation+" "+string(body), http.MethodPost, "/", map[string]string{
		"Content-Type": "application/x-amz-json-" + version, "X-Amz-Target": targets[service] + operation, "Authorization": credentials(service),
	}, body)
}

// sns calls an action in AWS Query. The parameters are pairs.
func (s Server) sns(action string, pairs ...string) (Answer, error) {
	form := url.Values{"Action": {action}, "Version": {"2010-03-31"}}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return s.call("sns "+form.Encode(), http.MethodPost, "/", map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Authorization": credentials("sns"),
	}, []byte(form.Encode()))
}

// lambda calls a path of Lambda.
func (s Server) lambda(method, path string, in any, pairs ...string) (Answer, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return Answer{}, err
		}
	}
	header := map[string]string{"Authorization": credentials("lambda")}
	for i := 0; i+1 < len(pairs); i += 2 {
		header[pairs[i]] = pairs[i+1]
	}
	return s.call("lambda "+method+" "+path, method, path, header, body)
}

// admin calls a path under /_godwit/.
func (s Server) admin(method, path string, in Object) (Answer, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return Answer{}, err
		}
	}
	return s.call("admin "+method+" "+path, method, "/_godwit/"+path, nil, body)
}

// queueARN, queueURL, topicARN name what Fill makes.
func queueARN(name string) string { return "arn:aws:sqs:" + Region + ":" + Account + ":" + name }
func topicARN(name string) string { return "arn:aws:sns:" + Region + ":" + Account + ":" + name }

func (s Server) queueURL(name string) string { return s.Base + "/" + Account + "/" + name }

package sdk_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// members are a request's or an answer's members, as JSON has them: strings,
// numbers, booleans, members and lists.
type (
	members = map[string]any
	list    = []any
)

// queryNames are the names of SQS's lists and maps in Query, where they differ
// from JSON's. A map's entries have the given names for key and value.
var queryNames = map[string]struct{ name, key, value string }{
	"AWSAccountIds":               {name: "AWSAccountId"},
	"Actions":                     {name: "ActionName"},
	"AttributeNames":              {name: "AttributeName"},
	"Attributes":                  {"Attribute", "Name", "Value"},
	"MessageAttributeNames":       {name: "MessageAttributeName"},
	"MessageAttributes":           {"MessageAttribute", "Name", "Value"},
	"MessageSystemAttributeNames": {name: "MessageSystemAttributeName"},
	"MessageSystemAttributes":     {"MessageSystemAttribute", "Name", "Value"},
	"TagKeys":                     {name: "TagKey"},
	"Tags":                        {"Tag", "Key", "Value"},
	"tags":                        {"Tag", "Key", "Value"},
	"StringListValues":            {name: "StringListValue"},

	// Of answers alone.
	"Failed":    {name: "BatchResultErrorEntry"},
	"Messages":  {name: "Message"},
	"QueueUrls": {name: "QueueUrl"},
	"queueUrls": {name: "QueueUrl"},
	"Results":   {name: "ListMessageMoveTasksResultEntry"},
}

// flatten writes members as parameters in Query.
func flatten(operation string, in members) url.Values {
	form := url.Values{}
	var put func(prefix string, in members)
	scalar := func(v any) string {
		if s, ok := v.(string); ok {
			return s
		}
		return fmt.Sprint(v)
	}
	element := func(at string, v any) {
		if m, ok := v.(members); ok {
			put(at+".", m)
		} else {
			form.Set(at, scalar(v))
		}
	}
	put = func(prefix string, in members) {
		for name, v := range in {
			known := queryNames[name]
			if name == "Entries" {
				known.name = operation + "RequestEntry"
			}
			switch v := v.(type) {
			case list:
				for i, e := range v {
					element(prefix+known.name+"."+strconv.Itoa(i+1), e)
				}
			case members:
				if known.key == "" {
					put(prefix+name+".", v)
					continue
				}
				for i, key := range slices.Sorted(maps.Keys(v)) {
					at := prefix + known.name + "." + strconv.Itoa(i+1) + "."
					form.Set(at+known.key, key)
					element(at+known.value, v[key])
				}
			default:
				form.Set(prefix+name, scalar(v))
			}
		}
	}
	put("", in)
	form.Set("Action", operation)
	form.Set("Version", "2012-11-05")
	return form
}

// node is an element of an answer in XML.
type node struct {
	XMLName  xml.Name
	Text     string `xml:",chardata"`
	Children []node `xml:",any"`
}

// unflatten reads the members of an answer in XML; every scalar is a string.
func unflatten(operation string, of []node) members {
	out := members{}
	for _, n := range of {
		name := n.XMLName.Local
		if len(n.Children) == 0 && name != "QueueUrl" {
			out[name] = n.Text
			continue
		}
		switch name {
		case operation + "ResultEntry":
			if name == "ListMessageMoveTasksResultEntry" {
				name = "Results"
			} else {
				name = "Successful"
			}
		case "QueueUrl":
			switch operation {
			case "ListQueues":
				name = "QueueUrls"
			case "ListDeadLetterSourceQueues":
				name = "queueUrls"
			default:
				out[name] = n.Text
				continue
			}
			before, _ := out[name].(list)
			out[name] = append(before, n.Text)
			continue
		case "BatchResultErrorEntry":
			name = "Failed"
		case "Message":
			name = "Messages"
		case "Attribute", "Tag", "MessageAttribute":
			name += "s"
			before, _ := out[name].(members)
			if before == nil {
				before = members{}
			}
			entry := unflatten(operation, n.Children)
			key, ok := entry["Name"].(string)
			if !ok {
				key, _ = entry["Key"].(string)
			}
			before[key] = entry["Value"]
			out[name] = before
			continue
		default:
			out[name] = unflatten(operation, n.Children)
			continue
		}
		before, _ := out[name].(list)
		out[name] = append(before, unflatten(operation, n.Children))
	}
	return out
}

// plain gives a JSON value with every scalar as a string, and without the empty
// lists that XML does not have.
func plain(v any) any {
	switch v := v.(type) {
	case members:
		out := members{}
		for name, value := range v {
			if l, ok := value.(list); ok && len(l) == 0 {
				continue
			}
			out[name] = plain(value)
		}
		return out
	case list:
		out := make(list, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// A form is a way of asking an operation of SQS and being answered.
type form struct {
	name    string
	json    bool // speaks AWS JSON
	get     bool // Query as GET
	asJSON  bool // Query, answered in JSON
	atQueue bool // at the queue's URL, if the operation is about one
}

var forms = []form{
	{name: "JSON", json: true},
	{name: "JSON at the queue's URL", json: true, atQueue: true},
	{name: "POST"},
	{name: "POST at the queue's URL", atQueue: true},
	{name: "GET", get: true},
	{name: "GET at the queue's URL", get: true, atQueue: true},
	{name: "POST answered in JSON", asJSON: true},
	{name: "POST at the queue's URL answered in JSON", asJSON: true, atQueue: true},
	{name: "GET answered in JSON", get: true, asJSON: true},
	{name: "GET at the queue's URL answered in JSON", get: true, asJSON: true, atQueue: true},
}

// request makes the request for an operation with the given members.
func (f form) request(t *testing.T, endpoint, operation string, in members) *http.Request {
	t.Helper()
	at := endpoint
	if queue, ok := in["QueueUrl"].(string); ok && f.atQueue {
		at = queue
		if !f.json { // the path stands for it
			in = maps.Clone(in)
			delete(in, "QueueUrl")
		}
	}
	if f.json {
		body, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		return newJSON(t, at, operation, string(body))
	}
	method, body := http.MethodPost, flatten(operation, in).Encode()
	if f.get {
		method, at, body = http.MethodGet, at+"?"+body, ""
	}
	req, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if !f.get {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if f.asJSON {
		req.Header.Set("Accept", "application/json")
	}
	return req
}

// answer reads a success's members, and checks all that is around them.
func (f form) answer(t *testing.T, operation string, r response) members {
	t.Helper()
	id := r.Header.Get("x-amzn-RequestId")
	kind := map[bool]string{true: "application/json", false: "text/xml"}[f.asJSON]
	if f.json {
		kind = "application/x-amz-json-1.0"
	}
	if r.Status != http.StatusOK || r.Header.Get("Content-Type") != kind || !uuidForm.MatchString(id) {
		t.Fatalf("%s: %d %v %s", operation, r.Status, r.Header, r.Body)
	}
	switch {
	case f.json && r.Body == "":
		return members{}
	case f.json:
		var out members
		if err := json.Unmarshal([]byte(r.Body), &out); err != nil {
			t.Fatalf("%s: %v: %s", operation, err, r.Body)
		}
		return plain(out).(members)
	case f.asJSON:
		var out map[string]members
		if err := json.Unmarshal([]byte(r.Body), &out); err != nil {
			t.Fatalf("%s: %v: %s", operation, err, r.Body)
		}
		around := out[operation+"Response"]
		equal(t, operation+"'s metadata", any(members{"RequestId": id}), around["ResponseMetadata"])
		result, ok := around[operation+"Result"].(members)
		if len(out) != 1 || len(around) > 2 || len(around) == 2 != ok {
			t.Errorf("%s: %s", operation, r.Body)
		}
		if !ok {
			return members{}
		}
		return plain(newNames(operation, result)).(members)
	}
	decoder := xml.NewDecoder(strings.NewReader(r.Body))
	var root node
	if err := decoder.Decode(&root); err != nil {
		t.Fatalf("%s: %v: %s", operation, err, r.Body)
	}
	if _, err := decoder.Token(); err != io.EOF { //nolint:errorlint // the decoder gives it bare
		t.Errorf("%s: something follows: %s", operation, r.Body)
	}
	if root.XMLName.Local != operation+"Response" || root.XMLName.Space != "http://queue.amazonaws.com/doc/2012-11-05/" {
		t.Errorf("%s: the root is %v", operation, root.XMLName)
	}
	around := unflattenAround(root)
	equal(t, operation+"'s metadata", []node{{XMLName: around["ResponseMetadata"][0].XMLName, Text: id}}, around["ResponseMetadata"])
	return unflatten(operation, around[operation+"Result"])
}

// newNames brings the JSON of Query into the form that AWS JSON has.
func newNames(operation string, v any) any {
	switch v := v.(type) {
	case members:
		out := members{}
		for name, value := range v {
			entries, _ := value.(list)
			switch {
			case name == "messages":
				name = "Messages"
			case name == "queueUrls" && operation == "ListQueues":
				name = "QueueUrls"
			case name == "Attributes" || name == "MessageAttributes" || name == "Tags":
				all := members{}
				for _, e := range entries {
					e := e.(members)
					key, ok := e["Name"].(string)
					if !ok {
						key, _ = e["Key"].(string)
					}
					all[key] = e["Value"]
				}
				out[name] = all
				continue
			}
			out[name] = newNames(operation, value)
		}
		return out
	case list:
		out := make(list, len(v))
		for i := range v {
			out[i] = newNames(operation, v[i])
		}
		return out
	}
	return v
}

func unflattenAround(root node) map[string][]node {
	out := map[string][]node{}
	for _, n := range root.Children {
		out[n.XMLName.Local] = n.Children
	}
	return out
}

package checklist

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// answer reads the body of a success as encoding/json would give it, whatever its
// protocol; ok is false where there is nothing to be read.
func (s Shape) answer(action, contentType string, body []byte) (value any, ok bool) {
	switch {
	case len(body) == 0:
		return nil, false
	case strings.Contains(contentType, "json"):
		return value, json.Unmarshal(body, &value) == nil
	case strings.Contains(contentType, "cbor"):
		if cbor.Unmarshal(body, &value) != nil {
			return nil, false
		}
		return plain(value), true
	case strings.Contains(contentType, "xml"):
		var response element
		if xml.Unmarshal(body, &response) != nil {
			return nil, false
		}
		for _, child := range response.Children {
			if child.XMLName.Local == action+"Result" {
				return s.ofXML(child), true
			}
		}
	}
	return nil, false
}

// plain has CBOR's kinds be those of JSON.
func plain(value any) any {
	switch v := value.(type) {
	case map[any]any:
		members := map[string]any{}
		for name, member := range v {
			text, _ := name.(string)
			members[text] = plain(member)
		}
		return members
	case []any:
		for n := range v {
			v[n] = plain(v[n])
		}
		return v
	case uint64:
		return float64(v)
	case int64:
		return float64(v)
	case time.Time:
		return float64(v.UnixMilli()) / 1000
	case cbor.Tag:
		return plain(v.Content)
	}
	return value
}

// element is one of an answer in XML.
type element struct {
	XMLName  xml.Name
	Text     string    `xml:",chardata"`
	Children []element `xml:",any"`
}

// ofXML reads an element by a shape. What is not of the shape's kind stays a text.
func (s Shape) ofXML(e element) any {
	switch s.Type {
	case "structure":
		members := map[string]any{}
		for _, child := range e.Children {
			members[child.XMLName.Local] = s.Members[child.XMLName.Local].ofXML(child)
		}
		return members
	case "list":
		list := []any{}
		for _, child := range e.Children {
			if child.XMLName.Local != "member" {
				return child.XMLName.Local
			}
			list = append(list, s.Of.ofXML(child))
		}
		return list
	case "map":
		entries := map[string]any{}
		for _, child := range e.Children {
			var key string
			var value element
			for _, part := range child.Children {
				if part.XMLName.Local == "key" {
					key = part.Text
				} else {
					value = part
				}
			}
			entries[key] = s.Of.ofXML(value)
		}
		return entries
	case "boolean":
		if e.Text == "true" || e.Text == "false" {
			return e.Text == "true"
		}
	case "integer", "long":
		if n, err := strconv.ParseInt(e.Text, 10, 64); err == nil {
			return float64(n)
		}
	case "float", "double":
		if f, err := strconv.ParseFloat(e.Text, 64); err == nil {
			return f
		}
	case "timestamp":
		if at, err := time.Parse(time.RFC3339Nano, e.Text); err == nil {
			return float64(at.UnixMilli()) / 1000
		}
	}
	return e.Text
}

// beyond is what AWS answers, by records, and its models do not say.
var beyond = []string{
	"cloudwatch.DescribeAlarms.LogAlarms is no member",
	`.LastUpdateStatusReasonCode is "Creating"`,
	`DescribeStackEvents.StackEvents.ResourceStatus is "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"`, // of the stack itself
	`DescribeStackEvents.StackEvents.ResourceStatus is "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"`,
}

// walk compares the success of an action with its shape, and notes what was seen and
// what is wrong.
func (r *Recorder) walk(i Item, contentType string, body io.Reader) (read []byte, err error) {
	if read, err = io.ReadAll(body); err != nil {
		return nil, err
	}
	exchange, known := r.shapes[i.Service][i.Action]
	if !known || i.Service == "sqs" && i.Protocol == Query { // of which the model says nothing
		return read, nil
	}
	answer, ok := exchange.Output.answer(i.Action, contentType, read)
	if !ok {
		return read, nil
	}
	at := i.Service + "." + i.Action
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range exchange.Output.Walk(at, answer, func(path string) { r.answered[path] = true }) {
		if !slices.ContainsFunc(beyond, func(text string) bool { return strings.Contains(line, text) }) {
			r.wrong[line] = true
		}
	}
	return read, nil
}

// Wrong are the members of answers that are not as the models say, a line each.
func (r *Recorder) Wrong() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sortedKeys(r.wrong)
}

// Unanswered are the members that no answer had, of the actions that succeeded.
func (r *Recorder) Unanswered() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	missing := map[string]bool{}
	for service, actions := range r.shapes {
		for action, exchange := range actions {
			for _, path := range exchange.Output.Paths(service + "." + action) {
				if !r.answered[path] {
					missing[path] = true
				}
			}
		}
	}
	return sortedKeys(missing)
}

package eventsource

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"godwit.dev/godwit/internal/topic/filter"
)

// Filter is one pattern of a mapping's FilterCriteria.
type Filter struct {
	policy *filter.Policy
	body   byte // the body's form that the pattern requires: '{' JSON, '[' plain text; 0: any
}

var (
	errPattern = errors.New("a filter pattern is a JSON object with lists of rules")
	errKey     = errors.New("a filter pattern has no key but body")
)

// CompileFilter compiles a pattern. It is an EventBridge pattern, with the rules of SNS
// filter policies and without their bounds of keys and combinations, for a message as {"body": …}.
func CompileFilter(pattern string) (*Filter, error) {
	p, err := filter.CompilePattern(pattern)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(pattern), &members); err != nil || len(members) == 0 {
		return nil, errPattern
	}
	if !onlyBody(members) {
		return nil, errKey
	}
	f := &Filter{policy: p}
	if body := bytes.TrimSpace(members["body"]); len(body) > 0 {
		f.body = body[0]
	}
	return f, nil
}

// onlyBody reports whether a pattern is about the body alone. Any other key would match no message,
// and a message that no pattern matches is deleted.
func onlyBody(members map[string]json.RawMessage) bool {
	for name, value := range members {
		if name == "body" || strings.HasPrefix(name, "body.") {
			continue
		}
		var alternatives []map[string]json.RawMessage
		if name != "$or" || json.Unmarshal(value, &alternatives) != nil {
			return false
		}
		for _, one := range alternatives {
			if !onlyBody(one) {
				return false
			}
		}
	}
	return true
}

// content is a message's body for filters, parsed once for all of them.
type content struct {
	isJSON  bool
	message *filter.Message
}

func contentOf(body []byte) *content {
	c := &content{isJSON: isObject(body)}
	doc := []byte(`{"body":`)
	if c.isJSON {
		doc = append(doc, body...)
	} else {
		text, err := json.Marshal(string(body))
		if err != nil {
			return c
		}
		doc = append(doc, text...)
	}
	c.message = filter.NewMessage(nil, append(doc, '}'))
	return c
}

// matches reports whether a message's body matches. A pattern for JSON matches no plain text,
// and vice versa. Source: the Lambda developer guide, "Using event filtering with an Amazon
// SQS event source".
func (f *Filter) matches(c *content) bool {
	if f.body == '{' && !c.isJSON || f.body == '[' && c.isJSON || c.message == nil {
		return false
	}
	return f.policy.Match(c.message) == filter.Match
}

func isObject(body []byte) bool {
	body = bytes.TrimSpace(body)
	return len(body) > 0 && body[0] == '{' && json.Valid(body)
}

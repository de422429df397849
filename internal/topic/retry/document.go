package retry

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// The bounds of a customer's policy (delays in seconds).
const (
	maxRetries      = 100
	maxDelaySeconds = 3600
	// maxTotal bounds the sum of a policy's delays: a longer schedule could never complete, as
	// messages to HTTP/S endpoints do not live that long.
	maxTotal = 3600 * time.Second
)

// DefaultContentType is the Content-Type of a notification to an HTTP/S endpoint whose policies
// set none.
const DefaultContentType = "text/plain; charset=UTF-8"

// TopicPolicy is a topic's DeliveryPolicy document. A nil *TopicPolicy is a
// topic without one.
type TopicPolicy struct {
	rules
	disableOverrides bool
}

// SubscriptionPolicy is a subscription's DeliveryPolicy document. A nil
// *SubscriptionPolicy is a subscription without one.
type SubscriptionPolicy struct {
	rules
	guaranteed bool // stored and shown; AWS gives it no meaning any more
}

// rules are the members of both documents; a zero member is not set.
type rules struct {
	retry       *retryRules
	perSecond   int    // deliveries per second
	contentType string // the whole header value
}

// retryRules is a retry policy with missing members set to their defaults; named says which
// members the document has.
type retryRules struct {
	Policy
	named [len(retryMembers)]bool
}

// retryMember is one member of a retry policy. Documents are written in the table's order.
type retryMember struct {
	name     string
	required bool
	low      int
	high     int // inclusive; 0 is none
	get      func(*Policy) int
	set      func(*Policy, int)
}

const backoffMember = "backoffFunction"

var retryMembers = [...]retryMember{
	{
		"minDelayTarget", true, 1, maxDelaySeconds,
		func(p *Policy) int { return int(p.MinDelayTarget / time.Second) },
		func(p *Policy, v int) { p.MinDelayTarget = time.Duration(v) * time.Second },
	},
	{
		"maxDelayTarget", true, 1, maxDelaySeconds,
		func(p *Policy) int { return int(p.MaxDelayTarget / time.Second) },
		func(p *Policy, v int) { p.MaxDelayTarget = time.Duration(v) * time.Second },
	},
	{
		"numRetries", true, 0, maxRetries,
		func(p *Policy) int { return p.NumRetries },
		func(p *Policy, v int) { p.NumRetries = v },
	},
	{
		"numMaxDelayRetries", false, 0, 0,
		func(p *Policy) int { return p.NumMaxDelayRetries },
		func(p *Policy, v int) { p.NumMaxDelayRetries = v },
	},
	{
		"numNoDelayRetries", false, 0, 0,
		func(p *Policy) int { return p.NumNoDelayRetries },
		func(p *Policy, v int) { p.NumNoDelayRetries = v },
	},
	{
		"numMinDelayRetries", false, 0, 0,
		func(p *Policy) int { return p.NumMinDelayRetries },
		func(p *Policy, v int) { p.NumMinDelayRetries = v },
	},
	// Not a number, and so read and written separately.
	{name: backoffMember},
}

// contentTypes are the media types allowed in any policy; rawTypes are those that need a
// subscription with raw delivery.
var (
	contentTypes = []string{"application/json", "text/plain"}
	rawTypes     = []string{
		"text/css", "text/csv", "text/html", "text/xml",
		"application/atom+xml", "application/octet-stream", "application/soap+xml",
		"application/x-www-form-urlencoded", "application/xhtml+xml", "application/xml",
	}
)

// ParseTopic parses the value of a topic's attribute DeliveryPolicy. The empty string is no
// policy: nil. Errors: those of this package, all InvalidParameter.
func ParseTopic(document string) (*TopicPolicy, error) {
	if document == "" {
		return nil, nil
	}
	p := &TopicPolicy{}
	err := parseObject("", []byte(document), reader{
		"http": func(path string, value []byte) error {
			return parseObject(path, value, reader{
				"defaultHealthyRetryPolicy":    p.readRetry,
				"defaultThrottlePolicy":        p.readThrottle,
				"defaultRequestPolicy":         p.readRequest(false),
				"disableSubscriptionOverrides": readBool(&p.disableOverrides),
			})
		},
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// ParseSubscription parses the value of a subscription's attribute DeliveryPolicy. raw says
// whether the subscription has raw delivery, which allows more content types. The empty string
// is no policy: nil. Errors are those of ParseTopic.
func ParseSubscription(document string, raw bool) (*SubscriptionPolicy, error) {
	if document == "" {
		return nil, nil
	}
	p := &SubscriptionPolicy{}
	var unused rules
	err := parseObject("", []byte(document), reader{
		"healthyRetryPolicy": p.readRetry,
		"sicklyRetryPolicy":  unused.readRetry, // must be well-formed, and is always shown as null
		"throttlePolicy":     p.readThrottle,
		"requestPolicy":      p.readRequest(raw),
		"guaranteed":         readBool(&p.guaranteed),
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// reader has a function to read each member of an object.
type reader map[string]func(path string, value []byte) error

// parseObject reads the members of a JSON object in their order, so that the first of several
// faults is reported. A null object or member counts as missing.
func parseObject(path string, document []byte, members reader) error {
	if isNull(document) && path != "" {
		return nil
	}
	if path == "" && !json.Valid(document) { // members of valid JSON are valid
		return ErrDocument
	}
	dec := json.NewDecoder(bytes.NewReader(document))
	if open, _ := dec.Token(); open != json.Delim('{') {
		if path == "" {
			return ErrDocument
		}
		return ErrObject.With(path)
	}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return ErrDocument
		}
		name, _ := token.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return ErrDocument
		}
		read, known := members[name]
		if !known {
			return ErrMember.With(name)
		}
		if isNull(value) {
			continue
		}
		if err := read(join(path, name), value); err != nil {
			return err
		}
	}
	return nil
}

func (r *rules) readRetry(path string, value []byte) error {
	rr := &retryRules{Policy: DefaultHTTP}
	members := reader{}
	for i, m := range retryMembers {
		members[m.name] = func(path string, value []byte) error {
			rr.named[i] = true
			if m.name == backoffMember {
				return readBackoff(path, value, &rr.Backoff)
			}
			v, err := readInt(path, value)
			if err != nil {
				return err
			}
			if v < m.low {
				return ErrTooLow.With(path, m.low)
			}
			if m.high > 0 && v > m.high {
				return ErrTooHigh.With(path, m.high)
			}
			m.set(&rr.Policy, v)
			return nil
		}
	}
	if err := parseObject(path, value, members); err != nil {
		return err
	}
	if err := rr.check(path); err != nil {
		return err
	}
	r.retry = rr
	return nil
}

// check checks the constraints between members.
func (rr *retryRules) check(path string) error {
	for i, m := range retryMembers {
		if m.required && !rr.named[i] {
			return ErrLacks.With(path, m.name)
		}
	}
	if rr.MaxDelayTarget < rr.MinDelayTarget {
		return ErrDelays.With(path)
	}
	// One by one: the sum of three large numbers could overflow.
	left := rr.NumRetries
	for _, n := range []int{rr.NumMinDelayRetries, rr.NumNoDelayRetries, rr.NumMaxDelayRetries} {
		if left -= n; left < 0 {
			return ErrPhases.With(path)
		}
	}
	if total := rr.Total(); total > maxTotal {
		return ErrTotal.With(path, total, int64(maxTotal/time.Second))
	}
	return nil
}

func (r *rules) readThrottle(path string, value []byte) error {
	return parseObject(path, value, reader{
		"maxReceivesPerSecond": func(path string, value []byte) (err error) {
			if r.perSecond, err = readInt(path, value); err != nil {
				return err
			}
			if r.perSecond < 1 {
				return ErrThrottle.With(path)
			}
			return nil
		},
	})
}

func (r *rules) readRequest(raw bool) func(path string, value []byte) error {
	return func(path string, value []byte) error {
		return parseObject(path, value, reader{
			"headerContentType": func(path string, value []byte) error {
				var header string
				if json.Unmarshal(value, &header) != nil || !validContentType(header, raw) {
					return ErrContentType.With(path, strings.Trim(string(value), `"`))
				}
				r.contentType = header
				return nil
			},
		})
	}
}

// maxContentType bounds a Content-Type, in bytes.
const maxContentType = 1024

// validContentType checks the media type only: parameters are the endpoint's business, as long
// as they are printable and short.
func validContentType(header string, raw bool) bool {
	if len(header) > maxContentType || strings.ContainsFunc(header, func(c rune) bool { return c < ' ' || c > '~' }) {
		return false
	}
	media := mediaType(header)
	return slices.Contains(contentTypes, media) || raw && slices.Contains(rawTypes, media)
}

func mediaType(header string) string {
	media, _, _ := strings.Cut(header, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

func readBackoff(path string, value []byte, into *Backoff) error {
	var name string
	if json.Unmarshal(value, &name) == nil {
		if b, ok := parseBackoff(name); ok {
			*into = b
			return nil
		}
	}
	return ErrBackoff.With(path, strings.Trim(string(value), `"`))
}

func readInt(path string, value []byte) (v int, err error) {
	if json.Unmarshal(value, &v) != nil {
		return 0, ErrInteger.With(path)
	}
	return v, nil
}

func readBool(into *bool) func(path string, value []byte) error {
	return func(path string, value []byte) error {
		if json.Unmarshal(value, into) != nil {
			return ErrBool.With(path)
		}
		return nil
	}
}

func isNull(value []byte) bool { return string(bytes.TrimSpace(value)) == "null" }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

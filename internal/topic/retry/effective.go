package retry

import (
	"encoding/json"
	"slices"
	"strconv"
)

// Effective is the effective policy of the deliveries of one HTTP/S subscription.
type Effective struct {
	Policy               Policy
	MaxReceivesPerSecond int    // 0: not throttled
	ContentType          string // of notifications
}

// Resolve combines the policies of a topic and a subscription, either of which may be nil: the
// subscription's over the topic's over the default, part by part (retries, throttle, request).
// If the topic disables overrides, the subscription's is ignored. raw is the subscription's raw
// delivery: a content type that needs it is ignored without it.
func Resolve(t *TopicPolicy, s *SubscriptionPolicy, raw bool) Effective {
	e := Effective{Policy: DefaultHTTP, ContentType: DefaultContentType}
	if t != nil {
		e.apply(t.rules)
	}
	if s != nil && (t == nil || !t.disableOverrides) {
		own := s.rules
		if !raw && slices.Contains(rawTypes, mediaType(own.contentType)) {
			own.contentType = ""
		}
		e.apply(own)
	}
	return e
}

func (e *Effective) apply(r rules) {
	if r.retry != nil {
		e.Policy = r.retry.Policy
	}
	if r.perSecond != 0 {
		e.MaxReceivesPerSecond = r.perSecond
	}
	if r.contentType != "" {
		e.ContentType = r.contentType
	}
}

// rules is e in the form of a document, with all members.
func (e Effective) rules() rules {
	rr := &retryRules{Policy: e.Policy}
	for i := range rr.named {
		rr.named[i] = true
	}
	return rules{retry: rr, perSecond: e.MaxReceivesPerSecond, contentType: e.ContentType}
}

// Document is the policy as GetTopicAttributes shows it under DeliveryPolicy: the members that
// were set, and disableSubscriptionOverrides always. ParseTopic parses it to the same policy. A
// nil policy is the empty string.
func (t *TopicPolicy) Document() string {
	if t == nil {
		return ""
	}
	return string(appendTopic(nil, t.rules, t.disableOverrides))
}

// Effective is the policy as GetTopicAttributes shows it under EffectiveDeliveryPolicy, with
// defaults for missing members. A nil policy shows the default.
func (t *TopicPolicy) Effective() string {
	return string(appendTopic(nil, Resolve(t, nil, false).rules(), t != nil && t.disableOverrides))
}

// Document is the policy as GetSubscriptionAttributes shows it under DeliveryPolicy: the
// members that were set, and null for the others. ParseSubscription parses it to the same
// policy. A nil policy is the empty string.
func (s *SubscriptionPolicy) Document() string {
	if s == nil {
		return ""
	}
	return string(appendSubscription(nil, s.rules, s.guaranteed))
}

// EffectiveDocument is the result of Resolve as GetSubscriptionAttributes
// shows it under EffectiveDeliveryPolicy.
func EffectiveDocument(t *TopicPolicy, s *SubscriptionPolicy, raw bool) string {
	guaranteed := s != nil && s.guaranteed && (t == nil || !t.disableOverrides)
	return string(appendSubscription(nil, Resolve(t, s, raw).rules(), guaranteed))
}

// The documents are written by hand: clients compare them as text, so the order of members and
// the absence of spaces are part of the interface.

func appendTopic(b []byte, r rules, disable bool) []byte {
	b = append(b, `{"http":{`...)
	if r.retry != nil {
		b = append(b, `"defaultHealthyRetryPolicy":`...)
		b = append(r.appendRetry(b), ',')
	}
	b = append(b, `"disableSubscriptionOverrides":`...)
	b = strconv.AppendBool(b, disable)
	if r.perSecond != 0 {
		b = append(b, `,"defaultThrottlePolicy":`...)
		b = r.appendThrottle(b)
	}
	if r.contentType != "" {
		b = append(b, `,"defaultRequestPolicy":`...)
		b = r.appendRequest(b)
	}
	return append(b, `}}`...)
}

func appendSubscription(b []byte, r rules, guaranteed bool) []byte {
	b = append(b, `{"healthyRetryPolicy":`...)
	b = r.appendRetry(b)
	b = append(b, `,"sicklyRetryPolicy":null,"throttlePolicy":`...)
	b = r.appendThrottle(b)
	b = append(b, `,"requestPolicy":`...)
	b = r.appendRequest(b)
	b = append(b, `,"guaranteed":`...)
	b = strconv.AppendBool(b, guaranteed)
	return append(b, '}')
}

func (r rules) appendRetry(b []byte) []byte {
	if r.retry == nil {
		return append(b, "null"...)
	}
	separator := byte('{')
	for i, m := range retryMembers {
		if !r.retry.named[i] {
			continue
		}
		b = append(b, separator, '"')
		b = append(b, m.name...)
		b = append(b, `":`...)
		if m.name == backoffMember {
			b = strconv.AppendQuote(b, r.retry.Backoff.String())
		} else {
			b = strconv.AppendInt(b, int64(m.get(&r.retry.Policy)), 10)
		}
		separator = ','
	}
	return append(b, '}')
}

func (r rules) appendThrottle(b []byte) []byte {
	if r.perSecond == 0 {
		return append(b, "null"...)
	}
	b = append(b, `{"maxReceivesPerSecond":`...)
	b = strconv.AppendInt(b, int64(r.perSecond), 10)
	return append(b, '}')
}

func (r rules) appendRequest(b []byte) []byte {
	if r.contentType == "" {
		return append(b, "null"...)
	}
	b = append(b, `{"headerContentType":`...)
	header, _ := json.Marshal(r.contentType) // a string always marshals
	b = append(b, header...)
	return append(b, '}')
}

package attribute

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// Redrive is a parsed RedrivePolicy.
type Redrive struct {
	DeadLetter  arn.ARN
	MaxReceives int // 1–1,000
}

const (
	keyTarget     = "deadLetterTargetArn"
	keyCount      = "maxReceiveCount"
	keyPermission = "redrivePermission"
	keySources    = "sourceQueueArns"

	permitAll    = "allowAll"
	permitNone   = "denyAll"
	permitListed = "byQueue"
)

// about is a refusal whose first field is the document.
func about(doc string, rule *fault.Rule, more []any) error {
	return rule.With(append([]any{doc}, more...)...)
}

// ParseRedrive reads a RedrivePolicy: an object of deadLetterTargetArn and
// maxReceiveCount, both required, the count a number or a string. Its error is
// an InvalidParameter. Whether the target suits a queue is for Check.
func ParseRedrive(doc string) (Redrive, error) {
	fail := func(rule *fault.Rule, more ...any) (Redrive, error) { return Redrive{}, about(doc, rule, more) }

	members, ok := object(doc)
	if !ok {
		return fail(ErrRedriveDocument)
	}
	// What is missing comes first, and the count before the target, as AWS was seen to answer.
	for _, name := range [...]string{keyCount, keyTarget} {
		if v, ok := members[name]; !ok || string(v) == "null" {
			return fail(ErrRedriveLacks, name)
		}
	}
	for name := range members {
		if name != keyTarget && name != keyCount {
			return fail(ErrRedriveMember)
		}
	}
	var target string
	if err := json.Unmarshal(members[keyTarget], &target); err != nil {
		return fail(ErrRedriveTarget)
	}
	name, err := arn.Parse(target)
	if err != nil {
		return fail(ErrRedriveTarget)
	}
	if name.Service != "sqs" {
		return fail(ErrRedriveService)
	}
	count, ok := number(members[keyCount])
	if !ok || count < 1 || count > maxReceives {
		return fail(ErrRedriveCount, strings.Trim(string(members[keyCount]), `"`), maxReceives)
	}
	return Redrive{DeadLetter: name, MaxReceives: count}, nil
}

func canonicalRedrive(_, doc string) (string, error) {
	r, err := ParseRedrive(doc)
	if err != nil {
		return "", err
	}
	return `{"` + keyTarget + `":` + quote(r.DeadLetter.String()) + `,"` + keyCount + `":` + strconv.Itoa(r.MaxReceives) + `}`, nil
}

// redriveAllow is a parsed RedriveAllowPolicy.
type redriveAllow struct {
	permission string
	sources    []string
}

func parseRedriveAllow(doc string) (redriveAllow, error) {
	fail := func(rule *fault.Rule, more ...any) (redriveAllow, error) {
		return redriveAllow{}, about(doc, rule, more)
	}
	members, ok := object(doc)
	if !ok {
		return fail(ErrAllowDocument)
	}
	for name := range members {
		if name != keyPermission && name != keySources {
			return fail(ErrAllowDocument)
		}
	}
	var p redriveAllow
	if err := json.Unmarshal(members[keyPermission], &p.permission); err != nil {
		return fail(ErrAllowDocument)
	}
	if v, ok := members[keySources]; ok {
		// Pointers distinguish a null in the list from an empty name.
		var sources []*string
		if err := json.Unmarshal(v, &sources); err != nil || slices.Contains(sources, nil) {
			return fail(ErrAllowDocument)
		}
		for _, s := range sources {
			p.sources = append(p.sources, *s)
		}
	}
	switch p.permission {
	case permitAll, permitNone:
		if len(p.sources) > 0 {
			return fail(ErrAllowSources)
		}
	case permitListed:
		if len(p.sources) == 0 {
			return fail(ErrAllowNoSources)
		}
		if len(p.sources) > maxSources {
			return fail(ErrAllowTooMany, maxSources)
		}
		for i, s := range p.sources {
			name, err := arn.Parse(s)
			if err != nil || name.Service != "sqs" || name.Resource == "" {
				return fail(ErrAllowSource)
			}
			p.sources[i] = name.String()
		}
	default:
		return fail(ErrAllowDocument)
	}
	return p, nil
}

func canonicalRedriveAllow(_, doc string) (string, error) {
	p, err := parseRedriveAllow(doc)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(`{"` + keyPermission + `":` + quote(p.permission))
	for i, s := range p.sources {
		if i == 0 {
			b.WriteString(`,"` + keySources + `":[`)
		} else {
			b.WriteByte(',')
		}
		b.WriteString(quote(s))
	}
	if len(p.sources) > 0 {
		b.WriteByte(']')
	}
	b.WriteByte('}')
	return b.String(), nil
}

// AllowsRedrive reports whether a dead-letter queue with this
// RedriveAllowPolicy takes the dead letters of source. Without a policy it
// does; with an unreadable one it does not.
func AllowsRedrive(doc string, source arn.ARN) bool {
	if doc == "" {
		return true
	}
	p, err := parseRedriveAllow(doc)
	if err != nil {
		return false
	}
	return p.permission == permitAll || p.permission == permitListed && slices.Contains(p.sources, source.String())
}

// canonicalPolicy accepts any JSON object of at most 8,192 bytes that keeps
// CheckPolicy's limits, and strips the white space. What the policy says is not
// looked at here.
func canonicalPolicy(name, doc string) (string, error) {
	if _, ok := object(doc); !ok {
		return "", ErrValue.With(name)
	}
	if err := CheckPolicy(doc); err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(doc)); err != nil {
		return "", ErrValue.With(name)
	}
	return b.String(), nil
}

// canonicalKeyID accepts a key's id, alias or ARN, by its length and
// characters alone: whether there is such a key, only KMS knows.
func canonicalKeyID(name, id string) (string, error) {
	if len(id) > maxKeyIDBytes {
		return "", ErrValue.With(name)
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return "", ErrValue.With(name)
		}
	}
	return id, nil
}

// object reads a JSON object. Its members' names are matched exactly, which
// decoding into a struct would not do.
func object(doc string) (map[string]json.RawMessage, bool) {
	if !utf8.ValidString(doc) {
		return nil, false
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(doc), &members); err != nil || members == nil {
		return nil, false
	}
	return members, true
}

// number reads a whole number or a string that holds one.
func number(v json.RawMessage) (int, bool) {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return integer(s)
	}
	return integer(string(v))
}

// quote writes a JSON string. Marshalling one cannot fail.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

package protect

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Policy is the data protection policy of a topic. It is immutable.
type Policy struct {
	text       string
	statements []statement
	program    int // instructions of its custom identifiers
}

type operation uint8

const (
	audit operation = iota + 1
	deny
	maskData
	redact
)

// statement is a statement of a policy: the principals, the data that it looks for in their
// messages, and the operation on these.
type statement struct {
	outbound   bool
	except     bool // it applies to all but the principals
	operation  operation
	mask       byte // replaces each character
	sampleRate int  // of audits, in percent: 0–99
	principals []string
	detectors  []*detector
	// The log groups of an audit's findings, or "".
	findings, noFindings string
}

// Text is the document, as it was given; empty without a policy.
func (p *Policy) Text() string {
	if p == nil {
		return ""
	}
	return p.text
}

// Audits reports whether the policy has a statement that audits.
func (p *Policy) Audits() bool {
	return slices.ContainsFunc(p.statements, func(s statement) bool { return s.operation == audit })
}

// Outbound reports whether the policy applies to messages that leave the topic. The policy may
// be nil.
func (p *Policy) Outbound() bool {
	return p != nil && slices.ContainsFunc(p.statements, func(s statement) bool { return s.outbound })
}

// Finding is a kind of sensitive data in a message, with its positions.
type Finding struct {
	Identifier string
	Spans      []Span
}

// Span is a range of a message, in bytes.
type Span struct{ Start, End int }

// Audit is the audit report of a message, and the log group for it.
type Audit struct {
	LogGroup string
	Findings []Finding
}

// Inspection is the result of applying a policy to a message.
type Inspection struct {
	// Denied is the data that the message must not have, or "".
	Denied string
	// Body is the message without masked or redacted data.
	Body string
	// Audit is nil if nothing is to be reported.
	Audit *Audit
	// Endless is a custom identifier whose search was aborted, or "". Then the message must be
	// dropped, without any other action.
	Endless string
	// Changed is how many pieces of data were masked or redacted.
	Changed int
}

// Inbound inspects a message that a principal publishes. The principal has any of the names:
// its ARN, its role's, its account. The sample is a random number from 0 to 99, which decides
// whether the message is audited.
func (p *Policy) Inbound(body string, principal []string, sample int) Inspection {
	in := Inspection{Body: body}
	l := newLook(body)
	var spans []change
	for i := range p.statements {
		s := &p.statements[i]
		if s.outbound || !s.of(principal) || (s.operation == audit && sample >= s.sampleRate) {
			continue
		}
		found := l.find(s)
		if l.endless != "" {
			return Inspection{Endless: l.endless}
		}
		switch s.operation {
		case audit:
			if group := s.destination(found); group != "" {
				in.Audit = &Audit{LogGroup: group, Findings: found}
			}
		case deny:
			if len(found) > 0 && in.Denied == "" {
				in.Denied = found[0].Identifier
			}
		case maskData, redact:
			for _, d := range s.detectors {
				if l.changed[d] {
					continue // an earlier statement has the same data
				}
				l.changed[d] = true
				for _, span := range l.found[d] {
					spans = append(spans, change{Span: span, by: s})
				}
			}
		}
	}
	if in.Denied == "" {
		in.Body, in.Changed = rewrite(body, spans)
	}
	return in
}

// DeniedOutbound is the data in a message that must not reach the subscriber, which has any of
// the names; "" allows the message. Data whose search was aborted counts as present.
func (p *Policy) DeniedOutbound(body string, principal []string) string {
	l := newLook(body)
	for i := range p.statements {
		s := &p.statements[i]
		if !s.outbound || !s.of(principal) {
			continue
		}
		found := l.find(s)
		if l.endless != "" {
			return l.endless
		}
		if len(found) > 0 {
			return found[0].Identifier
		}
	}
	return ""
}

func (s *statement) of(principal []string) bool {
	named := slices.ContainsFunc(s.principals, func(name string) bool {
		return name == "*" || slices.Contains(principal, name)
	})
	return named != s.except
}

func (s *statement) destination(found []Finding) string {
	if len(found) > 0 {
		return s.findings
	}
	return s.noFindings
}

// The bound on the search for custom identifiers, in executed instructions of their programs:
// so many for each byte of a message, and so many in addition. Ten ordinary patterns need some
// tens per byte. A match costs stepsPerFinding in addition: its position is kept in memory, and
// an identifier may match a message everywhere.
const (
	stepsPerByte    = 300
	stepsOfAnyone   = 1 << 20
	stepsPerFinding = 100
)

// look is the findings in one message. Each identifier is searched for once, no matter how many
// statements name it.
type look struct {
	body    string
	steps   int // left to custom identifiers
	found   map[*detector][]Span
	changed map[*detector]bool // those whose data is masked or redacted
	endless string             // the custom identifier whose search ran out of steps, or ""
}

func newLook(body string) *look {
	return &look{body: body, steps: stepsOfAnyone + stepsPerByte*len(body), found: map[*detector][]Span{}, changed: map[*detector]bool{}}
}

func (l *look) find(s *statement) (found []Finding) {
	for _, d := range s.detectors {
		spans, known := l.found[d]
		if !known {
			var ok bool
			if spans, ok = d.find(l.body, &l.steps); !ok {
				l.endless = d.name
				return nil
			}
			l.found[d] = spans
		}
		if len(spans) > 0 {
			found = append(found, Finding{Identifier: d.name, Spans: spans})
		}
	}
	return found
}

// change is a range that a statement masks or redacts.
type change struct {
	Span
	by *statement
}

// rewrite masks and redacts. In overlapping ranges the earliest one's statement applies to all
// of them: no part of either may remain.
func rewrite(body string, changes []change) (string, int) {
	if len(changes) == 0 {
		return body, 0
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.Start, b.Start) })
	var out strings.Builder
	out.Grow(len(body))
	end, count := 0, 0
	for _, c := range changes {
		start := max(c.Start, end)
		if c.End <= start {
			continue
		}
		out.WriteString(body[end:start])
		if c.by.operation == maskData {
			for range utf8.RuneCountInString(body[start:c.End]) {
				out.WriteByte(c.by.mask)
			}
		}
		end = c.End
		count++
	}
	out.WriteString(body[end:])
	return out.String(), count
}

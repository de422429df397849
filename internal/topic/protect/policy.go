package protect

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Policy is the data protection policy of a topic. It does not change.
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

// statement is one of a policy: whose messages it is about, what it looks for in them,
// and what is done about it.
type statement struct {
	outbound   bool
	except     bool // of all but the principals
	operation  operation
	mask       byte // instead of each character
	sampleRate int  // of audits, in percent: 0–99
	principals []string
	detectors  []*detector
	// The log groups of an audit's findings, or "".
	findings, noFindings string
}

// Text is the document, as it was given; of no policy it is empty.
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

// Outbound reports whether the policy looks at messages that leave the topic. There may be
// no policy.
func (p *Policy) Outbound() bool {
	return p != nil && slices.ContainsFunc(p.statements, func(s statement) bool { return s.outbound })
}

// Finding is a kind of sensitive data that a message has, and where.
type Finding struct {
	Identifier string
	Spans      []Span
}

// Span is a place in a message, in bytes.
type Span struct{ Start, End int }

// Audit is what the policy's audit reports of a message, and the log group for it.
type Audit struct {
	LogGroup string
	Findings []Finding
}

// Inspection is what a policy makes of a message.
type Inspection struct {
	// Denied is what the message may not have, or "".
	Denied string
	// Body is the message without what the policy takes out.
	Body string
	// Audit is nil where nothing is to be reported.
	Audit *Audit
	// Endless is a custom identifier that could not be looked for to the end, or "". Then
	// the message is to be dropped, and nothing else is to be done.
	Endless string
	// Changed are how many data were masked or redacted.
	Changed int
}

// Inbound inspects a message that the principal publishes, who is known by any of the
// names: its ARN, that of its role, its account. The sample is a random number from 0 to
// 99, which decides whether the message is audited.
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
					continue // an earlier statement has the same places
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

// DeniedOutbound says what a message has that must not reach the subscriber, who is known
// by any of the names; "" lets it pass. What cannot be looked for to the end counts as
// there.
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

// What custom identifiers may take to be looked for, in instructions of their programs that
// are come to: so many for each byte of a message, and so many besides. Ten patterns that
// are not made to take long need some tens a byte. What is found takes stepsPerFinding
// besides: its place is kept in memory, and may be all that an identifier has of a message.
const (
	stepsPerByte    = 300
	stepsOfAnyone   = 1 << 20
	stepsPerFinding = 100
)

// look is what is found in one message. Each identifier is looked for once, whatever number
// of statements name it.
type look struct {
	body    string
	steps   int // that are left to custom identifiers
	found   map[*detector][]Span
	changed map[*detector]bool // whose data are masked or redacted
	endless string             // the custom identifier at which no steps were left, or ""
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

// change is a place that a statement masks or redacts.
type change struct {
	Span
	by *statement
}

// rewrite masks and redacts. Of places that overlap the statement of the earliest is
// followed, over all of them: nothing of either may stay.
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

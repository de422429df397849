package protect

import (
	"regexp/syntax"
	"unicode/utf8"
)

// pattern is the compiled pattern of a policy. It is searched for here and not by package
// regexp, which cannot be interrupted: in a large message every match may look ahead to the
// end, and time would grow quadratically with the size.
//
// The matches are those of regexp's FindAllStringIndex; a fuzz test compares them.
type pattern struct{ prog *syntax.Prog }

// compilePattern compiles a result of syntax.Parse.
func compilePattern(tree *syntax.Regexp) (*pattern, error) {
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	return &pattern{prog}, nil
}

// size is the number of its instructions, which bounds the cost of a character.
func (p *pattern) size() int { return len(p.prog.Inst) }

// thread is a thread of the program at an instruction.
type thread struct {
	at    uint32
	start int // of its match
}

// machine runs all threads of a program in lockstep, in the order of preference.
type machine struct {
	prog   *syntax.Prog
	closed []thread // the threads now: at instructions that read, or at the end
	next   []thread // the threads after the next character
	seen   []uint32 // by instruction: the latest round that reached it
	round  uint32
	steps  *int // remaining steps
}

// find returns the spans of all matches, in order and disjoint. Each executed instruction uses
// one step, and each match stepsPerFinding; ok is false if the steps do not suffice, and then
// the spans are incomplete.
func (p *pattern) find(body string, steps *int) (spans []Span, ok bool) {
	m := &machine{prog: p.prog, seen: make([]uint32, len(p.prog.Inst)), steps: steps}
	for from := 0; from < len(body); {
		span, found := m.search(body, from)
		if *steps < 0 {
			return spans, false
		}
		if !found || span.End <= from {
			return spans, true
		}
		spans = append(spans, span)
		from = span.End
		*steps -= stepsPerFinding
	}
	return spans, true
}

// search finds the first match that begins at or after a position.
func (m *machine) search(body string, from int) (best Span, found bool) {
	m.next = m.next[:0]
	before := rune(-1)
	if from > 0 {
		before, _ = utf8.DecodeLastRuneInString(body[:from])
	}
	for at := from; *m.steps >= 0; {
		c, size := rune(-1), 0
		if at < len(body) {
			c, size = utf8.DecodeRuneInString(body[at:])
		}
		m.close(at, !found, syntax.EmptyOpContext(before, c))
		m.next = m.next[:0]
		for _, t := range m.closed {
			in := &m.prog.Inst[t.at]
			if in.Op == syntax.InstMatch {
				// The threads after this one are less preferred.
				best, found = Span{t.start, at}, true
				break
			}
			if size > 0 && reads(in, c) {
				m.next = append(m.next, thread{in.Out, t.start})
			}
		}
		if size == 0 || found && len(m.next) == 0 {
			break
		}
		at += size
		before = c
	}
	return best, found
}

func reads(in *syntax.Inst, c rune) bool {
	switch in.Op {
	case syntax.InstRune1:
		return in.Rune[0] == c
	case syntax.InstRuneAny:
		return true
	case syntax.InstRuneAnyNotNL:
		return c != '\n'
	default:
		return in.MatchRune(c)
	}
}

// close advances the threads to instructions that read, and with begin adds a thread that
// begins here.
func (m *machine) close(at int, begin bool, place syntax.EmptyOp) {
	m.closed = m.closed[:0]
	m.round++
	for _, t := range m.next {
		m.follow(t.at, t.start, place)
	}
	if begin {
		m.follow(uint32(m.prog.Start), at, place) //nolint:gosec // a program is far smaller
	}
}

func (m *machine) follow(at uint32, start int, place syntax.EmptyOp) {
	for m.seen[at] != m.round {
		m.seen[at] = m.round
		*m.steps--
		in := &m.prog.Inst[at]
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			m.follow(in.Out, start, place)
			at = in.Arg
		case syntax.InstCapture, syntax.InstNop:
			at = in.Out
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^place != 0 {
				return
			}
			at = in.Out
		case syntax.InstFail:
			return
		default: // it reads, or is the end
			m.closed = append(m.closed, thread{at, start})
			return
		}
	}
}

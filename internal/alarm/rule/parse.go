package rule

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"godwit.dev/godwit/internal/alarm"
)

// token is a bracket, a comma, a word, or a text in quotes.
type token struct {
	text   string
	at     int // in characters
	quoted bool
}

// is reports whether it is a bracket, comma or word.
func (t token) is(text string) bool { return t.text == text && !t.quoted }

// parser parses a rule by recursive descent. After an error it accepts no token.
type parser struct {
	tokens   []token
	err      error // the first one
	children []string
	elements int
}

// What an error says that has to be at a place.
const (
	anOperand = "'(', 'NOT', AT_LEAST, TRUE or FALSE, ALARM, OK, or INSUFFICIENT_DATA"
	anAlarm   = "the name or the ARN of an alarm"
	aState    = "'NOT', ALARM, OK, or INSUFFICIENT_DATA"
	aNumber   = "a number or a percentage"
)

// Parse parses a rule. The result of one that is not refused is never nil.
func Parse(text string) (*Rule, error) {
	switch {
	case utf8.RuneCountInString(text) > MaxLength:
		return nil, ErrLength.With(MaxLength)
	case strings.TrimSpace(text) != text:
		return nil, ErrSpace
	}
	p := &parser{}
	p.tokens, p.err = split(text)
	holds := p.either()
	if len(p.tokens) > 0 {
		p.expected("'AND' or 'OR'")
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case len(p.children) > MaxChildren:
		return nil, ErrChildren.With(MaxChildren)
	case p.elements > MaxElements:
		return nil, ErrElements.With(MaxElements)
	}
	return &Rule{holds, p.children}, nil
}

// split splits a rule into tokens.
func split(text string) (tokens []token, err error) {
	all := []rune(text)
	for i := 0; i < len(all); {
		begin := i
		switch c := all[i]; {
		case unicode.IsSpace(c):
			i++
		case isMark(c):
			i++
			tokens = append(tokens, token{text: string(c), at: begin})
		case c == '"':
			var quoted []rune
			for i++; i < len(all) && all[i] != '"'; i++ {
				if all[i] == '\\' && i+1 < len(all) && (all[i+1] == '"' || all[i+1] == '\\') {
					i++
				}
				quoted = append(quoted, all[i])
			}
			if i == len(all) {
				return nil, ErrQuote.With(begin)
			}
			i++
			tokens = append(tokens, token{text: string(quoted), at: begin, quoted: true})
		default:
			for i < len(all) && !unicode.IsSpace(all[i]) && !isMark(all[i]) && all[i] != '"' {
				i++
			}
			tokens = append(tokens, token{text: string(all[begin:i]), at: begin})
		}
	}
	return tokens, nil
}

func isMark(c rune) bool { return c == '(' || c == ')' || c == ',' }

// expected refuses the next token, where something else has to be.
func (p *parser) expected(want string) {
	if p.err == nil {
		if p.err = ErrEnd.With(want); len(p.tokens) > 0 {
			p.err = ErrToken.With(p.tokens[0].text, p.tokens[0].at, want)
		}
	}
	p.tokens = nil
}

// next reports whether the next token is the given one, and takes it.
func (p *parser) next(text string) bool {
	if len(p.tokens) == 0 || !p.tokens[0].is(text) {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

func (p *parser) want(mark string) {
	if !p.next(mark) {
		p.expected("'" + mark + "'")
	}
}

func (p *parser) either() condition {
	all := []condition{p.both()}
	for p.next("OR") {
		all = append(all, p.both())
	}
	return some(all)
}

func (p *parser) both() condition {
	all := []condition{p.operand()}
	for p.next("AND") {
		all = append(all, p.operand())
	}
	return every(all)
}

func (p *parser) operand() condition {
	switch {
	case p.next("NOT"):
		return not(p.operand())
	case p.next("("):
		c := p.either()
		p.want(")")
		return c
	case p.next("TRUE"):
		p.elements++
		return constant(true)
	case p.next("FALSE"):
		p.elements++
		return constant(false)
	case p.next("AT_LEAST"):
		return p.atLeast()
	}
	state, ok := p.state()
	if !ok {
		p.expected(anOperand)
		return constant(false)
	}
	p.want("(")
	c := is(p.child(), state)
	p.want(")")
	return c
}

func (p *parser) state() (alarm.State, bool) {
	for _, s := range alarm.States {
		if p.next(string(s)) {
			return s, true
		}
	}
	return "", false
}

// child takes the name or the ARN of an alarm.
func (p *parser) child() string {
	if len(p.tokens) == 0 || p.tokens[0].text == "" || !p.tokens[0].quoted && isMark(rune(p.tokens[0].text[0])) {
		p.expected(anAlarm)
		return ""
	}
	name := p.tokens[0].text
	p.tokens = p.tokens[1:]
	p.elements++
	if !slices.Contains(p.children, name) {
		p.children = append(p.children, name)
	}
	return name
}

// atLeast takes what follows AT_LEAST: a number, a condition on a state, and a list of alarms.
func (p *parser) atLeast() condition {
	p.want("(")
	t := p.threshold()
	p.want(",")
	negated := p.next("NOT")
	state, ok := p.state()
	if !ok {
		p.expected(aState)
	}
	p.want(",")
	p.want("(")
	var all []condition
	for more := true; more; more = p.next(",") {
		c := is(p.child(), state)
		if negated {
			c = not(c)
		}
		all = append(all, c)
	}
	p.want(")")
	p.want(")")
	if p.err == nil && !t.percent && t.number > len(all) {
		p.err = ErrAtLeast.With(strconv.Itoa(t.number))
	}
	return atLeast(t, all)
}

func (p *parser) threshold() (t threshold) {
	if len(p.tokens) == 0 {
		p.expected(aNumber)
		return t
	}
	text := p.tokens[0].text
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		p.expected(aNumber)
		return t
	}
	if n == 0 || percent && n > 100 {
		p.err = ErrAtLeast.With(text)
		p.tokens = nil
		return t
	}
	p.tokens = p.tokens[1:]
	return threshold{int(n), percent}
}

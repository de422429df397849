package metricmath

import (
	"math"
	"strconv"
	"strings"
)

// operation is what a node of an expression does.
type operation int

const (
	aNumber operation = iota
	aText             // in quotes
	aWord             // of capitals, such as REPEAT
	anID
	anArray
	aNegation
	anOperator
	aCall
)

// kind is the type of a value.
type kind int

const (
	scalar kind = iota
	single      // a time series
	array       // of time series
)

// node is a part of an expression.
type node struct {
	operation operation
	text      string // the text, word, Id, operator or name of a function
	number    float64
	parts     []*node

	kind    kind
	queries []int   // the queries of an Id, or of METRICS
	search  *Search // of SEARCH
}

type token struct {
	operation operation // aNumber, aText, aWord, anID, or anOperator, also for brackets and commas
	text      string
	number    float64
}

// parser parses an expression by recursive descent.
type parser struct {
	tokens []token
	depth  int
	err    error // the first one
	query  string
}

func (p *parser) refuse(err error) *node {
	if p.err == nil {
		p.err = err
	}
	p.tokens = nil // nothing more is accepted
	return &node{}
}

func (p *parser) invalid() *node { return p.refuse(ErrSyntax.With(p.query)) }

// unsupported are functions of AWS that are not built.
var unsupported = map[string]bool{
	"ANOMALY_DETECTION_BAND": true, "DB_PERF_INSIGHTS": true, "INSIGHT_RULE_METRIC": true, "LAMBDA": true, "SERVICE_QUOTA": true,
}

// parse parses the expression of a query. tokens is how many it has.
func parse(query, text string) (root *node, tokens int, err error) {
	if fields := strings.Fields(text); len(fields) > 0 && strings.EqualFold(fields[0], "SELECT") {
		return nil, 0, ErrInsights.With(query)
	}
	p := &parser{query: query}
	var ok bool
	if p.tokens, ok = split(text); !ok {
		return nil, 0, ErrSyntax.With(query)
	}
	tokens = len(p.tokens)
	root = p.binary(0)
	if p.err == nil && len(p.tokens) > 0 {
		p.invalid()
	}
	return root, tokens, p.err
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

func digit(c byte) bool { return c >= '0' && c <= '9' }

// split splits an expression into tokens; ok is false if something in it is none.
func split(text string) (tokens []token, ok bool) {
	for text != "" {
		c := text[0]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			text = text[1:]
			continue
		case digit(c) || c == '.':
			n := numberLength(text)
			number, err := strconv.ParseFloat(text[:n], 64)
			if err != nil || math.IsInf(number, 0) || n < len(text) && (letter(text[n]) || text[n] == '.') {
				return nil, false
			}
			tokens = append(tokens, token{operation: aNumber, number: number})
			text = text[n:]
		case letter(c):
			n := 1
			for n < len(text) && (letter(text[n]) || digit(text[n])) {
				n++
			}
			tokens = append(tokens, word(text[:n]))
			text = text[n:]
		case c == '"' || c == '\'':
			n := strings.IndexByte(text[1:], c)
			if n < 0 {
				return nil, false
			}
			tokens = append(tokens, token{operation: aText, text: text[1 : n+1]})
			text = text[n+2:]
		default:
			n := operatorLength(text)
			if n == 0 {
				return nil, false
			}
			tokens = append(tokens, token{operation: anOperator, text: text[:n]})
			text = text[n:]
		}
	}
	return tokens, true
}

func word(text string) token {
	switch {
	case text == "AND":
		return token{operation: anOperator, text: "&&"}
	case text == "OR":
		return token{operation: anOperator, text: "||"}
	case text[0] >= 'a' && text[0] <= 'z':
		return token{operation: anID, text: text}
	}
	return token{operation: aWord, text: text}
}

// numberLength is the length of the number that a text begins with.
func numberLength(text string) (n int) {
	digits := func(n int) int {
		for n < len(text) && digit(text[n]) {
			n++
		}
		return n
	}
	n = digits(0)
	if n < len(text) && text[n] == '.' {
		n = digits(n + 1)
	}
	if n < len(text) && (text[n] == 'e' || text[n] == 'E') {
		exponent := n + 1
		if exponent < len(text) && (text[exponent] == '-' || text[exponent] == '+') {
			exponent++
		}
		if end := digits(exponent); end > exponent {
			n = end
		}
	}
	return n
}

// operatorLength is the length of the operator or mark that a text begins with; 0: there is none.
func operatorLength(text string) int {
	for _, long := range []string{"==", "!=", "<=", ">=", "&&", "||"} {
		if strings.HasPrefix(text, long) {
			return len(long)
		}
	}
	if strings.IndexByte("+-*/^<>()[],", text[0]) >= 0 {
		return 1
	}
	return 0
}

// levels are the binary operators, those that bind weakest first.
var levels = [][]string{{"||"}, {"&&"}, {"==", "!=", "<", ">", "<=", ">="}, {"+", "-"}, {"*", "/"}}

// takeOne takes the next token if it is one of some operators.
func (p *parser) takeOne(operators ...string) string {
	if len(p.tokens) == 0 || p.tokens[0].operation != anOperator {
		return ""
	}
	for _, operator := range operators {
		if p.tokens[0].text == operator {
			p.tokens = p.tokens[1:]
			return operator
		}
	}
	return ""
}

func (p *parser) binary(level int) *node {
	if level == len(levels) {
		return p.unary()
	}
	left := p.binary(level + 1)
	for {
		operator := p.takeOne(levels[level]...)
		if operator == "" {
			return left
		}
		left = &node{operation: anOperator, text: operator, parts: []*node{left, p.binary(level + 1)}}
	}
}

// nested parses a part that may be nested in others of its kind.
func (p *parser) nested(part func() *node) *node {
	if p.depth++; p.depth > maxDepth {
		return p.refuse(ErrDepth.With(p.query, maxDepth))
	}
	defer func() { p.depth-- }()
	return part()
}

// unary parses a sign, which binds weaker than a power.
func (p *parser) unary() *node {
	if p.takeOne("-") != "" {
		return &node{operation: aNegation, text: "-", parts: []*node{p.nested(p.unary)}}
	}
	return p.power()
}

// power parses a power; of several, the last one is first.
func (p *parser) power() *node {
	base := p.primary()
	if p.takeOne("^") == "" {
		return base
	}
	return &node{operation: anOperator, text: "^", parts: []*node{base, p.nested(p.unary)}}
}

func (p *parser) primary() *node {
	if len(p.tokens) == 0 {
		return p.invalid()
	}
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	switch {
	case t.operation == anOperator && t.text == "(":
		inner := p.nested(func() *node { return p.binary(0) })
		if p.takeOne(")") == "" {
			return p.invalid()
		}
		return inner
	case t.operation == anOperator && t.text == "[":
		return p.list(&node{operation: anArray}, "]")
	case t.operation == anOperator:
		return p.invalid()
	case (t.operation == aWord || t.operation == anID) && p.takeOne("(") != "":
		switch {
		case unsupported[t.text]:
			return p.refuse(ErrUnsupported.With(p.query, t.text))
		case functions[t.text] == nil:
			return p.refuse(ErrFunction.With(p.query, t.text))
		}
		call := &node{operation: aCall, text: t.text}
		if p.takeOne(")") != "" {
			return call
		}
		return p.list(call, ")")
	}
	return &node{operation: t.operation, text: t.text, number: t.number}
}

// list parses the parts of a node, of which there is at least one.
func (p *parser) list(of *node, end string) *node {
	for {
		of.parts = append(of.parts, p.nested(func() *node { return p.binary(0) }))
		if p.takeOne(end) != "" {
			return of
		}
		if p.takeOne(",") == "" {
			return p.invalid()
		}
	}
}

package metricmath

import (
	"cmp"
	"strings"

	"godwit.dev/godwit/internal/metricmath/search"
)

// Program are queries whose expressions are parsed and of the right types.
type Program struct {
	queries []Query
	byID    map[string]int
	roots   []*node // of the queries; nil: a metric
	kinds   []kind  // of the results
	states  []state
	used    []int            // how many parts of expressions refer to the query
	metrics [][]int          // those that an expression needs, also by others
	chosen  map[string][]int // the metrics of METRICS, by its text
	steps   []int64          // of the queries: the greatest common divisor of those of the searches that it needs; 0: none
	all     []*Search
}

// state is how far the compilation of a query is.
type state int

const (
	unseen state = iota
	begun
	done
)

// Compile parses the expressions among queries, whose Ids are unique. It refuses what does not
// parse, has operands of the wrong types, needs a query that does not exist or needs itself.
func Compile(queries []Query) (*Program, error) {
	n := len(queries)
	p := &Program{
		queries: queries, byID: make(map[string]int, n), roots: make([]*node, n), kinds: make([]kind, n), states: make([]state, n), used: make([]int, n),
		metrics: make([][]int, n), chosen: map[string][]int{}, steps: make([]int64, n),
	}
	parts := 0
	for i, q := range queries {
		p.byID[q.ID] = i
		p.kinds[i] = single
		if q.Expression == "" {
			p.states[i] = done
			p.metrics[i] = []int{i}
			continue
		}
		root, tokens, err := parse(q.ID, q.Expression)
		if err != nil {
			return nil, err
		}
		if parts += tokens; parts > maxParts {
			return nil, ErrParts.With(q.ID, maxParts)
		}
		p.roots[i] = root
	}
	for i := range queries {
		if err := p.compile(i); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Array reports whether the result of a query is an array of time series.
func (p *Program) Array(query int) bool { return p.kinds[query] == array }

// Metrics are the metrics that the result of a query needs, by their place among the queries.
func (p *Program) Metrics(query int) []int { return p.metrics[query] }

// Searches are those of all expressions.
func (p *Program) Searches() []*Search { return p.all }

// compile finds the types in the expression of a query, and first in those that it needs.
func (p *Program) compile(query int) error {
	switch p.states[query] {
	case done:
		return nil
	case begun:
		return ErrCycle.With(p.queries[query].ID)
	case unseen:
	}
	p.states[query] = begun
	c := checker{Program: p, query: query, needs: make([]bool, len(p.queries))}
	root := p.roots[query]
	if err := c.check(root); err != nil {
		return err
	}
	if root.kind == scalar {
		return ErrScalar.With(c.id())
	}
	for i, needed := range c.needs {
		if needed {
			p.metrics[query] = append(p.metrics[query], i)
		}
	}
	p.kinds[query], p.states[query] = root.kind, done
	return nil
}

// checker finds the types in an expression.
type checker struct {
	*Program
	query int
	needs []bool // the metrics that it needs
}

func (c *checker) id() string { return c.queries[c.query].ID }

// need records that the expression refers to a query.
func (c *checker) need(query int) {
	c.used[query]++
	c.steps[c.query] = divisor(c.steps[c.query], c.steps[query])
	for _, metric := range c.metrics[query] {
		c.needs[metric] = true
	}
}

func (c *checker) check(n *node) error {
	if n.operation == aCall {
		return c.call(n)
	}
	for _, part := range n.parts {
		if err := c.check(part); err != nil {
			return err
		}
	}
	switch n.operation {
	case aNumber:
		n.kind = scalar
	case anID:
		query, ok := c.byID[n.text]
		if !ok {
			return ErrUnknown.With(c.id(), n.text)
		}
		if err := c.compile(query); err != nil {
			return err
		}
		c.need(query)
		n.kind, n.queries = c.kinds[query], []int{query}
	case anArray:
		n.kind = array
		for _, part := range n.parts {
			if part.kind == scalar {
				return ErrElements.With(c.id())
			}
		}
	case aNegation:
		n.kind = n.parts[0].kind
	case anOperator:
		left, right := n.parts[0].kind, n.parts[1].kind
		if n.kind = max(left, right); n.kind == array && (left == right || !arithmetic(n.text)) {
			return ErrOperands.With(c.id(), n.text)
		}
	default: // words and texts stand in calls alone
		return ErrSyntax.With(c.id())
	}
	return nil
}

func arithmetic(operator string) bool { return strings.Contains("+-*/^", operator) }

// call finds the type of a function's result.
func (c *checker) call(n *node) error {
	f := functions[n.text]
	if len(n.parts) < f.least || len(n.parts) > f.most {
		return ErrArguments.With(c.id(), n.text)
	}
	for i, part := range n.parts {
		if part.operation == aText || part.operation == aWord {
			if f.words == nil || !f.words(i, part) {
				return ErrArguments.With(c.id(), n.text)
			}
			continue
		}
		if err := c.check(part); err != nil {
			return err
		}
	}
	var ok bool
	if n.kind, ok = f.result(n.parts); !ok {
		return ErrArguments.With(c.id(), n.text)
	}
	switch n.text {
	case "METRICS":
		text := ""
		if len(n.parts) > 0 {
			text = n.parts[0].text
		}
		n.queries = c.choose(text)
		for _, metric := range n.queries {
			c.need(metric)
		}
	case "SEARCH":
		return c.search(n)
	case "PERIOD":
		if part := n.parts[0]; part.operation != anID || c.queries[part.queries[0]].Expression != "" {
			return ErrArguments.With(c.id(), n.text)
		}
	}
	return nil
}

// search parses the text of a SEARCH.
func (c *checker) search(n *node) error {
	parsed, ok := search.Parse(n.parts[0].text)
	if !ok {
		return ErrSearch.With(c.id(), search.MaxText)
	}
	if len(c.all) == MaxSearches {
		return ErrSearches.With(c.id(), MaxSearches)
	}
	n.search = &Search{Search: parsed, Query: c.query, Statistic: n.parts[1].text, Period: cmp.Or(c.queries[c.query].Period, fallbackSearchPeriod)}
	if len(n.parts) == 3 {
		n.search.Period = int64(min(n.parts[2].number, maxPeriod))
		if float64(n.search.Period) != n.parts[2].number {
			return ErrArguments.With(c.id(), n.text)
		}
	}
	c.all = append(c.all, n.search)
	c.steps[c.query] = divisor(c.steps[c.query], n.search.Period)
	return nil
}

// maxPeriod is beyond the longest period, in seconds.
const maxPeriod = 1 << 40

// choose returns the metrics with a text in their Ids.
func (p *Program) choose(text string) []int {
	found, ok := p.chosen[text]
	if !ok {
		for i, q := range p.queries {
			if q.Expression == "" && strings.Contains(q.ID, text) {
				found = append(found, i)
			}
		}
		p.chosen[text] = found
	}
	return found
}

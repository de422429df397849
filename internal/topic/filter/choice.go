package filter

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"
)

// fewRules is the number of rules of a key up to which they are checked one after the other.
const fewRules = 8

// choice is an index of many rules of a key, by which a value finds those that it may satisfy,
// so that a message with many values is not checked against each rule.
type choice struct {
	texts, literals, folded map[string]struct{}
	longest                 int      // of the folded texts, in bytes
	prefixes                []string // sorted; none is a prefix of another
	suffixes                []string // sorted by their ends; none is a suffix of another
	numbers                 []span   // sorted and disjoint
	networks                []block  // likewise
	// wildcards and nots are checked one after the other: wildcards after a check of the
	// required bytes; and a value mostly satisfies the first of nots.
	wildcards []pattern
	nots      []rule
	kinds     [nullValue + 1]bool // the kinds of which any value matches
	any       bool                // any value matches
}

// span has the numbers from low to high.
type span struct{ low, high int64 }

// block has the addresses from first to last.
type block struct{ first, last netip.Addr }

// pattern is a wildcard, and properties of every text that matches it.
type pattern struct {
	parts string
	least int    // minimum length in bytes
	bytes uint64 // required bytes; see bytesOf
}

// choose makes a choice of rules.
func choose(rules []rule) *choice {
	c := &choice{}
	for i := range rules {
		c.add(&rules[i])
	}
	c.prefixes = minOf(c.prefixes, strings.Compare, strings.HasPrefix)
	c.suffixes = minOf(c.suffixes, compareEnds, strings.HasSuffix)
	c.numbers = joined(c.numbers, func(a, b span) int { return cmp.Compare(a.low, b.low) }, func(into *span, s span) bool {
		if s.low > into.high {
			return false
		}
		into.high = max(into.high, s.high)
		return true
	})
	c.networks = joined(c.networks, func(a, b block) int { return a.first.Compare(b.first) }, func(into *block, b block) bool {
		if into.last.Less(b.first) {
			return false
		}
		if into.last.Less(b.last) {
			into.last = b.last
		}
		return true
	})
	return c
}

func (c *choice) add(r *rule) {
	note := func(to *map[string]struct{}, text string) {
		if *to == nil {
			*to = map[string]struct{}{}
		}
		(*to)[text] = struct{}{}
	}
	switch r.op {
	case exactString:
		note(&c.texts, r.text)
	case exactLiteral:
		note(&c.literals, r.text)
	case exactNumber:
		c.numbers = append(c.numbers, span{r.number, r.number})
	case numeric:
		if r.number <= r.more.high {
			c.numbers = append(c.numbers, span{r.number, r.more.high})
		}
	case isTrue:
		c.kinds[trueValue] = true
	case isFalse:
		c.kinds[falseValue] = true
	case isNull:
		c.kinds[nullValue] = true
	case prefix:
		c.prefixes = append(c.prefixes, r.text)
	case suffix:
		c.suffixes = append(c.suffixes, r.text)
	case ignoreCase:
		folded := fold(r.text)
		note(&c.folded, folded)
		c.longest = max(c.longest, len(folded))
	case wildcard:
		c.wildcards = append(c.wildcards, patternOf(r.text))
	case cidr:
		c.networks = append(c.networks, block{r.more.network.Addr(), lastOf(r.more.network)})
	case present:
		c.any = true
	case absent: // no value matches
	case notOneOf, notPrefix, notWildcard:
		c.nots = append(c.nots, *r)
	}
}

// matches reports whether a value satisfies any of the rules.
func (c *choice) matches(v value) bool {
	if c.any || c.kinds[v.kind] {
		return true
	}
	switch v.kind {
	case stringValue:
		if c.matchesText(v.text) {
			return true
		}
	case numberValue:
		if c.matchesNumber(v) {
			return true
		}
	case trueValue, falseValue, nullValue:
	}
	return slices.ContainsFunc(c.nots, func(r rule) bool { return r.matches(v) })
}

func (c *choice) matchesNumber(v value) bool {
	if !v.inRange {
		_, ok := c.literals[v.text]
		return ok
	}
	i, found := slices.BinarySearchFunc(c.numbers, v.number, func(s span, n int64) int { return cmp.Compare(s.low, n) })
	return found || i > 0 && v.number <= c.numbers[i-1].high
}

func (c *choice) matchesText(text string) bool {
	if _, ok := c.texts[text]; ok {
		return true
	}
	// Only the last prefix up to the text can match, as no prefix begins with another.
	if i, found := slices.BinarySearch(c.prefixes, text); found || i > 0 && strings.HasPrefix(text, c.prefixes[i-1]) {
		return true
	}
	if i, found := slices.BinarySearchFunc(c.suffixes, text, compareEnds); found || i > 0 && strings.HasSuffix(text, c.suffixes[i-1]) {
		return true
	}
	// A letter has at most UTFMax times the bytes of its folded form.
	if len(c.folded) > 0 && len(text) <= utf8.UTFMax*c.longest {
		if _, ok := c.folded[fold(text)]; ok {
			return true
		}
	}
	if len(c.networks) > 0 {
		if ip, ok := address(text); ok {
			i, found := slices.BinarySearchFunc(c.networks, ip, func(b block, ip netip.Addr) int { return b.first.Compare(ip) })
			if found || i > 0 && !c.networks[i-1].last.Less(ip) {
				return true
			}
		}
	}
	if len(c.wildcards) == 0 {
		return false
	}
	has := bytesOf(text)
	for i := range c.wildcards {
		if w := &c.wildcards[i]; len(text) >= w.least && w.bytes&^has == 0 && glob(w.parts, text) {
			return true
		}
	}
	return false
}

func patternOf(parts string) pattern {
	literal := strings.ReplaceAll(parts, string([]byte{anything}), "")
	return pattern{parts: parts, least: len(literal), bytes: bytesOf(literal)}
}

// bytesOf is the set of the bytes of a text, by their last six bits.
func bytesOf(text string) (set uint64) {
	for _, c := range []byte(text) {
		set |= 1 << (c % 64)
	}
	return set
}

// compareEnds orders texts by their last bytes, then by those before.
func compareEnds(a, b string) int {
	for i, j := len(a)-1, len(b)-1; i >= 0 && j >= 0; i, j = i-1, j-1 {
		if a[i] != b[j] {
			return cmp.Compare(a[i], b[j])
		}
	}
	return cmp.Compare(len(a), len(b))
}

// minOf sorts texts and drops those that have another one as a prefix, or suffix.
func minOf(texts []string, compare func(a, b string) int, has func(text, part string) bool) []string {
	slices.SortFunc(texts, compare)
	n := 0
	for _, text := range texts {
		if n == 0 || !has(text, texts[n-1]) {
			texts[n] = text
			n++
		}
	}
	return slices.Clip(texts[:n])
}

// joined sorts ranges and merges adjacent ones; join merges next into into and reports whether
// it did.
func joined[T any](all []T, compare func(a, b T) int, join func(into *T, next T) bool) []T {
	slices.SortFunc(all, compare)
	n := 0
	for _, next := range all {
		if n == 0 || !join(&all[n-1], next) {
			all[n] = next
			n++
		}
	}
	return slices.Clip(all[:n])
}

// lastOf is the last address of a network.
func lastOf(network netip.Prefix) netip.Addr {
	bytes := network.Addr().AsSlice()
	for i := range bytes {
		for bit := range 8 {
			if 8*i+bit >= network.Bits() {
				bytes[i] |= 0x80 >> bit
			}
		}
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

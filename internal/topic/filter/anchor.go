package filter

import (
	"math/bits"
	"net/netip"
	"slices"
	"strings"
)

// An anchor is a set of spots such that a policy matches only messages with a value at one of
// them at least. A field whose rules all need a value has one; of several fields the cheapest
// anchor is enough. A policy that only requires the absence of values has none.

// spot is a property of a value under a key.
type spot struct {
	path []string
	mark mark
}

// mark is a property of a value that can be looked up.
type mark struct {
	kind  markKind
	level uint8  // of a block; the prefix length of a network
	n     int64  // a number, or the position of a block
	text  string // of a string, or a part of one; the bytes of a network
}

type markKind uint8

const (
	markText    markKind = iota // this string
	markFolded                  // this string, case-insensitive
	markNumber                  // this number
	markLiteral                 // a number with this text
	markTrue
	markFalse
	markNull
	markPrefix  // a string with this prefix
	markSuffix  // a string with this suffix
	markBlock   // a number in a block
	markNetwork // an IP address in a network
	markAny     // any value
	markKinds   // keep last: the number of kinds
)

// affixBytes is how much of a prefix or suffix is looked up: each value under a key is looked
// up once for each length in use there.
const affixBytes = 32

// price is the relative number of messages that find a subscription at a spot in vain.
var price = [markKinds]int{
	markText: 1, markFolded: 1, markNumber: 1, markLiteral: 1, markTrue: 1, markFalse: 1, markNull: 1,
	markPrefix: 2, markSuffix: 2, markNetwork: 2, markBlock: 4, markAny: 32,
}

// marks are marks of which every value that satisfies r has at least one. ok is false if r
// needs no value.
func (r *rule) marks() (marks []mark, ok bool) {
	switch r.op {
	case exactString:
		return []mark{{kind: markText, text: r.text}}, true
	case ignoreCase:
		return []mark{{kind: markFolded, text: fold(r.text)}}, true
	case exactNumber:
		return []mark{{kind: markNumber, n: r.number}}, true
	case exactLiteral:
		return []mark{{kind: markLiteral, text: r.text}}, true
	case isTrue:
		return []mark{{kind: markTrue}}, true
	case isFalse:
		return []mark{{kind: markFalse}}, true
	case isNull:
		return []mark{{kind: markNull}}, true
	case prefix:
		return affix(r.text, ""), true
	case suffix:
		return affix("", r.text), true
	case wildcard:
		return affix(r.text[:strings.IndexByte(r.text, anything)], r.text[strings.LastIndexByte(r.text, anything)+1:]), true
	case numeric:
		return blocks(r.number, r.more.high), true
	case absent:
		return nil, false
	case cidr:
		return []mark{networkMark(r.more.network)}, true
	default: // present, and every anything-but
		return []mark{{kind: markAny}}, true
	}
}

func networkMark(network netip.Prefix) mark {
	return mark{kind: markNetwork, level: uint8(network.Bits()), text: string(network.Addr().AsSlice())}
}

// affix marks strings with this beginning and end, by the one with more bytes to look up.
func affix(begin, end string) []mark {
	switch {
	case begin == "" && end == "":
		return []mark{{kind: markAny}}
	case len(begin) >= min(len(end), affixBytes):
		return []mark{{kind: markPrefix, text: begin[:min(len(begin), affixBytes)]}}
	default:
		return []mark{{kind: markSuffix, text: end[max(0, len(end)-affixBytes):]}}
	}
}

// blocks marks the numbers from low to high by the one or two adjacent blocks that contain them
// all. Blocks have the smallest size, a power of two, for which two suffice. At least half of
// their numbers are in the range.
func blocks(low, high int64) []mark {
	if low > high { // it matches nothing
		return nil
	}
	first, last := position(low), position(high)
	level := 0
	for last>>level-first>>level > 1 {
		level++
	}
	marks := []mark{blockOf(first, level)}
	if first>>level != last>>level {
		marks = append(marks, blockOf(last, level))
	}
	return marks
}

func blockOf(position uint64, level int) mark {
	return mark{kind: markBlock, level: uint8(level), n: int64(position >> level)}
}

// position numbers the numbers from −10⁹ on.
func position(number int64) uint64 { return uint64(number + maxNumber) }

// anchor is a set of spots, and its cost.
type anchor struct {
	spots []spot
	cost  int
}

// anchorOf is the cheapest anchor of o at a path; ok is false if there is none. cost is the
// cost of one more subscription at a spot.
func anchorOf(o *object, path []string, cost func(spot) int) (best anchor, ok bool) {
	consider := func(a anchor, there bool) {
		if there && (!ok || a.cost < best.cost) {
			best, ok = a, true
		}
	}
	for i := range o.fields {
		f := &o.fields[i]
		under := append(slices.Clip(path), f.key)
		if f.nested != nil {
			consider(anchorOf(f.nested, under, cost))
			continue
		}
		consider(anchorOfRules(f.rules, under, cost))
	}
	for _, or := range o.ors {
		consider(anchorOfOr(or, path, cost))
	}
	return best, ok
}

func anchorOfRules(rules []rule, path []string, cost func(spot) int) (a anchor, ok bool) {
	for i := range rules {
		marks, ok := rules[i].marks()
		if !ok {
			return anchor{}, false
		}
		for _, m := range marks {
			s := spot{path, m}
			a.spots = append(a.spots, s)
			a.cost += cost(s)
		}
	}
	return a, true
}

// anchorOfOr joins the anchors of the objects, as any of them may match.
func anchorOfOr(or []object, path []string, cost func(spot) int) (all anchor, ok bool) {
	for i := range or {
		a, ok := anchorOf(&or[i], path, cost)
		if !ok {
			return anchor{}, false
		}
		all.spots = append(all.spots, a.spots...)
		all.cost += a.cost
	}
	return all, true
}

// everySpot calls visit for the spots of all possible anchors of o.
func everySpot(o *object, path []string, visit func(spot)) {
	for i := range o.fields {
		f := &o.fields[i]
		under := append(slices.Clip(path), f.key)
		if f.nested != nil {
			everySpot(f.nested, under, visit)
			continue
		}
		for j := range f.rules {
			marks, _ := f.rules[j].marks()
			for _, m := range marks {
				visit(spot{under, m})
			}
		}
	}
	for _, or := range o.ors {
		for i := range or {
			everySpot(&or[i], path, visit)
		}
	}
}

// marksOf calls visit for the marks of v, of the kinds, sizes and levels that are in use.
func marksOf(v value, in *uses, visit func(mark)) {
	if in.has(markAny) {
		visit(mark{kind: markAny})
	}
	switch v.kind {
	case stringValue:
		textMarks(v.text, in, visit)
	case numberValue:
		if !v.inRange {
			visit(mark{kind: markLiteral, text: v.text})
			return
		}
		visit(mark{kind: markNumber, n: v.number})
		for levels := in.levels; levels != 0; levels &= levels - 1 {
			visit(blockOf(position(v.number), bits.TrailingZeros64(levels)))
		}
	case trueValue:
		visit(mark{kind: markTrue})
	case falseValue:
		visit(mark{kind: markFalse})
	case nullValue:
		visit(mark{kind: markNull})
	}
}

func textMarks(text string, in *uses, visit func(mark)) {
	if in.has(markText) {
		visit(mark{kind: markText, text: text})
	}
	if in.has(markFolded) {
		visit(mark{kind: markFolded, text: fold(text)})
	}
	if in.has(markNetwork) {
		networkMarks(text, in, visit)
	}
	for sizes := in.prefixes; sizes != 0; sizes &= sizes - 1 {
		if n := bits.TrailingZeros64(sizes); n <= len(text) {
			visit(mark{kind: markPrefix, text: text[:n]})
		}
	}
	for sizes := in.suffixes; sizes != 0; sizes &= sizes - 1 {
		if n := bits.TrailingZeros64(sizes); n <= len(text) {
			visit(mark{kind: markSuffix, text: text[len(text)-n:]})
		}
	}
}

func networkMarks(text string, in *uses, visit func(mark)) {
	ip, ok := address(text)
	if !ok {
		return
	}
	for half, lengths := range in.networks {
		for ; lengths != 0; lengths &= lengths - 1 {
			if network, err := ip.Prefix(64*half + bits.TrailingZeros64(lengths)); err == nil {
				visit(networkMark(network))
			}
		}
	}
}

// uses says which marks are in use under a key.
type uses struct {
	kinds              uint16
	prefixes, suffixes uint64 // bit sets of lengths
	levels             uint64
	networks           [2]uint64 // bit set of prefix lengths
}

func (u *uses) has(k markKind) bool { return u.kinds&(1<<k) != 0 }

func (u *uses) add(m mark) {
	u.kinds |= 1 << m.kind
	switch m.kind {
	case markPrefix:
		u.prefixes |= 1 << len(m.text)
	case markSuffix:
		u.suffixes |= 1 << len(m.text)
	case markBlock:
		u.levels |= 1 << m.level
	case markNetwork:
		u.networks[m.level/64] |= 1 << (m.level % 64)
	default:
	}
}

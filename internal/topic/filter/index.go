package filter

import (
	"iter"
	"slices"
	"strings"
)

// Index finds, among many subscriptions, those whose policies a message may match, at a cost
// that grows with these and hardly with the rest.
//
// Each subscription is listed at the spots of one anchor of its policy: values of one key,
// strings with a common prefix or suffix, ranges of numbers, networks. If the policy has
// several anchors, the one with the fewest other subscriptions is used. Policies with only
// exists true or anything-but are found by their key alone; a policy that needs no value at all
// (exists false alone), or that is empty or nil, is found by every message.
//
// H identifies a subscription. An Index is not safe for concurrent use.
type Index[H any] struct {
	compare func(a, b H) int
	// always are the subscriptions without an anchor.
	always []H
	keys   [scopes]key
	lists  map[place]*list[H]
	round  uint64 // counts searches
}

// key is a key in policies, and the keys under it.
type key struct {
	uses
	members map[string]*key
	spots   int // how many lists there are at this key
}

type place struct {
	key *key
	mark
}

// list has the subscriptions at a place, in order.
type list[H any] struct {
	items []H
	round uint64 // the last search that found it
}

// NewIndex makes an empty index of subscriptions that compare orders.
func NewIndex[H any](compare func(a, b H) int) *Index[H] {
	return &Index[H]{compare: compare, lists: map[place]*list[H]{}}
}

// Add adds a subscription, which must not be in the index, with its policy, which may be nil.
func (x *Index[H]) Add(h H, p *Policy) {
	a, ok := x.anchor(p)
	if !ok {
		x.always = x.insert(x.always, h)
		return
	}
	for _, s := range a.spots {
		at := place{x.keys[p.scope].ensure(s.path), s.mark}
		l, there := x.lists[at]
		if !there {
			l = &list[H]{}
			x.lists[at] = l
			at.key.spots++
			at.key.add(at.mark)
		}
		l.items = x.insert(l.items, h)
	}
}

// Remove removes a subscription. p is the policy with which it was added.
func (x *Index[H]) Remove(h H, p *Policy) {
	x.always = x.drop(x.always, h)
	if p == nil {
		return
	}
	everySpot(p.root(), nil, func(s spot) {
		k := x.keys[p.scope].find(s.path)
		if k == nil {
			return
		}
		at := place{k, s.mark}
		l, ok := x.lists[at]
		if !ok {
			return
		}
		if l.items = x.drop(l.items, h); len(l.items) == 0 {
			delete(x.lists, at)
			k.spots--
			x.keys[p.scope].prune(s.path)
		}
	})
}

// Match yields the subscriptions whose policies m may match: all matching ones and few others,
// so that each must be checked. They come in order, each once, beginning with the first for
// which behind is false; behind must be true for a prefix of the order, and may be nil. The
// index must not change during the iteration.
func (x *Index[H]) Match(m *Message, behind func(H) bool) iter.Seq[H] {
	return func(yield func(H) bool) {
		merge := x.matchingLists(m, behind)
		switch len(merge.heads) {
		case 0:
		case 1:
			for _, h := range merge.heads[0] {
				if !yield(h) {
					return
				}
			}
		default:
			merge.run(yield)
		}
	}
}

func (x *Index[H]) anchor(p *Policy) (anchor, bool) {
	if p == nil {
		return anchor{}, false
	}
	return anchorOf(p.root(), nil, func(s spot) int {
		return price[s.mark.kind] * (1 + x.size(p.scope, s))
	})
}

// size is how many subscriptions there are at a spot.
func (x *Index[H]) size(scope Scope, s spot) int {
	k := x.keys[scope].find(s.path)
	if k == nil {
		return 0
	}
	l, ok := x.lists[place{k, s.mark}]
	if !ok {
		return 0
	}
	return len(l.items)
}

func (x *Index[H]) insert(items []H, h H) []H {
	if n := len(items); n == 0 || x.compare(items[n-1], h) < 0 {
		return append(items, h)
	}
	i, found := slices.BinarySearchFunc(items, h, x.compare)
	if found {
		return items
	}
	return slices.Insert(items, i, h)
}

func (x *Index[H]) drop(items []H, h H) []H {
	if i, found := slices.BinarySearchFunc(items, h, x.compare); found {
		return slices.Delete(items, i, i+1)
	}
	return items
}

// matchingLists finds the lists of m's spots, beginning after behind.
func (x *Index[H]) matchingLists(m *Message, behind func(H) bool) merge[H] {
	x.round++
	out := merge[H]{compare: x.compare}
	take := func(items []H) {
		if behind != nil {
			first, _ := slices.BinarySearchFunc(items, struct{}{}, func(h H, _ struct{}) int {
				if behind(h) {
					return -1
				}
				return 0
			})
			items = items[first:]
		}
		if len(items) > 0 {
			out.heads = append(out.heads, items)
		}
	}
	take(x.always)
	if len(x.lists) == 0 {
		return out
	}
	look := func(k *key, v value) {
		marksOf(v, &k.uses, func(mk mark) {
			// A body may contain a value any number of times.
			if l, ok := x.lists[place{k, mk}]; ok && l.round != x.round {
				l.round = x.round
				take(l.items)
			}
		})
	}
	attributes, body := &x.keys[MessageAttributes], &x.keys[MessageBody]
	if len(attributes.members) > 0 {
		for i := range m.attributes {
			a := &m.attributes[i]
			k, ok := attributes.members[a.Name]
			if !ok {
				continue
			}
			a.parse()
			for _, v := range a.values {
				look(k, v)
			}
		}
	}
	if len(body.members) > 0 {
		if content, ok := m.content(); ok {
			body.walk(m, content, look)
		}
	}
	return out
}

// walk calls look for the scalars of a part of a body under the keys that policies have.
func (k *key) walk(m *Message, v any, look func(*key, value)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range m.dots.of(v) {
			if member := k.down(name); member != nil {
				member.walk(m, v[name], look)
			}
		}
		if len(k.members) < len(v) {
			for name, member := range k.members {
				if child, ok := v[name]; ok {
					member.walk(m, child, look)
				}
			}
			return
		}
		for name, child := range v {
			if member, ok := k.members[name]; ok {
				member.walk(m, child, look)
			}
		}
	case []any:
		for _, e := range v {
			k.walk(m, e, look)
		}
	default:
		if k.spots > 0 {
			look(k, scalar(v))
		}
	}
}

// down is the key at a path whose names are joined by dots; nil if no subscription has it.
func (k *key) down(path string) *key {
	for name := range strings.SplitSeq(path, ".") {
		if k = k.members[name]; k == nil {
			return nil
		}
	}
	return k
}

// find is the key at a path; nil if no subscription has it.
func (k *key) find(path []string) *key {
	for _, name := range path {
		next, ok := k.members[name]
		if !ok {
			return nil
		}
		k = next
	}
	return k
}

// ensure is the key at a path, which it makes if there is none.
func (k *key) ensure(path []string) *key {
	for _, name := range path {
		next, ok := k.members[name]
		if !ok {
			next = &key{}
			if k.members == nil {
				k.members = map[string]*key{}
			}
			k.members[name] = next
		}
		k = next
	}
	return k
}

// prune removes the keys along a path that are unused now.
func (k *key) prune(path []string) {
	if len(path) == 0 {
		return
	}
	next, ok := k.members[path[0]]
	if !ok {
		return
	}
	next.prune(path[1:])
	if next.spots == 0 && len(next.members) == 0 {
		delete(k.members, path[0])
	}
}

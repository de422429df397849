package overlay

import (
	"bytes"

	"github.com/tidwall/btree"

	"godwit.dev/godwit/internal/store"
)

// iterator merges the uncommitted writes with the committed store.
type iterator struct {
	over         btree.IterG[item]
	hasOver      bool // there is a tree to walk
	base         store.Iterator
	tombstones   rangeTombstones
	lower, upper []byte

	started       bool
	overOn        bool // over stands on a key of the range, at
	baseOn        bool // base stands on one
	at            item
	overKey, both bool // where the iterator stands: on over's key; also on base's
}

func newIterator(t *tree, ts rangeTombstones, base store.Iterator, lower, upper []byte) *iterator {
	i := &iterator{base: base, tombstones: ts, lower: bytes.Clone(lower), upper: bytes.Clone(upper)}
	if t != nil {
		i.over, i.hasOver = t.Iter(), true
	}
	return i
}

// Next implements store.Iterator.
func (i *iterator) Next() bool {
	if !i.started {
		i.started = true
		i.overOn = i.hasOver && i.inRange(i.over.Seek(item{key: i.lower}))
		i.baseOn = i.base.Next()
	} else {
		i.step()
	}
	return i.seekLive()
}

// step advances those of the two iterators that are on the current key.
func (i *iterator) step() {
	over, base := i.overKey && i.overOn, (!i.overKey || i.both) && i.baseOn
	if over {
		i.overOn = i.inRange(i.over.Next())
	}
	if base {
		i.baseOn = i.base.Next()
	}
}

func (i *iterator) inRange(more bool) bool {
	if !more {
		return false
	}
	i.at = i.over.Item()
	return (i.upper == nil || bytes.Compare(i.at.key, i.upper) < 0) && bytes.Compare(i.at.key, i.lower) >= 0
}

// seekLive finds the first key that is there, from where both stand upwards.
func (i *iterator) seekLive() bool {
	for i.overOn || i.baseOn {
		i.stand(-1)
		switch {
		case i.overKey && !i.at.deleted:
			return true
		case i.overKey:
			i.step()
		default:
			end := i.tombstones.end(i.base.Key())
			if end == nil {
				return true
			}
			i.baseOn = i.base.Seek(bytes.Clone(end))
		}
	}
	i.overKey, i.both = false, false
	return false
}

// stand chooses the iterator whose key comes first in a direction: -1 is ascending.
func (i *iterator) stand(direction int) {
	switch {
	case !i.overOn:
		i.overKey, i.both = false, false
	case !i.baseOn:
		i.overKey, i.both = true, false
	default:
		c := bytes.Compare(i.at.key, i.base.Key())
		i.overKey, i.both = c == 0 || c == direction, c == 0
	}
}

// Seek implements store.Iterator.
func (i *iterator) Seek(key []byte) bool {
	i.started = true
	from := key
	if bytes.Compare(from, i.lower) < 0 {
		from = i.lower
	}
	i.overOn = i.hasOver && i.inRange(i.over.Seek(item{key: from}))
	i.baseOn = i.base.Seek(key)
	return i.seekLive()
}

// Prev implements store.Iterator.
func (i *iterator) Prev() bool {
	if !i.started {
		i.started = true
		i.overOn = i.hasOver && i.last()
		i.baseOn = i.base.Prev()
	} else {
		i.stepDown()
	}
	for i.overOn || i.baseOn {
		i.stand(1)
		switch {
		case i.overKey && !i.at.deleted:
			return true
		case !i.overKey && i.tombstones.end(i.base.Key()) == nil:
			return true
		}
		i.stepDown()
	}
	i.overKey, i.both = false, false
	return false
}

func (i *iterator) last() bool {
	if i.upper == nil || !i.over.Seek(item{key: i.upper}) {
		return i.inRange(i.over.Last())
	}
	return i.inRange(i.over.Prev())
}

func (i *iterator) stepDown() {
	over, base := i.overKey && i.overOn, (!i.overKey || i.both) && i.baseOn
	if over {
		i.overOn = i.inRange(i.over.Prev())
	}
	if base {
		i.baseOn = i.base.Prev()
	}
}

// Key implements store.Iterator.
func (i *iterator) Key() []byte {
	if i.overKey {
		return i.at.key
	}
	return i.base.Key()
}

// Value implements store.Iterator.
func (i *iterator) Value() []byte {
	if i.overKey {
		return i.at.value
	}
	return i.base.Value()
}

// Close implements store.Iterator.
func (i *iterator) Close() error {
	if i.hasOver {
		i.over.Release()
	}
	return i.base.Close()
}

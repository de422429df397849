package storetest

import (
	"sync/atomic"

	"godwit.dev/godwit/internal/store"
)

// Counting is a store that counts the keys that are read, except in snapshots.
type Counting struct {
	store.Store
	Looks atomic.Int64
}

// Get implements store.Reader.
func (c *Counting) Get(dst, key []byte) ([]byte, bool, error) {
	c.Looks.Add(1)
	return c.Store.Get(dst, key)
}

// Iter implements store.Reader.
func (c *Counting) Iter(lower, upper []byte) (store.Iterator, error) {
	it, err := c.Store.Iter(lower, upper)
	return countingIterator{it, c}, err
}

type countingIterator struct {
	store.Iterator
	of *Counting
}

func (i countingIterator) Next() bool { i.of.Looks.Add(1); return i.Iterator.Next() }

func (i countingIterator) Prev() bool { i.of.Looks.Add(1); return i.Iterator.Prev() }

func (i countingIterator) Seek(key []byte) bool { i.of.Looks.Add(1); return i.Iterator.Seek(key) }

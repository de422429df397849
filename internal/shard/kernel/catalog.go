package kernel

import (
	"bytes"
	"container/heap"
	"context"
	"slices"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/store"
)

// MergeNames merges the names under a prefix of each shard's keys: it calls f with the names
// that begin with begins and follow after, in ascending order over all shards, until f returns
// false. Its cost grows with the shards and the names visited, not with the size of the
// catalog. The names that it visited are durable when it returns. Errors: the store's.
func (k *Kernel) MergeNames(prefix func(shard uint16) []byte, begins, after string, f func(name string, value []byte) bool) error {
	var heads nameHeap
	defer func() {
		for _, h := range heads {
			_ = h.it.Close() // the iteration ended early, by choice or by another error
		}
		for _, sh := range k.All {
			sh.AwaitCatalog()
		}
	}()
	for _, sh := range k.All {
		p := prefix(sh.ID)
		span := keyspace.Prefix(append(bytes.Clone(p), begins...))
		if after >= begins {
			if from := append(append(bytes.Clone(p), after...), 0); bytes.Compare(from, span.Lower) > 0 {
				span.Lower = from
			}
		}
		if bytes.Compare(span.Lower, span.Upper) >= 0 {
			continue
		}
		it, err := k.Store.Iter(span.Lower, span.Upper)
		if err != nil {
			return err
		}
		h := &nameHead{it: it, skip: len(p)}
		if !h.next() {
			if err := it.Close(); err != nil {
				return err
			}
			continue
		}
		heads = append(heads, h)
	}
	heap.Init(&heads)
	for len(heads) > 0 {
		h := heads[0]
		if !f(h.name, h.it.Value()) {
			return nil
		}
		if h.next() {
			heap.Fix(&heads, 0)
			continue
		}
		heap.Pop(&heads)
		if err := h.it.Close(); err != nil {
			return err
		}
	}
	return nil
}

// nameHead is the current name of one shard's iterator.
type nameHead struct {
	it   store.Iterator
	skip int
	name string
}

func (h *nameHead) next() bool {
	if !h.it.Next() {
		return false
	}
	h.name = string(h.it.Key()[h.skip:])
	return true
}

type nameHeap []*nameHead

func (h nameHeap) Len() int           { return len(h) }
func (h nameHeap) Less(i, j int) bool { return h[i].name < h[j].name }
func (h nameHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *nameHeap) Push(x any)        { *h = append(*h, x.(*nameHead)) }

func (h *nameHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// change runs f for commands that change the catalog: the set of queues, topics and
// functions. It returns once all that f read and changed is durable.
func (sh *Shard) change(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return sh.RunDurable(func(tx *Tx) error {
		err := f()
		changed := sh.Batch.Len() > 0
		c := tx.Append()
		if c != nil && changed {
			sh.CatalogChanged(c)
		}
		if c == nil {
			c = sh.LastCatalogCommit
		}
		tx.DependOn(c)
		return err
	})
}

// CatalogChanged notes the commit that changed the catalog.
func (sh *Shard) CatalogChanged(c *journal.Commit) {
	sh.LastCatalogCommit = c
	sh.Generation.Add(1)
}

// MergePages merges a page of each shard into one of up to limit items, in the order of
// compare; more says that others follow. The items are durable. Errors: ctx's.
func MergePages[T any, S Part](ctx context.Context, shards *[Shards]S, limit int, compare func(a, b T) int, page func(sh S) ([]T, bool)) ([]T, bool, error) {
	var all []T
	more := false
	for _, s := range shards {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		sh := s.Base()
		sh.View(func() {
			items, rest := page(s)
			all = append(all, items...)
			more = more || rest
		})
		sh.AwaitCatalog()
	}
	slices.SortFunc(all, compare)
	if len(all) > limit {
		all, more = all[:limit], true
	}
	return all, more, nil
}

// AwaitCatalog returns once the latest change of the catalog is durable.
func (sh *Shard) AwaitCatalog() {
	var c *journal.Commit
	sh.View(func() { c = sh.LastCatalogCommit })
	c.Wait()
}

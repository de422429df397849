package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"godwit.dev/godwit/internal/keyspace"
)

// ErrStop is what a callback returns to end the walk that calls it without an error.
var ErrStop = errors.New("store: no more keys are wanted")

// Each calls f for the keys of a span, in ascending order. Key and value are valid during the
// call. An error of f ends it. Errors: f's but for ErrStop, and the store's.
func Each(r Reader, span keyspace.Span, f func(key, value []byte) error) error {
	it, err := r.Iter(span.Lower, span.Upper)
	if err != nil {
		return err
	}
	for err == nil && it.Next() {
		err = f(it.Key(), it.Value())
	}
	return closed(it, err)
}

// EachOf is Each for a span in which all records are of one kind; k is valid during the call. Errors:
// f's but for ErrStop, with the kind and the key of the record; keyspace.ErrKey for a key that is
// not of the kind; and the store's.
func EachOf(r Reader, kind keyspace.ID, span keyspace.Span, f func(k *keyspace.Key, value []byte) error) error {
	return eachParsed(r, span, func(key []byte) (keyspace.Key, error) { return keyspace.ParseAs(kind, key) }, f)
}

// EachParsed is EachOf for a span with records of several kinds: its error for a key of none is
// keyspace.ErrUnknown.
func EachParsed(r Reader, span keyspace.Span, f func(k *keyspace.Key, value []byte) error) error {
	return eachParsed(r, span, keyspace.Parse, f)
}

func eachParsed(r Reader, span keyspace.Span, parse func([]byte) (keyspace.Key, error), f func(k *keyspace.Key, value []byte) error) error {
	var k keyspace.Key // once for all, as f may keep it in the heap
	return Each(r, span, func(key, value []byte) (err error) {
		if k, err = parse(key); err != nil {
			return err
		}
		if err = f(&k, value); err != nil && !errors.Is(err, ErrStop) {
			err = fmt.Errorf("%s: %q: %w", k.Kind().Name, key, err)
		}
		return err
	})
}

// EachDown is Each in descending order.
func EachDown(r Reader, span keyspace.Span, f func(key, value []byte) error) error {
	it, err := r.Iter(span.Lower, span.Upper)
	if err != nil {
		return err
	}
	for err == nil && it.Prev() {
		err = f(it.Key(), it.Value())
	}
	return closed(it, err)
}

// closed closes the iterator of a walk that has ended with f's error, or without one.
func closed(it Iterator, err error) error {
	failure := it.Close()
	switch {
	case err == nil || errors.Is(err, ErrStop):
		return failure
	case failure == nil:
		return err
	}
	return errors.Join(err, failure)
}

// farApart is the number of keys for which GetEach uses only Seek after a Next has not found
// the key.
const farApart = 8

// GetEach calls f with the value of each existing key of keys and the key's index, in ascending
// order of the keys. The value is valid during the call; that of a single key may be kept. It
// uses one iterator, which for adjacent uncached keys costs a fraction of a Get for each, or
// Gets for keys of many ranges, which a store finds by filters. An error of f ends it. Errors:
// f's but for ErrStop, and the store's.
func GetEach(r Reader, keys [][]byte, f func(i int, value []byte) error) error {
	order := make([]int, 0, 16) // on the stack, for what one receive reads
	for i := range keys {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	if len(keys) < 2 || scattered(keys, order) {
		return getEach(r, keys, order, f)
	}
	first, last := keys[order[0]], keys[order[len(order)-1]]
	it, err := r.Iter(first, append(bytes.Clone(last), 0))
	if err != nil {
		return err
	}
	found, apart := it.Seek(first), 0
	for _, i := range order {
		if apart == 0 && found && bytes.Compare(it.Key(), keys[i]) < 0 {
			found = it.Next() // to a neighbour, at a fraction of a Seek
			if found && bytes.Compare(it.Key(), keys[i]) < 0 {
				apart = farApart
			}
		}
		if found && bytes.Compare(it.Key(), keys[i]) < 0 {
			found = it.Seek(keys[i])
			apart--
		}
		if !found {
			break
		}
		if !bytes.Equal(it.Key(), keys[i]) {
			continue
		}
		if err := f(i, it.Value()); err != nil {
			return closed(it, err)
		}
	}
	return it.Close()
}

// scattered reports whether most of the ordered keys are of other ranges than their neighbours. A
// range is what begins alike and ends with a number, as the messages of a group do.
func scattered(keys [][]byte, order []int) bool {
	ranges := 1
	for i, at := range order[1:] {
		a, b := keys[order[i]], keys[at]
		if n := max(0, len(a)-8); len(a) != len(b) || !bytes.Equal(a[:n], b[:n]) {
			ranges++
		}
	}
	return 2*ranges > len(order)
}

func getEach(r Reader, keys [][]byte, order []int, f func(i int, value []byte) error) error {
	for _, i := range order {
		value, ok, err := r.Get(nil, keys[i])
		if ok && err == nil {
			err = f(i, value)
		}
		switch {
		case errors.Is(err, ErrStop):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

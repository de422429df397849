// Package mutation encodes the changes of state machines: ordered batches of writes to an
// ordered key space. A machine appends to a Batch, a store applies it, a log frames and replays
// it.
//
// Invariants: a batch is applied whole or not at all; its writes take effect in order;
// SingleDelete is used only for a key that was Set exactly once since it last did not exist.
package mutation

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Op is one kind of write.
type Op byte

// The kinds of write. The numbers, and the whole encoding, are those of Pebble's batches, so
// that the store on disk accepts a batch as it is.
const (
	Delete       Op = 0  // key
	Set          Op = 1  // key, value
	SingleDelete Op = 7  // key, which was set exactly once
	DeleteRange  Op = 15 // [key, value): the value is the exclusive end
)

// ErrCorrupt reports bytes that are not an encoded batch, framed or not.
var ErrCorrupt = errors.New("mutation: corrupt encoding")

// Batch is an ordered list of writes in one buffer. The zero value is empty
// and ready to use.
type Batch struct {
	buf     []byte
	count   int
	deletes int // of these, Delete and SingleDelete
	ranges  int // of these, DeleteRange
}

// Set writes value at key.
func (b *Batch) Set(key, value []byte) {
	b.add(Set, key)
	b.bytes(value)
}

// SetEncoded is Set of the value that encode appends to the batch's own memory, of
// approximately the given size in bytes. It returns the size.
func (b *Batch) SetEncoded(key []byte, about int, encode func(buf []byte) []byte) (size int) {
	b.add(Set, key)
	at := len(b.buf)
	b.buf = binary.AppendUvarint(b.buf, uint64(about))
	begin := len(b.buf)
	b.buf = encode(b.buf)
	size = len(b.buf) - begin
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(size))
	if at+n != begin { // the length takes more or fewer bytes than estimated
		b.buf = slices.Replace(b.buf, at, begin, length[:n]...)
	} else {
		copy(b.buf[at:], length[:n])
	}
	return size
}

// Delete removes key, whether it exists or not.
func (b *Batch) Delete(key []byte) {
	b.deletes++
	b.add(Delete, key)
}

// SingleDelete removes a key that was Set exactly once since it last did not
// exist. It is cheaper than Delete: the two cancel out before they reach disk.
func (b *Batch) SingleDelete(key []byte) {
	b.deletes++
	b.add(SingleDelete, key)
}

// DeleteRange removes every key in [start, end).
func (b *Batch) DeleteRange(start, end []byte) {
	b.ranges++
	b.add(DeleteRange, start)
	b.bytes(end)
}

// Append adds all writes of other after those of b.
func (b *Batch) Append(other *Batch) {
	b.buf = append(b.buf, other.buf...)
	b.count += other.count
	b.deletes += other.deletes
	b.ranges += other.ranges
}

// Overwrite replaces a value that was Set by another one of the same length: the last bytes of
// the batch when that had the given Size.
func (b *Batch) Overwrite(size int, value []byte) { copy(b.buf[size-len(value):size], value) }

// AppendTo appends the encoded writes to buf: for each its Op, and its key and value, if it has
// one, each after its length as a varint.
func (b *Batch) AppendTo(buf []byte) []byte { return append(buf, b.buf...) }

// Ranges reports whether a DeleteRange is among the writes.
func (b *Batch) Ranges() bool { return b.ranges > 0 }

// Deletes is the number of Delete and SingleDelete among the writes.
func (b *Batch) Deletes() int { return b.deletes }

// Len is the number of writes.
func (b *Batch) Len() int { return b.count }

// Size is the size of the encoded writes, in bytes.
func (b *Batch) Size() int { return len(b.buf) }

// Available is how many more bytes of encoded writes fit before the batch allocates.
func (b *Batch) Available() int { return cap(b.buf) - len(b.buf) }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() { b.buf, b.count, b.deletes, b.ranges = b.buf[:0], 0, 0, 0 }

// Each calls f for every write in order, until f fails, and returns f's error.
// The slices alias the batch; value is the value of a Set, the exclusive end of
// a DeleteRange, and nil otherwise.
func (b *Batch) Each(f func(op Op, key, value []byte) error) error { return each(b.buf, f) }

// EachEncoded is Each with every write as AppendTo encodes it.
func (b *Batch) EachEncoded(f func(write []byte) error) error {
	for buf := b.buf; len(buf) > 0; {
		_, _, _, rest, err := first(buf)
		if err != nil {
			return err
		}
		if err := f(buf[:len(buf)-len(rest)]); err != nil {
			return err
		}
		buf = rest
	}
	return nil
}

func (b *Batch) add(op Op, key []byte) {
	b.count++
	b.buf = append(b.buf, byte(op))
	b.bytes(key)
}

func (b *Batch) bytes(p []byte) {
	b.buf = binary.AppendUvarint(b.buf, uint64(len(p)))
	b.buf = append(b.buf, p...)
}

func each(buf []byte, f func(op Op, key, value []byte) error) error {
	for len(buf) > 0 {
		op, key, value, rest, err := first(buf)
		if err != nil {
			return err
		}
		if err := f(op, key, value); err != nil {
			return err
		}
		buf = rest
	}
	return nil
}

// first decodes the first of encoded writes.
func first(buf []byte) (op Op, key, value, rest []byte, err error) {
	op = Op(buf[0])
	if key, rest, err = take(buf[1:]); err != nil {
		return 0, nil, nil, nil, err
	}
	switch op {
	case Set, DeleteRange:
		if value, rest, err = take(rest); err != nil {
			return 0, nil, nil, nil, err
		}
	case Delete, SingleDelete:
	default:
		return 0, nil, nil, nil, fmt.Errorf("%w: unknown write %d", ErrCorrupt, op)
	}
	return op, key, value, rest, nil
}

func take(buf []byte) (p, rest []byte, err error) {
	n, w := binary.Uvarint(buf)
	if w <= 0 || n > uint64(len(buf)-w) {
		return nil, nil, ErrCorrupt
	}
	buf = buf[w:]
	return buf[:n:n], buf[n:], nil
}

package memory

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/mutation"
)

// checkpointFile holds a store: a sequence of framed batches that set its keys in order, numbered from
// 1, each after its length in four big-endian bytes. The last one is empty, so that a truncated
// file is detected.
const checkpointFile = "store"

// flushAt is the size of writes at which a framed batch is closed; the rest up to
// MaxFramedBatch is enough for the largest message and its neighbours.
const flushAt = 1 << 20

// Checkpoint implements store.Store; Open reads it.
func (s *Store) Checkpoint(dir string) error {
	t, err := s.view()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := os.Mkdir(dir, 0o750); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	f, err := os.Create(filepath.Join(dir, checkpointFile))
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	w := bufio.NewWriter(f)
	err = write(w, t)
	if err = errors.Join(err, w.Flush(), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return nil
}

func write(w io.Writer, t *tree) error {
	b := mutation.FramedBatch{Sequence: 1}
	var buf []byte
	seal := func() error {
		buf = b.AppendTo(append(buf[:0], 0, 0, 0, 0))
		binary.BigEndian.PutUint32(buf, uint32(len(buf)-4))
		b.Sequence++
		b.Batch.Reset()
		_, err := w.Write(buf)
		return err
	}
	var err error
	t.Scan(func(i item) bool {
		b.Batch.Set(i.key, i.value)
		if b.Batch.Size() >= flushAt {
			err = seal()
		}
		return err == nil
	})
	if err == nil && b.Batch.Len() > 0 {
		err = seal()
	}
	if err != nil {
		return err
	}
	return seal()
}

// Open makes a store from a checkpoint in dir. It fails with mutation.ErrCorrupt if that is
// damaged or truncated.
func Open(dir string) (*Store, error) {
	f, err := os.Open(filepath.Join(dir, checkpointFile))
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	s := New()
	if err := load(bufio.NewReader(f), s.tree); err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return s, nil
}

func load(r io.Reader, t *tree) error {
	for sequence := uint64(1); ; sequence++ {
		var size [4]byte
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return fmt.Errorf("%w: framed batch %d: %w", mutation.ErrCorrupt, sequence, err)
		}
		n := binary.BigEndian.Uint32(size[:])
		if n > mutation.MaxFramedBatch {
			return fmt.Errorf("%w: framed batch %d of %d bytes", mutation.ErrCorrupt, sequence, n)
		}
		buf := make([]byte, n)
		if _, err := io.ReadFull(r, buf); err != nil {
			return fmt.Errorf("%w: framed batch %d: %w", mutation.ErrCorrupt, sequence, err)
		}
		b, err := mutation.DecodeFramedBatch(buf)
		if err != nil {
			return err
		}
		if b.Sequence != sequence {
			return fmt.Errorf("%w: framed batch %d stands at %d", mutation.ErrCorrupt, b.Sequence, sequence)
		}
		if b.Batch.Len() == 0 {
			return nil
		}
		err = b.Batch.Each(func(op mutation.Op, key, value []byte) error { return apply(t, op, key, value) })
		if err != nil {
			return err
		}
	}
}

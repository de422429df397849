package pebble

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/store/pebble/badblocks"
	"godwit.dev/godwit/internal/store/pebble/files"
)

// A repair that Close ends reads no further table, also where those that it reads are damaged
// themselves, so that it learns of nothing in them.
func TestRepairEndsBeforeTheNextTable(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open("data", Options{FS: fs, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	const number = 999
	f, err := fs.Create(fs.PathJoin("data", files.TableName(number)), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, "no table"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	look := func() error {
		return s.candidates(&files.Version{}, &files.Table{File: number}, badblocks.Span{Last: []byte("z")}, func(files.Write) error { return nil })
	}
	if err := look(); err != nil {
		t.Errorf("in a damaged table: %v", err)
	}
	s.repairs.stop()
	if err := look(); !errors.Is(err, context.Canceled) {
		t.Errorf("once the repairs are stopped: %v", err)
	}
}

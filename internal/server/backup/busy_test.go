package backup_test

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/server/backup"
)

// Of two backups into one directory, or two restores, the second is refused and changes nothing.
func TestTwoAtOnce(t *testing.T) {
	w := start(t, filepath.Join(t.TempDir(), "data"))
	url := w.queue("orders")
	w.send(url, "hello")
	dir := filepath.Join(t.TempDir(), "backup")
	m := w.making(dir)
	refused := 0
	m.Progress = func(int64, int64) {
		if _, _, err := w.making(dir).Run(t.Context()); errors.Is(err, backup.ErrBusy) {
			refused++
		} else {
			t.Errorf("a second backup: %v", err)
		}
	}
	if _, whole, err := m.Run(t.Context()); err != nil || !whole || refused == 0 {
		t.Fatalf("the first backup: %v, and %d others are refused", err, refused)
	}
	if ok, text := checked(t, dir); !ok {
		t.Error(text)
	}
	unlocked := filepath.Join(t.TempDir(), "backup") // as on a file system without locks
	if err := os.MkdirAll(filepath.Join(unlocked, "LOCK"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, whole, err := w.making(unlocked).Run(t.Context()); err != nil || !whole {
		t.Errorf("where nothing can be locked: %v", err)
	}
	w.stop()

	data := filepath.Join(t.TempDir(), "restored")
	restoring := func(progress func(int64, int64)) error {
		r := &backup.Restoring{Dir: dir, Data: data, RootKey: w.rootKey(), Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler), Progress: progress}
		return r.Run(t.Context())
	}
	refused = 0
	err := restoring(func(int64, int64) {
		if err := restoring(nil); errors.Is(err, backup.ErrBusy) {
			refused++
		} else {
			t.Errorf("a second restore: %v", err)
		}
	})
	if err != nil || refused == 0 {
		t.Fatalf("the first restore: %v, and %d others are refused", err, refused)
	}
	if err := restoring(nil); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("once it is restored: %v", err)
	}
	to := start(t, data)
	if bodies, _ := to.receive(to.url(url)); !slices.Equal(bodies, []string{"hello"}) {
		t.Errorf("there is %v", bodies)
	}
}

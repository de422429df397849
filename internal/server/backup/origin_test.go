package backup_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/server/backup"
	"godwit.dev/godwit/internal/server/recovery"
)

// elsewhere has a backup's files come from a directory as they would from anywhere.
type elsewhere struct {
	backup.Manifest

	dir string
}

func (e *elsewhere) Open(_ context.Context, f backup.File) (io.ReadCloser, error) {
	return os.Open(filepath.Join(e.dir, recovery.StoreName, filepath.FromSlash(f.Name)))
}

type origin struct{ *elsewhere }

func (o origin) Manifest() backup.Manifest { return o.elsewhere.Manifest }

// A backup that is not in a directory is fetched, held against its hashes and read, and leaves
// nothing behind.
func TestCheckOrigin(t *testing.T) {
	w := start(t, filepath.Join(t.TempDir(), "data"))
	w.send(w.queue("orders"), strings.Repeat("x", 2000))
	dir := w.backUp()
	w.stop()
	from := origin{&elsewhere{must(backup.Read(dir))(t), dir}}
	check := func() (ok bool, text string) {
		t.Helper()
		var out strings.Builder
		temp, told := t.TempDir(), int64(0)
		ok, err := backup.CheckOrigin(t.Context(), from, temp, &out, func(done, _ int64) { told = done })
		if err != nil {
			t.Fatal(err)
		}
		if left := must(os.ReadDir(temp))(t); len(left) != 0 {
			t.Errorf("it leaves %v", left)
		}
		if size := from.Manifest(); ok && told != size.Size() {
			t.Errorf("it tells of %d bytes", told)
		}
		return ok, out.String()
	}
	if ok, text := check(); !ok || !strings.Contains(text, "each as it was made") || !strings.Contains(text, "nothing is damaged") {
		t.Errorf("a whole one: %v, %s", ok, text)
	}
	name := filepath.Join(dir, recovery.StoreName, filepath.FromSlash(from.Files[0].Name))
	text := must(os.ReadFile(name))(t)
	text[len(text)/2] ^= 1
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if ok, text := check(); ok || !strings.Contains(text, from.Files[0].Name+" has changed") {
		t.Errorf("a damaged one: %v, %s", ok, text)
	}
}

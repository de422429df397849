package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"godwit.dev/godwit/internal/durable"
)

// A file is replaced as a whole, is its owner's only, and leaves nothing beside it, also
// where a crash left half of one.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path+".tmp", []byte("what a crash has left, which is longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "", "another"} {
		if err := durable.Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if durable.Replace(filepath.Join(path, "below"), nil) == nil || durable.SyncDir(path+"s") == nil {
		t.Error("no error where there is no directory")
	}
}

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// maxPacked is the most that all files of the console may have together, compressed, in bytes.
const maxPacked = 80_000

// What lies in dist is what the source makes.
func TestDistIsOfTheSource(t *testing.T) {
	built, err := bundle(root)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for name, want := range built {
		packed, err := os.ReadFile(filepath.Join(root, "internal/console/dist", name+".gz"))
		if err != nil {
			t.Fatal(err)
		}
		total += len(packed)
		r, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not of the source: run go run . in tools/console", name)
		}
	}
	if total > maxPacked {
		t.Errorf("the console has %d bytes, compressed: at most %d", total, maxPacked)
	}
}

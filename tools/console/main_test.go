package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What lies in dist is what the source makes, and no more.
func TestDistIsOfTheSource(t *testing.T) {
	built, err := bundle(root)
	if err != nil {
		t.Fatal(err)
	}
	dist := filepath.Join(root, "internal/console/dist")
	kept, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range kept {
		if built[strings.TrimSuffix(e.Name(), ".gz")] == nil {
			t.Errorf("%s is not of the source: run go run . in tools/console", e.Name())
		}
	}
	for name, want := range built {
		packed, err := os.ReadFile(filepath.Join(dist, name+".gz"))
		if err != nil {
			t.Error(err)
			continue
		}
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
}

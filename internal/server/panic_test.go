package server

import (
	"context"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/invoke"
)

// TestHalfway: a panic in the middle of a command is told from one beside it.
func TestHalfway(t *testing.T) {
	recovered := func(f func()) (half bool) {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
			half = halfway()
		}()
		f()
		return false
	}
	if !recovered(func() { _, _ = (&invoke.Pool{}).Invoke(context.Background(), invoke.Invocation{}) }) { // it has no clock
		t.Error("a panic in the pool of functions is not seen as one")
	}
	if recovered(func() { panic("a mistake") }) {
		t.Error("any panic is seen as one in a command")
	}
}

// TestWritersAreStateful: a command is known by the package that is on the stack, so
// that whoever writes to the journal has to be among those, wherever it is moved to.
func TestWritersAreStateful(t *testing.T) {
	const module, journalPath = "godwit.dev/godwit/internal/", `"godwit.dev/godwit/internal/journal"`
	writers := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			if spec.Path.Value == journalPath {
				dir, err := filepath.Rel("..", filepath.Dir(path))
				writers[module+filepath.ToSlash(dir)] = true
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(writers, module+"server")                         // which opens it
	delete(writers, module+"keyspace/values")                // which reads records
	maps.DeleteFunc(writers, func(pkg string, _ bool) bool { // whose transactions poison their locks
		return strings.HasSuffix(pkg, "test") || pkg == module+"shard" || strings.HasPrefix(pkg, module+"shard/")
	})
	if len(writers) < 3 {
		t.Errorf("only %v write", writers)
	}
	for pkg := range writers {
		if !isStateful(pkg+".(*Type).Method") || !isStateful(pkg+"/below.Function") || isStateful(pkg+"else.Function") {
			t.Errorf("%s writes to the journal, and a panic in it would go unnoticed", pkg)
		}
	}
}

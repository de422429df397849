package internal_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Bounds of what fits a head, without tests, generated code and files of documentation
// alone.
const (
	packageLines = 3000
	kernelLines  = 1500 // of shard/kernel, which modules register with and which names none
	fileLines    = 600
	structFields = 20 // of one with methods or a lock
)

// What is no state may be wide: options, and the shapes of an API.
var wide = regexp.MustCompile(`^(Options|Config|Settings)$|(Input|Output)$`)

func TestSizes(t *testing.T) {
	lines := map[string]int{}
	fields, methods, locked := map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, root := range []string{".", "../cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
			if err != nil || ast.IsGenerated(f) || len(f.Decls) == 0 {
				return err
			}
			n := bytes.Count(text, []byte("\n"))
			if n > fileLines {
				t.Errorf("%s has %d lines", path, n)
			}
			dir := filepath.Dir(path)
			lines[dir] += n
			for _, decl := range f.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					if d.Recv != nil {
						methods[dir+"."+receiver(d.Recv.List[0].Type)] = true
					}
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						typ, ok := spec.(*ast.TypeSpec)
						if !ok {
							continue
						}
						s, ok := typ.Type.(*ast.StructType)
						if !ok || wide.MatchString(typ.Name.Name) {
							continue
						}
						name := dir + "." + typ.Name.Name
						for _, field := range s.Fields.List {
							fields[name] += max(1, len(field.Names))
							if sel, ok := field.Type.(*ast.SelectorExpr); ok && strings.HasSuffix(sel.Sel.Name, "Mutex") {
								locked[name] = true
							}
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(lines) < 20 || len(methods) < 100 || lines[filepath.FromSlash("shard/kernel")] == 0 {
		t.Fatalf("%d packages, %d types", len(lines), len(methods))
	}
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		if lines[dir] > packageLines || dir == filepath.FromSlash("shard/kernel") && lines[dir] > kernelLines {
			t.Errorf("package %s has %d lines", dir, lines[dir])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] > structFields && (methods[name] || locked[name]) {
			t.Errorf("%s has %d fields", name, fields[name])
		}
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

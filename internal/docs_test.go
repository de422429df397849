package internal

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsNameWhatThereIs: each path, and each name of the code, that the documents for
// engineers have between backticks exists.
func TestDocsNameWhatThereIs(t *testing.T) {
	paths, names := map[string]bool{"testing/synctest": true}, map[string]bool{"WALMinSyncInterval": true} // of others
	for file := range goFiles(t) {
		for path := filepath.ToSlash(file); path != "."; path = filepath.ToSlash(filepath.Dir(path)) {
			for rest, more := path, true; more; _, rest, more = strings.Cut(rest, "/") {
				paths[rest] = true
			}
		}
		ast.Inspect(parse(t, filepath.Join("..", file)), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.File:
				names[n.Name.Name] = true
			case *ast.FuncDecl:
				names[n.Name.Name] = true
			case *ast.TypeSpec:
				names[n.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			case *ast.Field:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			case *ast.BasicLit: // an operation, an environment variable, a flag
				names[literal(n, nil)] = true
			}
			return true
		})
	}
	for _, doc := range []string{"docs/architecture.md", "docs/decisions.md", "docs/glossary.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(filepath.Join("..", doc))
		if err != nil {
			t.Fatal(err)
		}
		for _, quoted := range quoted.FindAllStringSubmatch(string(text), -1) {
			said := strings.TrimSuffix(quoted[1], "/")
			switch {
			case isPath.MatchString(said):
				if _, err := os.Stat(filepath.Join("..", said)); err != nil && !paths[said] {
					t.Errorf("%s names %s, which does not exist", doc, said)
				}
			case isName.MatchString(said):
				for part := range strings.SplitSeq(said, ".") {
					if !names[part] {
						t.Errorf("%s names %s, and nothing is called %s", doc, said, part)
					}
				}
			}
		}
	}
}

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	isPath = regexp.MustCompile(`^[a-z0-9_]+(/[A-Za-z0-9_.]+)+/?$|^[a-z0-9_]+\.(go|md)$`)
	isName = regexp.MustCompile(`^[A-Za-z]\w*(\.[A-Z]\w*)+$|^[A-Z]\w+$`)
)

package internal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestRefusals: below ring 4 all refuse by rules with fields, but for those that speak a
// protocol themselves. Each rule has a sentence in
// api/refusal, with a place for each field; nothing else there makes sentences: the name
// of a rule is none, it starts with its package, and neither is a field, or what a function
// called refuse or sentence is given, or a type called Refusal.
func TestRefusals(t *testing.T) {
	sentences := sentencesOf(t)
	rules := map[string]bool{}
	for file := range goFiles(t) {
		dir, inside := strings.CutPrefix(filepath.ToSlash(filepath.Dir(file)), "internal/")
		if !inside || strings.HasSuffix(file, "_test.go") || line(home(dir)) > line("monitor") {
			continue
		}
		parsed := parse(t, filepath.Join("..", file))
		pkg := parsed.Name.Name
		named := constantsOf(parsed)
		refuses := func(with ast.Expr) {
			if speaks[dir] {
				return
			}
			if text := words(with, named); text != "" {
				t.Errorf("%s refuses with %q: declare a fault.Rule, and its sentence in api/refusal", file, text)
			}
			if format := sentences[selected(with, pkg)]; verb.MatchString(format) {
				t.Errorf("%s refuses by %s without fields, and its sentence is %q", file, selected(with, pkg), format)
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					if call, ok := value.(*ast.CallExpr); ok && selected(call.Fun, "fault") == "fault.NewRule" {
						rules[pkg+"."+n.Names[i].Name] = true
						if name := literal(call.Args[1], nil); sentence.MatchString(name) || !strings.Contains(name, ": ") {
							t.Errorf("%s names a rule %q, which is for logs: its sentence is in api/refusal", file, name)
						}
					}
				}
			case *ast.SelectorExpr:
				said := selected(n, pkg)
				if home(dir) != "fault" && home(dir) != "sigv4" && (said == "fault.New" || said == "fault.Newf" || said == "fault.Error") {
					t.Errorf("%s has %s: declare a fault.Rule, and its sentence in api/refusal", file, said)
				}
			case *ast.CompositeLit:
				if nameOf(n.Type) != "Refusal" {
					return true
				}
				for _, field := range n.Elts {
					if pair, ok := field.(*ast.KeyValueExpr); ok {
						field = pair.Value
					}
					refuses(field)
				}
			case *ast.CallExpr:
				if name := nameOf(n.Fun); strings.EqualFold(name, "refuse") || strings.EqualFold(name, "sentence") {
					for _, arg := range n.Args {
						refuses(arg)
					}
				}
				if said := selected(n.Fun, pkg); said == "errors.New" || said == "fmt.Errorf" {
					if text := literal(n.Args[0], named); !speaks[dir] && capital.MatchString(text) {
						t.Errorf("%s has the error %q, which reads as a client's: declare a fault.Rule, and its sentence in api/refusal", file, text)
					}
				}
				with, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || with.Sel.Name != "With" {
					return true
				}
				for _, field := range n.Args {
					if text := literal(field, nil); sentence.MatchString(text) {
						t.Errorf("%s gives the field %q: what a client reads is in api/refusal", file, text)
					}
				}
				rule := selected(with.X, pkg)
				if format, ok := sentences[rule]; ok && len(verb.FindAllString(format, -1)) != len(n.Args) {
					t.Errorf("%s gives %d fields to %s, whose sentence is %q", file, len(n.Args), rule, format)
				}
			}
			return true
		})
	}
	for rule := range rules {
		if _, ok := sentences[rule]; !ok {
			t.Errorf("%s has no sentence in api/refusal", rule)
		}
	}
	for rule := range sentences {
		if !rules[rule] {
			t.Errorf("api/refusal has a sentence for %s, which is no rule", rule)
		}
	}
	if len(rules) == 0 {
		t.Error("there are no rules")
	}
}

// speaks are the directories below ring 4 that speak a protocol: sigv4, whose texts list what a
// header lacks, and Lambda's Runtime API, by which functions' processes ask for their events.
var speaks = map[string]bool{"sigv4": true, "invoke/process": true}

// sentence is what ends as one does.
var sentence = regexp.MustCompile(`\w[.!]["”]?$`)

// capital is how sentences begin, and errors for the log do not.
var capital = regexp.MustCompile(`^\p{Lu}\p{Ll}+ \p{Ll}`)

// several are words with a space between.
var several = regexp.MustCompile(`\pL[\pL':,.]* [\pL\[('%]`)

// words are the first text of several words within an expression, be it joined, formatted or named.
func words(e ast.Expr, named map[string]string) (found string) {
	ast.Inspect(e, func(n ast.Node) bool {
		text := ""
		switch n := n.(type) {
		case *ast.BasicLit, *ast.Ident:
			text = literal(n.(ast.Expr), named)
		case *ast.SelectorExpr: // the name of a field, or of another package's
			return false
		}
		if found == "" && several.MatchString(text) {
			found = text
		}
		return found == ""
	})
	return found
}

// constantsOf are the texts that a file gives names to.
func constantsOf(parsed *ast.File) map[string]string {
	named := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for i, value := range spec.Values {
				named[spec.Names[i].Name] = literal(value, named)
			}
		}
		return true
	})
	return named
}

// nameOf is the name of a function or a type, without its package.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

var verb = regexp.MustCompile(`%[a-z]`)

// sentencesOf are the sentences of api/refusal by the names of the rules.
func sentencesOf(t *testing.T) map[string]string {
	files, err := filepath.Glob("api/refusal/*.go")
	if err != nil {
		t.Fatal(err)
	}
	sentences, prefixes := map[string]string{}, map[string]string{}
	for _, file := range files {
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					prefixes[n.Names[i].Name] = literal(value, prefixes)
				}
			case *ast.KeyValueExpr:
				if _, rule := n.Key.(*ast.SelectorExpr); rule {
					sentences[selected(n.Key, "")] = literal(n.Value, prefixes)
				}
			}
			return true
		})
	}
	return sentences
}

func parse(t *testing.T, file string) *ast.File {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// selected is what an expression names, with the package where it says none.
func selected(e ast.Expr, pkg string) string {
	switch e := e.(type) {
	case *ast.Ident:
		return pkg + "." + e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	}
	return ""
}

// literal is a string of literals and named prefixes.
func literal(e ast.Expr, prefixes map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return literal(e.X, prefixes) + literal(e.Y, prefixes)
	case *ast.Ident:
		return prefixes[e.Name]
	}
	return ""
}

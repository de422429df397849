package internal

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"godwit.dev/godwit/test/generated"
)

// wantDocument compares a document that is made of the code with what is there.
func wantDocument(t *testing.T, name, want string) {
	t.Helper()
	generated.Hold(t, filepath.Join("..", filepath.FromSlash(name)), want)
}

// sources are the files of the program, by package, in order: what tests are made of is none.
func sources(t *testing.T, yield func(pkg string, file *ast.File)) {
	t.Helper()
	files := goFiles(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if slices.Contains(files[name], "testing") {
			continue
		}
		name = filepath.ToSlash(name)
		if (strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "cmd/")) && !strings.HasSuffix(name, "_test.go") {
			yield(path.Dir(name), parse(t, filepath.Join("..", name)))
		}
	}
}

const logHead = `# Lines of the log

What the server writes to standard error, made of its source: the text of each line, the names
of what it may have with it, and the package that writes it. Where the text is also in the
other form of a line (` + "`--log-format`" + `), it is ` + "`msg`" + `. What the levels mean is in
[monitoring.md](../monitoring.md#the-servers-log). The texts may change from version to version:
an alert goes by [metrics](metrics.md).
`

// TestLogDocument: docs/reference/log.md has each line of the log.
func TestLogDocument(t *testing.T) {
	lines := map[string]map[string]bool{}
	sources(t, func(pkg string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			level, text, more := logged(call)
			if text == "" {
				return true
			}
			if lines[level] == nil {
				lines[level] = map[string]bool{}
			}
			lines[level][fmt.Sprintf("| %s | %s | `%s` |\n", cell(text), names(more), strings.TrimPrefix(pkg, "internal/"))] = true
			return true
		})
	})
	var b strings.Builder
	b.WriteString(logHead)
	for _, level := range []string{"error", "warn", "info", "debug"} {
		if len(lines[level]) == 0 {
			t.Errorf("there is no line at %s", level)
		}
		fmt.Fprintf(&b, "\n## %s\n\n| line | with | from |\n|---|---|---|\n", strings.ToUpper(level[:1])+level[1:])
		for _, line := range slices.Sorted(maps.Keys(lines[level])) {
			b.WriteString(line)
		}
	}
	wantDocument(t, "docs/reference/log.md", b.String())
}

// logged is what a call writes to a log: the level, the text and what goes with it. The text is
// empty for any other call.
func logged(call *ast.CallExpr) (level, text string, more []ast.Expr) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", "", nil
	}
	args := call.Args
	switch name := method.Sel.Name; name {
	case "Debug", "Info", "Warn", "Error":
		level = strings.ToLower(name)
	case "DebugContext", "InfoContext", "WarnContext", "ErrorContext":
		level, args = strings.ToLower(strings.TrimSuffix(name, "Context")), args[min(1, len(args)):]
	case "Log", "LogAttrs", "log": // with the level before the text
		for len(args) > 0 && level == "" {
			if at, ok := strings.CutPrefix(selected(args[0], ""), "slog.Level"); ok {
				level = strings.ToLower(at)
			}
			args = args[1:]
		}
	}
	if level == "" || len(args) == 0 || isHTTPError(method) {
		return "", "", nil
	}
	if lit, ok := args[0].(*ast.BasicLit); !ok || lit.Kind != token.STRING {
		return "", "", nil
	}
	return level, literal(args[0], nil), args[1:]
}

func isHTTPError(method *ast.SelectorExpr) bool { return selected(method, "") == "http.Error" }

// names are those of what a line has with it, as far as the call itself says them.
func names(args []ast.Expr) string {
	var all []string
	for i := 0; i < len(args); i++ {
		switch arg := args[i].(type) {
		case *ast.BasicLit: // a name, and then the value
			all = append(all, "`"+literal(arg, nil)+"`")
			i++
		case *ast.CallExpr:
			if strings.HasPrefix(selected(arg.Fun, ""), "slog.") && len(arg.Args) > 0 {
				all = append(all, "`"+literal(arg.Args[0], nil)+"`")
			}
		}
	}
	return strings.Join(all, ", ")
}

// cell is a text in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

const metricsHead = `# Metrics

What ` + "`GET /metrics`" + ` answers, and a node of a cluster at ` + "`/_godwit/v1/cluster/metrics`" + `, made of the source.
[monitoring.md](../monitoring.md#prometheus) says more of some, and what alerts there are.
Histograms are in seconds, and have the suffixes of Prometheus, ` + "`_bucket`, `_sum` and `_count`" + `.

| metric | kind | labels | |
|---|---|---|---|
`

// metric is a call that describes one.
type metric struct {
	name, help string
	labels     []string
	variable   string
}

// TestMetricsDocument: docs/reference/metrics.md has each metric.
func TestMetricsDocument(t *testing.T) {
	rows := map[string]bool{`| ` + "`godwit_build_info`" + ` | gauge | version | 1, with the version as label. |` + "\n": true}
	byPackage, order := map[string][]*ast.File{}, []string{}
	sources(t, func(pkg string, file *ast.File) {
		if byPackage[pkg] == nil {
			order = append(order, pkg)
		}
		byPackage[pkg] = append(byPackage[pkg], file)
	})
	for _, pkg := range order {
		for _, m := range metricsOf(byPackage[pkg]) {
			kind := "gauge"
			if strings.HasSuffix(m.name, "_total") {
				kind = "counter"
			} else if m.histogram(byPackage[pkg]) {
				kind = "histogram"
			}
			rows[fmt.Sprintf("| `%s` | %s | %s | %s |\n", m.name, kind, strings.Join(m.labels, ", "), cell(m.help))] = true
		}
	}
	if len(rows) < 50 {
		t.Errorf("there are %d metrics", len(rows))
	}
	wantDocument(t, "docs/reference/metrics.md", metricsHead+strings.Join(slices.Sorted(maps.Keys(rows)), ""))
}

// metricsOf are the metrics of a package: those that a function describes which ends at
// prometheus.NewDesc, each with what it puts before the name and the labels.
func metricsOf(files []*ast.File) (all []metric) {
	functions := map[string]*ast.FuncDecl{}
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				functions[f.Name.Name] = f
			}
		}
	}
	for _, file := range files {
		for _, decl := range file.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok || general.Tok != token.VAR {
				continue
			}
			for _, spec := range general.Specs {
				value := spec.(*ast.ValueSpec)
				ast.Inspect(value, func(n ast.Node) bool {
					if call, ok := n.(*ast.CallExpr); ok {
						if m, ok := described(call, functions); ok {
							for i, v := range value.Values {
								if v == ast.Expr(call) {
									m.variable = value.Names[i].Name
								}
							}
							all = append(all, m)
							return false
						}
					}
					return true
				})
			}
		}
	}
	return all
}

// described is the metric that a call of one of these functions describes.
func described(call *ast.CallExpr, functions map[string]*ast.FuncDecl) (m metric, ok bool) {
	if len(call.Args) < 2 {
		return metric{}, false
	}
	if selected(call.Fun, "") == "prometheus.NewDesc" {
		return metric{name: literal(call.Args[0], nil)}, true
	}
	called, ok := call.Fun.(*ast.Ident)
	if !ok || functions[called.Name] == nil {
		return metric{}, false
	}
	ast.Inspect(functions[called.Name].Body, func(n ast.Node) bool {
		if inner, isCall := n.(*ast.CallExpr); isCall && m.name == "" {
			if below, is := described(inner, functions); is {
				m = below
			}
		}
		if list, isList := n.(*ast.CompositeLit); isList {
			m.labels = append(m.labels, texts(list.Elts)...)
		}
		return true
	})
	if m.name == "" {
		return metric{}, false
	}
	m.name += literal(call.Args[0], nil)
	m.help = literal(call.Args[1], nil)
	m.labels = append(m.labels, texts(call.Args[2:])...)
	return m, true
}

func texts(all []ast.Expr) (found []string) {
	for _, e := range all {
		if lit, ok := e.(*ast.BasicLit); ok {
			text, _ := strconv.Unquote(lit.Value)
			found = append(found, text)
		}
	}
	return found
}

// histogram reports that a metric's variable is given to what makes histograms.
func (m metric) histogram(files []*ast.File) (is bool) {
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && m.variable != "" && strings.HasSuffix(m.name, "_seconds") {
				method, _ := call.Fun.(*ast.SelectorExpr)
				for _, arg := range call.Args {
					if name, ok := arg.(*ast.Ident); ok && name.Name == m.variable && method != nil && method.Sel.Name == "collect" {
						is = true
					}
				}
			}
			return true
		})
	}
	return is
}

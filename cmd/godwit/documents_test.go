package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var (
	fenced    = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")
	continued = regexp.MustCompile(`\\\n *`)
	// calls is a line of a shell that runs godwit, by whatever comes before it; then its arguments.
	calls = regexp.MustCompile(`(?m)^(?:.*[|;&(] *|.* -- )?(?: *[A-Z_]+=\S+ )?(?:go run \./cmd/|\$work/|\s*)godwit( [^\n|;&)>#]*|$)`)
	quote = strings.NewReplacer("'", "", `"`, "")
	// named is a flag that a text names, or a command of godwit with flags.
	named = regexp.MustCompile("`(?:godwit [^`]*?)?(--[^`]*)`")
	long  = regexp.MustCompile(`(?:^| )--([a-z][a-z0-9-]*[a-z0-9])`)
	// others are flags of other programs that texts name.
	others = []string{"cap-add", "device", "disable-rollback", "notification-endpoint", "only", "role-arn", "security-opt", "url", "user"}
)

// TestDocumentedCommands: each call of godwit in a block of commands of the documents, also those
// that no test runs, is one that it understands.
func TestDocumentedCommands(t *testing.T) {
	t.Setenv("GODWIT_CLUSTER_TOKEN", "which they write before it")
	var flags cli
	parser, err := newParser(&flags, kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == ".git" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(name) != ".md" {
			return err
		}
		text, err := os.ReadFile(name)
		for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
			for _, call := range calls.FindAllStringSubmatch(continued.ReplaceAllString(block[1], ""), -1) {
				found++
				understood(t, parser, name, strings.Fields(quote.Replace(call[1])))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 50 {
		t.Errorf("the documents have %d calls", found)
	}
}

// TestDocumentedFlags: each flag that the text of a document names is one of a command.
func TestDocumentedFlags(t *testing.T) {
	var flags cli
	parser, err := newParser(&flags)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"help": true, "no": true, "version": true} // no: --no-NAME
	for _, name := range others {
		known[name] = true
	}
	for _, node := range parser.Model.Leaves(false) {
		for _, flag := range node.Flags {
			known[flag.Name] = true
			if flag.Tag.Negatable != "" {
				known["no-"+flag.Name] = true
			}
		}
	}
	documents := []string{"../../README.md", "../../deploy/README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md", "../../examples/*/README.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, more...)
	}
	found := 0
	for _, name := range documents {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range named.FindAllStringSubmatch(string(text), -1) {
			for _, flag := range long.FindAllStringSubmatch(code[1], -1) {
				found++
				if !known[flag[1]] {
					t.Errorf("%s: --%s is no flag of a command", name, flag[1])
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("the documents name %d flags", found)
	}
}

// understood parses a call. Files that it names need not be there.
func understood(t *testing.T, parser *kong.Kong, document string, args []string) {
	t.Helper()
	words := slices.Clone(args)
	if len(words) > 1 && words[1] == "…" { // what stands above
		words[1] = "--config=FILE"
	}
	if _, err := parser.Parse(words); err != nil && !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%s: godwit %s: %v", document, strings.Join(args, " "), err)
	}
}

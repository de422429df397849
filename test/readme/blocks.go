package readme

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Block is a block of commands of a document.
type Block struct {
	Document string   // its path in the repository
	Headings []string // that it is below, by level
	Language string   // "sh" of commands
	Text     string
	Shown    string // what is shown of its output, with … for anything; empty: nothing
}

// Prints reports whether what is shown is a part of an output.
func (b Block) Prints(out string) bool {
	trim := func(s string) string { return regexp.MustCompile(`(?m)[ \t]+$`).ReplaceAllString(s, "") }
	var pattern strings.Builder
	for n, part := range strings.Split(strings.TrimSpace(trim(b.Shown)), "…") {
		if n > 0 {
			pattern.WriteString(`(?s:.*?)`)
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(pattern.String()).MatchString(trim(out))
}

var (
	fence   = regexp.MustCompile("^( *)```(\\w*)")
	heading = regexp.MustCompile(`^(#+) (.*)`)
)

// Parse gives all fenced blocks of a text, of whatever language.
func Parse(document, text string) (all []Block) {
	var headings []string // by level, from the first on
	var open *Block
	var indent string
	for line := range strings.Lines(text) {
		mark := fence.FindStringSubmatch(line)
		switch {
		case open != nil && mark != nil:
			all, open = append(all, *open), nil
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent)
		case mark != nil:
			indent = mark[1]
			open = &Block{Document: document, Headings: slices.Clone(headings), Language: mark[2]}
		default:
			if h := heading.FindStringSubmatch(line); h != nil {
				level := len(h[1])
				for len(headings) < level {
					headings = append(headings, "")
				}
				headings = append(headings[:level-1], h[2])
			}
		}
	}
	return all
}

// Commands are the blocks of commands among all, each with what is shown behind it.
func Commands(all []Block) (commands []Block) {
	for _, block := range all {
		switch {
		case block.Language == "sh":
			commands = append(commands, block)
		case len(commands) > 0 && output(block):
			last := &commands[len(commands)-1]
			last.Shown += block.Text
		}
	}
	return commands
}

func output(b Block) bool { return b.Language == "" || b.Language == "text" }

// A run says which test runs blocks, or why none does.
type run struct {
	Document string
	Part     string // a heading, or how blocks begin; empty: all that no other run is about
	Test     string // a directory and a test in it
	Not      string // why no test runs them
}

//go:embed runs.json
var table []byte

// fits says how closely a run is about a block: 0, not at all.
func (r run) fits(b Block) int {
	switch {
	case r.Document != b.Document:
		return 0
	case r.Part == "":
		return 1
	case strings.HasPrefix(b.Text, r.Part):
		return 100
	}
	if level := slices.Index(b.Headings, r.Part); level >= 0 {
		return 2 + level
	}
	return 0
}

// of is what runs a block; nil: nothing says.
func of(runs []run, b Block) (best *run) {
	closest := 0
	for i, r := range runs {
		if fits := r.fits(b); fits > closest {
			best, closest = &runs[i], fits
		}
	}
	return best
}

func readRuns(t *testing.T) (runs []run) {
	t.Helper()
	if err := json.Unmarshal(table, &runs); err != nil {
		t.Fatalf("runs.json: %v", err)
	}
	return runs
}

// Of gives the blocks of a document, by its path in the repository, that runs.json has the calling
// test run; root is the way from there to the repository.
func Of(t *testing.T, root, document string) (blocks []Block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(t.Name(), "/")
	runs := readRuns(t)
	for _, block := range Commands(Parse(document, string(text))) {
		if r := of(runs, block); r != nil && strings.HasSuffix(r.Test, " "+name) {
			blocks = append(blocks, block)
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no commands that %s is to run: see test/readme/runs.json", document, name)
	}
	return blocks
}

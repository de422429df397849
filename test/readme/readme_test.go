package readme

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const top = "../.."

// documents are the blocks of all Markdown of the repository.
func documents(t *testing.T) (all []Block) {
	t.Helper()
	each(t, ".md", func(name, text string) { all = append(all, Parse(name, text)...) })
	return all
}

// tests are the names of all tests.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	begins := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	each(t, "_test.go", func(_, text string) {
		for _, found := range begins.FindAllStringSubmatch(text, -1) {
			all[found[1]] = true
		}
	})
	return all
}

// each reads all files of the repository whose names end so, without what has been taken from others.
func each(t *testing.T, ending string, read func(name, text string)) {
	t.Helper()
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != top && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "dist", "node_modules", "testdata", "third_party"}, d.Name())) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ending) {
			return nil
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(top, name) // both are relative
		read(filepath.ToSlash(rel), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// command begins like one, with the programs that the documents use.
var command = regexp.MustCompile(`^\s*(\$ |# |[A-Z_]+=\S* )?(apt|aws|cat|cd|cp|curl|docker|export|git|go|godwit|helm|install|kubectl|make|mkdir|node|npm|openssl|pip|podman|python3|rpm|runuser|sudo|systemctl|terraform|useradd) `)

// TestEachBlockIsRun: each block of commands of each document is marked as such, and a test runs
// it, or runs.json says why none does.
func TestEachBlockIsRun(t *testing.T) {
	runs := readRuns(t)
	used := map[*run]int{}
	tested, untested := 0, 0
	for _, b := range documents(t) {
		if b.Language != "sh" {
			if slices.Contains([]string{"bash", "shell", "console", "zsh"}, b.Language) || output(b) && command.MatchString(b.Text+" ") {
				t.Errorf("%s: a block of commands is marked by sh, and not by %q:\n%s", b.Document, b.Language, b.Text)
			}
			continue
		}
		r := of(runs, b)
		switch {
		case r == nil:
			t.Errorf("%s, %s: no test runs this, as far as runs.json says:\n%s", b.Document, strings.Join(b.Headings, " > "), b.Text)
			continue
		case r.Test != "":
			tested++
		default:
			untested++
		}
		used[r]++
	}
	for i := range runs {
		r := &runs[i]
		switch {
		case used[r] == 0:
			t.Errorf("runs.json has %+v, and there is no such block", *r)
		case (r.Test == "") == (r.Not == ""):
			t.Errorf("runs.json has %+v, which names a test, or a reason for none", *r)
		case r.Test != "" && !runsIt(t, r):
			t.Errorf("runs.json says that %s runs %s, and there is no such test, or it does not name that document", r.Test, r.Document)
		}
	}
	there := tests(t)
	for _, r := range runs {
		for _, name := range regexp.MustCompile(`\bTest\w+`).FindAllString(r.Not, -1) {
			if !there[name] {
				t.Errorf("runs.json has %+v, and there is no such test", r)
			}
		}
	}
	t.Logf("of %d blocks of commands tests run %d", tested+untested, tested)
	if tested < 100 {
		t.Errorf("tests run %d blocks", tested)
	}
}

// runsIt reports that there is the test, in a file that names the document.
func runsIt(t *testing.T, r *run) bool {
	t.Helper()
	dir, test, _ := strings.Cut(r.Test, " ")
	files, err := filepath.Glob(filepath.Join(top, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(name string) bool {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "\nfunc "+test+"(t ") && strings.Contains(string(text), `"`+r.Document+`"`)
	})
}

var (
	// quoted is what a shell leaves as it stands: documents of others, and programs.
	quoted = regexp.MustCompile(`(?s)<<'EOF'.*?\nEOF\n|'[^']*'`)
	// sets is an assignment to a variable, or a loop's; reads is one that is used.
	sets  = regexp.MustCompile(`(?m)(?:^|[\s;(])([A-Za-z_]\w*)=|\bfor (\w+) in\b`)
	reads = regexp.MustCompile(`\$\{?([A-Za-z_]\w*)`)
	// asks is a call of the AWS CLI, to wherever its settings lead.
	asks = regexp.MustCompile(`(?m)(?:^|[|;(])\s*aws [^\n]*`)
	// leads has all calls of the AWS CLI go to Godwit.
	leads = regexp.MustCompile(`(?m)\bAWS_ENDPOINT_URL=|^\s*aws\(\) `)
)

// TestDocumentsStandAlone: who pastes the commands of one document alone, from its beginning, has
// set each variable before it is used, and has the AWS CLI ask Godwit, and not AWS by whatever
// credentials there are.
func TestDocumentsStandAlone(t *testing.T) {
	known := map[string]map[string]bool{}
	led := map[string]bool{}
	for _, b := range Commands(documents(t)) {
		d := b.Document
		if known[d] == nil {
			known[d] = map[string]bool{"PATH": true, "HOME": true, "PWD": true, "AWS_ACCESS_KEY_ID": true, "AWS_SECRET_ACCESS_KEY": true}
		}
		text := quoted.ReplaceAllString(b.Text, "''\n")
		for _, set := range sets.FindAllStringSubmatch(text, -1) {
			known[d][set[1]+set[2]] = true
		}
		for _, read := range reads.FindAllStringSubmatch(text, -1) {
			if !known[d][read[1]] {
				t.Errorf("%s: nothing before this has set %s:\n%s", d, read[1], b.Text)
			}
		}
		led[d] = led[d] || leads.MatchString(text)
		for _, call := range asks.FindAllString(text, -1) {
			if !led[d] && !strings.Contains(call, "--endpoint-url") {
				t.Errorf("%s: this asks AWS:\n%s", d, strings.TrimSpace(call))
			}
		}
	}
}

var (
	making    = regexp.MustCompile(`(?m)^(?:[A-Z_]+=\S+ )*make ([a-z-]+)`)
	goTest    = regexp.MustCompile(`(?m)^(?:[A-Z_]+=\S+ )*go test [^\n]*`)
	chosen    = regexp.MustCompile(`-run '?\^?(\w+)`)
	inPackage = regexp.MustCompile(` (\./[\w/-]+)`)
)

// TestCommandsNameWhatThereIs: also those that no test runs name targets and tests that there are.
func TestCommandsNameWhatThereIs(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(top, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, b := range Commands(documents(t)) {
		for _, m := range making.FindAllStringSubmatch(b.Text, -1) {
			if named++; !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s: there is no make %s", b.Document, m[1])
			}
		}
		for _, line := range goTest.FindAllString(b.Text, -1) {
			dir, run := inPackage.FindStringSubmatch(line), chosen.FindStringSubmatch(line)
			if dir == nil {
				continue
			}
			files, err := filepath.Glob(filepath.Join(top, dir[1], "*_test.go"))
			if named++; err != nil || len(files) == 0 {
				t.Errorf("%s: there are no tests in %s", b.Document, dir[1])
			}
			if run != nil && !slices.ContainsFunc(files, func(name string) bool {
				text, err := os.ReadFile(name)
				return err == nil && strings.Contains(string(text), "\nfunc "+run[1])
			}) {
				t.Errorf("%s: there is no %s in %s", b.Document, run[1], dir[1])
			}
		}
	}
	if named < 10 {
		t.Errorf("the documents name %d targets and tests", named)
	}
}

func TestParse(t *testing.T) {
	all := Parse("a.md", "# A\n```sh\n# no heading\na\n```\nprints\n```\nb\n…\n```\n### C\n- list\n\n  ```sh\n  c \\\n    d\n  ```\n## D\n```go\nx\n```\n")
	commands := Commands(all)
	if len(all) != 4 || len(commands) != 2 {
		t.Fatalf("%+v", all)
	}
	first, second := commands[0], commands[1]
	if first.Text != "# no heading\na\n" || first.Shown != "b\n…\n" || !slices.Equal(first.Headings, []string{"A"}) {
		t.Errorf("%+v", first)
	}
	if second.Text != "c \\\n  d\n" || second.Shown != "" || !slices.Equal(second.Headings, []string{"A", "", "C"}) {
		t.Errorf("%+v", second)
	}
	if !slices.Equal(all[3].Headings, []string{"A", "D"}) {
		t.Errorf("%+v", all[3])
	}
	if !first.Prints("a\nb\nc\n") || first.Prints("a\nc\n") {
		t.Error("what is shown is not found, or is found where it is not")
	}
}

// A run of a block's beginning comes before one of a heading, and that before one of all.
func TestOf(t *testing.T) {
	runs := []run{
		{Document: "a.md", Test: "all"},
		{Document: "a.md", Part: "A", Test: "part"},
		{Document: "a.md", Part: "B", Test: "part of part"},
		{Document: "a.md", Part: "make", Test: "block"},
	}
	for want, b := range map[string]Block{
		"all":          {Document: "a.md", Headings: []string{"C"}, Text: "x make\n"},
		"part":         {Document: "a.md", Headings: []string{"A", "C"}},
		"part of part": {Document: "a.md", Headings: []string{"A", "B"}},
		"block":        {Document: "a.md", Headings: []string{"A", "B"}, Text: "make all\n"},
	} {
		if got := of(runs, b); got == nil || got.Test != want {
			t.Errorf("%+v is run by %+v, want %s", b, got, want)
		}
	}
	if got := of(runs, Block{Document: "b.md"}); got != nil {
		t.Errorf("%+v is about another document", got)
	}
}

// What is shown is looked for, and blocks are one shell's.
func TestRun(t *testing.T) {
	out := Run(t, []Block{{Text: "A='1 2'\n"}, {Text: "echo $A \\\n  3\n", Shown: "1 … 3\n"}}, t.TempDir(), "127.0.0.1:1", time.Minute)
	if !strings.Contains(out, "1 2 3\n") {
		t.Errorf("it prints %q", out)
	}
	Run(t, []Block{{Text: "(sleep 1000; :) &\n"}}, t.TempDir(), "127.0.0.1:1", time.Minute) // nothing waits for what goes on
}

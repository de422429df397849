package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// Each command has a page, with each of its flags, and no text in them is taken for a request.
func TestManuals(t *testing.T) {
	var flags cli
	parser, err := newParser(&flags)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "man")
	var out bytes.Buffer
	if status := run([]string{"man", dir}, strings.NewReader(""), &out, &out, time.Now()); status != 0 {
		t.Fatalf("%d: %s", status, out.String())
	}
	pages := map[string]string{}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		pages[f.Name()] = string(text)
	}
	request := regexp.MustCompile(`^\.(TH|SH|TP|PP|B|br)( |$)`)
	for name, text := range pages {
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if line == "" || line[0] == '\'' || line[0] == '.' && !request.MatchString(line) {
				t.Errorf("%s has a line that is no text: %q", name, line)
			}
		}
	}
	commands := 0
	for _, command := range parser.Model.Children {
		name := "godwit-" + command.Name + ".1"
		if command.Hidden {
			if pages[name] != "" {
				t.Errorf("there is a page %s of what is hidden", name)
			}
			continue
		}
		commands++
		text := pages[name]
		_ = kong.Visit(command, func(node kong.Visitable, next kong.Next) error {
			switch node := node.(type) {
			case *kong.Flag:
				if !node.Hidden && !strings.Contains(text, `\-`+escaped(node.Name)) && !strings.Contains(text, `\-[no\-]`+escaped(node.Name)) {
					t.Errorf("%s lacks --%s", name, node.Name)
				}
			case *kong.Node:
				if !node.Hidden && !strings.Contains(text, escaped(node.Help)) {
					t.Errorf("%s does not say: %s", name, node.Help)
				}
			}
			return next(nil)
		})
		if !strings.Contains(pages["godwit.1"], escaped(name[:len(name)-2])+"(1)") {
			t.Errorf("godwit.1 does not name %s", name)
		}
	}
	if len(pages) != commands+1 || commands < 20 {
		t.Errorf("there are %d pages of %d commands", len(pages), commands)
	}
	for what, want := range map[string]string{
		"godwit-serve.1":  "GODWIT_LOG_LEVEL",
		"godwit-backup.1": `\fBgodwit backup\fR \fIDIR\fR`,
		"godwit-dlq.1":    ".SH GODWIT DLQ REDRIVE\n",
	} {
		if !strings.Contains(pages[what], want) {
			t.Errorf("%s does not have %q:\n%s", what, want, pages[what])
		}
	}
}

func TestEscaped(t *testing.T) {
	if got, want := escaped(`a-b \n 'c' ~^`+"`"), `a\-b \en \(aqc\(aq \(ti\(ha\(ga`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

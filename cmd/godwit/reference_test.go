package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"godwit.dev/godwit/test/generated"
)

const settingsHead = `# Commands and settings

Every flag of every command, made of the program itself. Those that come first are in
[the overview](../../README.md#settings).

A setting of ` + "`godwit dev` or `godwit serve`" + ` is a flag, a variable of the environment, or, for ` + "`serve`" + `, a
line of its YAML file (` + "`log-level: warn`" + `). The flag goes before the variable, and that before the file.
A flag that is on or off is turned off by ` + "`--no-NAME`" + `, where that is in the table, or by ` + "`--NAME=false`" + `.
%s
*At once* means that SIGHUP (` + "`systemctl reload godwit`" + `) has it count while ` + "`godwit serve`" + ` runs. Certificates,
keys and what they are trusted by are looked at every five seconds, and need no SIGHUP. All else counts from the next start.

## godwit dev and godwit serve

| flag | variable | default | |
|---|---|---|---|
`

// TestSettingsDocument: docs/reference/settings.md has each flag of each command.
func TestSettingsDocument(t *testing.T) {
	for _, name := range os.Environ() {
		if name, _, _ := strings.Cut(name, "="); strings.HasPrefix(name, "GODWIT_") {
			t.Setenv(name, "")
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	var flags cli
	parser, err := newParser(&flags)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, settingsHead, forms+"\n")
	var dev, serve *kong.Node
	for _, node := range parser.Model.Children {
		switch node.Name {
		case "dev":
			dev = node
		case "serve":
			serve = node
		}
	}
	writeSettings(&b, dev, serve)
	for _, node := range parser.Model.Leaves(true) {
		if node != dev && node != serve {
			writeCommand(&b, node)
		}
	}
	generated.Hold(t, "../../docs/reference/settings.md", b.String())
}

// writeSettings writes a row for each flag of the two commands that start a server.
func writeSettings(b *strings.Builder, dev, serve *kong.Node) {
	inServe := map[string]*kong.Flag{}
	for _, f := range serve.Flags {
		inServe[f.Name] = f
	}
	row := func(f *kong.Flag, value, note string) {
		if slices.Contains(live, f.Name) {
			note += " *At once.*"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s%s |\n", flagName(f), variable(f), value, cell(text(f)), note)
	}
	for _, f := range dev.Flags {
		other := inServe[f.Name]
		delete(inServe, f.Name)
		switch {
		case f.Hidden || f.Name == "help":
		case other == nil:
			row(f, value(f), " Of `dev` only.")
		case f.Default != other.Default:
			row(f, value(f)+" in `dev`, "+value(other)+" in `serve`", "")
		default:
			row(f, value(f), "")
		}
	}
	for _, f := range serve.Flags {
		if inServe[f.Name] != nil && !f.Hidden && f.Name != "help" {
			row(f, value(f), " Of `serve` only.")
		}
	}
}

// writeCommand writes what a command does, and its flags.
func writeCommand(b *strings.Builder, node *kong.Node) {
	if node.Hidden {
		return
	}
	fmt.Fprintf(b, "\n## godwit %s\n\n%s\n", strings.TrimPrefix(node.Path(), "godwit "), cell(node.Help))
	for _, p := range node.Positional {
		fmt.Fprintf(b, "\n- `%s`: %s\n", p.Summary(), cell(p.Help))
	}
	head := "\n| flag | variable | default | |\n|---|---|---|---|\n"
	for _, f := range node.Flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		fmt.Fprintf(b, "%s| %s | %s | %s | %s |\n", head, flagName(f), variable(f), value(f), cell(text(f)))
		head = ""
	}
}

func flagName(f *kong.Flag) string {
	name := "--" + f.Name
	if f.Tag.Negatable != "" {
		name = "--[no-]" + f.Name
	}
	if f.Short != 0 {
		name = "-" + string(f.Short) + ", " + name
	}
	return "`" + name + "`"
}

func variable(f *kong.Flag) string {
	if len(f.Envs) == 0 {
		return ""
	}
	return "`" + strings.Join(f.Envs, "`, `") + "`"
}

func value(f *kong.Flag) string {
	switch {
	case f.Default != "":
		return "`" + f.Default + "`"
	case f.IsBool():
		return "`false`"
	case f.Required:
		return "required"
	}
	return "none"
}

// text is a flag's help without its default, which has a column.
func text(f *kong.Flag) string { return strings.ReplaceAll(f.Help, " ("+f.Default+")", "") }

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"godwit.dev/godwit/cmd/godwit/operate"
)

// completion prints a shell's script for completing command lines.
type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Which shell: ${enum}."`
}

// scripts call this command itself: its output is completed literally, never evaluated.
var scripts = map[string]string{
	"bash": `_godwit() {
	mapfile -t COMPREPLY < <(godwit complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _godwit godwit
`,
	"zsh": `#compdef godwit
_godwit() {
	local -a found
	found=("${(@f)$(godwit complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	compadd -- $found
}
compdef _godwit godwit
`,
	"fish": `complete -c godwit -f -a '(godwit complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
}

// Run prints it.
func (c *completion) Run(p *process) error {
	_, err := fmt.Fprint(p.stdout, scripts[c.Shell])
	return err
}

// complete prints the possible completions of the last word.
type complete struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"The words behind godwit."`
}

// askTime bounds the time for a server to list the names of its resources.
const askTime = 2 * time.Second

// Run prints them.
func (c *complete) Run(p *process, app *kong.Context) error {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, word := range completions(app.Model, words, func(kind, endpoint string) []string {
		server := operate.Connection{Endpoint: endpoint}
		return server.Names(ctx, kind)
	}) {
		if _, err := fmt.Fprintln(p.stdout, word); err != nil {
			return err
		}
	}
	return nil
}

// completions are the completions of the last word; names lists a server's resources of a kind.
func completions(app *kong.Application, words []string, names func(kind, endpoint string) []string) (all []string) {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	node, given, before := app.Node, 0, ""
	endpoint := os.Getenv("GODWIT_ENDPOINT")
	for _, word := range words[:len(words)-1] {
		value := before
		before = ""
		switch at := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word }); {
		case value == "--endpoint":
			endpoint = word
		case strings.HasPrefix(word, "-"):
			name, set, ok := strings.Cut(word, "=")
			switch {
			case ok && name == "--endpoint":
				endpoint = set
			case !ok && takesValue(node, name):
				before = name
			}
		case value != "":
		case at >= 0:
			node, given = node.Children[at], 0
		default:
			given++
		}
	}
	add := func(word string) {
		if strings.HasPrefix(word, last) && !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	if endpoint == "" {
		endpoint = "http://127.0.0.1:4566"
	}
	if before != "" {
		f := flagOf(node, before)
		for _, value := range f.EnumSlice() {
			if value != "" {
				add(value)
			}
		}
		if kind := namedBy[f.Name]; kind != "" {
			for _, name := range names(kind, endpoint) {
				add(name)
			}
		}
		return all
	}
	if strings.HasPrefix(last, "-") {
		for _, f := range flagsOf(node) {
			add("--" + f.Name)
		}
		slices.Sort(all)
		return all
	}
	if given == 0 {
		for _, n := range node.Children {
			if !n.Hidden {
				add(n.Name)
			}
		}
	}
	places := node.Positional
	if len(places) == 0 && node.DefaultCmd != nil {
		places = node.DefaultCmd.Positional
	}
	if node != app.Node && given < len(places) {
		place := places[given]
		for _, value := range place.EnumSlice() {
			add(value)
		}
		for _, kind := range kindsOf(place.Name, words) {
			for _, name := range names(kind, endpoint) {
				add(name)
			}
		}
	}
	return all
}

// kindsOf are the kinds of resource that an argument names: those of a job depend on its
// action.
func kindsOf(argument string, words []string) []string {
	switch {
	case argument != "resource":
		return []string{argument}
	case slices.Contains(words, "retry"), slices.Contains(words, "drop"):
		return []string{"subscription"}
	default:
		return []string{"queue"}
	}
}

// namedBy are the kinds of resource that flags name.
var namedBy = map[string]string{"to": "queue", "topic": "topic"}

// flagsOf are the flags that may follow a command; a group also has those of its default
// command.
func flagsOf(node *kong.Node) (all []*kong.Flag) {
	for _, flags := range node.AllFlags(true) {
		all = append(all, flags...)
	}
	if node.DefaultCmd != nil {
		all = append(all, node.DefaultCmd.Flags...)
	}
	return all
}

// flagOf is the flag with a spelling; nil if there is none.
func flagOf(node *kong.Node, written string) *kong.Flag {
	for _, f := range flagsOf(node) {
		if written == "--"+f.Name || f.Short != 0 && written == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

func takesValue(node *kong.Node, name string) bool {
	f := flagOf(node, name)
	return f != nil && !f.IsBool()
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"godwit.dev/godwit/internal/config"
)

// man writes manual pages, for packages.
type man struct {
	Dir string `arg:"" help:"The directory to write them to, which is made: godwit.1, and godwit-COMMAND.1 for each command."`
}

// Run writes them.
func (m *man) Run(app *kong.Context) error {
	if err := os.MkdirAll(m.Dir, 0o755); err != nil { //nolint:gosec // manuals are for everybody
		return err
	}
	for name, text := range manuals(app.Model) {
		if err := os.WriteFile(filepath.Join(m.Dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return nil
}

// manuals are the pages by file name, made of the program's command-line model.
func manuals(app *kong.Application) map[string]string {
	pages := map[string]string{"godwit.1": overview(app)}
	for _, command := range app.Children {
		if !command.Hidden {
			pages["godwit-"+command.Name+".1"] = manual(command)
		}
	}
	return pages
}

// page is a manual page in the format of groff and mandoc.
type page struct{ strings.Builder }

func newPage(name, summary string) *page {
	p := &page{}
	fmt.Fprintf(p, ".TH %s 1 \"\" %q \"Godwit\"\n", escaped(strings.ToUpper(name)), "godwit "+escaped(config.Version))
	fmt.Fprintf(p, ".SH NAME\n%s \\- %s\n", escaped(name), escaped(strings.TrimSuffix(summary, ".")))
	return p
}

// escaped escapes text for a page.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`).Replace(text)
}

// paragraph writes text on a line of its own, which is not a request even if it begins with a
// dot.
func (p *page) paragraph(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(p, "\\&%s\n", escaped(strings.TrimSpace(line)))
	}
}

func (p *page) section(title string) { fmt.Fprintf(p, ".SH %s\n", title) }

// item writes a name, in bold, and its description.
func (p *page) item(bold, italic, text string) {
	p.WriteString(".TP\n")
	if bold != "" {
		p.WriteString("\\fB" + escaped(bold) + "\\fR")
	}
	if italic != "" {
		p.WriteString("\\fI" + escaped(italic) + "\\fR")
	}
	p.WriteString("\n")
	p.paragraph(text)
}

// overview is the page of the program.
func overview(app *kong.Application) string {
	p := newPage("godwit", "durable message service with the APIs of SNS and SQS")
	p.section("SYNOPSIS")
	p.WriteString(".B godwit\n[\\fICOMMAND\\fR] [\\fIFLAGS\\fR]\n")
	p.section("DESCRIPTION")
	p.paragraph(app.Help)
	p.section("COMMANDS")
	for _, command := range app.Children {
		if !command.Hidden {
			p.item("godwit-"+command.Name+"(1)", "", command.Help)
		}
	}
	p.section("FLAGS")
	p.flags(app.Flags)
	p.section("EXIT STATUS")
	p.item("0", "", "It is done.")
	p.item("1", "", "It failed. The reason is on standard error.")
	p.item("2", "", "It cannot work however often it is tried: wrong flags, or files that are missing or unsafe. Of apply and import with --dry-run: something differs.")
	p.item("3", "", "Of check, salvage, backup and restore: something is damaged.")
	return p.String()
}

// manual is the page of a command, with its subcommands.
func manual(command *kong.Node) string {
	p := newPage("godwit-"+command.Name, command.Help)
	leaves := []*kong.Node{command}
	if len(command.Children) > 0 {
		leaves = command.Leaves(true)
	}
	p.section("SYNOPSIS")
	for i, leaf := range leaves {
		if i > 0 {
			p.WriteString(".br\n")
		}
		p.synopsis(leaf)
	}
	p.section("DESCRIPTION")
	p.paragraph(command.Help)
	if command.Detail != "" {
		p.WriteString(".PP\n")
		p.paragraph(command.Detail)
	}
	for _, leaf := range leaves {
		if leaf != command {
			fmt.Fprintf(p, ".SH %s\n", escaped(strings.ToUpper("godwit "+leaf.Path())))
			p.paragraph(leaf.Help)
		} else if len(leaf.Positional)+len(leaf.Flags) > 0 {
			p.section("ARGUMENTS AND FLAGS")
		}
		for _, argument := range leaf.Positional {
			p.item("", strings.ToUpper(argument.Name), argument.Help)
		}
		p.flags(leaf.Flags)
	}
	p.section("SEE ALSO")
	p.paragraph("godwit(1)")
	return p.String()
}

func (p *page) synopsis(leaf *kong.Node) {
	fmt.Fprintf(p, "\\fBgodwit %s\\fR", escaped(leaf.Path()))
	for _, f := range leaf.Flags {
		if f.Required && !f.Hidden {
			fmt.Fprintf(p, " \\fB\\-\\-%s\\fR=\\fI%s\\fR", escaped(f.Name), escaped(f.FormatPlaceHolder()))
		}
	}
	for _, argument := range leaf.Positional {
		text := "\\fI" + escaped(strings.ToUpper(argument.Name)) + "\\fR"
		if !argument.Required {
			text = "[" + text + "]"
		}
		p.WriteString(" " + text)
	}
	p.WriteString(" [\\fIFLAGS\\fR]\n")
}

func (p *page) flags(all []*kong.Flag) {
	for _, f := range all {
		if f.Hidden {
			continue
		}
		bold, italic, help := "--"+f.Name, "", f.Help
		if f.Tag.Negatable != "" {
			bold = "--[no-]" + f.Name
		}
		if f.Short != 0 {
			bold = "-" + string(f.Short) + ", " + bold
		}
		if !f.IsBool() {
			bold, italic = bold+"=", strings.Trim(f.FormatPlaceHolder(), `"`)
		}
		if len(f.Envs) > 0 {
			help += " [" + strings.Join(f.Envs, ", ") + "]"
		}
		p.item(bold, italic, help)
	}
}

package internal

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// documents are the texts of the repository in Markdown, by their paths in it, without what
// has been taken from others.
func documents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != ".." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "node_modules", "testdata", "third_party"}, d.Name())) {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel("..", name) // both are relative
		all[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	fenced     = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	linkedText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// anchors are what links to headings of a document have behind the #, as GitHub and Hugo make it.
func anchors(text string) map[string]bool {
	all, times := map[string]bool{}, map[string]int{}
	for _, found := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		title := linkedText.ReplaceAllString(found[1], "$1")
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsNumber(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, title)
		if n := times[anchor]; n > 0 {
			all[fmt.Sprintf("%s-%d", anchor, n)] = true
		} else {
			all[anchor] = true
		}
		times[anchor]++
	}
	return all
}

// TestLinks: each link of a document to a file of the repository, or to a heading, leads there.
func TestLinks(t *testing.T) {
	all := documents(t)
	headings := map[string]map[string]bool{}
	for name, text := range all {
		headings[name] = anchors(text)
	}
	links := 0
	for name, text := range all {
		// The documents of the site's own are found at their own places only.
		for _, found := range link.FindAllStringSubmatch(quoted.ReplaceAllString(fenced.ReplaceAllString(text, ""), "code"), -1) {
			to, anchor, hasAnchor := strings.Cut(found[1], "#")
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			links++
			target := name
			if to != "" {
				target = path.Join(path.Dir(name), to)
			}
			info, err := os.Stat(filepath.Join("..", filepath.FromSlash(target)))
			if err != nil {
				t.Errorf("%s links %s, which is not there", name, found[1])
				continue
			}
			if info.IsDir() {
				target = path.Join(target, "README.md")
			}
			if hasAnchor && !headings[target][anchor] {
				t.Errorf("%s links %s, and there is no such heading", name, found[1])
			}
		}
	}
	if links < 100 {
		t.Errorf("there are %d links", links)
	}
}

// TestNamedDocuments: each document that the code, its messages, the chart or another file names is there.
func TestNamedDocuments(t *testing.T) {
	named := regexp.MustCompile(`\b(?:docs|deploy|examples)/[\w/-]+\.md\b`)
	found := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != ".." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "dist", "node_modules", "testdata", "third_party"}, d.Name())) {
			return fs.SkipDir
		}
		if !slices.Contains([]string{".go", ".json", ".md", ".service", ".toml", ".ts", ".tsx", ".yaml", ".yml", ".html", ".js", ""}, filepath.Ext(name)) || d.IsDir() {
			return nil
		}
		text, err := os.ReadFile(name)
		for _, document := range named.FindAllString(string(text), -1) {
			found++
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(document))); err != nil {
				t.Errorf("%s names %s, which is not there", name, document)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 100 {
		t.Errorf("%d documents are named", found)
	}
}

// TestAnchors: a heading's anchor is without what is no letter or number, and counted where
// there is another one.
func TestAnchors(t *testing.T) {
	got := anchors("# `POST /in/NAME`, or not\n```sh\n# no heading\n```\n## It's [here](a.md)\n## Twice\n## Twice\n")
	for _, want := range []string{"post-inname-or-not", "its-here", "twice", "twice-1"} {
		if !got[want] {
			t.Errorf("there is no %s", want)
		}
	}
	if len(got) != 4 {
		t.Errorf("there are %v", got)
	}
}

// TestSiteHasEachDocument: each document has one place in one of the four sections of the site,
// and each place a document.
func TestSiteHasEachDocument(t *testing.T) {
	text, err := os.ReadFile("../site/hugo.toml")
	if err != nil {
		t.Fatal(err)
	}
	placed, targets := map[string]bool{}, map[string]bool{}
	for _, found := range regexp.MustCompile(`source = "\.\./([^"]+\.md)"\ntarget = "content/(tutorials|how-to|reference|explanation)/([^"]+\.md)"`).FindAllStringSubmatch(string(text), -1) {
		if placed[found[1]] || targets[found[2]+found[3]] {
			t.Errorf("%s has two places in site/hugo.toml, or shares its own", found[1])
		}
		placed[found[1]], targets[found[2]+found[3]] = true, true
		if _, err := os.Stat(filepath.Join("..", found[1])); err != nil {
			t.Errorf("site/hugo.toml has a place for %s, which is not there", found[1])
		}
	}
	if want := strings.Count(string(text), ".md\"\ntarget = "); len(placed) != want {
		t.Errorf("%d of %d mounts of documents are in one of the four sections", len(placed), want)
	}
	for name := range documents(t) {
		if !placed[name] && !strings.HasPrefix(name, "site/") && !strings.Contains(name, "/testdata/") {
			t.Errorf("%s is in no section of site/hugo.toml", name)
		}
	}
}

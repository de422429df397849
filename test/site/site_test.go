// Package site_test builds the documents as a site, with the pinned Hugo, and follows all links
// of it.
package site_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"godwit.dev/godwit/test/programs"
)

// page is what a page of the site links, and what can be linked in it.
type page struct {
	links []string
	ids   map[string]bool
}

// TestSite: no link of the site is dead, and none of its own fetches anything from elsewhere.
func TestSite(t *testing.T) {
	programs.Allow(t)
	pages := map[string]*page{}
	root := build(t)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".html" {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		pages[filepath.ToSlash(rel)], err = read(t, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 40 {
		t.Errorf("there are %d pages", len(pages))
	}
	links := 0
	for name, p := range pages {
		for _, to := range p.links {
			links++
			follow(t, root, pages, name, to)
		}
	}
	if links < 1000 {
		t.Errorf("there are %d links", links)
	}
	searched(t, root, pages)
}

// searched sees that what the search finds is there: each heading of the documents.
func searched(t *testing.T, root string, pages map[string]*page) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var found []struct{ Page, Heading, URL string }
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	titles := map[string]bool{}
	for _, f := range found {
		titles[f.Page+": "+f.Heading] = true
		follow(t, root, pages, "index.html", f.URL)
	}
	for _, want := range []string{"Operations: Restoring", "Celery: Celery", "Errors: sqs", "Monitoring: The server's log"} {
		if !titles[want] {
			t.Errorf("the search does not find %q", want)
		}
	}
}

// build builds Hugo, and with it the site, and gives the directory with it.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	hugo := filepath.Join(dir, "hugo")
	compile := exec.CommandContext(t.Context(), "go", "build", "-o", hugo, "github.com/gohugoio/hugo")
	compile.Dir = filepath.Join("..", "..", "tools", "site")
	if out, err := compile.CombinedOutput(); err != nil {
		text := strings.TrimSpace(string(out))
		programs.Skip(t, "Hugo cannot be built: "+text[strings.LastIndexByte(text, '\n')+1:])
	}
	root := filepath.Join(dir, "site")
	cmd := exec.CommandContext(t.Context(), hugo, "build", "--source", filepath.Join("..", "..", "site"), "--destination", root,
		"--cacheDir", filepath.Join(dir, "cache"), "--noBuildLock", "--panicOnWarning")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return root
}

// read reads a page, and refuses what it would have of another host.
func read(t *testing.T, name string) (p *page, err error) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	root, err := html.Parse(file)
	if err != nil {
		return nil, err
	}
	p = &page{ids: map[string]bool{}}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				p.ids[a.Val] = true
			case "href", "src":
				u, err := url.Parse(a.Val)
				switch {
				case err != nil:
					t.Errorf("%s links %q: %v", name, a.Val, err)
				case u.Scheme == "" && u.Host == "":
					p.links = append(p.links, a.Val)
				case n.Data != "a" && u.Scheme != "data":
					t.Errorf("%s has a <%s> of %s", name, n.Data, a.Val)
				}
			}
		}
	}
	return p, nil
}

// follow sees that what a page links is there.
func follow(t *testing.T, root string, pages map[string]*page, from, to string) {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil || to == "" {
		t.Errorf("%s links %q: %v", from, to, err)
		return
	}
	target := from
	if u.Path != "" {
		target = path.Join(path.Dir(from), u.Path)
		if strings.HasPrefix(u.Path, "/") {
			target = strings.TrimPrefix(path.Clean(u.Path), "/")
		}
	}
	if info, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err == nil && info.IsDir() {
		target = path.Join(target, "index.html")
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
		t.Errorf("%s links %s, which is not there", from, to)
		return
	}
	if u.Fragment != "" && (pages[target] == nil || !pages[target].ids[u.Fragment]) {
		t.Errorf("%s links %s, and nothing has that id", from, to)
	}
}

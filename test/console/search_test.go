package console_test

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestSearchOfTheSite: on every page of the documents' site words lead to the headings that have
// all of them, wherever the site was put, and what is found can be followed.
func TestSearchOfTheSite(t *testing.T) {
	if missing != "" {
		t.Skip(missing)
	}
	dir := t.TempDir()
	hugo, root := filepath.Join(dir, "hugo"), filepath.Join(dir, "site")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", hugo, "github.com/gohugoio/hugo")
	build.Dir = filepath.Join("..", "..", "tools", "site")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("Hugo cannot be built: %v\n%s", err, out) // TestSite names it
	}
	site := exec.CommandContext(t.Context(), hugo, "build", "--source", filepath.Join("..", "..", "site"), "--destination", root,
		"--cacheDir", filepath.Join(dir, "cache"), "--noBuildLock", "--panicOnWarning")
	if out, err := site.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const at = "/manuals/godwit"
	mux := http.NewServeMux()
	mux.Handle(at+"/", http.StripPrefix(at, http.FileServer(http.Dir(root))))
	web := httptest.NewServer(mux)
	defer web.Close()

	b := (&server{t: t, url: web.URL}).open(t)
	const (
		found = `[...document.querySelectorAll("#found a")]`
		none  = `document.querySelector("#found").hidden`
	)
	look := func(words string) {
		t.Helper()
		b.run(script(`document.querySelector("#query").focus(), document.querySelector("#query").select()`), chromedp.KeyEvent(words))
	}
	for _, page := range []string{"/", "/how-to/operations/", "/reference/settings/"} {
		b.run(chromedp.Navigate(web.URL + at + page))
		b.until("there is a search", `document.querySelector("#query")`)
		if !b.is(none) {
			t.Errorf("%s has found something before it was asked", page)
		}
		look("operations RESTORING")
		b.until("it is found", `!`+none)
		if got := value[string](b, found+`.map((a) => a.textContent).join("\n")`); got != "Operations: Restoring" {
			t.Errorf("%s finds %q", page, got)
		}
		look("no heading has this")
		b.until("nothing is found", none)
	}
	look("restoring operations")
	b.until("it is found", `!`+none)
	b.run(script(found + `[0].click()`))
	b.until("it is followed", `location.hash === "#restoring" && document.querySelector("#restoring")`)
	if got := value[string](b, "location.href"); !strings.HasPrefix(got, web.URL+at+"/") || !strings.Contains(got, "operations") {
		t.Errorf("it leads to %s", got)
	}
	if n := b.asked("index.json"); n != 3 { // once on each page
		t.Errorf("the list was fetched %d times", n)
	}
}

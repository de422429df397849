package console_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// The search of the documents' site finds a heading, and leads to it; below any path, too.
func TestSiteSearch(t *testing.T) {
	t.Parallel()
	if missing != "" {
		t.Skip(missing)
	}
	dir := t.TempDir()
	hugo := filepath.Join(dir, "hugo")
	compile := exec.CommandContext(t.Context(), "go", "build", "-o", hugo, "github.com/gohugoio/hugo")
	compile.Dir = filepath.Join("..", "..", "tools", "site")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("Hugo: %v\n%s", err, out)
	}
	build := exec.CommandContext(t.Context(), hugo, "build", "--source", filepath.Join("..", "..", "site"), "--destination", filepath.Join(dir, "site"),
		"--cacheDir", filepath.Join(dir, "cache"), "--noBuildLock", "--panicOnWarning")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "site", "search.js")); err != nil {
		t.Fatal(err)
	}
	at := httptest.NewServer(http.StripPrefix("/below/", http.FileServer(http.Dir(filepath.Join(dir, "site")))))
	defer at.Close()
	b := (&server{t: t, url: at.URL}).open(t)
	b.run(chromedp.Navigate(at.URL + "/below/"))
	b.until("the page is there", `document.getElementById("query")`)
	if n := b.asked("index.json"); n != 0 {
		t.Error("the headings are fetched before anybody searches")
	}
	b.run(script(`document.getElementById("query").focus()`), chromedp.KeyEvent("rEstoring operations"))
	const first = `document.querySelector("#found li a")`
	b.until("it is found", first+` && `+first+`.textContent === "Operations: Restoring" && !document.getElementById("found").hidden`)
	b.run(script(first + ".click()"))
	b.until("the page is there", `location.hash === "#restoring" && document.querySelector("h1")?.textContent.includes("Operations") && document.getElementById("query").value === ""`)

	b.run(script(`document.getElementById("query").focus()`), chromedp.KeyEvent("no heading has these"))
	b.until("nothing is found", `document.getElementById("found").hidden && !document.querySelector("#found li")`)
	if n := b.asked("index.json"); n != 2 {
		t.Errorf("the headings of two pages are fetched %d times", n)
	}
}

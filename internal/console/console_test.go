package console

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func served(t *testing.T) *http.ServeMux {
	t.Helper()
	handlers, err := Handlers()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for pattern, h := range handlers {
		mux.Handle(pattern, h)
	}
	return mux
}

func get(mux http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

// Each address of the console is the page, which names its files; those may be kept for ever,
// and come compressed to whoever can read that.
func TestPage(t *testing.T) {
	mux := served(t)
	for _, path := range []string{Path, Path + "queues", Path + "queue?arn=arn:aws:sqs:us-east-1:000000000000:q"} {
		w := get(mux, path)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		for _, file := range regexp.MustCompile(`(?:src|href)="(/[^"]*)"`).FindAllStringSubmatch(w.Body.String(), -1) {
			plain, packed := get(mux, file[1]), get(mux, file[1], "Accept-Encoding", "br, gzip")
			if plain.Code != http.StatusOK || packed.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(plain.Header().Get("Cache-Control"), "immutable") {
				t.Errorf("%s: %d %v %v", file[1], plain.Code, plain.Header(), packed.Header())
			}
			r, err := gzip.NewReader(packed.Body)
			if err != nil {
				t.Fatal(err)
			}
			unpacked, err := io.ReadAll(r)
			if err != nil || string(unpacked) != plain.Body.String() {
				t.Errorf("%s: %d bytes, and packed %d, %v", file[1], plain.Body.Len(), len(unpacked), err)
			}
		}
	}
	if w := get(mux, Path+"assets/app-0123.js"); w.Code != http.StatusNotFound {
		t.Errorf("a file of another version: %d", w.Code)
	}
}

// Nothing but the console's own script runs, no text becomes markup, and nobody frames it.
func TestProtected(t *testing.T) {
	mux := served(t)
	w := get(mux, Path)
	csp := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "require-trusted-types-for 'script'", "trusted-types 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("%s is not in %s", want, csp)
		}
	}
	for _, never := range []string{"unsafe", "http:", "https:", "*"} {
		if strings.Contains(csp, never) {
			t.Errorf("%s is in %s", never, csp)
		}
	}
	if got := w.Header().Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("X-Content-Type-Options: %q", got)
	}
	body := w.Body.String()
	if regexp.MustCompile(`<script[^>]*>[^<]|\son\w+=|<style`).MatchString(body) {
		t.Errorf("there are scripts or styles in the page:\n%s", body)
	}
}

// The source makes no markup of text, runs none, and asks nobody but the server.
func TestSource(t *testing.T) {
	never := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacent|dangerously|document\.write|eval\(|new Function|https?://[a-z]|srcdoc|DOMParser`)
	n := 0
	err := filepath.WalkDir("ui/src", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if found := never.FindString(line); found != "" {
				t.Errorf("%s:%d has %s", path, i+1, found)
			}
		}
		if lines := strings.Count(string(text), "\n"); lines > 600 {
			t.Errorf("%s has %d lines", path, lines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 10 {
		t.Errorf("%d files", n)
	}
}

// The documentation names each page of the menu, and shows each picture that there is.
func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("ui/src/main.tsx")
	if err != nil {
		t.Fatal(err)
	}
	_, menu, _ := strings.Cut(string(source), "const menu:")
	menu, _, _ = strings.Cut(menu, "];")
	entries := regexp.MustCompile(`\["([a-z-]*)", "([^"]+)"\]`).FindAllStringSubmatch(menu, -1)
	if len(entries) < 17 {
		t.Fatalf("%d entries in the menu", len(entries))
	}
	for _, entry := range entries {
		if !regexp.MustCompile(`(?m)^\|[^|]*\b` + entry[2] + `\b`).Match(doc) {
			t.Errorf("%s is in no line of the table of pages", entry[2])
		}
	}
	pictures, err := filepath.Glob("../../docs/console/*.webp")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pictures {
		if !strings.Contains(string(doc), "(console/"+filepath.Base(name)+")") {
			t.Errorf("%s is shown nowhere", name)
		}
	}
}

// What a browser loads before it shows something stays small, and so does the whole console.
// In bytes, compressed.
func TestSize(t *testing.T) {
	mux := served(t)
	packed := func(path string) int { return get(mux, path, "Accept-Encoding", "gzip").Body.Len() }
	first := packed(Path)
	for _, file := range regexp.MustCompile(`(?:src|href)="(/[^"]*)"`).FindAllStringSubmatch(get(mux, Path).Body.String(), -1) {
		first += packed(file[1])
	}
	entries, err := dist.ReadDir("dist")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, e := range entries {
		text, err := dist.ReadFile("dist/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		total += len(text)
	}
	t.Logf("%d bytes at first, %d in all", first, total)
	if first > 48_000 || total > 80_000 {
		t.Errorf("%d bytes at first, want at most 48,000; %d in all, want at most 80,000", first, total)
	}
}

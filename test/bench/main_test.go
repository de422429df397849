package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The references go through every scenario that they know, as a server would.
func TestQuickRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Chdir("../..")
	dir := t.TempDir()
	jsonPath, doc := filepath.Join(dir, "all.json"), filepath.Join(dir, "doc.md")
	if err := os.WriteFile(doc, []byte(fillBegin+"\n"+fillEnd+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, progress strings.Builder
	args := []string{"--quick", "--server", "none", "--data", dir, "--json", jsonPath, "--fill", doc}
	if err := run(args, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	for _, want := range []string{"\nSend\n", "\nCycle\n", "\nOpen loop\n", "\nIdle long polls\n", "\nDepth\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	filled, _ := os.ReadFile(doc)
	if !strings.Contains(string(filled), "### Depth") {
		t.Errorf("document:\n%s", filled)
	}
	b, _ := os.ReadFile(jsonPath)
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, rec := range r.Records {
		seen[rec.Scenario+" "+rec.Server] = true
		if rec.Sample.Messages < 1 || rec.Sample.Throughput <= 0 || rec.Sample.RSS <= 0 {
			t.Errorf("%+v", rec)
		}
	}
	for _, want := range []string{"send r", "send m", "cycle m", "open r", "open m", "poll m", "depth m"} {
		if !seen[want] {
			t.Errorf("no sample of %s", want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "bench-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"--only", "send,nonsense"},
		{"--rates", "0"},
		{"--rounds", "-1"},
		{"stray"},
		{"--peer", "http://10.0.0.1:80"},
		{"--server", "/nonexistent", "--reference", "/nonexistent", "--data", t.TempDir()},
	} {
		var out, progress strings.Builder
		if err := run(args, &out, &progress); err == nil {
			t.Errorf("%q was run:\n%s", args, out.String())
		}
	}
}

func TestProfile(t *testing.T) {
	pprof := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/pprof/profile" || r.FormValue("seconds") != "4" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("a profile"))
	}))
	defer pprof.Close()
	s := &server{pprofHost: strings.TrimPrefix(pprof.URL, "http://")}
	path := filepath.Join(t.TempDir(), "profiles", "send.pprof")
	if err := s.profile(t.Context(), 4*time.Second, path); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "a profile" {
		t.Errorf("profile %q", got)
	}
	if err := s.profile(t.Context(), 9*time.Second, path); err == nil {
		t.Error("status 404 is taken for a profile")
	}
}

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/test/built"
	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/soak"
)

// all reports that every scenario is to be run: each costs a second, and make test has three.
func all() bool { return soak.Size(0, 1) == 1 }

// Every scenario but the cluster's once, in a small size: the server, the references, and a
// peer, which is another of the references.
func TestQuickRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Chdir("../..")
	dir := t.TempDir()
	binaries := t.TempDir()
	godwit, err := built.Server(binaries)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := built.Program(binaries, ".", "test/bench/reference")
	if err != nil {
		t.Fatal(err)
	}
	if err := built.Look("test/handler"); err != nil { // built by the scenario
		t.Fatal(err)
	}
	other, stop, err := startAll(t.Context(), []spec{{name: "other", role: inMemory, argv: []string{reference, "--kind", "memory"}}}, binaries)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	t.Setenv("PEER_URL", "http://"+other[0].host)
	t.Setenv("PEER_PID", strconv.Itoa(other[0].pid))

	jsonPath, doc := filepath.Join(dir, "all.json"), filepath.Join(dir, "doc.md")
	if err := os.WriteFile(doc, []byte(fillBegin+"\n"+fillEnd+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, progress strings.Builder
	var only []string
	for _, s := range scenarios {
		// See TestQuickCluster.
		if s.name != "cluster" && (all() || slices.Contains([]string{"send", "cycle", "fanout"}, s.name)) {
			only = append(only, s.name)
		}
	}
	args := []string{"--quick", "--server", godwit, "--reference", reference, "--data", dir, "--json", jsonPath, "--fill", doc, "--only", strings.Join(only, ",")}
	if err := run(args, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	t.Log(out.String())
	filled, _ := os.ReadFile(doc)
	titles := []string{"Send", "Cycle", "Fan-out"}
	if all() {
		titles = append(titles, "Open loop", "Idle long polls", "FIFO at depth", "FIFO beside a locked group",
			"Many queues: work", "Many queues: memory", "Idle subscriptions", "Deliveries over HTTP", "From a publish to its delivery",
			"Beside endpoints that hang", "Decisions", "Sealing", "Stacks", "Limits of accounts", "Backups in a bucket", "Logs: operations", "Logs: memory, disk and time",
			"Depth: memory and restarts", "Depth: operations", "Against the targets")
	}
	for _, want := range titles {
		if !strings.Contains(out.String(), "\n"+want+"\n") || !strings.Contains(string(filled), "### "+want+"\n") {
			t.Errorf("no %q", want)
		}
	}
	b, _ := os.ReadFile(jsonPath)
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, rec := range r.Records {
		who, _, _ := strings.Cut(rec.Server, ",")
		seen[rec.Scenario+" "+who] = true
		limit := who == "bare client" || who == "signing" // in this process
		if rec.Sample.Messages < 1 || rec.Sample.Throughput <= 0 || rec.Sample.RSS <= 0 && !limit {
			t.Errorf("%+v", rec)
		}
	}
	atPeer := "peer :" + other[0].host[strings.LastIndexByte(other[0].host, ':')+1:]
	samples := []string{"send godwit", "send r", "send m", "send " + atPeer, "cycle godwit", "cycle m", "cycle " + atPeer, "fanout godwit"}
	if all() {
		samples = append(samples, "open godwit", "open r", "open m", "open "+atPeer, "poll godwit", "poll m",
			"fifo standard", "fifo FIFO", "fifo alone", "fifo beside", "queues 50 queues", "queues 500 queues",
			"sealing sse", "sealing clear", "limits godwit", "limits none", "backups godwit", "backups bucket", "ingest post", "ingest publish", "http bare client", "http signing", "http godwit",
			"isolation alone", "isolation beside", "depth empty", "depth untouched", "depth delayed", "depth returned")
	}
	for _, want := range samples {
		if !seen[want] {
			t.Errorf("no sample of %s in %v", want, seen)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "bench-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Three nodes that share a machine with other tests may choose another leader meanwhile, and
// the benchmark ends with the first request that is not answered: so this is for test-all,
// which runs few tests at once.
func TestQuickCluster(t *testing.T) {
	programs.Allow(t)
	t.Chdir("../..")
	godwit, err := built.Server(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out, progress strings.Builder
	if err := run([]string{"--quick", "--server", godwit, "--reference", "none", "--data", t.TempDir(), "--only", "cluster"}, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	if !strings.Contains(out.String(), "Cluster: three nodes") {
		t.Error(out.String())
	}
}

// The references alone go through what they know.
func TestReferencesAlone(t *testing.T) {
	if !all() {
		t.Skip("at full size only: make full")
	}
	t.Chdir("../..")
	var out, progress strings.Builder
	args := []string{"--quick", "--server", "none", "--data", t.TempDir(), "--only", "queues,fifo,http,isolation,depth"}
	if err := run(args, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	if !strings.Contains(out.String(), "\nDepth: operations\n") {
		t.Error(out.String())
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"--only", "send,nonsense"},
		{"--rates", "0"},
		{"--hanging", "-1"},
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
	if err := s.profile(t.Context(), "profile", 4*time.Second, path); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "a profile" {
		t.Errorf("profile %q", got)
	}
	if err := s.profile(t.Context(), "profile", 9*time.Second, path); err == nil {
		t.Error("status 404 is taken for a profile")
	}
}

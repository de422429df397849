package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hostile is what a server or a backup of a stranger may say in any text.
const hostile = "x\x1b]0;x\x07\u009b31m\u202e\u2066\x00"

// Nothing that a server of strangers or their backup says moves the cursor of a terminal, changes
// its colours or turns the direction of its text.
func TestHostileTexts(t *testing.T) {
	text, _ := json.Marshal(hostile)
	said := string(text)
	status := http.StatusBadRequest
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/cluster"):
			_, _ = w.Write([]byte(`{"nodes":[{"name":` + said + `,"url":` + said + `,"version":` + said + `,"state":` + said + `},{"name":` + said + `,"state":"serving"}],"cells":[{"owner":` + said + `}]}`))
		case strings.HasPrefix(r.URL.Path, "/_godwit/"):
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":` + said + `,"code":"BadRequest"}`))
		default:
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"__type":` + said + `,"message":` + said + `}`))
		}
	}))
	defer s.Close()
	dir := t.TempDir()
	manifest := []byte(`{"format":1,"version":` + said + `,"rootKey":` + said + `,"files":[]}`)
	sum := sha256.Sum256(manifest)
	for name, content := range map[string]string{"backup.json": string(manifest), "backup.sha256": hex.EncodeToString(sum[:]) + "  backup.json\n", "store/" + hostile[1:5]: "x"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damaged := func() { // what is in store is none of the backup's files; without it there is nothing wrong
		t.Helper()
		if err := os.Remove(filepath.Join(dir, "store", hostile[1:5])); err != nil {
			t.Fatal(err)
		}
	}
	for i, args := range [][]string{
		{"cluster", "status", "--endpoint", s.URL},
		{"cluster", "step-down", "--endpoint", s.URL, "--wait", "20s"},
		{"backup", "--endpoint", s.URL, filepath.Join(t.TempDir(), "b")},
		{"export", "--endpoint", s.URL},
		{"import", "--from-endpoint", s.URL, "--endpoint", s.URL},
		{"queues", "--endpoint", s.URL},
		{"restore", dir, "--data", filepath.Join(t.TempDir(), "d")},
		{"check", dir},
		{"restore", dir, "--data", filepath.Join(t.TempDir(), "d")},
	} {
		if i == 8 {
			damaged()
		}
		var out bytes.Buffer
		run(args, strings.NewReader(""), &out, &out, time.Now())
		if got := out.String(); strings.ContainsAny(got, "\x1b\x07\u009b\u202e\u2066\x00") || got == "" {
			t.Errorf("%v prints %q", args, got)
		} else if !strings.Contains(got, `\u001b`) && args[0] != "export" && args[0] != "import" { // which tell the status alone
			t.Errorf("%v does not tell what is said: %q", args, got)
		}
	}
}

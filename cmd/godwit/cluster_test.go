package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// godwit cluster status asks the server that all other commands ask.
func TestClusterStatusAsks(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/_godwit/v1/cluster" {
			t.Errorf("it asks for %s", r.URL.Path)
		}
		_, _ = w.Write([]byte(`{"nodes":[{"name":"local","url":"http://here","pid":7,"state":"serving","number":0,"lag":0}],"cells":[{"cell":0,"owner":"local","epoch":0,"number":0,"lag":0}]}`))
	}))
	defer s.Close()
	ask := func(args ...string) (int, string) {
		var out bytes.Buffer
		status := run(append([]string{"cluster", "status"}, args...), strings.NewReader(""), &out, &out, time.Now())
		return status, out.String()
	}
	for _, flag := range []string{"--endpoint", "--url"} {
		if status, text := ask(flag, s.URL); status != 0 || !strings.Contains(text, "local  http://here  7    serving") {
			t.Errorf("%s: %d: %s", flag, status, text)
		}
	}
	t.Setenv("GODWIT_ENDPOINT", s.URL)
	if status, text := ask(); status != 0 || !strings.Contains(text, "0     local") {
		t.Errorf("by the environment: %d: %s", status, text)
	}
}

// A server in production wants it signed, and what it refuses with is reported.
func TestClusterStatusSigns(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "/godwit/aws4_request") {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":"sign it\u001b[31m","code":"Unauthenticated"}`))
			return
		}
		_, _ = w.Write([]byte(`{"nodes":[],"cells":[{"cell":0,"owner":"local"}]}`))
	}))
	defer s.Close()
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	var out bytes.Buffer
	if status := run([]string{"cluster", "status", "--endpoint", s.URL}, strings.NewReader(""), &out, &out, time.Now()); status == 0 || !strings.Contains(out.String(), `401 Unauthorized: sign it\u001b[31m`) {
		t.Errorf("without a key: %d: %s", status, out.String())
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	out.Reset()
	if status := run([]string{"cluster", "status", "--endpoint", s.URL}, strings.NewReader(""), &out, &out, time.Now()); status != 0 || !strings.Contains(out.String(), "0     local") {
		t.Errorf("with a key: %d: %s", status, out.String())
	}
}

// Where the authority is not at hand, and nobody is asked who has it, renew says so.
func TestClusterRenewWithoutAuthority(t *testing.T) {
	dir := t.TempDir()
	command := func(args ...string) (int, string) {
		var out bytes.Buffer
		status := run(append([]string{"cluster"}, append(args, "--dir", dir, "--node", "a")...), strings.NewReader(""), &out, &out, time.Now())
		return status, out.String()
	}
	if status, text := command("init"); status != 0 {
		t.Fatal(text)
	}
	if status, text := command("renew"); status != 0 {
		t.Errorf("with the authority: %s", text)
	}
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	if status, text := command("renew"); status == 0 || !strings.Contains(text, "ca.key") || !strings.Contains(text, "--from") {
		t.Errorf("without it: %d: %s", status, text)
	}
}

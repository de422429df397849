package signed_test

import (
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"godwit.dev/godwit/cmd/godwit/signed"
)

// The environment goes before the profile; a profile that is named has to be there.
func TestFind(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
	path := filepath.Join(t.TempDir(), "credentials")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", path)
	if _, ok, err := signed.Find(); ok || err != nil {
		t.Errorf("where there is nothing: %v, %v", ok, err)
	}
	text := "# a comment\n[default]\naws_access_key_id = AKIADEFAULT\naws_secret_access_key=one=two\n\n[ops]\nAWS_ACCESS_KEY_ID=AKIAOPS\naws_secret_access_key = three\naws_session_token = four\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := func(what string, want signed.Key) {
		t.Helper()
		if got, ok, err := signed.Find(); got != want || !ok || err != nil {
			t.Errorf("%s: %+v, %v, %v", what, got, ok, err)
		}
	}
	want("the default profile", signed.Key{ID: "AKIADEFAULT", Secret: "one=two", Region: "us-east-1"})
	t.Setenv("AWS_PROFILE", "ops")
	t.Setenv("AWS_DEFAULT_REGION", "eu-west-1")
	want("a profile", signed.Key{ID: "AKIAOPS", Secret: "three", SessionToken: "four", Region: "eu-west-1"})
	t.Setenv("AWS_PROFILE", "none")
	if _, ok, err := signed.Find(); ok || err == nil {
		t.Error("a profile that is not there is taken")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "five")
	want("the environment", signed.Key{ID: "AKIAENV", Secret: "five", Region: "eu-west-1"})
}

// What is sent is signed, whole, with the key that is found.
func TestClient(t *testing.T) {
	var got *http.Request
	var body string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got, body = r, string(text)
	}))
	defer s.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_SESSION_TOKEN", "token")
	c, err := signed.Client(0)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Post(s.URL+"/_godwit/v1/x", "application/json", strings.NewReader(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if a := got.Header.Get("Authorization"); !strings.Contains(a, "Credential=AKIAENV/") || !strings.Contains(a, "/godwit/aws4_request") || got.Header.Get("X-Amz-Security-Token") != "token" {
		t.Errorf("signed as %q", a)
	}
	if body != `{"a":1}` {
		t.Errorf("sent %q", body)
	}
}

// A server with a certificate of one's own authority is believed with AWS_CA_BUNDLE alone.
func TestAuthorities(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	defer s.Close()
	dir := t.TempDir()
	own, text := filepath.Join(dir, "own.pem"), filepath.Join(dir, "text.pem")
	for path, content := range map[string][]byte{own: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), text: []byte("none")} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for bundle, want := range map[string]string{"": "certificate", own: "", text: text + " has no certificate", filepath.Join(dir, "none"): "AWS_CA_BUNDLE"} {
		t.Setenv("AWS_CA_BUNDLE", bundle)
		c, err := signed.Client(0)
		if err == nil {
			var answer *http.Response
			if answer, err = c.Get(s.URL); err == nil {
				answer.Body.Close()
			}
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("with %q: %v", bundle, err)
		}
	}
}

package clients_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// The clients of npm are pinned in node/package-lock.json; each has a file in
// node/ with its tests, which node's own runner runs.

func TestClientSQS(t *testing.T) {
	t.Parallel()
	runNode(t, "@aws-sdk/client-sqs", "client-sqs.test.js", "sqs json")
}

func TestSQSConsumer(t *testing.T) {
	t.Parallel()
	runNode(t, "sqs-consumer", "sqs-consumer.test.js", "sqs json")
}

// TestSNSValidator has a server of its own, whose messages name it by an https
// address: the validator takes certificates from no other.
func TestSNSValidator(t *testing.T) {
	t.Parallel()
	modules := nodeModules(t, "sns-validator")
	var to *url.URL
	front := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})
	defer front.Close()
	dir := t.TempDir()
	authority := filepath.Join(dir, "authority.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	if err := os.WriteFile(authority, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	to, stop, err := startServer(filepath.Join(dir, "data"), "--public-url", front.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if logged := stop(); t.Failed() {
			t.Logf("the server logged:\n%s", logged)
		}
	}()
	runNodeAt(t, modules, "sns-validator.test.js", to.String(),
		"GODWIT_PUBLIC_URL="+front.URL, "NODE_EXTRA_CA_CERTS="+authority, "NODE_NO_WARNINGS=1")
}

// TestWebhookSigners has a server of its own, which takes posts.
func TestWebhookSigners(t *testing.T) {
	t.Parallel()
	modules := nodeModules(t, "stripe, standardwebhooks and @octokit/webhooks")
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	at, stop, err := startServer(filepath.Join(t.TempDir(), "data"), "--ingest-listen", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if logged := stop(); t.Failed() {
			t.Logf("the server logged:\n%s", logged)
		}
	}()
	runNodeAt(t, modules, "webhooks.test.js", at.String(), "GODWIT_INGEST=http://"+address)
}

// runNode runs a file of tests in node/, which has to speak these protocols.
func runNode(t *testing.T, client, file string, spoken ...string) {
	t.Helper()
	modules := nodeModules(t, client)
	w := openWindow(t)
	runNodeAt(t, modules, file, w.url)
	w.wantSpoken(t, spoken...)
}

// runNodeAt runs a file of tests with an endpoint and more of an environment.
func runNodeAt(t *testing.T, modules, file, endpoint string, env ...string) {
	t.Helper()
	dir := nodeDir(t, modules, file, "godwit.js")
	cmd := exec.CommandContext(t.Context(), "node", "--test", "--test-reporter=spec", file)
	cmd.Dir = dir
	cmd.Env = append(environment(dir, endpoint), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("node --test %s: %v\n%s", file, err, out)
	}
	t.Logf("%s", out)
}

// nodeDir is a directory with files of node/ and the packages: node finds these from where
// a file is.
func nodeDir(t *testing.T, modules string, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append(names, "package.json") {
		text, err := os.ReadFile(filepath.Join("node", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// installing is held by the test that installs, while others wait for it.
var installing sync.Mutex

// nodeModules installs the packages of node/package-lock.json into the user's
// cache, once for each content of that file, and returns node_modules.
func nodeModules(t *testing.T, client string) string {
	t.Helper()
	installed(t)
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			skips.skip(t, client, tool+" is not installed")
		}
	}
	out, err := exec.CommandContext(t.Context(), "node", "--print", "process.versions.node.split('.')[0] >= 20").Output()
	if err != nil || string(out) != "true\n" {
		skips.skip(t, client, "needs node 20 or later")
	}
	lock, err := os.ReadFile(filepath.Join("node", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256(lock)
	base := filepath.Join(cache, "godwit-test")
	home := filepath.Join(base, "node-"+hex.EncodeToString(sum[:8]))
	modules := filepath.Join(home, "node_modules")
	installing.Lock()
	defer installing.Unlock()
	if exists(modules) {
		return modules
	}
	// Install beside it and rename: nobody sees half of it.
	if err := os.MkdirAll(base, 0o700); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(base, "install-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fresh)
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join("node", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(fresh, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = fresh
	if out, err := npm.CombinedOutput(); err != nil {
		t.Logf("%s", out)
		skips.skip(t, client, fmt.Sprintf("npm ci: %v", err))
	}
	if err := os.Rename(fresh, home); err != nil && !exists(modules) {
		t.Fatal(err)
	}
	return modules
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

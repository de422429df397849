package e2e_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// startBare runs a server of root's that has lost what makes it root, as in a container
// without namespaces, and with few files.
func startBare(t *testing.T, more ...string) *process {
	t.Helper()
	setpriv, err := exec.LookPath("setpriv")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("needs root, and setpriv to take its capabilities away")
	}
	addr := freeAddress(t)
	args := []string{"--bounding-set=-all", "--inh-caps=-all", "sh", "-c", `ulimit -Sn 512 && ulimit -Hn 512 && exec "$0" "$@"`, binary, "dev"}
	args = append(args, arguments(addr, filepath.Join(t.TempDir(), "data"), more...)...)
	p := launch(t, addr, exec.Command(setpriv, args...))
	p.awaitReady(t)
	return p
}

// Where functions cannot be isolated they do not run, and all that reports them says
// what to do. What is not about isolation is not taken for it.
func TestNoIsolation(t *testing.T) {
	const flag = "--function-isolation=none"
	zip := handlerZip(t)
	const invocations = "/2015-03-31/functions/f/invocations"
	t.Run("refused", func(t *testing.T) {
		p := startBare(t, "--function-isolation=namespaces")
		p.createFunction(t, "f", zip)
		text := string(p.lambda(t, http.MethodGet, "/2015-03-31/functions/f/configuration", nil).body)
		for _, part := range []string{`"State":"Failed"`, `"StateReasonCode":"InvalidRuntime"`, flag} {
			if !strings.Contains(text, part) {
				t.Errorf("it lacks %q: %s", part, text)
			}
		}
		a, err := p.call(t.Context(), http.MethodPost, invocations, map[string]string{"Authorization": signed("lambda")}, []byte("1"))
		if err != nil || a.status != http.StatusBadGateway || !strings.Contains(string(a.body), flag) {
			t.Errorf("an invocation: %d %s %v", a.status, a.body, err)
		}
		eventually(t, "the banner", func() (bool, error) { return strings.Contains(p.stdout.String(), flag), nil })
	})
	t.Run("accepted", func(t *testing.T) {
		p := startBare(t, flag)
		p.createFunction(t, "f", zip)
		if a := p.lambda(t, http.MethodPost, invocations, 1); string(a.body) != "1" {
			t.Errorf("it answers %s", a.body)
		}
		eventually(t, "the banner", func() (bool, error) { return strings.Contains(p.stdout.String(), "not isolated ("+flag+")"), nil })
		if log := p.stderr.String(); !strings.Contains(log, "hard limit of file descriptors") || !strings.Contains(log, "limit=512") {
			t.Errorf("the log does not tell of the files: %s", log)
		}
	})
}

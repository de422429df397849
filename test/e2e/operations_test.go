package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/test/readme"
)

// The commands of docs/operations.md work as they are written, and its file of resources is
// taken at a start.
func TestOperationsCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := regexp.MustCompile("(?s)```yaml\n(Account: .*?)```").FindSubmatch(text)
	if file == nil {
		t.Fatal("there is no file of resources")
	}
	path := filepath.Join(dir, "file.yaml")
	if err := os.WriteFile(path, file[1], 0o600); err != nil {
		t.Fatal(err)
	}
	s := startAt(t, freeAddress(t), filepath.Join(dir, "godwit-data"), "--resources", path)
	t.Setenv("PATH", filepath.Dir(binary)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("GODWIT_ENDPOINT", s.base)
	eventually(t, "the server has the resources", func() (bool, error) {
		out, err := exec.Command(binary, "apply", "--dry-run", path).CombinedOutput()
		return err == nil && strings.Contains(string(out), "nothing differs"), err
	})
	out := readme.Run(t, readme.Of(t, top, "docs/operations.md"), dir, s.addr, 10*time.Minute)
	for _, line := range []string{"each as it was made", "is sealed with the root key", "is restored", "nothing differs"} {
		if !strings.Contains(out, line) {
			t.Errorf("nothing says %q:\n%s", line, out)
		}
	}
	other := start(t)
	cmd := exec.Command(binary, "import", "--from-endpoint", s.base, "--endpoint", other.base, "--dry-run")
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "+ queue orders") || !strings.Contains(string(out), "not taken: ") {
		t.Errorf("a dry run: %v\n%s", err, out)
	}
	if out, err := exec.Command(binary, "import", "--from-endpoint", s.base, "--endpoint", other.base).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.Command(binary, "apply", "--endpoint", other.base, "--dry-run", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

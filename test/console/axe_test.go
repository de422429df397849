package console_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// axe is the text of axe-core, which looks for what people with disabilities stumble over. It
// comes from npm, pinned in axe/package-lock.json.
func axe(t *testing.T) string {
	t.Helper()
	if missing != "" {
		t.Skip(missing)
	}
	text, err := os.ReadFile(filepath.Join(npm(t, "axe"), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// npm installs what the package.json and package-lock.json of a directory name into another
// one, and returns that.
func npm(t *testing.T, of string) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(of, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("what %s needs of npm cannot be had: %v\n%s", of, err, out)
	}
	return dir
}

// violation is what axe finds.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// accessible fails the test for what axe finds on the page.
func (b *tab) accessible(axe, name string) {
	b.t.Helper()
	b.run(script(axe + ";0"))
	found := value[[]violation](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations)`)
	for _, v := range found {
		var where []string
		for _, n := range v.Nodes {
			where = append(where, n.HTML+"\n"+n.Summary)
		}
		b.t.Errorf("%s: %s: %s\n%s", name, v.ID, v.Help, strings.Join(where, "\n"))
	}
}

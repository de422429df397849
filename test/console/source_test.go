package console_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// ui is where the console's source is.
var ui = filepath.Join("..", "..", "internal", "console", "ui")

// The types of the console's source hold, by TypeScript's own compiler, and what it has of others
// is what they published: both as ui/package-lock.json has it.
func TestSource(t *testing.T) {
	if os.Getenv("GODWIT_PROGRAMS") == "" {
		t.Skip(missing)
	}
	dir := npm(t, ui)
	if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS(filepath.Join(ui, "src"))); err != nil {
		t.Fatal(err)
	}
	options, err := os.ReadFile(filepath.Join(ui, "tsconfig.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tsconfig.json"), options, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join("node_modules", ".bin", "tsc"), "--noEmit", "--project", ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("tsc: %v\n%s", err, out)
	}

	maps := regexp.MustCompile(`(?m)^//# sourceMappingURL=.*\n?`)
	for ours, theirs := range map[string]string{
		"preact/preact.mjs": "preact/dist/preact.mjs", "preact/hooks.mjs": "preact/hooks/dist/hooks.mjs",
		"signals/signals.mjs": "@preact/signals/dist/signals.mjs", "signals/signals-core.mjs": "@preact/signals-core/dist/signals-core.mjs",
		"uplot/uPlot.esm.js": "uplot/dist/uPlot.esm.js", "uplot/uPlot.css": "uplot/dist/uPlot.min.css",
	} {
		has, err := os.ReadFile(filepath.Join(ui, "third_party", ours))
		if err != nil {
			t.Fatal(err)
		}
		published, err := os.ReadFile(filepath.Join(dir, "node_modules", theirs))
		if err != nil {
			t.Fatal(err)
		}
		if want := bytes.TrimSpace(maps.ReplaceAll(published, nil)); !bytes.Equal(bytes.TrimSpace(has), want) {
			t.Errorf("third_party/%s is not what %s is: %d bytes, want %d", ours, theirs, len(has), len(want))
		}
	}
}

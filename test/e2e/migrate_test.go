package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/test/readme"
)

// The commands of docs/migrate.md and docs/upgrade.md work as they are written.
func TestMigrateAndUpgradeCommands(t *testing.T) {
	dir := t.TempDir()
	s := startAt(t, freeAddress(t), filepath.Join(dir, "godwit-data"))
	t.Setenv("PATH", filepath.Dir(binary)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("GODWIT_ENDPOINT", s.base)
	for document, want := range map[string]string{"migrate": "nothing differs", "upgrade": "each as it was made"} {
		text, err := os.ReadFile(filepath.Join("../../docs", document+".md"))
		if err != nil {
			t.Fatal(err)
		}
		if out := readme.Run(t, string(text), dir, s.addr, time.Minute); !strings.Contains(out, want) {
			t.Errorf("%s: nothing says %q:\n%s", document, want, out)
		}
	}
}

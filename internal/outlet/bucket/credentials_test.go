package bucket

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCredentials: a key and its secret, from a file that in production is its owner's alone.
func TestCredentials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials")
	for name, c := range map[string]struct {
		text       string
		mode       os.FileMode
		production bool
		refused    string // part of the text; empty: it is not
	}{
		"as it should be":        {"AKIA\nse cret\n", 0o600, true, ""},
		"others may read it":     {"AKIA\nsecret\n", 0o640, true, "chmod 600"},
		"others may, and may":    {"AKIA\nse cret\n", 0o644, false, ""},
		"lines end as elsewhere": {" AKIA \r\nse cret\r\n", 0o600, true, ""},
		"no secret":              {"AKIA\n", 0o600, true, "second"},
		"a third line":           {"AKIA\nsecret\nmore\n", 0o600, true, "second"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		key, secret, err := ReadCredentials(path, c.production)
		switch {
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s: %v, want %s", name, err, c.refused)
		case c.refused == "" && (err != nil || key != "AKIA" || secret != "se cret"):
			t.Errorf("%s: %q, %q, %v", name, key, secret, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret\n") {
			t.Errorf("%s: the secret is shown", name)
		}
	}
	if _, _, err := ReadCredentials(path+"-none", true); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}

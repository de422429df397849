// Package generated holds documents that are made of the code to the code.
package generated

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the documents that are made of the code anew")

// Hold fails a test unless a file has this text. With -update it writes the file: make reference
// does so for all documents.
func Hold(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is not what the code says: make reference", file)
	}
}

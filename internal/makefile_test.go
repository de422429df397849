package internal

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMakefile: what the Makefile lists to be tested without the race detector are parts of
// packages' paths. A package that is called otherwise since would come under the detector
// unnoticed, and make test would take longer.
func TestMakefile(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]bool{}
	for file := range goFiles(t) {
		for part := range strings.SplitSeq(filepath.ToSlash(filepath.Dir(file)), "/") {
			parts[part] = true
		}
	}
	listed := 0
	for _, list := range regexp.MustCompile(`(?m)^(?:PURE|CALM) +\+?= (.*)$`).FindAllSubmatch(makefile, -1) {
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(string(list[1]), -1) {
			if listed++; !parts[name] {
				t.Errorf("the Makefile lists %s, and no package is called so", name)
			}
		}
	}
	pure := regexp.MustCompile(`(?m)^PURE += /internal/\(([\w|]+)\)`).FindSubmatch(makefile)
	if pure == nil {
		t.Fatal("the Makefile does not list the pure packages")
	}
	for name := range strings.SplitSeq(string(pure[1]), "|") {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	if listed == 0 {
		t.Error("the Makefile has no lists")
	}
}

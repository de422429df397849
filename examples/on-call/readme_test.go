package oncall_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/readme"
)

// TestReadme runs the commands of README.md as they stand, but for the server's address,
// and checks that they print what stands in it.
func TestReadme(t *testing.T) {
	programs.Need(t, "bash", "aws", "curl", "jq")
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	said := readme.Run(t, string(text), "../..", freeAddress(t), 2*patience) // dozens of times the CLI starts
	for _, block := range regexp.MustCompile("(?s)```text\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(said, block[1]) {
			t.Errorf("the commands do not print\n%sbut\n%s", block[1], said)
		}
	}
}

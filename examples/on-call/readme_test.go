package oncall_test

import (
	"testing"

	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/readme"
)

// TestReadme runs the commands of README.md as they stand, but for the server's address,
// and checks that they print what stands in it.
func TestReadme(t *testing.T) {
	programs.Need(t, "bash", "aws", "curl", "jq")
	blocks := readme.Of(t, "../..", "examples/on-call/README.md")
	readme.Run(t, blocks, "../..", freeAddress(t), 5*patience) // dozens of times the CLI starts, on a machine that is busy
}

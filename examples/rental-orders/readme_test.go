package rental_test

import (
	"strings"
	"testing"

	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/readme"
)

// TestReadme runs the commands of README.md's second part as they stand, but for the
// server's address.
func TestReadme(t *testing.T) {
	programs.Need(t, "bash", "aws", "curl", "zip")
	// What stands in this order is all that each order came to.
	said := runReadme(t, "reserved R-1", "billed R-1", "X-1", `"order X-1 is broken"`, "R-3", "billed R-3", "recovered R-4")
	if strings.Contains(said, "R-2") {
		t.Errorf("the order that is only quoted came somewhere:\n%s", said)
	}
}

// TestReadmeInProduction runs those of the third part.
func TestReadmeInProduction(t *testing.T) {
	programs.Need(t, "bash", "aws", "curl", "jq", "zip")
	runReadme(t, "AccessDenied", "InvalidClientTokenId", "reserved R-1", "billed R-1", `"order X-1 is broken"`, "billed X-1", "billed R-3")
}

// TestReadmeAsStack runs those of the fourth part.
func TestReadmeAsStack(t *testing.T) {
	programs.Need(t, "bash", "aws", "curl", "node")
	said := runReadme(t, "reserved R-1", "billed R-1", "messageId", "billed X-1", "DRIFTED", "Fulfilment", "/RedrivePolicy")
	if strings.Contains(said, "QueueUrls") {
		t.Errorf("queues are left:\n%s", said)
	}
}

// runReadme runs the commands of the test's part, and checks that what it prints has all of want
// in this order.
func runReadme(t *testing.T, want ...string) (said string) {
	t.Helper()
	blocks := readme.Of(t, "../..", "examples/rental-orders/README.md")
	said = readme.Run(t, blocks, "../..", freeAddress(t), 3*patience) // dozens of times the CLI starts
	rest := said
	for _, part := range want {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("no %q in\n%s", part, said)
		}
		rest = after
	}
	return said
}

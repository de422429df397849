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

// TestReadmeLookAround runs those that go with any of the parts, while its server runs.
func TestReadmeLookAround(t *testing.T) {
	programs.Need(t, "bash", "aws", "curl")
	godwit, billing := build(t, "billing")
	address, at := freeAddress(t), freeAddress(t)
	launch(t, t, "http://"+address+"/_godwit/ready", godwit, "--listen", address, "--store", "memory")
	subscribed := readme.Block{Text: `export AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
aws() { command aws --endpoint-url http://127.0.0.1:4566 "$@"; }
TOPIC=$(aws sns create-topic --name Rental-Orders --query TopicArn --output text)
SUBSCRIPTION=$(aws sns subscribe --topic-arn $TOPIC --protocol sms --notification-endpoint +15551234567 --query SubscriptionArn --output text)
`}
	said := readme.Shell{
		Dir: "../..", Address: address, Within: 5 * patience,
		Replace: strings.NewReplacer(
			"go run ./examples/rental-orders/billing ", billing+" -listen "+at+" &\nuntil curl http://"+at+"/arrivals; do sleep 0.1; done #",
			"127.0.0.1:8099", at, "arn:aws:sns:us-east-1:000000000000:Rental-Orders:…", "$SUBSCRIPTION",
		),
	}.Run(t, append([]readme.Block{subscribed}, readme.Of(t, "../..", "examples/rental-orders/README.md")...))
	if !strings.Contains(said, `"deliveries":[`) {
		t.Errorf("nothing tells of deliveries:\n%s", said)
	}
}

// runReadme runs the commands of the test's part, and checks that what it prints has all of want
// in this order.
func runReadme(t *testing.T, want ...string) (said string) {
	t.Helper()
	blocks := readme.Of(t, "../..", "examples/rental-orders/README.md")
	said = readme.Run(t, blocks, "../..", freeAddress(t), 5*patience) // dozens of times the CLI starts, on a machine that is busy
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

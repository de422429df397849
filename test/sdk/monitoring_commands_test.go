package sdk_test

import (
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"godwit.dev/godwit/test/programs"
)

// TestMonitoringCommands runs the commands of docs/monitoring.md as they stand, but for
// addresses: when one web hook refuses a message for good, the other one is told.
func TestMonitoringCommands(t *testing.T) {
	programs.Need(t, "bash", "aws")
	text, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	endpoint, orders, ops := startOpen(t), newHook(t), newHook(t)
	script := "set -e\n"
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		script += block[1]
	}
	script = strings.NewReplacer(
		"http://127.0.0.1:4566", endpoint, "http://127.0.0.1:9000/orders", orders.URL+"/orders", "http://127.0.0.1:9000/ops", ops.URL+"/ops",
	).Replace(script)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_") })
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, h := range []*hook{orders, ops} {
		link := decode(t, h.next(t).Body)["SubscribeURL"].(string)
		equal(t, "the confirmation", http.StatusOK, visit(t, link).Status)
	}
	advance(t, endpoint, "10m")
	equal(t, "requests before anything has failed", 0, len(ops.requests))
	orders.answer(http.StatusServiceUnavailable)
	must(topicsClient(endpoint).Publish(t.Context(), &sns.PublishInput{TopicArn: aws.String(topicARN("orders")), Message: aws.String("an order")}))(t)
	advance(t, endpoint, "5m")
	equal(t, "what the web hook is told", any(`ALARM: "dead-letters" in US East (N. Virginia)`), decode(t, ops.next(t).Body)["Subject"])
}

package sdk_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/readme"
)

// TestMonitoringCommands runs the commands of docs/monitoring.md as they stand, but for
// addresses: when one web hook refuses a message for good, the other one is notified.
func TestMonitoringCommands(t *testing.T) {
	programs.Need(t, "bash", "aws")
	endpoint, orders, ops := startOpen(t), newHook(t), newHook(t)
	readme.Shell{
		Dir: t.TempDir(), Address: strings.TrimPrefix(endpoint, "http://"), Within: 10 * time.Minute,
		Replace: strings.NewReplacer("http://127.0.0.1:9000/orders", orders.URL+"/orders", "http://127.0.0.1:9000/ops", ops.URL+"/ops"),
	}.Run(t, readme.Of(t, "../..", "docs/monitoring.md"))
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

package clients_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// runForeign runs a server of AWS's APIs that others have written until the test ends, and
// waits for it to answer.
func runForeign(t *testing.T, address string, cmd *exec.Cmd) {
	t.Helper()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended is in its output
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails only if it has ended
		<-ended
		if t.Failed() {
			t.Logf("it printed:\n%s", output.String())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := http.Get("http://" + address + "/")
		if err == nil {
			answer.Body.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ended:
			t.Fatal("it ended")
		case <-ctx.Done():
			t.Fatalf("it does not answer: %v", err)
		}
	}
}

// importing is an import from a server into a new one.
type importing struct {
	from, to string
}

func newImport(t *testing.T, from string) *importing {
	t.Helper()
	to, stop, err := startServer(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop() })
	return &importing{from: "http://" + from, to: to.String()}
}

// run runs it, which has to end with a status, and returns what it printed.
func (i *importing) run(t *testing.T, status int, more ...string) string {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"import", "--from-endpoint", i.from, "--endpoint", i.to}, more...)...)
	cmd.Env = environment(t.TempDir(), i.to)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != status {
		t.Fatalf("import %v: %v\n%s", more, err, out)
	}
	return string(out)
}

// imported holds what was imported: a queue "orders", whose attributes it returns, and a
// topic "orders" with a subscription of the queue.
func imported(t *testing.T, w *window) (attributes map[string]string) {
	t.Helper()
	found, err := w.sqs().GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	q, err := w.sqs().GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: found.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	subscriptions, err := w.sns().ListSubscriptionsByTopic(t.Context(), &sns.ListSubscriptionsByTopicInput{TopicArn: aws.String("arn:aws:sns:us-east-1:000000000000:orders")})
	if err != nil || len(subscriptions.Subscriptions) != 1 {
		t.Fatalf("there are %v, %v", subscriptions, err)
	}
	sub := subscriptions.Subscriptions[0]
	if aws.ToString(sub.Endpoint) != q.Attributes["QueueArn"] {
		t.Errorf("the subscription is of %s", aws.ToString(sub.Endpoint))
	}
	has, err := w.sns().GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: sub.SubscriptionArn})
	if err != nil || has.Attributes["RawMessageDelivery"] != "true" || !strings.Contains(has.Attributes["FilterPolicy"], "confirmed") {
		t.Errorf("the subscription has %v, %v", has, err)
	}
	return q.Attributes
}

// TestImportFromGoaws imports from goaws, which has other accounts, few actions and no alarms:
// what it does not tell is listed.
func TestImportFromGoaws(t *testing.T) {
	t.Parallel()
	const client = "import from goaws"
	dir := t.TempDir()
	program := filepath.Join(dir, "goaws")
	build := exec.Command("go", "build", "-o", program, "github.com/Admiral-Piett/goaws/app/cmd")
	build.Dir = filepath.Join("..", "..", "tools", "goaws")
	if out, err := build.CombinedOutput(); err != nil {
		skips.skip(t, client, "it cannot be built: "+lastLines(string(out)))
	}
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(dir, "goaws.yaml")
	if err := os.WriteFile(settings, []byte(`
Local:
  Host: 127.0.0.1
  Port: `+port+`
  Region: us-east-1
  AccountId: "100010001000"
  Queues:
    - {Name: dead}
    - Name: orders
      ReceiveMessageWaitTimeSeconds: 20
      RedrivePolicy: '{"maxReceiveCount": 5, "deadLetterTargetArn": "arn:aws:sqs:us-east-1:100010001000:dead"}'
  Topics:
    - Name: orders
      Subscriptions: [{QueueName: orders, Raw: true, FilterPolicy: '{"status": ["confirmed"]}'}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	runForeign(t, address, exec.Command(program, "-config", settings))
	i := newImport(t, address)
	// Its redrive policies have a name for an ARN, or nothing: that is refused, and said so.
	lines := i.run(t, 1)
	queue := imported(t, &window{url: i.to})
	if _, ok := queue["RedrivePolicy"]; ok || queue["ReceiveMessageWaitTimeSeconds"] != "20" {
		t.Errorf("the queue has %v", queue)
	}
	for _, want := range []string{"! queue orders RedrivePolicy: SetQueueAttributes: InvalidParameterValue ", "not taken: tags of queue orders: ListQueueTags: ", "not taken: attributes of topic orders: GetTopicAttributes: ", "not taken: alarms: ", "not taken: messages\n", "+ topic orders\n"} {
		if !strings.Contains(lines, want) {
			t.Errorf("it does not say %q:\n%s", want, lines)
		}
	}
}

// TestImportFromMoto imports from moto, a server for tests that has all that is taken.
func TestImportFromMoto(t *testing.T) {
	t.Parallel()
	installed(t)
	const client = "import from moto"
	program, err := exec.LookPath("moto_server")
	if err != nil {
		skips.skip(t, client, "moto_server is not installed")
	}
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	runForeign(t, address, exec.Command(program, "-H", host, "-p", port))
	from := &window{url: "http://" + address}
	_, dead := createQueue(t, from.sqs(), "dead", nil)
	_, orders := createQueue(t, from.sqs(), "orders", map[string]string{
		"VisibilityTimeout": "45", "RedrivePolicy": `{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":"5"}`,
	})
	topic, err := from.sns().CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.sns().Subscribe(t.Context(), &sns.SubscribeInput{
		TopicArn: topic.TopicArn, Protocol: aws.String("sqs"), Endpoint: &orders,
		Attributes: map[string]string{"RawMessageDelivery": "true", "FilterPolicy": `{"status":["confirmed"]}`},
	}); err != nil {
		t.Fatal(err)
	}
	i := newImport(t, address)
	changes := func(text string) string {
		return regexp.MustCompile(`(?m)^\d+ (would change|changed)\n(?s:.*)`).ReplaceAllString(text, "")
	}
	would := i.run(t, 2, "--dry-run")
	lines := i.run(t, 0)
	if changes(would) != changes(lines) {
		t.Errorf("a dry run says\n%sand a run\n%s", would, lines)
	}
	if again := i.run(t, 0); !strings.HasSuffix(again, "\nnothing differs\n") {
		t.Errorf("a second time it says\n%s", again)
	}
	queue := imported(t, &window{url: i.to})
	if queue["VisibilityTimeout"] != "45" || !strings.Contains(queue["RedrivePolicy"], "arn:aws:sqs:us-east-1:000000000000:dead") {
		t.Errorf("the queue has %v", queue)
	}
	if n := strings.Count(lines, "not taken: "); n != 2 {
		t.Errorf("of moto's, %d lines say what was not taken:\n%s", n, lines)
	}
}

package clients_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// debianCLI is where Debian's package puts the command line. Its version (2.9
// in Debian 12) is of the time before SQS had JSON: it speaks Query.
const debianCLI = "/usr/bin/aws"

// TestDebianCLI installs Debian's awscli if it may.
func TestDebianCLI(t *testing.T) {
	t.Parallel()
	installed(t)
	const client = "Debian's awscli"
	if !exists(debianCLI) {
		apt, err := exec.LookPath("apt-get")
		switch {
		case err != nil:
			skips.skip(t, client, "not a Debian")
		case os.Geteuid() != 0:
			skips.skip(t, client, "not installed, and installing it takes root")
		}
		if err := install(t, apt); err != nil {
			skips.skip(t, client, err.Error())
		}
	}
	c := newCLI(t, debianCLI)
	c.everydayCalls(t)
	if c.beforeJSON {
		c.window.wantSpoken(t, "sqs query", "sns query")
	}
}

// install installs awscli, with a fresh list of packages if the one that is
// here does not do.
func install(t *testing.T, apt string) error {
	t.Helper()
	run := func(args ...string) error {
		cmd := exec.CommandContext(t.Context(), apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("%s", out)
			err = fmt.Errorf("apt-get %s: %w", args[0], err)
		}
		return err
	}
	awscli := []string{"install", "--yes", "--no-install-recommends", "awscli"}
	if run(awscli...) == nil {
		return nil
	}
	if err := run("update"); err != nil {
		return err
	}
	return run(awscli...)
}

// TestInstalledCLI runs the one that is found first, if it is another one.
func TestInstalledCLI(t *testing.T) {
	t.Parallel()
	installed(t)
	path, err := exec.LookPath("aws")
	if err != nil {
		skips.skip(t, "the installed aws", "there is none")
	}
	if path == debianCLI {
		t.Skip("is Debian's")
	}
	c := newCLI(t, path)
	c.everydayCalls(t)
	if !c.beforeJSON {
		c.window.wantSpoken(t, "sqs json", "sns query")
	}
}

// cli is an AWS command line.
type cli struct {
	path       string
	window     *window
	env        []string
	major      int
	beforeJSON bool // of a time when SQS had no JSON: before November 2023
}

var versions = regexp.MustCompile(`aws-cli/(\d+)\.(\d+)\.`)

func newCLI(t *testing.T, path string) *cli {
	t.Helper()
	c := &cli{path: path, window: openWindow(t)}
	c.env = environment(t.TempDir(), c.window.url)
	cmd := exec.CommandContext(t.Context(), path, "--version")
	cmd.Env = c.env
	out, err := cmd.CombinedOutput() // old ones print it on standard error
	version := versions.FindSubmatch(out)
	if err != nil || version == nil {
		skips.skip(t, path, fmt.Sprintf("--version: %v: %s", err, out))
	}
	t.Logf("%s", bytes.TrimSpace(out))
	var minor int
	fmt.Sscan(string(version[1]), &c.major)
	fmt.Sscan(string(version[2]), &minor)
	c.beforeJSON = c.major == 1 && minor < 30 || c.major == 2 && minor < 14
	return c
}

// output is what a command prints, such as Messages, of which it may be a list.
type output map[string]any

// call runs a command that must succeed.
func (c *cli) call(t *testing.T, args ...string) output {
	t.Helper()
	out, err := c.try(t, args...)
	if err != nil {
		t.Fatalf("aws %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// try runs a command; an error is what it printed.
func (c *cli) try(t *testing.T, args ...string) (output, error) {
	t.Helper()
	args = append([]string{"--endpoint-url", c.window.url, "--output", "json"}, args...)
	cmd := exec.CommandContext(t.Context(), c.path, args...)
	cmd.Env = c.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(err, errors.New(stderr.String()))
	}
	if stdout.Len() == 0 { // commands without a result print nothing
		return nil, nil
	}
	var out output
	return out, json.Unmarshal(stdout.Bytes(), &out)
}

// messages are those that a receive printed.
func (o output) messages() (all []map[string]any) {
	list, _ := o["Messages"].([]any)
	for _, m := range list {
		all = append(all, m.(map[string]any))
	}
	return all
}

func (c *cli) createQueue(t *testing.T, name, attributes string) (url, arn string) {
	t.Helper()
	url = c.call(t, "sqs", "create-queue", "--queue-name", name, "--attributes", attributes)["QueueUrl"].(string)
	return url, "arn:aws:sqs:us-east-1:000000000000:" + name
}

func (c *cli) attributes(t *testing.T, url string) map[string]any {
	t.Helper()
	return c.call(t, "sqs", "get-queue-attributes", "--queue-url", url, "--attribute-names", "All")["Attributes"].(map[string]any)
}

// receive waits for a message.
func (c *cli) receive(t *testing.T, url string, more ...string) map[string]any {
	t.Helper()
	args := []string{
		"sqs", "receive-message", "--queue-url", url, "--wait-time-seconds", "20",
		"--attribute-names", "All", "--message-attribute-names", "All",
	}
	all := c.call(t, append(args, more...)...).messages()
	if len(all) != 1 {
		t.Fatalf("received %d messages from %s", len(all), url)
	}
	return all[0]
}

// everydayCalls is what people do. A command takes about half a second, which
// is why each is given only once.
func (c *cli) everydayCalls(t *testing.T) {
	t.Helper()
	name := strings.ReplaceAll(t.Name(), "/", "-")
	dead, deadARN := c.createQueue(t, name+"-dead", "{}")
	redrive, err := json.Marshal(map[string]string{
		"RedrivePolicy":     fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":2}`, deadARN),
		"VisibilityTimeout": "60",
	})
	if err != nil {
		t.Fatal(err)
	}
	url, arn := c.createQueue(t, name, string(redrive))
	if got := c.attributes(t, url); got["QueueArn"] != arn || got["VisibilityTimeout"] != "60" {
		t.Errorf("the attributes are %v", got)
	}

	// A message with attributes of every kind.
	attributes := `{"kind":{"DataType":"String","StringValue":"grün <&>"},"price":{"DataType":"Number","StringValue":"12.5"},` +
		`"seal":{"DataType":"Binary","BinaryValue":"AAH+/w=="}}`
	body := `{"order":"R-1","text":"Größe < 3 & \"quoted\""}`
	sent := c.call(t, "sqs", "send-message", "--queue-url", url, "--message-body", body, "--message-attributes", attributes)
	m := c.receive(t, url)
	if m["Body"] != body || m["MessageId"] != sent["MessageId"] {
		t.Errorf("received %v, sent %s as %v", m, body, sent["MessageId"])
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(attributes), &want); err != nil {
		t.Fatal(err)
	}
	if c.major == 1 { // takes bytes as they are, and prints them in base64
		seal := want["seal"].(map[string]any)
		seal["BinaryValue"] = base64.StdEncoding.EncodeToString([]byte(seal["BinaryValue"].(string)))
	}
	if d := cmp.Diff(want, m["MessageAttributes"]); d != "" {
		t.Errorf("attributes (-sent +received):\n%s", d)
	}

	// Back to the queue, received again, and dead when it is not deleted.
	handle := m["ReceiptHandle"].(string)
	c.call(t, "sqs", "change-message-visibility", "--queue-url", url, "--receipt-handle", handle, "--visibility-timeout", "0")
	again := c.receive(t, url, "--visibility-timeout", "0")
	if n := again["Attributes"].(map[string]any)["ApproximateReceiveCount"]; n != "2" {
		t.Errorf("ApproximateReceiveCount is %v, want 2", n)
	}
	if rest := c.call(t, "sqs", "receive-message", "--queue-url", url).messages(); len(rest) != 0 {
		t.Errorf("received a third time: %v", rest)
	}
	letter := c.receive(t, dead)
	if from := letter["Attributes"].(map[string]any)["DeadLetterQueueSourceArn"]; letter["MessageId"] != sent["MessageId"] || from != arn {
		t.Errorf("the dead letter is %v", letter)
	}
	c.call(t, "sqs", "delete-message", "--queue-url", dead, "--receipt-handle", letter["ReceiptHandle"].(string))

	// A batch.
	batch := c.call(t, "sqs", "send-message-batch", "--queue-url", url,
		"--entries", `[{"Id":"a","MessageBody":"one"},{"Id":"b","MessageBody":"two"}]`)
	if n := len(batch["Successful"].([]any)); n != 2 {
		t.Errorf("%d of 2 entries were sent", n)
	}
	both := c.call(t, "sqs", "receive-message", "--queue-url", url, "--max-number-of-messages", "10").messages()
	var entries []map[string]any
	bodies := map[any]bool{}
	for i, m := range both {
		bodies[m["Body"]] = true
		entries = append(entries, map[string]any{"Id": fmt.Sprint(i), "ReceiptHandle": m["ReceiptHandle"]})
	}
	if d := cmp.Diff(map[any]bool{"one": true, "two": true}, bodies); d != "" {
		t.Errorf("bodies (-sent +received):\n%s", d)
	}
	list, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	c.call(t, "sqs", "delete-message-batch", "--queue-url", url, "--entries", string(list))

	// A long poll, begun before the message comes from a topic.
	topic := c.call(t, "sns", "create-topic", "--name", name)["TopicArn"].(string)
	c.call(t, "sns", "subscribe", "--topic-arn", topic, "--protocol", "sqs", "--notification-endpoint", arn,
		"--attributes", `{"FilterPolicy":"{\"kind\":[\"order\"]}"}`)
	published := make(chan output, 1)
	go func() {
		out, err := c.try(t, "sns", "publish", "--topic-arn", topic, "--message", "order 1",
			"--message-attributes", `{"kind":{"DataType":"String","StringValue":"order"}}`)
		if err != nil {
			t.Errorf("sns publish: %v", err)
		}
		published <- out
	}()
	m = c.receive(t, url)
	var envelope struct{ Type, Message, MessageID string }
	if err := json.Unmarshal([]byte(m["Body"].(string)), &envelope); err != nil {
		t.Fatal(err)
	}
	if p := <-published; envelope.Type != "Notification" || envelope.Message != "order 1" || envelope.MessageID != p["MessageId"] {
		t.Errorf("the envelope is %+v, published was %v", envelope, p)
	}

	// Errors by their codes, and the end.
	c.call(t, "sqs", "purge-queue", "--queue-url", url)
	c.call(t, "sqs", "delete-queue", "--queue-url", url)
	_, err = c.try(t, "sqs", "get-queue-url", "--queue-name", name)
	if err == nil || !strings.Contains(err.Error(), "(AWS.SimpleQueueService.NonExistentQueue)") {
		t.Errorf("the URL of a deleted queue: %v", err)
	}

	c.fifo(t, name)
}

// fifo: order within a group, and a duplicate that is none.
func (c *cli) fifo(t *testing.T, name string) {
	t.Helper()
	url, _ := c.createQueue(t, name+".fifo", `{"FifoQueue":"true","ContentBasedDeduplication":"true"}`)
	batch := c.call(t, "sqs", "send-message-batch", "--queue-url", url, "--entries",
		`[{"Id":"a","MessageBody":"one","MessageGroupId":"g"},{"Id":"b","MessageBody":"two","MessageGroupId":"g"},`+
			`{"Id":"c","MessageBody":"one","MessageGroupId":"g"}]`)
	ids := map[any]any{}
	for _, entry := range batch["Successful"].([]any) {
		e := entry.(map[string]any)
		ids[e["Id"]] = e["MessageId"]
	}
	if ids["a"] == nil || ids["a"] != ids["c"] || ids["a"] == ids["b"] {
		t.Errorf("ids of one, two and one again: %v", ids)
	}
	var bodies []any
	for _, m := range c.call(t, "sqs", "receive-message", "--queue-url", url, "--max-number-of-messages", "10").messages() {
		bodies = append(bodies, m["Body"])
	}
	if d := cmp.Diff([]any{"one", "two"}, bodies); d != "" {
		t.Errorf("bodies (-sent +received):\n%s", d)
	}
}

package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/test/programs"
)

// single runs one server on a directory until the returned function is called.
func single(t *testing.T, port int, data string) (*cluster, func()) {
	t.Helper()
	c := &cluster{t: t, port: port, over: make(chan struct{})}
	c.cmd = exec.Command(binary, "dev", "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--data", data)
	c.run()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if answer, err := bounded.Get(c.url(0) + "/_godwit/ready"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return c, c.stop
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the server does not answer within %v", testTimeout)
		}
	}
}

func command(t *testing.T, args ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("godwit %v: %w: %s", args, err, out)
	}
	return nil
}

// TestConvert: a single node's data becomes a cluster's, of which each node has all, and
// that of a single node again, with handles that were given before.
func TestConvert(t *testing.T) {
	programs.Allow(t)
	port, data, back := freePorts(t), t.TempDir(), filepath.Join(t.TempDir(), "back")
	c, stop := single(t, port, data)
	out, err := c.client(0).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("kept"), Attributes: map[string]string{"VisibilityTimeout": "5"}})
	if err != nil {
		t.Fatal(err)
	}
	queue, want := *out.QueueUrl, map[string]bool{}
	c.fill(queue, 0, 20, "single 0", want)
	other, err := c.client(0).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("leased"), Attributes: map[string]string{"VisibilityTimeout": "3600"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.client(0).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: other.QueueUrl, MessageBody: aws.String("leased")}); err != nil {
		t.Fatal(err)
	}
	leased, err := c.client(0).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: other.QueueUrl})
	if err != nil || len(leased.Messages) != 1 {
		t.Fatalf("%v, %v", leased, err)
	}
	if err := command(t, "cluster", "convert", "--data", data); err == nil {
		t.Error("what a server has open is converted")
	}
	stop()
	if err := command(t, "cluster", "convert", "--data", data); err != nil {
		t.Fatal(err)
	}
	if err := command(t, "cluster", "convert", "--data", data); err == nil {
		t.Error("it is converted twice")
	}

	c = start(t, port, data)
	if _, err := c.client(1).DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: other.QueueUrl, ReceiptHandle: leased.Messages[0].ReceiptHandle}); err != nil {
		t.Errorf("a handle of before: %v", err)
	}
	c.fill(queue, 2, 20, "cluster 0", want)
	for node := range nodes {
		c.own(node)
		c.drain(queue, node, cloned(want))
	}
	if err := command(t, "cluster", "copy", "--local", filepath.Join(data, "1"), "--to", back); err != nil {
		t.Fatal(err)
	}
	if err := command(t, "cluster", "copy", "--local", filepath.Join(data, "1"), "--to", back); err == nil {
		t.Error("data is overwritten by a copy")
	}
	c.stop()

	c, stop = single(t, port, back)
	defer stop()
	c.drain(queue, 0, want)
	depth, err := c.client(0).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: other.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil || depth.Attributes["ApproximateNumberOfMessagesNotVisible"] != "0" || depth.Attributes["ApproximateNumberOfMessages"] != "0" {
		t.Errorf("what was deleted in the cluster: %v, %v", depth, err)
	}
}

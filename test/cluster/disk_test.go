package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/test/programs"
)

// TestLostDisk: a node that comes back with an empty disk joins once both others are there,
// and each node serves all then.
func TestLostDisk(t *testing.T) {
	programs.Allow(t)
	port, data := freePorts(t), t.TempDir()
	c := start(t, port, data)
	out, err := c.client(1).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("kept")})
	if err != nil {
		t.Fatal(err)
	}
	const messages = 20
	for i := range messages {
		if _, err := c.client(i%nodes).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: out.QueueUrl, MessageBody: aws.String(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
	c.eventually("all nodes follow", status.whole)
	for _, lost := range []string{"1", "3"} {
		c.stop()
		if err := os.RemoveAll(filepath.Join(data, lost)); err != nil {
			t.Fatal(err)
		}
		c = start(t, port, data)
		c.eventually("all nodes have all", func(s status) bool {
			for _, n := range s.Nodes {
				if n.Fresh {
					return false
				}
			}
			return s.whole()
		})
		if _, err := os.Stat(filepath.Join(data, lost, "log-is-new")); !os.IsNotExist(err) {
			t.Errorf("node %s says that it has not all: %v", lost, err)
		}
		got, err := c.client(2).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: out.QueueUrl, AttributeNames: []types.QueueAttributeName{"ApproximateNumberOfMessages"}})
		if err != nil || got.Attributes["ApproximateNumberOfMessages"] != fmt.Sprint(messages) {
			t.Errorf("%v, %v", got, err)
		}
	}
}

package cluster_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/programs"
)

// TestBackup: each node gives a backup of the whole state, also one that does not own it, with all that
// was acknowledged by any; and what is restored of it is a single server.
func TestBackup(t *testing.T) {
	programs.Allow(t)
	port, data, dir := freePorts(t), t.TempDir(), t.TempDir()
	c := start(t, port, data)
	out, err := c.client(0).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("kept"), Attributes: map[string]string{"VisibilityTimeout": "3600"}})
	if err != nil {
		t.Fatal(err)
	}
	want, of := map[string]bool{}, make([]map[string]bool, nodes)
	at := func(what string, node int) string { return filepath.Join(dir, fmt.Sprint(what, node)) }
	for node := range nodes { // each is asked at once for what another has acknowledged
		c.fill(*out.QueueUrl, (node+1)%nodes, 5, fmt.Sprint("to ", node), want)
		of[node] = cloned(want)
		if err := command(t, "backup", "--endpoint", c.url(node), at("backup", node)); err != nil {
			t.Fatal(err)
		}
	}
	c.stop()
	for node := range nodes {
		for _, args := range [][]string{
			{"restore", at("backup", node), "--data", at("restored", node), "--root-key", filepath.Join(data, "dev-root.key")},
			{"check", at("restored", node)},
		} {
			if err := command(t, args...); err != nil {
				t.Fatal(err)
			}
		}
		one, stop := single(t, port, at("restored", node))
		one.drain(*out.QueueUrl, 0, of[node])
		more, err := one.client(0).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: out.QueueUrl})
		if err != nil || len(more.Messages) != 0 {
			t.Errorf("the backup of node %d has what was sent after it: %v, %v", node, more, err)
		}
		stop()
	}
}

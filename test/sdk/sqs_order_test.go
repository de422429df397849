package sdk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/internal/config"
)

// The order in which AWS was seen to give messages that came back.

// A standard queue gives what was sent first, however often it came back.
func TestReturnedMessagesKeepTheirPlace(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	q := createQueue(t, c, "q", "VisibilityTimeout", "3")
	send(t, c, q, "1")
	want(t, receive(t, c, q, 1), "1")
	advance(t, endpoint, "1500ms")
	send(t, c, q, "2")
	advance(t, endpoint, "3s")
	want(t, receive(t, c, q, 1), "1")

	q = createQueue(t, c, "r")
	for i := range 5 {
		send(t, c, q, fmt.Sprint(i))
	}
	all := want(t, receive(t, c, q, 3), "0", "1", "2")
	slices.Reverse(all)
	for _, m := range all {
		must(c.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &q, ReceiptHandle: m.ReceiptHandle}))(t)
		advance(t, endpoint, "1s")
	}
	want(t, receive(t, c, q, 10), "0", "1", "2", "3", "4")
}

// Of a FIFO queue's groups the one comes first whose first message has been available
// for longest, through a restart too.
func TestGroupsRankByTheirFirstMessages(t *testing.T) {
	data := t.TempDir()
	at := func(c *config.Config) { c.Store, c.Data = config.PebbleStore, data }
	back := func(t *testing.T, c *sqs.Client, q string, m types.Message, after int32) {
		t.Helper()
		must(c.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &q, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: after}))(t)
	}
	fill := func(t *testing.T, c *sqs.Client, name, visibility string, all ...string) string {
		t.Helper()
		q := createFIFO(t, c, name, "VisibilityTimeout", visibility)
		for _, m := range all {
			group, _, _ := strings.Cut(m, "-")
			sendTo(t, c, q, group, m)
		}
		return q
	}
	t.Run("before", func(t *testing.T) {
		endpoint := startWith(t, at)
		c := client(endpoint)
		q := fill(t, c, "0.fifo", "30", "g1-1", "g2-1", "g1-2", "g1-3")
		want(t, receive(t, c, q, 10), "g1-1", "g1-2", "g1-3", "g2-1")

		// What is hidden for longer holds up its group from there on.
		for i := range 3 {
			q = fill(t, c, fmt.Sprintf("x%d.fifo", i), "1", "g-1", "g-2", "g-3")
			back(t, c, q, want(t, receive(t, c, q, 10), "g-1", "g-2", "g-3")[i], 4)
			advance(t, endpoint, "2500ms")
			want(t, receive(t, c, q, 10), []string{"g-1", "g-2"}[:i]...)
		}

		q = fill(t, c, "a.fifo", "1", "g1-1", "g1-2", "g1-3", "g1-4", "g2-1", "g3-1")
		want(t, receive(t, c, q, 2), "g1-1", "g1-2")
		want(t, receive(t, c, q, 1), "g2-1")
		advance(t, endpoint, "2s")
		want(t, receive(t, c, q, 10), "g3-1", "g1-1", "g1-2", "g1-3", "g1-4", "g2-1")

		q = fill(t, c, "b.fifo", "0", "g1-1", "g2-1", "g2-2", "g3-1", "g1-2")
		want(t, receive(t, c, q, 3), "g1-1", "g1-2", "g2-1")
		want(t, receive(t, c, q, 10), "g3-1", "g1-1", "g1-2", "g2-1", "g2-2")

		for _, after := range []int32{0, 1} {
			q = fill(t, c, fmt.Sprintf("c%d.fifo", after), "30", "g1-1", "g1-2", "g2-1")
			first := want(t, receive(t, c, q, 2), "g1-1", "g1-2")[0]
			back(t, c, q, first, after)
			advance(t, endpoint, fmt.Sprintf("%ds", 2*after))
			want(t, receive(t, c, q, 10), "g2-1", "g1-1")
		}

		all := []string{"g1-1", "g2-1", "g1-2", "g2-2", "g1-3", "g1-4", "g3-1"}
		q = fill(t, c, "d.fifo", "30", all...)
		remove(t, c, q, want(t, receive(t, c, q, 2), "g1-1", "g1-2")...)
		want(t, receive(t, c, q, 10), "g2-1", "g2-2", "g1-3", "g1-4", "g3-1")
		q = fill(t, c, "e.fifo", "30", all...)
		remove(t, c, q, want(t, receive(t, c, q, 2), "g1-1", "g1-2")[0])
		want(t, receive(t, c, q, 10), "g2-1", "g2-2", "g3-1")

		q = fill(t, c, "z.fifo", "60", "g1-1", "g1-2", "g2-1", "g3-1")
		first := want(t, receive(t, c, q, 10), "g1-1", "g1-2", "g2-1", "g3-1")
		for _, i := range []int{3, 1, 0, 2} {
			back(t, c, q, first[i], 0)
			advance(t, endpoint, "1s")
		}
	})
	t.Run("after", func(t *testing.T) {
		c := client(startWith(t, at))
		q := aws.ToString(must(c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("z.fifo")}))(t).QueueUrl)
		want(t, receive(t, c, q, 10), "g3-1", "g1-1", "g1-2", "g2-1")
	})
}

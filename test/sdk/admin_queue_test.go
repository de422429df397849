package sdk_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestQueueGauges: the operator's view of a queue agrees with what was done to it.
func TestQueueGauges(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	q := createQueue(t, c, "q")
	show := func(queue string) response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+"/_godwit/queue?queue="+url.QueryEscape(queue), nil)
		if err != nil {
			t.Fatal(err)
		}
		return do(t, req)
	}
	equal(t, "an empty queue", `{"now":{"delayed":0,"groupsInFlight":0,"inFlight":0,"noisyGroups":0,"oldestSeconds":0,"visible":0},`+
		`"total":{"deadLettered":0,"deduplicated":0,"deleted":0,"emptyReceives":0,"expired":0,"received":0,"sent":0,"sentBytes":0}}`+"\n", show(queueARN("q")).Body)
	for _, body := range []string{"one", "two", "three"} {
		send(t, c, q, body)
	}
	got := receive(t, c, q, 2)
	remove(t, c, q, got[0])
	advance(t, endpoint, "42s") // the other is visible again
	receive(t, c, q, 1)
	equal(t, "the queue", `{"now":{"delayed":0,"groupsInFlight":0,"inFlight":1,"noisyGroups":0,"oldestSeconds":42,"visible":1},`+
		`"total":{"deadLettered":0,"deduplicated":0,"deleted":1,"emptyReceives":0,"expired":0,"received":3,"sent":3,"sentBytes":11}}`+"\n", show(queueARN("q")).Body)
	must(c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &q}))(t)
	createQueue(t, c, "q")
	equal(t, "another queue of the name", `{"now":{"delayed":0,"groupsInFlight":0,"inFlight":0,"noisyGroups":0,"oldestSeconds":0,"visible":0},`+
		`"total":{"deadLettered":0,"deduplicated":0,"deleted":0,"emptyReceives":0,"expired":0,"received":0,"sent":0,"sentBytes":0}}`+"\n", show(queueARN("q")).Body)
	equal(t, "a missing queue", http.StatusNotFound, show(queueARN("none")).Status)
	equal(t, "no queue", http.StatusBadRequest, show("x").Status)
}

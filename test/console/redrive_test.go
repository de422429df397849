package console_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What was received too often from a queue goes back to it by hand: first one that is selected, then
// the rest. It is in the queue again, for whoever receives, and not in the dead-letter queue.
func TestRedriveToSourceQueue(t *testing.T) {
	s := start(t)
	s.sqs("CreateQueue", `{"QueueName":"work-dead"}`)
	s.sqs("CreateQueue", fmt.Sprintf(`{"QueueName":"work","Attributes":{"RedrivePolicy":%q}}`,
		`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:`+account+`:work-dead","maxReceiveCount":"1"}`))
	of := func(queue string) string { return s.url + "/" + account + "/" + queue }
	receive := func(queue string, visibility int) (bodies []string) {
		var out struct{ Messages []struct{ Body string } }
		said := s.sqs("ReceiveMessage", fmt.Sprintf(`{"QueueUrl":%q,"MaxNumberOfMessages":10,"VisibilityTimeout":%d}`, of(queue), visibility))
		if err := json.Unmarshal([]byte(said), &out); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		for _, m := range out.Messages {
			bodies = append(bodies, m.Body)
		}
		slices.Sort(bodies)
		return bodies
	}
	count := func(queue, want string) func() bool {
		return func() bool {
			return strings.Contains(s.sqs("GetQueueAttributes", fmt.Sprintf(`{"QueueUrl":%q,"AttributeNames":["ApproximateNumberOfMessages"]}`, of(queue))), `"`+want+`"`)
		}
	}
	for _, body := range []string{"first", "second", "third"} {
		s.sqs("SendMessage", fmt.Sprintf(`{"QueueUrl":%q,"MessageBody":%q}`, of("work"), body))
	}
	eventually(t, "all have died", func() bool {
		receive("work", 0) // the first time they come, and the second time they go
		return count("work-dead", "3")()
	})

	b := s.open(t)
	b.visit("dead-letters")
	b.press("work-dead")
	b.shows("Why they died")
	b.press("Show messages")
	b.until("they are listed", `document.querySelectorAll(".message").length === 3`)
	b.press("select message")
	b.press("Preview the 1 selected")
	b.press("Redrive 1")
	eventually(t, "one is back", count("work", "1"))
	b.until("the others are left", `document.querySelectorAll(".message").length === 2`)
	b.press("Preview all")
	b.shows("2 dead letters.")
	b.press("Redrive 2")
	b.shows("No dead letters")
	b.until("both jobs are done", `[...document.querySelectorAll(".job")].filter((e) => e.textContent.includes("completed")).length === 2`)

	b.visit("queue", "arn", "arn:aws:sqs:us-east-1:"+account+":work")
	b.press("Look")
	b.until("the queue has them", `document.querySelectorAll(".message").length === 3`)
	for _, body := range []string{"first", "second", "third"} {
		b.shows(body)
	}
	if got := receive("work", 60); !slices.Equal(got, []string{"first", "second", "third"}) {
		t.Errorf("%q are received again", got)
	}
	if got := receive("work-dead", 60); got != nil {
		t.Errorf("%q are dead letters still", got)
	}
}

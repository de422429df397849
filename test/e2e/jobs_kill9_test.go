package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
)

// TestJobsKill9 kills the server in the middle of bulk jobs, three times each: they continue with
// the next start, and end with every message moved or deleted once, and counted once.
func TestJobsKill9(t *testing.T) {
	t.Parallel()
	const messages, kills = 3000, 3
	type job struct {
		ID, State            string
		Total, Matched, Done int
		Skipped              int
		Error                *string
	}
	for _, kind := range []string{"redrive", "delete"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			addr, dir := freeAddress(t), t.TempDir()
			p := startAt(t, addr, dir)
			back := p.createQueue(t, "back", "VisibilityTimeout", "3600") // each is received once, however long that takes
			dead := p.createQueue(t, "dead")
			for first := 0; first < messages; first += 10 {
				entries := make([]object, 10)
				for i := range entries {
					entries[i] = object{"Id": fmt.Sprint(i), "MessageBody": fmt.Sprintf("order %d", first+i)}
				}
				p.mustSQS(t, "SendMessageBatch", object{"QueueUrl": dead, "Entries": entries}, nil)
			}
			p.mustSQS(t, "SendMessage", object{"QueueUrl": dead, "MessageBody": "to be left"}, nil)
			in := object{"kind": kind, "arn": queueARN("dead"), "where": object{"search": "order"}, "perSecond": 300} // what is left at the last kill takes seconds
			if kind == "redrive" {
				in["to"] = queueARN("back")
			}
			var made job
			p.admin(t, http.MethodPost, "v1/jobs", in, http.StatusAccepted, &made)
			now := func() (j job) {
				p.admin(t, http.MethodGet, "v1/job?id="+made.ID, nil, http.StatusOK, &j)
				return j
			}
			for round := range kills {
				eventually(t, "the job is under way", func() (bool, error) {
					j := now()
					if j.State != "running" {
						t.Fatalf("before kill %d: %+v", round, j)
					}
					return j.Done > round*messages/(4*kills), fmt.Errorf("%+v", j)
				})
				p.kill()
				p = startAt(t, addr, dir)
			}
			eventually(t, "the job ends", func() (bool, error) {
				j := now()
				return j.State != "running", fmt.Errorf("%+v", j)
			})
			if j := now(); j.State != "completed" || j.Done != messages || j.Matched != messages || j.Skipped != 0 || j.Error != nil {
				t.Errorf("%+v", j)
			}
			if got := p.counts(t, dead); got != [3]int{1, 0, 0} {
				t.Errorf("left: %v", got)
			}
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			seen := map[string]int{}
			for kind == "redrive" {
				got, err := p.receive(ctx, back, 0)
				if err != nil {
					t.Fatal(err)
				}
				if len(got) == 0 {
					break
				}
				for _, m := range got {
					seen[m.Body]++
				}
			}
			for i := range messages {
				if n := seen[fmt.Sprintf("order %d", i)]; kind == "redrive" && n != 1 {
					t.Errorf("order %d is there %d times", i, n)
				}
			}
		})
	}
}

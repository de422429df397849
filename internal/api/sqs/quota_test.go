package sqs

import (
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// A FIFO queue takes so many calls a second of each action; other queues take
// any number.
func TestQuota(t *testing.T) {
	f := newFake("q", "a.fifo", "b.fifo", "fast.fifo")
	f.queues[arn.Queue(testRegion, testAccount, "fast.fifo")]["FifoThroughputLimit"] = "perMessageGroupId"
	s := New(Options{Engine: f, FIFORate: 3})
	operations := map[string]api.Operation{}
	for _, op := range s.Operations() {
		operations[op.Name] = op
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	throttled := func(name string, in any) bool {
		call := newCall()
		call.Operation, call.Time = name, now
		_, err := operations[name].Invoke(t.Context(), call, in)
		return fault.KindOf(err) == fault.Throttled && err != nil
	}
	inputs := func(url string) map[string]any {
		return map[string]any{
			"SendMessage":                  &SendMessageInput{QueueUrl: url},
			"SendMessageBatch":             &SendMessageBatchInput{QueueUrl: url},
			"ReceiveMessage":               &ReceiveMessageInput{QueueUrl: url},
			"DeleteMessage":                &DeleteMessageInput{QueueUrl: url},
			"DeleteMessageBatch":           &DeleteMessageBatchInput{QueueUrl: url},
			"ChangeMessageVisibility":      &ChangeMessageVisibilityInput{QueueUrl: url},
			"ChangeMessageVisibilityBatch": &ChangeMessageVisibilityBatchInput{QueueUrl: url},
		}
	}
	f.errs = []error{nil}
	for range 2 { // the next second has a quota of its own
		for _, name := range []string{"a.fifo", "b.fifo"} {
			for action, in := range inputs(urlOf(name)) {
				for i := range 5 {
					if got := throttled(action, in); got != (i >= 3) {
						t.Errorf("call %d of %s on %s is throttled: %t", i+1, action, name, got)
					}
				}
			}
		}
		now = now.Add(time.Second)
	}
	for _, name := range []string{"q", "fast.fifo", "none.fifo"} {
		for action, in := range inputs(urlOf(name)) {
			for range 10 {
				if throttled(action, in) {
					t.Fatalf("%s on %s is throttled", action, name)
				}
			}
		}
	}
	if s.fifo.second == now.Unix() {
		t.Errorf("calls without a quota are counted: %v", s.fifo.calls)
	}
	for range 10 {
		if throttled("GetQueueAttributes", &GetQueueAttributesInput{QueueUrl: urlOf("a.fifo")}) {
			t.Fatal("an action that is not on messages is throttled")
		}
	}
	s = New(Options{Engine: f})
	for _, op := range s.Operations() {
		operations[op.Name] = op
	}
	for range 10 {
		if throttled("SendMessage", &SendMessageInput{QueueUrl: urlOf("a.fifo")}) {
			t.Fatal("throttled without a quota")
		}
	}
}

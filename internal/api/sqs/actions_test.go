package sqs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard"
)

// Only what is in order reaches the engine, entry by entry.
func TestChangeMessageVisibilityBatchEntries(t *testing.T) {
	f := newFake("q")
	f.errs = []error{nil, fault.New(fault.InvalidParameter, "gone")}
	low, high, ok := -1, 43201, 43200
	out, err := newService(f).ChangeMessageVisibilityBatch(t.Context(), newCall(), &ChangeMessageVisibilityBatchInput{
		QueueUrl: urlOf("q"), Entries: []ChangeMessageVisibilityBatchRequestEntry{
			{Id: "low", ReceiptHandle: "h1", VisibilityTimeout: &low},
			{Id: "absent", ReceiptHandle: "h2"},
			{Id: "high", ReceiptHandle: "h3", VisibilityTimeout: &high},
			{Id: "gone", ReceiptHandle: "h4", VisibilityTimeout: &ok},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]shard.VisibilityChange{{Handle: "h2"}, {Handle: "h4", Timeout: 12 * time.Hour}}, f.changed); diff != "" {
		t.Error(diff)
	}
	refused := func(id, text string) BatchResultErrorEntry {
		return BatchResultErrorEntry{Id: id, SenderFault: true, Code: "InvalidParameterValue", Message: text}
	}
	if diff := cmp.Diff(&ChangeMessageVisibilityBatchOutput{
		Successful: []ChangeMessageVisibilityBatchResultEntry{{Id: "absent"}},
		Failed: []BatchResultErrorEntry{
			refused("low", "Value -1 for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200, if provided."),
			refused("high", "Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200, if provided."),
			refused("gone", "gone"),
		},
	}, out); diff != "" {
		t.Error(diff)
	}
}

// An empty list is as good as none.
func TestEmptyLists(t *testing.T) {
	f := newFake("q")
	s := newService(f)
	call := newCall()
	_, err := s.TagQueue(t.Context(), call, &TagQueueInput{QueueUrl: urlOf("q"), Tags: map[string]string{}})
	wantFault(t, err, fault.MissingParameter, "The request must contain the parameter Tags.")
	_, err = s.UntagQueue(t.Context(), call, &UntagQueueInput{QueueUrl: urlOf("q"), TagKeys: []string{}})
	wantFault(t, err, fault.MissingParameter, "The request must contain the parameter TagKeys.")
	_, err = s.AddPermission(t.Context(), call, &AddPermissionInput{QueueUrl: urlOf("q"), Label: "l", AWSAccountIds: []string{"111111111111"}, Actions: []string{}})
	wantFault(t, err, fault.MissingParameter, "The request must contain the parameter Actions.")
	_, err = s.AddPermission(t.Context(), call, &AddPermissionInput{QueueUrl: urlOf("q"), Label: "l", AWSAccountIds: []string{}, Actions: []string{"SendMessage"}})
	wantFault(t, err, fault.InvalidParameter, "Value [] for parameter PrincipalId is invalid. Reason: Unable to verify.")
	if len(f.calls) > 0 {
		t.Errorf("the engine was called: %v", f.calls)
	}
}

// A task's handle leads back to it, in its own account and region only.
func TestTaskHandle(t *testing.T) {
	f := newFake()
	s := newService(f)
	dead := arn.Queue(testRegion, testAccount, "dead")
	rate := 7
	started, err := s.StartMessageMoveTask(t.Context(), newCall(), &StartMessageMoveTaskInput{SourceArn: dead.String(), MaxNumberOfMessagesPerSecond: &rate})
	if err != nil {
		t.Fatal(err)
	}
	canceled, err := s.CancelMessageMoveTask(t.Context(), newCall(), &CancelMessageMoveTaskInput{TaskHandle: started.TaskHandle})
	if err != nil || canceled.ApproximateNumberOfMessagesMoved != 7 {
		t.Fatal(canceled, err)
	}
	const id = "00000000-0000-0000-0000-000000000001"
	want := [][]any{{"StartMoveTask", shard.MoveTaskSpec{ID: id, Source: dead, Rate: 7}}, {"CancelMoveTask", "dead", id}}
	if diff := cmp.Diff(want, f.calls); diff != "" {
		t.Error(diff)
	}
	call := newCall()
	call.Account = "111111111111"
	_, err = s.CancelMessageMoveTask(t.Context(), call, &CancelMessageMoveTaskInput{TaskHandle: started.TaskHandle})
	wantFault(t, err, fault.ResourceNotFound, "The resource that you specified for the SourceArn parameter doesn't exist.")
}

// Only a running task shows its handle, and only what was asked for its rate
// and destination.
func TestDescribeTask(t *testing.T) {
	dead := arn.Queue(testRegion, testAccount, "dead")
	n, rate := 9, 3
	task := shard.MoveTask{
		MoveTaskSpec: shard.MoveTaskSpec{ID: "x", Source: dead, Destination: arn.Queue(testRegion, testAccount, "q"), Rate: 3},
		Status:       shard.MoveRunning, Moved: 4, ToMove: 9, Started: time.UnixMilli(1_700_000_000_123),
	}
	want := ListMessageMoveTasksResultEntry{
		TaskHandle: sealTask(dead, "x"), Status: "RUNNING", SourceArn: dead.String(), DestinationArn: "arn:aws:sqs:us-east-1:000000000000:q",
		MaxNumberOfMessagesPerSecond: &rate, ApproximateNumberOfMessagesMoved: 4, ApproximateNumberOfMessagesToMove: &n, StartedTimestamp: 1_700_000_000_123,
	}
	if diff := cmp.Diff(want, describeTask(&task)); diff != "" {
		t.Error(diff)
	}
	task.Status, task.Reason, task.Destination, task.Rate = shard.MoveFailed, "why", arn.ARN{}, 0
	want.Status, want.FailureReason, want.TaskHandle, want.DestinationArn, want.MaxNumberOfMessagesPerSecond = "FAILED", "why", "", "", nil
	if diff := cmp.Diff(want, describeTask(&task)); diff != "" {
		t.Error(diff)
	}
}

func FuzzTaskHandle(f *testing.F) {
	f.Add(sealTask(arn.Queue(testRegion, testAccount, "dead"), "x"))
	f.Add("e30=")
	f.Add("bnVsbA==")
	f.Fuzz(func(t *testing.T, handle string) {
		source, id, ok := openTask(handle)
		if !ok {
			return
		}
		again, id2, ok := openTask(sealTask(source, id))
		if valid := strings.ToValidUTF8(id, "") == id; valid && (!ok || id2 != id || source.Service != "" && again != source) {
			t.Errorf("%q: %v %q, sealed again: %v %q %v", handle, source, id, again, id2, ok)
		}
	})
}

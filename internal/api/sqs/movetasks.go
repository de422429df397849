package sqs

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard"
)

const maxMoveRate = 500 // messages a second

// StartMessageMoveTask begins to move the messages of a dead-letter queue to another queue,
// or each to its original source queue.
func (s *Service) StartMessageMoveTask(ctx context.Context, call *api.Call, in *StartMessageMoveTaskInput) (*StartMessageMoveTaskOutput, error) {
	source, err := resourceOf(call, "SourceArn", in.SourceArn)
	if err != nil {
		return nil, err
	}
	var destination arn.ARN
	if in.DestinationArn != nil && *in.DestinationArn != "" {
		if destination, err = resourceOf(call, "DestinationArn", *in.DestinationArn); err != nil {
			return nil, err
		}
	}
	rate, err := optional(in.MaxNumberOfMessagesPerSecond, 0, 1, maxMoveRate, "MaxNumberOfMessagesPerSecond", "Must be between 1 and 500.")
	if err != nil {
		return nil, err
	}
	id := s.newID().String()
	spec := shard.MoveTaskSpec{ID: id, Source: source, Destination: destination, Rate: rate}
	if call.Authorized {
		spec.By = call.Caller
	}
	if err := s.engine.StartMoveTask(ctx, spec); err != nil {
		return nil, err
	}
	return &StartMessageMoveTaskOutput{TaskHandle: sealTask(source, id)}, nil
}

// resourceOf reads the ARN of a queue. A queue of another account or region does not exist.
func resourceOf(call *api.Call, parameter, s string) (arn.ARN, error) {
	a, err := arn.Parse(s)
	if err != nil || a.Service != "sqs" || a.Resource == "" {
		return a, fault.Newf(fault.InvalidParameter,
			"You must use this format to specify the %s: arn:<partition>:<service>:<region>:<account-id>:<resource-id>", parameter)
	}
	if a.Region != call.Region || a.Account != call.Account {
		return a, missingResource(parameter)
	}
	return a, nil
}

func missingResource(parameter string) error {
	return fault.Newf(fault.ResourceNotFound, "The resource that you specified for the %s parameter doesn't exist.", parameter)
}

// taskHandle is the content of a task's handle, which is base64 of JSON.
type taskHandle struct {
	TaskID string `json:"taskId"`
	Source string `json:"sourceArn"`
}

func sealTask(source arn.ARN, id string) string {
	p, _ := json.Marshal(taskHandle{TaskID: id, Source: source.String()}) // two strings cannot fail
	return base64.StdEncoding.EncodeToString(p)
}

func openTask(handle string) (source arn.ARN, id string, ok bool) {
	p, err := base64.StdEncoding.DecodeString(handle)
	if err != nil {
		return source, "", false
	}
	var h taskHandle
	if err := json.Unmarshal(p, &h); err != nil || h.TaskID == "" {
		return source, "", false
	}
	source, err = arn.Parse(h.Source)
	return source, h.TaskID, err == nil
}

// ListMessageMoveTasks reports the latest tasks of a queue, latest first.
func (s *Service) ListMessageMoveTasks(ctx context.Context, call *api.Call, in *ListMessageMoveTasksInput) (*ListMessageMoveTasksOutput, error) {
	source, err := resourceOf(call, "SourceArn", in.SourceArn)
	if err != nil {
		return nil, err
	}
	most, err := optional(in.MaxResults, 1, 1, shard.MoveTasksKept, "MaxResults", "Must be between 1 and 10, if provided.")
	if err != nil {
		return nil, err
	}
	tasks, err := s.engine.MoveTasks(ctx, source, most)
	if err != nil || len(tasks) == 0 {
		return nil, err
	}
	out := &ListMessageMoveTasksOutput{Results: make([]ListMessageMoveTasksResultEntry, len(tasks))}
	for i := range tasks {
		out.Results[i] = describeTask(&tasks[i])
	}
	return out, nil
}

func describeTask(t *shard.MoveTask) ListMessageMoveTasksResultEntry {
	toMove := int(t.ToMove)
	e := ListMessageMoveTasksResultEntry{
		Status: string(t.Status), SourceArn: t.Source.String(), DestinationArn: t.Destination.String(),
		ApproximateNumberOfMessagesMoved: int(t.Moved), ApproximateNumberOfMessagesToMove: &toMove,
		FailureReason: t.Reason, StartedTimestamp: int(t.Started.UnixMilli()),
	}
	if t.Rate > 0 {
		e.MaxNumberOfMessagesPerSecond = &t.Rate
	}
	if t.Status == shard.MoveRunning {
		e.TaskHandle = sealTask(t.Source, t.ID)
	}
	return e
}

// CancelMessageMoveTask ends a running task.
func (s *Service) CancelMessageMoveTask(ctx context.Context, call *api.Call, in *CancelMessageMoveTaskInput) (*CancelMessageMoveTaskOutput, error) {
	source, id, ok := openTask(in.TaskHandle)
	if !ok {
		return nil, fault.New(fault.InvalidParameter, "Value for parameter TaskHandle is invalid.")
	}
	if source.Region != call.Region || source.Account != call.Account {
		return nil, missingResource("SourceArn")
	}
	moved, err := s.engine.CancelMoveTask(ctx, source, id)
	if err != nil {
		return nil, err
	}
	return &CancelMessageMoveTaskOutput{ApproximateNumberOfMessagesMoved: int(moved)}, nil
}

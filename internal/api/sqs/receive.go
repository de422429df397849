package sqs

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/tracing"
)

// ReceiveMessage leases up to ten messages. With a wait time it waits for a first one.
func (s *Service) ReceiveMessage(ctx context.Context, call *api.Call, in *ReceiveMessageInput) (*ReceiveMessageOutput, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	req, err := receiveRequest(call, q, in)
	if err != nil {
		return nil, s.unlessMissing(ctx, q, err)
	}
	system, err := selectSystem(in.AttributeNames, in.MessageSystemAttributeNames)
	if err != nil {
		return nil, s.unlessMissing(ctx, q, err)
	}
	traceQueue(call, "receive", tracing.Receives, q)
	received, err := s.engine.Receive(ctx, req)
	if err != nil {
		return nil, err
	}
	traceReceived(call, received)
	if len(received) == 0 {
		return nil, nil
	}
	user := selectUser(in.MessageAttributeNames)
	out := &ReceiveMessageOutput{Messages: make([]Message, len(received))}
	for i := range received {
		r := &received[i]
		m := &out.Messages[i]
		*m = Message{
			MessageId:     r.ID.String(),
			ReceiptHandle: r.ReceiptHandle,
			MD5OfBody:     digest(r.BodyMD5),
			Body:          string(r.Body),
			Attributes:    system.of(r),
		}
		m.MessageAttributes, m.MD5OfMessageAttributes = user.of(r.Message)
	}
	return out, nil
}

// receiveRequest is the engine's form of a request.
func receiveRequest(call *api.Call, q arn.ARN, in *ReceiveMessageInput) (req shard.ReceiveRequest, err error) {
	req = shard.ReceiveRequest{Queue: q, Memory: call.Memory, Caller: call.Caller}
	if req.Max, err = optional(in.MaxNumberOfMessages, 1, 1, maxReceived, "MaxNumberOfMessages", "Must be between 1 and 10, if provided."); err != nil {
		return req, err
	}
	visibility, err := optional(in.VisibilityTimeout, -1, 0, maxVisibility, "VisibilityTimeout", visibilityInterval)
	if err != nil {
		return req, err
	}
	wait, err := optional(in.WaitTimeSeconds, -1, 0, maxWait, "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided.")
	if err != nil {
		return req, err
	}
	req.Visibility, req.Wait = time.Duration(visibility)*time.Second, time.Duration(wait)*time.Second
	if id := in.ReceiveRequestAttemptId; id != nil && q.FIFO() { // a standard queue ignores it
		if req.Attempt = *id; !validGroup(req.Attempt) {
			return req, outOfRange(*id, "ReceiveRequestAttemptId",
				"ReceiveRequestAttemptId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
		}
	}
	return req, nil
}

// ChangeMessageVisibility sets the visibility timeout of a received message, counted from
// now.
func (s *Service) ChangeMessageVisibility(ctx context.Context, call *api.Call, in *ChangeMessageVisibilityInput) (*ChangeMessageVisibilityOutput, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	traceQueue(call, "settle", tracing.Settles, q)
	timeout, err := optional(in.VisibilityTimeout, 0, 0, maxVisibility, "VisibilityTimeout", visibilityInterval)
	if err != nil {
		return nil, s.unlessMissing(ctx, q, err)
	}
	errs, err := s.engine.ChangeVisibility(ctx, q, []shard.VisibilityChange{
		{Handle: in.ReceiptHandle, Timeout: time.Duration(timeout) * time.Second},
	})
	if err != nil {
		return nil, err
	}
	return nil, errs[0]
}

// ChangeMessageVisibilityBatch sets the visibility timeouts of up to ten received messages,
// each on its own.
func (s *Service) ChangeMessageVisibilityBatch(ctx context.Context, call *api.Call, in *ChangeMessageVisibilityBatchInput) (*ChangeMessageVisibilityBatchOutput, error) {
	q, err := s.existing(ctx, call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	traceQueue(call, "settle", tracing.Settles, q)
	if err := checkBatch("ChangeMessageVisibilityBatch", len(in.Entries), func(i int) string { return in.Entries[i].Id }); err != nil {
		return nil, err
	}
	changes := make([]shard.VisibilityChange, 0, len(in.Entries))
	faulty := make([]error, len(in.Entries))
	for i := range in.Entries {
		e := &in.Entries[i]
		// Absent means zero: SDKs omit a zero.
		timeout, err := optional(e.VisibilityTimeout, 0, 0, maxVisibility, "VisibilityTimeout", visibilityInterval)
		if faulty[i] = err; err == nil {
			changes = append(changes, shard.VisibilityChange{Handle: e.ReceiptHandle, Timeout: time.Duration(timeout) * time.Second})
		}
	}
	errs, err := s.engine.ChangeVisibility(ctx, q, changes)
	if err != nil {
		return nil, err
	}
	// A JSON answer always has both lists, also when they are empty.
	out := &ChangeMessageVisibilityBatchOutput{
		Successful: make([]ChangeMessageVisibilityBatchResultEntry, 0, len(errs)),
		Failed:     []BatchResultErrorEntry{},
	}
	for i, err := range faulty {
		if err == nil {
			err, errs = errs[0], errs[1:]
		}
		if err != nil {
			out.Failed = append(out.Failed, failed(call, in.Entries[i].Id, err))
			continue
		}
		out.Successful = append(out.Successful, ChangeMessageVisibilityBatchResultEntry{Id: in.Entries[i].Id})
	}
	return out, nil
}

package sqs

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/tracing"
)

// DeleteMessage deletes a received message; deleting it again succeeds.
func (s *Service) DeleteMessage(ctx context.Context, call *api.Call, in *DeleteMessageInput) (*DeleteMessageOutput, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	traceQueue(call, "settle", tracing.Settles, q)
	errs, err := s.engine.DeleteMessages(ctx, q, []string{in.ReceiptHandle})
	if err != nil {
		return nil, err
	}
	return nil, errs[0]
}

// DeleteMessageBatch deletes up to ten received messages, each on its own.
func (s *Service) DeleteMessageBatch(ctx context.Context, call *api.Call, in *DeleteMessageBatchInput) (*DeleteMessageBatchOutput, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	traceQueue(call, "settle", tracing.Settles, q)
	if err := checkBatch("DeleteMessageBatch", len(in.Entries), func(i int) string { return in.Entries[i].Id }); err != nil {
		return nil, s.unlessMissing(ctx, q, err)
	}
	handles := make([]string, len(in.Entries))
	for i := range in.Entries {
		handles[i] = in.Entries[i].ReceiptHandle
	}
	errs, err := s.engine.DeleteMessages(ctx, q, handles)
	if err != nil {
		return nil, err
	}
	// A JSON answer always has both lists, also when they are empty.
	out := &DeleteMessageBatchOutput{
		Successful: make([]DeleteMessageBatchResultEntry, 0, len(errs)),
		Failed:     []BatchResultErrorEntry{},
	}
	for i, err := range errs {
		if err != nil {
			out.Failed = append(out.Failed, failed(call, in.Entries[i].Id, err))
			continue
		}
		out.Successful = append(out.Successful, DeleteMessageBatchResultEntry{Id: in.Entries[i].Id})
	}
	return out, nil
}

package sns

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard"
)

// The limits of a batch.
const (
	maxEntries = 10
	maxEntryID = 80 // characters
)

// wholeCall is an error of a message that fails its whole batch; other errors fail their
// entry only.
type wholeCall struct{ error }

func (w wholeCall) Unwrap() error { return w.error }

// publishBatch answers PublishBatch. The accepted entries are published in order.
func (s *Service) publishBatch(ctx context.Context, call *api.Call, in *PublishBatchInput) (*PublishBatchOutput, error) {
	var missing []string
	for i := range in.PublishBatchRequestEntries {
		if given := in.PublishBatchRequestEntries[i].MessageAttributes; len(given) > 0 {
			missing = append(missing, untyped(fmt.Sprintf("publishBatchRequestEntries.%d.member.", i+1), given)...)
		}
	}
	if err := mustNotBeNull(missing); err != nil {
		return nil, err
	}
	t, err := s.publishTopic(ctx, call, "TopicArn", in.TopicArn)
	if err != nil {
		return nil, err
	}
	if err := checkEntries(in.PublishBatchRequestEntries); err != nil {
		return nil, err
	}
	// An answer always has both lists, also when they are empty.
	out := &PublishBatchOutput{
		Successful: make([]PublishBatchResultEntry, 0, len(in.PublishBatchRequestEntries)),
		Failed:     []BatchResultErrorEntry{},
	}
	// Some faults of a single entry, and too large a sum of sizes, refuse the batch:
	// expensive work comes after these checks.
	read := make([]shard.Publication, len(in.PublishBatchRequestEntries))
	faults := make([]error, len(read))
	size, maxSize := 0, s.engine.MaxMessageSize(t)
	for i := range in.PublishBatchRequestEntries {
		e := &in.PublishBatchRequestEntries[i]
		size += e.size()
		read[i], faults[i] = s.publication(call, recipient{arn: t, maxSize: maxSize}, &PublishInput{
			Message: e.Message, Subject: e.Subject, MessageStructure: e.MessageStructure, MessageAttributes: e.MessageAttributes,
			MessageDeduplicationId: e.MessageDeduplicationId, MessageGroupId: e.MessageGroupId,
		})
		if _, whole := faults[i].(wholeCall); whole { //nolint:errorlint // made by publication, which wraps it in nothing
			return nil, faults[i]
		}
	}
	if size > maxSize {
		return nil, fault.New(fault.BatchRequestTooLong, "")
	}
	accepted := make([]shard.Publication, 0, len(read))
	var sizes []int
	for i := range read {
		id, err := in.PublishBatchRequestEntries[i].Id, faults[i]
		if err == nil {
			err = s.engine.Protect(t, &read[i])
		}
		if err != nil {
			code, message, sender := call.Describe(err)
			out.Failed = append(out.Failed, BatchResultErrorEntry{Id: id, Code: code, Message: message, SenderFault: sender})
			continue
		}
		accepted = append(accepted, read[i])
		sizes = append(sizes, read[i].Size())
		out.Successful = append(out.Successful, PublishBatchResultEntry{Id: id})
	}
	if err := s.quota.take(call, sizes...); err != nil {
		return nil, err
	}
	// Without any accepted message, Publish still finds out whether the topic exists.
	tracePublish(call, t, accepted...)
	results, err := s.engine.Publish(ctx, t, accepted...)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		out.Successful[i].MessageId, out.Successful[i].SequenceNumber = r.ID.String(), sequenceOf(t, r)
	}
	return out, nil
}

// checkEntries validates the number of a batch's entries and their ids.
func checkEntries(entries []PublishBatchRequestEntry) error {
	switch {
	case len(entries) == 0:
		return fault.New(fault.EmptyBatchRequest, "")
	case len(entries) > maxEntries:
		return fault.New(fault.TooManyEntriesInBatchRequest, "")
	}
	for i := range entries {
		if err := checkEntryID(entries[i].Id); err != nil {
			return err
		}
		for j := range i {
			if entries[i].Id == entries[j].Id {
				return fault.New(fault.BatchEntryIdsNotDistinct, "")
			}
		}
	}
	return nil
}

func checkEntryID(id string) error {
	switch {
	case id == "":
		return fault.New(fault.InvalidBatchEntryID, "")
	case utf8.RuneCountInString(id) > maxEntryID:
		return fault.New(fault.InvalidBatchEntryID, "The Id of a batch entry in the batch request is too long: "+id)
	case strings.ContainsFunc(id, func(c rune) bool { return c != '-' && c != '_' && !alphanumeric(c) }):
		return fault.New(fault.InvalidBatchEntryID, "The Id of a batch entry in the batch request contains an impermissible character: "+id)
	}
	return nil
}

// size is the entry's share of the batch's size limit, in bytes.
func (e *PublishBatchRequestEntry) size() int {
	n := len(api.Deref(e.Message))
	for name, v := range e.MessageAttributes {
		n += len(name) + len(api.Deref(v.DataType)) + len(api.Deref(v.StringValue)) + len(v.BinaryValue)
	}
	return n
}

package sqs

import (
	"context"
	"crypto/md5" //nolint:gosec // the SQS protocol's checksum, not a protection
	"crypto/sha256"
	"encoding/hex"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/tracing"
)

// SendMessage accepts a message.
func (s *Service) SendMessage(ctx context.Context, call *api.Call, in *SendMessageInput) (*SendMessageOutput, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	traceQueue(call, "send", tracing.Sends, q)
	cfg, err := s.engine.QueueConfig(ctx, q)
	if err != nil {
		return nil, err
	}
	entry := SendMessageBatchRequestEntry{
		MessageBody: in.MessageBody, DelaySeconds: in.DelaySeconds,
		MessageAttributes: in.MessageAttributes, MessageSystemAttributes: in.MessageSystemAttributes,
		MessageDeduplicationId: in.MessageDeduplicationId, MessageGroupId: in.MessageGroupId,
	}
	m, err := s.sendEntry(call, q, cfg, &entry, "One or more parameters are invalid.")
	if err != nil {
		return nil, err
	}
	m.Message.Seal()
	if err := s.bytes(call.Account, m.Message.Size()); err != nil {
		return nil, err
	}
	if err := s.engine.Encrypt(q, cfg, call.Caller, arn.ARN{}, m.Message); err != nil {
		return nil, err
	}
	sent, err := s.engine.Send(ctx, q, []shard.SendEntry{m})
	if err != nil {
		return nil, err
	}
	traceSent(call, &sent[0], len(m.Message.Body))
	return &SendMessageOutput{
		MessageId:                    sent[0].ID.String(),
		SequenceNumber:               sequenceOf(q, sent[0]),
		MD5OfMessageBody:             digest(m.Message.BodyMD5),
		MD5OfMessageAttributes:       attributesDigest(m.Message),
		MD5OfMessageSystemAttributes: systemDigest(&entry),
	}, nil
}

// SendMessageBatch accepts up to ten messages. A fault of one message fails only its entry.
func (s *Service) SendMessageBatch(ctx context.Context, call *api.Call, in *SendMessageBatchInput) (*SendMessageBatchOutput, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	traceQueue(call, "send", tracing.Sends, q)
	cfg, err := s.engine.QueueConfig(ctx, q)
	if err != nil {
		return nil, err
	}
	if err := checkBatch("SendMessageBatch", len(in.Entries), func(i int) string { return in.Entries[i].Id }); err != nil {
		return nil, err
	}
	if err := checkLength(in.Entries); err != nil {
		return nil, err
	}
	if q.FIFO() { // a fault of this kind refuses the whole batch
		for i := range in.Entries {
			if err := checkGrouping(cfg, &in.Entries[i], fault.InvalidParameter); err != nil {
				return nil, err
			}
		}
	}
	// Unlike in other batches, AWS omits an empty Failed.
	out := &SendMessageBatchOutput{Successful: make([]SendMessageBatchResultEntry, 0, len(in.Entries))}
	msgs := make([]shard.SendEntry, 0, len(in.Entries))
	for i := range in.Entries {
		e := &in.Entries[i]
		m, err := s.sendEntry(call, q, cfg, e, "One or more parameters cannot be validated.")
		if err != nil {
			out.Failed = append(out.Failed, failedSend(call, e.Id, err))
			continue
		}
		msgs = append(msgs, m)
		out.Successful = append(out.Successful, SendMessageBatchResultEntry{
			Id:                           e.Id,
			MD5OfMessageSystemAttributes: systemDigest(e),
		})
	}
	if len(msgs) == 0 {
		return out, nil
	}
	sealAll(msgs)
	for i := range msgs {
		m, result := msgs[i].Message, &out.Successful[i]
		result.MD5OfMessageBody, result.MD5OfMessageAttributes = digest(m.BodyMD5), attributesDigest(m)
	}
	size := 0
	for i := range msgs {
		size += msgs[i].Message.Size()
	}
	if err := s.bytes(call.Account, size); err != nil {
		return nil, err
	}
	for i := range msgs {
		if err := s.engine.Encrypt(q, cfg, call.Caller, arn.ARN{}, msgs[i].Message); err != nil {
			return nil, err
		}
	}
	sent, err := s.engine.Send(ctx, q, msgs)
	if err != nil {
		return nil, err
	}
	if call.Span.Recorded() {
		call.Span.Set(tracing.Messages(len(sent)))
	}
	for i, r := range sent {
		out.Successful[i].MessageId, out.Successful[i].SequenceNumber = r.ID.String(), sequenceOf(q, r)
	}
	return out, nil
}

// sequenceOf is the SequenceNumber of a sent message; a standard queue has none.
func sequenceOf(q arn.ARN, r shard.SendResult) string {
	if !q.FIFO() {
		return ""
	}
	return message.NumberFrom(r.Origin, r.Sequence)
}

// failedSend reports an entry that was not accepted. The code is InvalidParameter, except for
// invalid characters.
func failedSend(call *api.Call, id string, err error) BatchResultErrorEntry {
	if fault.KindOf(err) != fault.InvalidMessageContents {
		err = fault.New(fault.InvalidParameter, refusal.Text(err))
	}
	return failed(call, id, err)
}

// failed reports err as an entry of a batch, with the service's code and message.
func failed(call *api.Call, id string, err error) BatchResultErrorEntry {
	code, message, sender := call.Describe(err)
	return BatchResultErrorEntry{Id: id, Code: code, Message: message, SenderFault: sender}
}

// sealAll seals the messages of a batch together.
func sealAll(batch []shard.SendEntry) {
	msgs := make([]*message.Message, 0, maxBatch)
	for i := range batch {
		msgs = append(msgs, batch[i].Message)
	}
	message.SealAll(msgs)
}

// sendEntry validates a message, and converts it for the engine. It is yet to be sealed. tooLarge
// is the beginning of AWS's message for one that is too large.
func (s *Service) sendEntry(call *api.Call, q arn.ARN, cfg queue.Config, e *SendMessageBatchRequestEntry, tooLarge string) (shard.SendEntry, error) {
	if e.MessageBody == "" {
		return shard.SendEntry{}, fault.Newf(fault.MissingParameter, missing, "MessageBody")
	}
	if !message.ValidText(e.MessageBody) {
		return shard.SendEntry{}, fault.New(fault.InvalidMessageContents, invalidCharacters)
	}
	m := &message.Message{Sender: call.UserID(), Body: api.Bytes(e.MessageBody)}
	delay, err := optional(e.DelaySeconds, -1, 0, maxDelay, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900.")
	if err != nil {
		return shard.SendEntry{}, err
	}
	if delay > 0 && q.FIFO() {
		return shard.SendEntry{}, outOfRange(delay, "DelaySeconds", invalidForKind)
	}
	if q.FIFO() {
		delay = -1
	}
	if err := grouping(m, q, cfg, e); err != nil {
		return shard.SendEntry{}, err
	}
	if m.Attributes, err = attributesOf(e.MessageAttributes); err != nil {
		return shard.SendEntry{}, err
	}
	if m.Trace, err = traceOf(call, e.MessageSystemAttributes); err != nil {
		return shard.SendEntry{}, err
	}
	if m.Size() > cfg.MaxMessageSize {
		return shard.SendEntry{}, fault.Newf(fault.InvalidParameter, "%s Reason: Message must be shorter than %d bytes.", tooLarge, cfg.MaxMessageSize)
	}
	m.ID = s.newID()
	return shard.SendEntry{Message: m, Delay: time.Duration(delay) * time.Second}, nil
}

// checkGrouping refuses a message without the ids that a FIFO queue requires; ungrouped is
// the error for a missing group.
func checkGrouping(cfg queue.Config, e *SendMessageBatchRequestEntry, ungrouped fault.Kind) error {
	if e.MessageGroupId == nil {
		return fault.Newf(ungrouped, missing, "MessageGroupId")
	}
	if e.MessageDeduplicationId == nil && !cfg.ContentDedup {
		return fault.New(fault.InvalidParameter, "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
	}
	return nil
}

// grouping sets the message's group and, on a FIFO queue, its deduplication ID.
func grouping(m *message.Message, q arn.ARN, cfg queue.Config, e *SendMessageBatchRequestEntry) error {
	if q.FIFO() {
		if err := checkGrouping(cfg, e, fault.MissingParameter); err != nil {
			return err
		}
		if id := e.MessageDeduplicationId; id == nil {
			sum := sha256.Sum256(m.Body)
			m.Dedup = hex.EncodeToString(sum[:])
		} else if m.Dedup = *id; !validGroup(m.Dedup) {
			return outOfRange(*id, "MessageDeduplicationId",
				"MessageDeduplicationId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
		}
	} else if id := e.MessageDeduplicationId; id != nil {
		return outOfRange(*id, "MessageDeduplicationId", invalidForKind)
	}
	if id := e.MessageGroupId; id != nil {
		if !validGroup(*id) {
			return outOfRange(*id, "MessageGroupId",
				"MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
		}
		m.Group = *id
	}
	return nil
}

// traceOf finds the message's AWSTraceHeader: the system attribute (the only one that a send
// can have), or else the request's header.
func traceOf(call *api.Call, system map[string]MessageAttributeValue) (string, error) {
	for name := range system {
		if name != traceHeader {
			return "", fault.Newf(fault.InvalidParameter, "Message system attribute name '%s' is invalid.", name)
		}
	}
	v, ok := system[traceHeader]
	if !ok {
		return call.TraceHeader(), nil
	}
	value, err := attributeValue("system", traceHeader, &v)
	if err != nil {
		return "", err
	}
	if v.DataType != "String" {
		return "", fault.Newf(fault.InvalidParameter, "Message system attribute '%s' must be of type 'String'.", traceHeader)
	}
	return string(value), nil
}

// systemDigest is the digest of the system attributes in the request, or empty without any;
// the SDKs verify it.
func systemDigest(e *SendMessageBatchRequestEntry) string {
	v, ok := e.MessageSystemAttributes[traceHeader]
	if !ok {
		return ""
	}
	return digest(message.AttributesMD5([]message.Attribute{{Name: traceHeader, Type: v.DataType, Value: []byte(*v.StringValue)}}))
}

func attributesDigest(m *message.Message) string {
	if len(m.Attributes) == 0 {
		return ""
	}
	return digest(m.AttributesMD5)
}

func digest(sum [md5.Size]byte) string {
	var b [2 * md5.Size]byte
	hex.Encode(b[:], sum[:])
	return string(b[:])
}

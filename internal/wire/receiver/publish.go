package receiver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/api/sns"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/ingest"
	"godwit.dev/godwit/internal/shard/topics"
)

// publish sends an event to the source's topic or queue as its owner, and so as far as that
// may still do so.
func (v *Receiver) publish(r *http.Request, source *ingest.Compiled, e *ingest.Event) (outcome, error) {
	target := source.TargetARN
	call := api.Call{
		Service: target.Service, Operation: "SendMessage", Protocol: "ingest", Region: target.Region, Account: source.Account,
		Caller: source.Owner, RemoteAddr: r.RemoteAddr, Host: "https://ingest",
	}
	if call.Caller == nil {
		call.Caller = authorize.RootOf(source.Account)
	}
	if target.Service == "sns" {
		call.Operation = "Publish"
	}
	out, err := v.Within(r.Context(), &call, inputOf(source, e))
	if err != nil {
		return outcome{}, v.failed(r.Context(), source, err)
	}
	done := outcome{status: http.StatusAccepted}
	switch out := out.(type) {
	case *sns.PublishOutput:
		done.body = taken{out.MessageId, out.SequenceNumber}
	case *sqs.SendMessageOutput:
		done.body = taken{out.MessageId, out.SequenceNumber}
	}
	return done, nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// inputOf is the input of the operation that an event becomes.
func inputOf(source *ingest.Compiled, e *ingest.Event) any {
	target := source.TargetARN
	if target.Service == "sns" {
		in := &sns.PublishInput{
			TopicArn: &source.Target, Message: &e.Body, Subject: optional(e.Subject),
			MessageGroupId: optional(e.Group), MessageDeduplicationId: optional(e.Dedup),
		}
		for i := range e.Attributes {
			if in.MessageAttributes == nil {
				in.MessageAttributes = map[string]sns.MessageAttributeValue{}
			}
			a := &e.Attributes[i]
			in.MessageAttributes[a.Name] = sns.MessageAttributeValue{DataType: &a.Type, StringValue: &a.Value}
		}
		return in
	}
	in := &sqs.SendMessageInput{
		QueueUrl: "https://ingest/" + target.Account + "/" + target.Resource, MessageBody: e.Body,
		MessageGroupId: optional(e.Group), MessageDeduplicationId: optional(e.Dedup),
	}
	for i := range e.Attributes {
		if in.MessageAttributes == nil {
			in.MessageAttributes = map[string]sqs.MessageAttributeValue{}
		}
		a := &e.Attributes[i]
		in.MessageAttributes[a.Name] = sqs.MessageAttributeValue{DataType: a.Type, StringValue: &a.Value}
	}
	return in
}

// failed is what an error of an operation means for whoever has posted. What he can do nothing
// about is logged.
func (v *Receiver) failed(ctx context.Context, source *ingest.Compiled, err error) error {
	if errors.Is(err, topics.ErrProtected) || errors.Is(err, topics.ErrUnprotected) {
		return rejected(err) // for what is in it, which no other attempt changes
	}
	switch fault.KindOf(err) {
	case fault.Internal:
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return refuse(ingest.NotNow, "The server stops: try again.")
		}
		return err
	case fault.Throttled:
		return refuse(ingest.TooMany, "The target takes no more now: slow down.")
	case fault.Unavailable, fault.InsufficientStorage:
		return refuse(ingest.NotNow, "The target cannot take it now: try again.")
	case fault.InvalidParameter, fault.InvalidMessageContents, fault.MissingParameter, fault.InvalidAttributeValue, fault.ParameterValueInvalid, fault.BatchRequestTooLong:
		return rejected(err)
	default:
		v.Logger.LogAttrs(ctx, slog.LevelWarn, "the target of a source refuses what is posted",
			slog.String("source", source.Name), slog.String("target", source.Target), slog.String("problem", refusal.Text(err)))
		return refuse(ingest.TargetFails, "The target is not there, or may not be sent to: the source's owner has to see to that.")
	}
}

func rejected(err error) error {
	return refuse(ingest.Rejected, "The target does not take such a message: "+refusal.Text(err))
}

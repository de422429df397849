// Package firehosesender delivers to delivery streams: each attempt puts a record.
package firehosesender

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/fault"
)

// Streams accepts records; *streams.Module implements it.
type Streams interface {
	Put(ctx context.Context, a arn.ARN, records []deliverystream.Record) (ids []string, err error)
}

// Roles refuses an action of a topic's role without permission, with AccessDenied.
type Roles interface {
	May(ctx context.Context, source arn.ARN, role, action string, resource arn.ARN) error
}

// Sender puts records. It implements deliver.Sender. After a crash between a put and its
// conclusion, the record is put again.
type Sender struct {
	streams Streams
	roles   Roles
}

var _ deliver.Sender = (*Sender)(nil)

// New makes a sender.
func New(s Streams, r Roles) *Sender { return &Sender{s, r} }

// Host is the stream itself.
func (s *Sender) Host(endpoint string) string { return endpoint }

// Local is true: records stay in this process.
func (s *Sender) Local() bool { return true }

// Send puts the envelope, without its signature, or the raw message, as a line.
func (s *Sender) Send(ctx context.Context, r *deliver.Request) deliver.Outcome {
	to, err := arn.Parse(r.Subscription.Endpoint)
	if _, ok := deliverystream.NameOf(to); err != nil || !ok {
		return deliver.Outcome{Class: deliver.ClientError, Detail: "the endpoint is no delivery stream"}
	}
	role := ""
	if r.Subscription.Role != nil {
		role = *r.Subscription.Role
	}
	of, _, _ := r.Subscription.ARN.SplitSubscription()
	err = s.roles.May(ctx, of, role, "firehose:PutRecord", to)
	if err == nil {
		_, err = s.streams.Put(ctx, to, []deliverystream.Record{{Data: record(r), Line: true}})
	}
	out := outcome(err)
	out.Provider.Service = deliver.Firehose
	if err == nil {
		out.Provider.ID = r.NewID()
	}
	return out
}

// record is the record of a message.
func record(r *deliver.Request) []byte {
	if r.Raw() {
		return r.Message.Body
	}
	plain := r.Issuer
	plain.Key = [16]byte{} // no signature
	body, _ := envelope.Body(r.Message, plain)
	var line bytes.Buffer
	if json.Compact(&line, body) != nil {
		return body // it is already JSON
	}
	return line.Bytes()
}

// outcome is the outcome of a put with an error: an unknown stream or a denied role is
// client-side, all else is server-side.
func outcome(err error) deliver.Outcome {
	if err == nil {
		return deliver.Outcome{Class: deliver.Success, Status: http.StatusOK, Provider: deliver.Provider{Status: http.StatusOK}}
	}
	failed := func(class deliver.Class, detail string, status int, code, text string) deliver.Outcome {
		return deliver.Outcome{Class: class, Detail: detail, Status: status, Provider: deliver.Provider{Status: status, Code: code, Message: text}}
	}
	const unavailable = "ServiceUnavailableException"
	switch fault.KindOf(err) {
	case fault.ResourceNotFound:
		return failed(deliver.ClientError, "the delivery stream does not exist", http.StatusBadRequest, "ResourceNotFoundException", "The delivery stream does not exist.")
	case fault.AccessDenied:
		return failed(deliver.ClientError, "the subscription's role may not put records", http.StatusBadRequest, "AccessDeniedException", "The subscription's role does not let SNS put records into the delivery stream.")
	case fault.Throttled:
		out := failed(deliver.ServerError, deliver.StreamThrottled, http.StatusServiceUnavailable, unavailable, "Slow down.")
		out.Throttled = true
		return out
	case fault.Unavailable:
		return failed(deliver.ServerError, "the delivery stream is unavailable", http.StatusServiceUnavailable, unavailable, "Slow down.")
	case fault.InsufficientStorage:
		return failed(deliver.ServerError, "the disk has too little space", http.StatusServiceUnavailable, unavailable, "The service is unavailable.")
	default:
		return failed(deliver.ServerError, "internal error", http.StatusInternalServerError, "InternalFailure", "The service encountered an internal error.")
	}
}

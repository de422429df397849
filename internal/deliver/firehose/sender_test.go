package firehosesender_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliver"
	firehosesender "godwit.dev/godwit/internal/deliver/firehose"
	"godwit.dev/godwit/internal/deliver/sendertest"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/topic"
)

var target = deliverystream.Name("us-east-1", "000000000000", "s")

// streams take records as an endpoint behaves.
type streams struct {
	t         *testing.T
	behaviour sendertest.Behaviour
	err       error // instead of the behaviour's
	denied    error

	mu       sync.Mutex
	received [][]byte
}

func (s *streams) May(_ context.Context, source arn.ARN, _, action string, resource arn.ARN) error {
	if action != "firehose:PutRecord" || resource != target || source.Service != "sns" || strings.Contains(source.Resource, ":") {
		s.t.Errorf("%s on %s for %s", action, resource, source)
	}
	return s.denied
}

func (s *streams) Put(ctx context.Context, a arn.ARN, records []deliverystream.Record) ([]string, error) {
	if a != target || len(records) != 1 || !records[0].Line {
		s.t.Errorf("%d records for %s", len(records), a)
	}
	if s.err != nil {
		return nil, s.err
	}
	switch s.behaviour {
	case sendertest.Fails:
		return nil, fault.New(fault.Unavailable, sendertest.Secret)
	case sendertest.Refuses:
		return nil, fault.New(fault.ResourceNotFound, sendertest.Secret)
	case sendertest.Hangs:
		<-ctx.Done()
		return nil, ctx.Err()
	case sendertest.Takes:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, records[0].Data)
	return []string{"id"}, nil
}

func (s *streams) got() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received
}

func TestConformance(t *testing.T) {
	sendertest.Run(t, func(t *testing.T, b sendertest.Behaviour) sendertest.Target {
		s := &streams{t: t, behaviour: b}
		return sendertest.Target{Sender: firehosesender.New(s, s), Protocol: topic.Firehose, Endpoint: target.String(), Received: s.got}
	})
}

func send(s *streams, endpoint string) deliver.Outcome {
	return firehosesender.New(s, s).Send(context.Background(), sendertest.Request(sendertest.Target{Protocol: topic.Firehose, Endpoint: endpoint}))
}

// A record is one line without a signature.
func TestRecord(t *testing.T) {
	s := &streams{t: t}
	if out := send(s, target.String()); out.Class != deliver.Success || out.Concluded || out.Status != 200 {
		t.Errorf("%+v", out)
	}
	got := string(s.got()[0])
	if strings.ContainsAny(got, "\n\r") || strings.Contains(got, "Sign") || !strings.HasPrefix(got, `{"Type":"Notification","MessageId":"aa`) || !strings.Contains(got, `"UnsubscribeURL":"`) {
		t.Error(got)
	}
}

// TestOutcomes: only what the owner of the subscription has to change is a client-side
// error, and a stream that is throttled has a policy of its own.
func TestOutcomes(t *testing.T) {
	for _, kind := range fault.Kinds() {
		want, status := deliver.ServerError, 500
		switch kind {
		case fault.ResourceNotFound, fault.AccessDenied:
			want, status = deliver.ClientError, 400
		case fault.Throttled, fault.Unavailable, fault.InsufficientStorage:
			status = 503
		}
		out := send(&streams{t: t, err: fault.New(kind, sendertest.Secret)}, target.String())
		if out.Class != want || out.Status != status || out.Detail == "" || out.Provider.Code == "" || out.Throttled != (kind == fault.Throttled) {
			t.Errorf("%d: got %+v, want %s, %d", kind, out, want, status)
		}
	}
	if out := send(&streams{t: t, denied: fault.New(fault.AccessDenied, "")}, target.String()); out.Class != deliver.ClientError {
		t.Errorf("a role that may not: %+v", out)
	}
	if out := send(&streams{t: t}, "arn:aws:sqs:us-east-1:000000000000:q"); out.Class != deliver.ClientError {
		t.Errorf("a queue: %+v", out)
	}
}

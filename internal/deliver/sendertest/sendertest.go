// Package sendertest has the test that every sender must pass.
package sendertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
)

// Secret is in all parts of a request that must not be disclosed.
const Secret = "s3cr3t"

// Behaviour is the behaviour of an endpoint.
type Behaviour int

// The behaviours.
const (
	Takes   Behaviour = iota // accepts
	Fails                    // a temporary error
	Refuses                  // a permanent error
	Hangs                    // no answer until it is closed
)

// Target is a test's endpoint, and a sender that reaches it.
type Target struct {
	Sender   deliver.Sender
	Protocol topic.Protocol
	// Endpoint is the endpoint's name, with Secret if it can have credentials or a query.
	Endpoint string
	// Received returns the messages that have arrived.
	Received func() [][]byte
	// Log returns the sender's log, if it has one.
	Log func() string
}

// Run tests a sender. open makes an endpoint with a behaviour, and cleans up with t.
func Run(t *testing.T, open func(t *testing.T, b Behaviour) Target) {
	t.Run("success", func(t *testing.T) {
		target := open(t, Takes)
		check(t, target, target.Sender.Send(t.Context(), Request(target)), deliver.Success)
		got := target.Received()
		if len(got) != 1 || !strings.Contains(string(got[0]), "body "+Secret) {
			t.Errorf("received %q", got)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		target := open(t, Takes)
		const n = 20
		outcomes := make(chan deliver.Outcome, n)
		for range n {
			go func() { outcomes <- target.Sender.Send(t.Context(), Request(target)) }()
		}
		for range n {
			check(t, target, <-outcomes, deliver.Success)
		}
		if got := len(target.Received()); got != n {
			t.Errorf("received %d of %d", got, n)
		}
	})
	t.Run("retryable failure", func(t *testing.T) {
		target := open(t, Fails)
		check(t, target, target.Sender.Send(t.Context(), Request(target)), deliver.ServerError)
	})
	t.Run("permanent failure", func(t *testing.T) {
		target := open(t, Refuses)
		check(t, target, target.Sender.Send(t.Context(), Request(target)), deliver.ClientError)
	})
	t.Run("timeout", func(t *testing.T) {
		target := open(t, Hangs)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := clock.System.Now()
		check(t, target, target.Sender.Send(ctx, Request(target)), deliver.ServerError)
		prompt(t, began)
	})
	t.Run("cancellation", func(t *testing.T) {
		target := open(t, Hangs)
		ctx, cancel := context.WithCancel(t.Context())
		began := clock.System.Now()
		clock.System.AfterFunc(20*time.Millisecond, cancel)
		check(t, target, target.Sender.Send(ctx, Request(target)), deliver.ServerError)
		prompt(t, began)
	})
	t.Run("cancelled before", func(t *testing.T) {
		target := open(t, Hangs)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		check(t, target, target.Sender.Send(ctx, Request(target)), deliver.ServerError)
	})
}

// prompt fails if more time has passed than on a busy machine; it is far below any real
// timeout.
func prompt(t *testing.T, began time.Time) {
	t.Helper()
	if d := clock.System.Now().Sub(began); d > 5*time.Second {
		t.Errorf("the attempt went on for %s behind the end of its context", d)
	}
}

// check compares an outcome's class, and checks that it discloses nothing.
func check(t *testing.T, target Target, out deliver.Outcome, want deliver.Class) {
	t.Helper()
	if out.Class != want {
		t.Errorf("outcome %+v, want %s", out, want)
	}
	if (out.Detail == "") != (want == deliver.Success) {
		t.Errorf("detail %q of a %s", out.Detail, want)
	}
	if out.Latency < 0 {
		t.Errorf("latency %s", out.Latency)
	}
	if strings.Contains(out.Detail, Secret) || strings.Contains(out.Detail, target.Endpoint) {
		t.Errorf("detail %q tells a secret", out.Detail)
	}
	if target.Log != nil && strings.Contains(target.Log(), Secret) {
		t.Errorf("the log tells a secret:\n%s", target.Log())
	}
}

// Request is a request to send a notification to the target.
func Request(target Target) *deliver.Request {
	name := arn.Topic("us-east-1", "000000000000", "orders")
	sub := name.Subscription("6d6b8f6e-0000-4000-8000-000000000001")
	return &deliver.Request{
		Delivery: &shard.Delivery{
			Subscription: topic.Subscription{ARN: sub, Protocol: target.Protocol, Endpoint: target.Endpoint},
			Attempt:      1,
			Message: &message.Message{
				ID: message.ID{0xaa, 15: 1}, Sent: 1_709_211_845_067, Body: []byte("body " + Secret),
				Notice: &message.Notice{
					Kind: message.Notification, Topic: name.String(), Subscription: sub.String(),
					Subject: "subject " + Secret, SignatureVersion: 1,
				},
			},
		},
		At:     clock.System.Now(),
		Issuer: envelope.Issuer{URL: "http://127.0.0.1:4566"},
		NewID:  func() message.ID { return message.ID{0xbb} },
	}
}

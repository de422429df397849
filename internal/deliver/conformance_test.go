package deliver_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/consume/consumetest"
	"godwit.dev/godwit/internal/deliver"
	httpsender "godwit.dev/godwit/internal/deliver/http"
	lambdasender "godwit.dev/godwit/internal/deliver/lambda"
	smssender "godwit.dev/godwit/internal/deliver/sms"
	sqssender "godwit.dev/godwit/internal/deliver/sqs"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/sms"
	"godwit.dev/godwit/internal/topic"
)

const account = "000000000000"

var (
	name   = arn.Topic("us-east-1", account, "t")
	target = arn.Queue("us-east-1", account, "target")
	fn     = arn.Function("us-east-1", account, "f")
)

// made counts attempts.
type made struct{ n atomic.Int64 }

func (m *made) Delivery(e *deliver.Event) {
	if e.Made && e.Kind == message.Notification {
		m.n.Add(1)
	}
}

func (m *made) Published(*shard.Published) {}

// kind is the deliveries to one endpoint.
func kind(t *testing.T, p topic.Protocol, endpoint string) consumetest.Kind {
	var sub arn.ARN
	attempts := &made{}
	web := httpsender.New(httpsender.Options{AllowPrivate: true})
	t.Cleanup(web.Close)
	k := consumetest.OfSubscription(&sub, "client-side error: ")
	k.Create = func(w *consumetest.World) {
		w.Must(w.Engine.CreateTopic(w.Context(), topic.CreateTopic{ARN: name}))
		s, err := w.Engine.Subscribe(w.Context(), topic.Subscribe{
			Topic: name, Owner: account, Protocol: p.String(), Endpoint: endpoint, ID: uuid.NewString(), Token: "token",
			Attributes: map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + consumetest.DeadLetters.String() + `"}`},
		})
		w.Must(err)
		sub = s.ARN
		if p == topic.HTTP {
			_, err := w.Engine.ConfirmSubscription(w.Context(), topic.Confirm{Topic: name, Token: "token"})
			w.Must(err)
		}
	}
	k.Plug = func(w *consumetest.World) consumetest.Dispatcher {
		return deliver.New(deliver.Options{
			Engine: w.Engine, Clock: w.Clock, Events: attempts,
			Senders: map[topic.Protocol]deliver.Sender{
				topic.HTTP: web, topic.SQS: sqssender.New(w.Engine), topic.Lambda: lambdasender.New(w.Engine),
			},
		})
	}
	k.Attempts = func() int { return int(attempts.n.Load()) }
	return k
}

func TestConformance(t *testing.T) {
	t.Run("http", func(t *testing.T) { consumetest.Run(t, web) })
	t.Run("sqs", func(t *testing.T) { consumetest.Run(t, queue) })
	t.Run("lambda", func(t *testing.T) { consumetest.Run(t, lambda) })
	t.Run("sms", func(t *testing.T) { consumetest.Run(t, phone) })
}

func web(t *testing.T) consumetest.Kind {
	var b, requests atomic.Int64
	hanging, end := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("x-amz-sns-message-type") != "Notification" {
			return
		}
		requests.Add(1)
		switch consumetest.Behaviour(b.Load()) {
		case consumetest.Fails:
			w.WriteHeader(http.StatusServiceUnavailable)
		case consumetest.Refuses:
			w.WriteHeader(http.StatusGone)
		case consumetest.Hangs:
			hanging <- struct{}{}
			<-end
		case consumetest.Takes:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	k := kind(t, topic.HTTP, server.URL)
	k.Hanging = func() { <-hanging }
	k.Behave = func(_ *consumetest.World, to consumetest.Behaviour) { b.Store(int64(to)) }
	k.Attempts = func() int { return int(requests.Load()) }
	return k
}

// carrier takes text messages as a test says.
type carrier struct {
	b, texts     atomic.Int64
	hanging, end chan struct{}
}

func (*carrier) Host() string { return "carrier" }

func (c *carrier) Deliver(ctx context.Context, _ *smssender.Text) smssender.Result {
	c.texts.Add(1)
	out := deliver.Outcome{Detail: "busy"}
	switch consumetest.Behaviour(c.b.Load()) {
	case consumetest.Takes:
		out = deliver.Outcome{Class: deliver.Success}
	case consumetest.Refuses:
		out.Class = deliver.ClientError
	case consumetest.Hangs:
		c.hanging <- struct{}{}
		select {
		case <-c.end:
		case <-ctx.Done():
		}
	case consumetest.Fails:
	}
	return smssender.Result{Outcome: out}
}

// ledger lets everybody get everything, for nothing.
type ledger struct{}

func (ledger) Reserve(texts.Charge) (t texts.Terms, r sms.Refusal)   { return t, r }
func (ledger) Spend(texts.Charge, sms.MicroUSD) (month sms.MicroUSD) { return month }
func (ledger) OptOutEverywhere(string)                               {}

func phone(t *testing.T) consumetest.Kind {
	c := &carrier{hanging: make(chan struct{}), end: make(chan struct{})}
	t.Cleanup(func() { close(c.end) })
	k := kind(t, topic.SMS, "+15551234567")
	k.Plug = func(w *consumetest.World) consumetest.Dispatcher {
		return deliver.New(deliver.Options{
			Engine: w.Engine, Clock: w.Clock, Senders: map[topic.Protocol]deliver.Sender{topic.SMS: smssender.New(smssender.Options{Carrier: c, Ledger: ledger{}})},
		})
	}
	k.Hanging = func() { <-c.hanging }
	k.Behave = func(_ *consumetest.World, to consumetest.Behaviour) { c.b.Store(int64(to)) }
	k.Attempts = func() int { return int(c.texts.Load()) }
	return k
}

func queue(t *testing.T) consumetest.Kind {
	k := kind(t, topic.SQS, target.String())
	k.Immediate = 3
	create := k.Create
	k.Create = func(w *consumetest.World) {
		w.Must(w.Engine.CreateQueue(w.Context(), shard.QueueSpec{ARN: target}))
		create(w)
	}
	there := true
	k.Behave = func(w *consumetest.World, b consumetest.Behaviour) {
		if want := b != consumetest.Refuses; want != there {
			there = want
			if there {
				w.Must(w.Engine.CreateQueue(w.Context(), shard.QueueSpec{ARN: target}))
			} else {
				w.Must(w.Engine.DeleteQueue(w.Context(), target))
			}
		}
		w.Must(w.Engine.SetFault(target, outage(b)))
	}
	return k
}

func lambda(t *testing.T) consumetest.Kind {
	k := kind(t, topic.Lambda, fn.String())
	k.Immediate = 3
	create := k.Create
	k.Create = func(w *consumetest.World) {
		createFunction(w)
		create(w)
	}
	there := true
	k.Behave = func(w *consumetest.World, b consumetest.Behaviour) {
		if want := b != consumetest.Refuses; want != there {
			there = want
			if there {
				createFunction(w)
			} else {
				w.Must(w.Engine.DeleteFunction(w.Context(), fn, ""))
			}
		}
		w.Must(w.Engine.SetFault(fn, outage(b)))
	}
	return k
}

func createFunction(w *consumetest.World) {
	_, err := w.Engine.CreateFunction(w.Context(), function.Create{
		ARN: fn, Code: function.Code{URL: "http://127.0.0.1:1"}, Revision: "1", ReadyRevision: "2",
		Config: function.Config{Package: "Image", TimeoutS: 3, MemoryMB: 128},
	}, nil)
	w.Must(err)
	_, err = w.Clock.Advance(w.Context(), 0)
	w.Must(err)
	w.Must(w.Engine.PermitFunction(w.Context(), function.Permit{
		Function: fn, Revision: "p",
		Permission: function.Permission{
			Sid: "s", Effect: "Allow", Principal: json.RawMessage(`{"Service":"sns.amazonaws.com"}`), Action: "lambda:InvokeFunction",
			Resource: fn.String(),
		},
	}))
}

func outage(b consumetest.Behaviour) string {
	if b == consumetest.Fails {
		return "unavailable"
	}
	return "none"
}

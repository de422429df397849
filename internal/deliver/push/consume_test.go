package pushsender_test

import (
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/consume/consumetest"
	"godwit.dev/godwit/internal/deliver"
	pushsender "godwit.dev/godwit/internal/deliver/push"
	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/gateways"
)

// What each outcome of an attempt leads to, with a real engine, over restarts and crashes.
func TestDeliveries(t *testing.T) { consumetest.Run(t, kind) }

func kind(t *testing.T) consumetest.Kind {
	const account = "000000000000"
	name := arn.Topic("us-east-1", account, "t")
	app := arn.PlatformApplication("us-east-1", account, platform.FCM, "shop")
	fake := gateways.NewFCM(t)
	credential := fake.Account()
	gateway := pushsender.NewFCM(fake.URL, pushsender.Connections{AllowPrivate: true, TLS: fake.Trust()})
	t.Cleanup(gateway.Close)
	var behaviour, requests atomic.Int64
	hanging := make(chan struct{})
	fake.Script(func(int, string) *gateways.Answer {
		requests.Add(1)
		switch consumetest.Behaviour(behaviour.Load()) {
		case consumetest.Fails:
			return &gateways.Answer{Status: 503}
		case consumetest.Refuses:
			return &gateways.Answer{Status: 400, Body: gateways.FCMError(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "no")}
		case consumetest.Hangs:
			hanging <- struct{}{}
			return &gateways.Answer{Hang: true}
		default:
			return nil
		}
	})
	var sub arn.ARN
	k := consumetest.OfSubscription(&sub, "client-side error: FCM: ")
	k.Create = func(w *consumetest.World) {
		w.Must(w.Engine.CreateTopic(w.Context(), topic.CreateTopic{ARN: name}))
		w.Must(w.Engine.CreateApplication(w.Context(), app, map[string]string{platform.AttrCredential: credential}))
		endpoint, err := w.Engine.CreateEndpoint(w.Context(), app, "token", nil, nil)
		w.Must(err)
		s, err := w.Engine.Subscribe(w.Context(), topic.Subscribe{
			Topic: name, Owner: account, Protocol: "application", Endpoint: endpoint.String(), ID: uuid.NewString(),
			Attributes: map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + consumetest.DeadLetters.String() + `"}`},
		})
		w.Must(err)
		sub = s.ARN
	}
	k.Plug = func(w *consumetest.World) consumetest.Dispatcher {
		return deliver.New(deliver.Options{
			Engine: w.Engine, Clock: w.Clock,
			Senders: map[topic.Protocol]deliver.Sender{topic.Application: pushsender.New(pushsender.Options{
				Endpoints: w.Engine, Gateways: map[string]pushsender.Gateway{platform.FCM: gateway}, Clock: w.Clock,
			})},
		})
	}
	k.Behave = func(_ *consumetest.World, to consumetest.Behaviour) { behaviour.Store(int64(to)) }
	k.Attempts = func() int { return int(requests.Load()) }
	k.Hanging = func() { <-hanging }
	return k
}

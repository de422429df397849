package server

import (
	"context"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/deliver/envelope/signing"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/server/ids"
	"godwit.dev/godwit/internal/shard"
)

// envelopes renders and signs the messages of an engine. The engine is made first, since it
// stores the keys: open must be called before anything is published or received.
type envelopes struct {
	url      string
	keys     *signing.Keys
	received *signing.Signer // of messages that are received
}

// render renders a message for a subscribed queue.
func (v *envelopes) render(notification *message.Message) (*message.Message, error) {
	issuer := envelope.Issuer{URL: v.url}
	if envelope.Signed(notification) {
		issuer.Key = v.keys.Key()
	}
	return envelope.SQS(notification, ids.New(), issuer)
}

func (v *envelopes) sign(body []byte, u *message.Unsigned) error { return v.received.Sign(body, u) }

// open reads the keys, and makes the first one if necessary.
func (v *envelopes) open(deps Deps, engine *shard.Engine) (err error) {
	v.keys, err = signing.Open(signing.Options{Store: engine, Clock: clock.System, Logger: deps.Log, Pair: deps.World.SigningPair})
	if err != nil {
		return err
	}
	v.received = v.keys.NewSigner()
	deps.OnStop("signing keys", func(context.Context) error {
		v.keys.Stop()
		return nil
	})
	return nil
}

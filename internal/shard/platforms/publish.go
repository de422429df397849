package platforms

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/topic"
)

// Target has the properties of an endpoint that a sender needs.
type Target struct {
	Application arn.ARN
	Platform    string
	Token       string
	Enabled     bool // the endpoint
	Sending     bool // the application
	Team        string
	Bundle      string
	Credentials *Credentials // immutable: other credentials have another pointer
}

// PushTarget finds an endpoint for a delivery attempt. Errors: NotFound.
func (p *Platforms) PushTarget(name arn.ARN) (t Target, err error) {
	app, _, ok := name.SplitEndpoint()
	if !ok {
		return t, platform.ErrNoEndpoint
	}
	sh := p.ShardOf(app)
	sh.View(func() { t, err = sh.target(name) })
	return t, err
}

func (sh *Shard) target(name arn.ARN) (Target, error) {
	sh.visible()
	there, err := sh.read(name)
	if err != nil {
		return Target{}, err
	}
	app := there.app
	opened, err := sh.module.open(app)
	if err != nil {
		return Target{}, err
	}
	p, _, _ := app.arn.SplitApplication()
	return Target{
		Application: app.arn, Platform: p, Token: there.Token, Enabled: !there.Disabled, Sending: app.Enabled(),
		Team: app.Attributes[platform.AttrTeam], Bundle: app.Attributes[platform.AttrBundle], Credentials: opened,
	}, nil
}

// MayPublish refuses an endpoint that accepts no messages. Errors: InvalidParameter for one
// that does not exist, or whose platform is not supported for sending; EndpointDisabled,
// PlatformApplicationDisabled.
func (p *Platforms) MayPublish(ctx context.Context, name arn.ARN) error {
	return asTarget(p.with(ctx, name, func(sh *Shard) error {
		_, err := sh.publishable(name)
		return err
	}))
}

func (sh *Shard) publishable(name arn.ARN) (*endpoint, error) {
	there, err := sh.read(name)
	if err != nil {
		return nil, err
	}
	p, _, _ := there.app.arn.SplitApplication()
	switch {
	case there.Disabled:
		return nil, platform.ErrDisabled
	case !there.app.Enabled():
		return nil, platform.ErrApplicationDisabled
	case !platform.Sent(p):
		return nil, platform.ErrNotSent.With(p)
	}
	return there, nil
}

// asTarget adds to the error of a publish that it concerns the target.
func asTarget(err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return platform.ErrNoTarget
	}
	return err
}

// PublishToEndpoint accepts a message for one endpoint; it is durable on return. Errors:
// those of MayPublish, InsufficientStorage, and KMS's.
func (p *Platforms) PublishToEndpoint(ctx context.Context, name arn.ARN, pub publication.Publication) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.Full() {
		return kernel.ErrFull
	}
	app, _, ok := name.SplitEndpoint()
	if !ok {
		return platform.ErrNoTarget
	}
	if err := p.Accounts.CheckStorage(app.Account, pub.Size()); err != nil {
		return err
	}
	of, _, _ := app.SplitApplication()
	m := &message.Message{
		ID: pub.ID, Sender: pub.Sender, Trace: pub.Trace, Attributes: pub.Attributes, Body: pub.Body,
		Notice: &message.Notice{Kind: message.Notification, Subject: pub.Subject, Token: name.String()},
	}
	if body, own := pub.Bodies[of]; own {
		m.Body, m.Notice.Own = []byte(body), true
	}
	if err := p.EncryptWaiting(app, "", pub.Caller, arn.ARN{}, m); err != nil {
		return err
	}
	sh := p.ShardOf(app)
	err := sh.RunDurable(func(tx *kernel.Tx) error {
		tx.DependOn(sh.written)
		sh.visible()
		there, err := sh.publishable(name)
		if err != nil {
			return err
		}
		sh.AcceptFor(there.app.recipient, m)
		if p.options.Published != nil {
			sh.Emit(&published{p.options.Published, &topics.Published{
				Topic: app, ID: pub.ID, At: clock.Time(m.Sent), Size: pub.Size(),
				Feedback: there.app.recipient.Topic().Feedback(topic.Application),
			}})
		}
		return nil
	})
	return asTarget(err)
}

// published reports a publish.
type published struct {
	emit func(*topics.Published)
	what *topics.Published
}

// Emit implements kernel.Emitter.
func (p *published) Emit() { p.emit(p.what) }

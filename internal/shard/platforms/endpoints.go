package platforms

import (
	"bytes"
	"context"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// endpoint is an endpoint read from the store.
type endpoint struct {
	*platform.Endpoint
	arn arn.ARN
	id  uuid.UUID
	app *application
}

// read reads an endpoint. The lock is held, and the store shows all writes so far.
func (sh *Shard) read(name arn.ARN) (*endpoint, error) {
	of, text, ok := name.SplitEndpoint()
	id, err := uuid.Parse(text)
	app := sh.applications[of]
	if !ok || err != nil || app == nil || id.String() != text {
		return nil, platform.ErrNoEndpoint
	}
	return sh.readID(app, id)
}

func (sh *Shard) readID(app *application, id uuid.UUID) (*endpoint, error) {
	value, ok, err := sh.module.Store.Get(nil, sh.recordKey(keyspace.PlatformEndpoints, app.Incarnation, id[:]))
	if err != nil {
		sh.module.Fatal(err)
		return nil, err
	}
	if !ok {
		return nil, platform.ErrNoEndpoint
	}
	record, err := platform.DecodeEndpoint(value)
	if err != nil {
		return nil, err
	}
	return &endpoint{record, app.arn.PlatformEndpoint(id.String()), id, app}, nil
}

// byToken finds the endpoint of a token; nil: there is none.
func (sh *Shard) byToken(app *application, token string) (*endpoint, error) {
	key := platform.TokenKey(token)
	value, ok, err := sh.module.Store.Get(nil, sh.recordKey(keyspace.PlatformTokens, app.Incarnation, key[:]))
	if err != nil {
		sh.module.Fatal(err)
	}
	if err != nil || !ok {
		return nil, err
	}
	id, err := uuid.FromBytes(value)
	if err != nil {
		return nil, platform.ErrRecord
	}
	return sh.readID(app, id)
}

// write replaces an endpoint; before is its old state, nil if it is new.
func (sh *Shard) write(e *endpoint, before *platform.Endpoint) {
	sh.Batch.Set(sh.recordKey(keyspace.PlatformEndpoints, e.app.Incarnation, e.id[:]), e.Encode())
	if before != nil && before.Token == e.Token {
		return
	}
	if before != nil {
		old := platform.TokenKey(before.Token)
		sh.Batch.Delete(sh.recordKey(keyspace.PlatformTokens, e.app.Incarnation, old[:]))
	}
	key := platform.TokenKey(e.Token)
	sh.Batch.Set(sh.recordKey(keyspace.PlatformTokens, e.app.Incarnation, key[:]), bytes.Clone(e.id[:]))
}

// with runs a command in the shard of an endpoint.
func (p *Platforms) with(ctx context.Context, name arn.ARN, command func(sh *Shard) error) error {
	app, _, ok := name.SplitEndpoint()
	if !ok {
		return platform.ErrNoEndpoint
	}
	sh := p.ShardOf(app)
	return sh.change(ctx, func() error { return command(sh) })
}

// CreateEndpoint makes an endpoint of an application, or finds the one with the same token and
// attributes. Errors: NotFound, InvalidParameter, InsufficientStorage.
func (p *Platforms) CreateEndpoint(ctx context.Context, app arn.ARN, token string, userData *string, attributes map[string]string) (name arn.ARN, err error) {
	sh := p.ShardOf(app)
	err = sh.change(ctx, func() error {
		of, err := sh.find(app)
		if err != nil {
			return err
		}
		wanted, err := platform.NewEndpoint(token, userData, attributes)
		if err != nil {
			return err
		}
		there, err := sh.byToken(of, wanted.Token)
		if err != nil {
			return err
		}
		if there != nil {
			if !there.Same(wanted) {
				return platform.ErrTokenTaken.With(there.arn)
			}
			name = there.arn
			return nil
		}
		if p.Full() {
			return kernel.ErrFull
		}
		id := uuid.UUID(p.options.NewID())
		created := &endpoint{wanted, of.arn.PlatformEndpoint(id.String()), id, of}
		sh.write(created, nil)
		sh.notify(of, platform.EventCreated, created.arn)
		name = created.arn
		return nil
	})
	return name, err
}

// DeleteEndpoint removes an endpoint. Its subscriptions stay. It is idempotent.
func (p *Platforms) DeleteEndpoint(ctx context.Context, name arn.ARN) error {
	return p.with(ctx, name, func(sh *Shard) error {
		there, err := sh.read(name)
		if err != nil {
			return ignoreMissing(err)
		}
		key := platform.TokenKey(there.Token)
		sh.Batch.Delete(sh.recordKey(keyspace.PlatformEndpoints, there.app.Incarnation, there.id[:]))
		sh.Batch.Delete(sh.recordKey(keyspace.PlatformTokens, there.app.Incarnation, key[:]))
		sh.notify(there.app, platform.EventDeleted, there.arn)
		return nil
	})
}

func ignoreMissing(err error) error {
	if err == platform.ErrNoEndpoint { //nolint:errorlint // the very value
		return nil
	}
	return err
}

// EndpointAttributes are the attributes of an endpoint. Errors: NotFound.
func (p *Platforms) EndpointAttributes(ctx context.Context, name arn.ARN) (attributes map[string]string, err error) {
	err = p.with(ctx, name, func(sh *Shard) error {
		there, err := sh.read(name)
		if err == nil {
			attributes = there.Shown()
		}
		return err
	})
	return attributes, err
}

// SetEndpointAttributes changes attributes of an endpoint. Errors: NotFound,
// InvalidParameter.
func (p *Platforms) SetEndpointAttributes(ctx context.Context, name arn.ARN, attributes map[string]string) error {
	return p.with(ctx, name, func(sh *Shard) error {
		there, err := sh.read(name)
		if err != nil {
			return err
		}
		next, err := there.With(attributes)
		if err != nil {
			return err
		}
		if next.Token != there.Token {
			if other, err := sh.byToken(there.app, next.Token); err != nil {
				return err
			} else if other != nil {
				return platform.ErrTokenTaken.With(other.arn)
			}
		}
		sh.update(there, next)
		return nil
	})
}

// update replaces an endpoint by its next state.
func (sh *Shard) update(there *endpoint, next *platform.Endpoint) {
	if there.Same(next) {
		return
	}
	before := there.Endpoint
	there.Endpoint = next
	sh.write(there, before)
	sh.notify(there.app, platform.EventUpdated, there.arn)
}

// DisableEndpoint disables an endpoint whose token the platform has refused, unless the token
// was changed since. It is durable on return.
func (p *Platforms) DisableEndpoint(ctx context.Context, name arn.ARN, token string) error {
	return p.with(ctx, name, func(sh *Shard) error {
		there, err := sh.read(name)
		if err != nil {
			return ignoreMissing(err)
		}
		if there.Token == token {
			next := *there.Endpoint
			next.Disabled = true
			sh.update(there, &next)
		}
		return nil
	})
}

// Endpoint is an element of a list.
type Endpoint struct {
	ARN        arn.ARN
	ID         string
	Attributes map[string]string
}

// ListEndpoints lists an application's endpoints in the order of their ids, up to limit of them
// after the id after. Errors: NotFound.
func (p *Platforms) ListEndpoints(ctx context.Context, app arn.ARN, after string, limit int) (page []Endpoint, more bool, err error) {
	sh := p.ShardOf(app)
	err = sh.change(ctx, func() error {
		of, err := sh.find(app)
		if err != nil {
			return err
		}
		prefix := sh.recordKey(keyspace.PlatformEndpoints, of.Incarnation, nil)
		span := keyspace.Prefix(prefix)
		if id, err := uuid.Parse(after); err == nil {
			span.Lower = append(append(bytes.Clone(prefix), id[:]...), 0)
		}
		return store.EachOf(p.Store, keyspace.KindPlatformEndpoint, span, func(k *keyspace.Key, value []byte) error {
			if more = len(page) == limit; more {
				return store.ErrStop
			}
			id := uuid.UUID(k.Bytes(keyspace.PartEndpoint))
			record, err := platform.DecodeEndpoint(value)
			if err != nil {
				return err
			}
			page = append(page, Endpoint{of.arn.PlatformEndpoint(id.String()), id.String(), record.Shown()})
			return nil
		})
	})
	return page, more, err
}

// notify publishes an event of an endpoint, if the application has a topic for it, as part of
// the current command: the event waits in the application's backlog.
func (sh *Shard) notify(app *application, attribute string, name arn.ARN) {
	if app.Attributes[attribute] != "" {
		sh.notifyEvent(app, attribute, platform.NewEvent(attribute, app.arn, name, clock.Time(sh.Now())))
	}
}

func (sh *Shard) notifyEvent(app *application, attribute string, event *platform.Event) {
	m := &message.Message{
		ID: sh.module.options.NewID(), Sender: app.arn.Account, Body: event.Text(),
		Notice: &message.Notice{Kind: message.PlatformEvent, Topic: app.Attributes[attribute], Token: app.arn.String()},
	}
	if err := sh.module.EncryptWaiting(app.arn, "", nil, arn.ARN{}, m); err != nil {
		panic(err) // encryption with the store's own key fails only without randomness
	}
	sh.AcceptFor(app.recipient, m)
}

// failed publishes that a message could not be delivered.
func (sh *Shard) failed(app *application, d *backlog.Delivery, attempts int, reason string) {
	n := d.Message.Notice
	if n == nil || n.Kind != message.Notification || app.Attributes[platform.EventFailed] == "" {
		return
	}
	name, _ := arn.Parse(d.Subscription.Endpoint)
	event := platform.NewEvent(platform.EventFailed, app.arn, name, clock.Time(sh.Now()))
	sh.notifyEvent(app, platform.EventFailed, event.Failed(d.Message.ID.String(), attempts, reason))
}

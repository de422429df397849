// Package platforms is the module of push platforms: applications, their endpoints, and the
// messages published to an endpoint rather than to a topic. Endpoints are not in memory: a
// record is found by its id, and the id by its token. Messages to an endpoint wait in its
// application's backlog.
package platforms

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// Sealer seals secrets: a sealed secret can only be opened in the same context.
type Sealer interface {
	Seal(plaintext, context []byte) ([]byte, error)
	Open(sealed, context []byte) ([]byte, error)
}

// Options configure the module.
type Options struct {
	// Sealer seals the credentials in the store. Nil: they are in clear.
	Sealer Sealer
	// NewID returns an id that was never used before; random unless given.
	NewID func() message.ID
	// Published is called for every publish to an endpoint, if it is not nil. It may be called
	// concurrently, and must be quick.
	Published func(*topics.Published)
}

// Platforms is the module.
type Platforms struct {
	*backlog.Backlogs
	kernel.Parts[*Shard]
	options Options
}

// Shard is the module's part in a shard.
type Shard struct {
	*backlog.Shard
	module       *Platforms
	applications map[arn.ARN]*application
	// written is the latest commit of an application or an endpoint: answers about them depend
	// on it.
	written *journal.Commit
}

// application is an application with its backlog; the backlog's fields follow those of the
// record.
type application struct {
	arn arn.ARN
	*platform.Application
	recipient *backlog.Recipient
	opened    *Credentials // nil: not yet
}

// New adds the module to the shards, after that of backlogs.
func New(below *backlog.Backlogs, o Options) *Platforms {
	if o.NewID == nil {
		o.NewID = func() message.ID { return message.ID(uuid.New()) }
	}
	p := &Platforms{Backlogs: below, options: o}
	for id, sh := range below.Shards {
		s := &Shard{Shard: sh, module: p, applications: map[arn.ARN]*application{}}
		p.Shards[id] = s
		sh.Add(lifecycle{sh: s})
	}
	return p
}

// lifecycle is how the kernel runs a Shard of this package.
type lifecycle struct {
	kernel.NopLifecycle
	sh *Shard
}

// Load implements kernel.Lifecycle.
func (l lifecycle) Load() error {
	sh := l.sh
	return store.EachOf(sh.module.Store, keyspace.KindPlatformApplication, keyspace.Prefix(sh.key(keyspace.PlatformApplications)), sh.load)
}

func (sh *Shard) load(k *keyspace.Key, value []byte) error {
	account, region, name := k.Named()
	of, name, ok := strings.Cut(name, "/")
	record, err := platform.DecodeApplication(value)
	if err != nil || !ok {
		return platform.ErrRecord
	}
	app := sh.add(arn.PlatformApplication(region, account, of, name), record)
	return sh.LoadRecipient(app.recipient)
}

// add adds an application to memory.
func (sh *Shard) add(name arn.ARN, record *platform.Application) *application {
	name = name.Own()
	app := &application{arn: name, Application: record}
	sub := topic.Direct(name, topic.Application, record.Incarnation, record.Feedback())
	sub.PausedAt, sub.ResumedAt = record.Paused, record.Resumed
	app.recipient = &backlog.Recipient{
		Subscription: sub,
		Save: func() {
			next := *app.Application
			next.Paused, next.Resumed = sub.PausedAt, sub.ResumedAt
			app.Application = &next
			sh.put(app)
		},
		Failed: func(d *backlog.Delivery, attempts int, reason string) { sh.failed(app, d, attempts, reason) },
	}
	sh.applications[name] = app
	return app
}

// key is the prefix of the keys of a kind of record.
func (sh *Shard) key(kind byte) []byte {
	return append(keyspace.Shard(sh.ID, keyspace.Platforms), kind)
}

func (sh *Shard) applicationKey(name arn.ARN) []byte {
	p, n, _ := name.SplitApplication()
	return append(sh.key(keyspace.PlatformApplications), name.Account+"/"+name.Region+"/"+p+"/"+n...)
}

func (sh *Shard) put(app *application) { sh.Batch.Set(sh.applicationKey(app.arn), app.Encode()) }

// change runs a command that reads or changes applications or endpoints. It returns once all
// that f read and changed is durable.
func (sh *Shard) change(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return sh.RunDurable(func(tx *kernel.Tx) error {
		sh.visible()
		err := f()
		if c := tx.Append(); c != nil {
			sh.written = c
		}
		tx.DependOn(sh.written)
		return err
	})
}

// visible makes the writes of endpoints visible in the store. The current command must not have
// written anything yet.
func (sh *Shard) visible() {
	if !sh.written.Applied() {
		sh.module.Journal.Flush()
	}
}

// find finds an application.
func (sh *Shard) find(name arn.ARN) (*application, error) {
	if app, ok := sh.applications[name]; ok {
		return app, nil
	}
	return nil, platform.ErrNoApplication
}

// CreateApplication makes an application, or finds an identical one. Errors: InvalidParameter,
// InsufficientStorage.
func (p *Platforms) CreateApplication(ctx context.Context, name arn.ARN, attributes map[string]string) error {
	if err := platform.Check(name, attributes, true); err != nil {
		return err
	}
	sh := p.ShardOf(name)
	return sh.change(ctx, func() error {
		if app, ok := sh.applications[name]; ok {
			return sh.same(app, attributes)
		}
		if p.Full() {
			return kernel.ErrFull
		}
		record := (&platform.Application{Created: sh.Now(), Incarnation: sh.NextIncarnation()}).With(attributes)
		if err := p.seal(record, name, attributes); err != nil {
			return err
		}
		app := sh.add(name, record)
		sh.AddRecipient(app.recipient)
		sh.put(app)
		return nil
	})
}

// same refuses to create an application again with other attributes.
func (sh *Shard) same(app *application, attributes map[string]string) error {
	had, err := sh.module.open(app)
	if err != nil {
		return err
	}
	wanted := (&platform.Application{}).With(attributes)
	if *had != credentialsIn(attributes) || !maps.Equal(wanted.Shown(), app.Shown()) {
		return platform.ErrOtherExists
	}
	return nil
}

// DeleteApplication removes an application, its endpoints and its backlog, at a cost that does
// not depend on their number. It is idempotent.
func (p *Platforms) DeleteApplication(ctx context.Context, name arn.ARN) error {
	sh := p.ShardOf(name)
	return sh.change(ctx, func() error {
		app, ok := sh.applications[name]
		if !ok {
			return nil
		}
		delete(sh.applications, name)
		sh.Batch.Delete(sh.applicationKey(name))
		for _, kind := range [...]byte{keyspace.PlatformEndpoints, keyspace.PlatformTokens} {
			span := keyspace.Prefix(sh.recordKey(kind, app.Incarnation, nil))
			sh.Batch.DeleteRange(span.Lower, span.Upper)
		}
		sh.DropRecipient(app.recipient)
		sh.Generation.Add(1) // deliveries in flight have to find their target again
		return nil
	})
}

// recordKey is the key of a record of an application's endpoint.
func (sh *Shard) recordKey(kind byte, incarnation uint64, id []byte) []byte {
	return append(binary.BigEndian.AppendUint64(sh.key(kind), incarnation), id...)
}

// ApplicationAttributes are the attributes of an application, without secrets. Errors:
// NotFound.
func (p *Platforms) ApplicationAttributes(ctx context.Context, name arn.ARN) (attributes map[string]string, err error) {
	sh := p.ShardOf(name)
	err = sh.change(ctx, func() error {
		app, err := sh.find(name)
		if err == nil {
			attributes = p.shown(app)
		}
		return err
	})
	return attributes, err
}

// shown are an application's attributes, with those derived from its credentials. Unreadable
// credentials give none.
func (p *Platforms) shown(app *application) map[string]string {
	all := app.Shown()
	if c, err := p.open(app); err == nil {
		of, _, _ := app.arn.SplitApplication()
		maps.Copy(all, platform.OfCredentials(of, c.Principal, c.Credential))
	}
	return all
}

// SetApplicationAttributes changes attributes of an application; the empty string removes
// one. Errors: NotFound, InvalidParameter.
func (p *Platforms) SetApplicationAttributes(ctx context.Context, name arn.ARN, attributes map[string]string) error {
	sh := p.ShardOf(name)
	return sh.change(ctx, func() error {
		app, err := sh.find(name)
		if err != nil {
			return err
		}
		if err := platform.Check(name, attributes, false); err != nil {
			return err
		}
		next := app.With(attributes)
		if _, changed := attributes[platform.AttrCredential]; changed {
			if err := p.seal(next, name, attributes); err != nil {
				return err
			}
			app.opened = nil
		}
		app.Application = next
		sub := app.recipient.Subscription
		*sub = *topic.Direct(app.arn, topic.Application, next.Incarnation, next.Feedback())
		sub.PausedAt, sub.ResumedAt = next.Paused, next.Resumed
		sh.put(app)
		return nil
	})
}

// Application is an element of a list.
type Application struct {
	ARN        arn.ARN
	Attributes map[string]string // without secrets
}

// ListApplications lists an account's applications in a region, ordered by platform and name,
// up to limit of them after after: platform/name.
func (p *Platforms) ListApplications(ctx context.Context, region, account, after string, limit int) ([]Application, bool, error) {
	compare := func(a, b Application) int { return strings.Compare(a.ARN.Resource, b.ARN.Resource) }
	from := arn.PlatformApplication(region, account, after, "")
	from.Resource = strings.TrimSuffix(from.Resource, "/")
	page, more, err := kernel.MergePages(ctx, &p.Shards, limit, compare, func(sh *Shard) (page []Application, more bool) {
		for name := range sh.applications {
			if name.Region == region && name.Account == account && name.Resource > from.Resource {
				page = append(page, Application{name, nil})
			}
		}
		slices.SortFunc(page, compare)
		more = len(page) > limit
		page = page[:min(len(page), limit)]
		for i := range page {
			page[i].Attributes = p.shown(sh.applications[page[i].ARN])
		}
		return page, more
	})
	if err != nil {
		return nil, false, err
	}
	return page, more, p.awaitWritten(ctx)
}

// awaitWritten returns once all changes of applications so far are durable.
func (p *Platforms) awaitWritten(ctx context.Context) error {
	for _, sh := range p.Shards {
		var c *journal.Commit
		sh.View(func() { c = sh.written })
		c.Wait()
	}
	return ctx.Err()
}

// HasApplication reports whether an application exists, for statistics: it does not wait until
// what it reports is durable.
func (p *Platforms) HasApplication(name arn.ARN) (ok bool) {
	sh := p.ShardOf(name)
	sh.View(func() { _, ok = sh.applications[name] })
	return ok
}

// CheckRecord reports whether the value of one of this package's records can be read.
func CheckRecord(id keyspace.ID, value []byte) error {
	var err error
	switch id {
	case keyspace.KindPlatformApplication:
		_, err = platform.DecodeApplication(value)
	case keyspace.KindPlatformEndpoint:
		_, err = platform.DecodeEndpoint(value)
	case keyspace.KindPlatformToken:
		if len(value) != len(uuid.UUID{}) {
			err = platform.ErrRecord
		}
	default:
	}
	return err
}

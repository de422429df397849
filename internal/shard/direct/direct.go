// Package direct is the module of messages that are published to an endpoint, such as a phone
// number, and not to a topic. They wait in a backlog like the messages of a subscription. There
// is one backlog per account, region and protocol (arn.Direct); the first message makes it, and
// it stays. Each message names its own endpoint, which is encrypted with its body.
package direct

import (
	"context"
	"errors"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// record is the record of a backlog.
type record struct {
	Incarnation uint64 `json:"incarnation"`
	PausedAt    int64  `json:"pausedAt,omitempty"` // epoch milliseconds
	ResumedAt   int64  `json:"resumedAt,omitempty"`
}

const version = 1

var errRecord = errors.New("direct: a record cannot be read")

func decode(value []byte) (r record, err error) {
	if keyspace.DecodeJSON(version, value, &r) != nil || r.Incarnation == 0 {
		return r, errRecord
	}
	return r, nil
}

// CheckRecord reports whether a record of this package can be read.
func CheckRecord(value []byte) error {
	_, err := decode(value)
	return err
}

// Publishing is the module of direct publishes.
type Publishing struct {
	*backlog.Backlogs
	parts kernel.Parts[*shard]
}

// shard is the module's part in a shard.
type shard struct {
	*backlog.Shard
	module     *Publishing
	recipients map[arn.ARN]*backlog.Recipient
}

// New adds the module to the shards, after that of backlogs.
func New(below *backlog.Backlogs) *Publishing {
	p := &Publishing{Backlogs: below}
	for id, sh := range below.Shards {
		s := &shard{Shard: sh, module: p, recipients: map[arn.ARN]*backlog.Recipient{}}
		p.parts.Shards[id] = s
		sh.Add(lifecycle{sh: s})
	}
	return p
}

// lifecycle is how the kernel runs a shard of this package.
type lifecycle struct {
	kernel.NopLifecycle
	sh *shard
}

// Load reads the backlogs and their counters.
func (l lifecycle) Load() error {
	sh := l.sh
	return store.EachOf(sh.module.Store, keyspace.KindDirect, keyspace.Prefix(keyspace.Shard(sh.ID, keyspace.Directs)), sh.load)
}

func (sh *shard) load(k *keyspace.Key, value []byte) error {
	r, err := decode(value)
	if err != nil {
		return err
	}
	account, region, protocol := k.Named()
	recipient, err := sh.recipient(arn.Direct(region, account, protocol).Own(), r.Incarnation)
	if err != nil {
		return err
	}
	recipient.PausedAt, recipient.ResumedAt = r.PausedAt, r.ResumedAt
	return sh.LoadRecipient(recipient)
}

// recipient makes the recipient of a backlog.
func (sh *shard) recipient(name arn.ARN, incarnation uint64) (*backlog.Recipient, error) {
	protocol, _ := name.DirectProtocol()
	p, ok := protocols[protocol]
	if !ok {
		return nil, errRecord
	}
	r := &backlog.Recipient{Subscription: topic.Direct(name, p, incarnation, nil), Failed: func(*backlog.Delivery, int, string) {}}
	r.Save = func() { sh.put(r) }
	sh.recipients[name] = r
	return r, nil
}

// protocols are the protocols whose messages need no topic.
var protocols = map[string]topic.Protocol{topic.SMS.String(): topic.SMS}

func (sh *shard) put(r *backlog.Recipient) {
	protocol, _ := r.ARN.DirectProtocol()
	key := append(keyspace.Shard(sh.ID, keyspace.Directs), r.ARN.Account+"\x00"+r.ARN.Region+"\x00"+protocol...)
	sh.Batch.Set(key, keyspace.EncodeJSON(version, record{Incarnation: r.Incarnation, PausedAt: r.PausedAt, ResumedAt: r.ResumedAt}))
}

// PublishDirect accepts a message for an endpoint that belongs to no topic; it is durable on
// return. name is an arn.Direct. Errors: InsufficientStorage, and KMS's for the store's own
// key.
func (p *Publishing) PublishDirect(ctx context.Context, name arn.ARN, endpoint string, m *message.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.Full() {
		return kernel.ErrFull
	}
	if err := p.Accounts.CheckStorage(name.Account, m.Size()); err != nil {
		return err
	}
	m.Notice = &message.Notice{Kind: message.Notification, Subscription: name.String(), Token: endpoint}
	m.Seal()
	if err := p.EncryptWaiting(name, "", nil, arn.ARN{}, m); err != nil {
		return err
	}
	sh := p.parts.ShardOf(name)
	return sh.RunDurable(func(*kernel.Tx) (err error) {
		r := sh.recipients[name]
		if r == nil {
			if r, err = sh.recipient(name.Own(), sh.LatestIncarnation()+1); err != nil {
				return err
			}
			sh.NextIncarnation()
			sh.AddRecipient(r)
			sh.put(r)
		}
		sh.AcceptFor(r, m)
		return nil
	})
}

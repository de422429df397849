package queues

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/queues/encryption"
)

// EncryptFor is Encrypt for a service that sends one message for source. If the queue does
// not exist, a later step refuses the message.
func (q *Queues) EncryptFor(name arn.ARN, who *caller.Caller, source arn.ARN, m *message.Message) error {
	if q.Keys == nil {
		return nil // Admits refuses unknown keys
	}
	var cfg queue.Config
	found := false
	sh := q.ShardOf(name)
	sh.View(func() {
		var qs *Queue
		if qs, found = sh.Queue(name); found {
			cfg = qs.Machine.Config()
		}
	})
	if !found {
		return nil
	}
	return q.Encrypt(name, cfg, who, source, m)
}

// MayDecrypt refuses a caller, nil for the root of the queue's account, to whom the queue's key
// decrypts nothing. Errors: KMS's, and QueueDoesNotExist.
func (q *Queues) MayDecrypt(ctx context.Context, name arn.ARN, who *caller.Caller) error {
	cfg, err := q.QueueConfig(ctx, name)
	if err != nil || q.Keys == nil {
		return err
	}
	return q.Keys.MayDecrypt(name, cfg, who)
}

// Encrypted says whether and how messages of a queue are encrypted.
func (q *Queues) Encrypted(qs *Queue) (encrypted, managed bool) {
	if q.Keys == nil {
		return false, false
	}
	return q.Keys.Encrypts(qs.Machine.Config())
}

// ErrInClear refuses for now a message in clear for a queue that is encrypted: it was made when
// the queue was not, or was not there.
var ErrInClear = fault.NewRule(fault.Unavailable, "queues: the queue encrypts its messages since a moment ago")

// CheckEncrypted refuses a message in clear that is to enter a queue that encrypts. It is called
// under the shard's lock. Errors: ErrInClear.
func (q *Queues) CheckEncrypted(qs *Queue, m *message.Message) error {
	if encrypted, _ := q.Encrypted(qs); encrypted && m.Cipher == nil {
		return ErrInClear
	}
	return nil
}

// decrypt decrypts a message for a caller; nil is the root of the queue's account. refused
// says that the caller or the key was refused; otherwise an error is the message's.
func (q *Queues) decrypt(qs *Queue, who *caller.Caller, m *message.Message) (refused bool, err error) {
	if m.Cipher == nil {
		return false, nil
	}
	var cfg queue.Config
	qs.Shard.View(func() { cfg = qs.Machine.Config() })
	return q.Reveal(cfg, qs.ARN.Account, who, m)
}

// Reveal decrypts a message of an account's queue for a caller; nil is the root of the
// account. refused is as in decrypt.
func (q *Queues) Reveal(cfg queue.Config, account string, who *caller.Caller, m *message.Message) (refused bool, err error) {
	if q.Keys == nil {
		return false, encryption.ErrNoKeys
	}
	if who == nil {
		who = authorize.RootOf(account)
	}
	err = q.Keys.Decrypt(cfg, who, m)
	return fault.Is(err), err
}

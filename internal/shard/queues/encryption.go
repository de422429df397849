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
func (e *Queues) EncryptFor(q arn.ARN, who *caller.Caller, source arn.ARN, m *message.Message) error {
	if e.Keys == nil {
		return nil // Admits refuses unknown keys
	}
	var cfg queue.Config
	found := false
	sh := e.ShardOf(q)
	sh.View(func() {
		var qs *Queue
		if qs, found = sh.Queue(q); found {
			cfg = qs.Machine.Config()
		}
	})
	if !found {
		return nil
	}
	return e.Encrypt(q, cfg, who, source, m)
}

// MayDecrypt refuses a caller, nil for the root of the queue's account, to whom the queue's key
// decrypts nothing. Errors: KMS's, and QueueDoesNotExist.
func (e *Queues) MayDecrypt(ctx context.Context, q arn.ARN, who *caller.Caller) error {
	cfg, err := e.QueueConfig(ctx, q)
	if err != nil || e.Keys == nil {
		return err
	}
	return e.Keys.MayDecrypt(q, cfg, who)
}

// Encrypted says whether and how messages of a queue are encrypted.
func (e *Queues) Encrypted(qs *Queue) (encrypted, managed bool) {
	if e.Keys == nil {
		return false, false
	}
	return e.Keys.Encrypts(qs.Machine.Config())
}

// ErrInClear refuses for now a message in clear for a queue that is encrypted: it was made when
// the queue was not, or was not there.
var ErrInClear = fault.NewRule(fault.Unavailable, "queues: the queue encrypts its messages since a moment ago")

// CheckEncrypted refuses a message in clear that is to enter a queue that encrypts. It is called
// under the shard's lock. Errors: ErrInClear.
func (e *Queues) CheckEncrypted(qs *Queue, m *message.Message) error {
	if encrypted, _ := e.Encrypted(qs); encrypted && m.Cipher == nil {
		return ErrInClear
	}
	return nil
}

// decrypt decrypts a message for a caller; nil is the root of the queue's account. refused
// says that the caller or the key was refused; otherwise an error is the message's.
func (e *Queues) decrypt(qs *Queue, who *caller.Caller, m *message.Message) (refused bool, err error) {
	if m.Cipher == nil {
		return false, nil
	}
	var cfg queue.Config
	qs.Shard.View(func() { cfg = qs.Machine.Config() })
	return e.Reveal(cfg, qs.ARN.Account, who, m)
}

// Reveal decrypts a message of an account's queue for a caller; nil is the root of the
// account. refused is as in decrypt.
func (e *Queues) Reveal(cfg queue.Config, account string, who *caller.Caller, m *message.Message) (refused bool, err error) {
	if e.Keys == nil {
		return false, encryption.ErrNoKeys
	}
	if who == nil {
		who = authorize.RootOf(account)
	}
	err = e.Keys.Decrypt(cfg, who, m)
	return fault.Is(err), err
}

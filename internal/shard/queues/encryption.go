package queues

import (
	"errors"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/key"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
)

// Encryption keeps the messages of encrypted queues unreadable at rest. It is called
// without any lock, but for Managed messages that a publish delivers itself.
type Encryption interface {
	// Encrypts reports whether messages of a queue are encrypted: under a key of KMS,
	// or, if managed, under one of the store's own.
	Encrypts(cfg queue.Config) (encrypted, managed bool)
	// Encrypt encrypts a message that a caller sends to a queue. source is the ARN of
	// what a service sends for, else zero. Errors are KMS's: KMSNotFound,
	// KMSAccessDenied, KMSDisabled, KMSInvalidState, KMSInvalidKeyUsage.
	Encrypt(q arn.ARN, cfg queue.Config, who *caller.Caller, source arn.ARN, m *message.Message) error
	// Decrypt decrypts a message that a caller receives. Errors: as Encrypt; any other
	// says that the message is damaged.
	Decrypt(cfg queue.Config, who *caller.Caller, m *message.Message) error
}

// Encrypt encrypts messages that a caller sends to a queue, if it is an encrypted one.
// source is the ARN of what a service sends for, else zero. Errors: those of Encryption.
func (e *Queues) Encrypt(q arn.ARN, cfg queue.Config, who *caller.Caller, source arn.ARN, msgs ...*message.Message) error {
	if e.options.Encryption == nil {
		return key.Find(q, cfg.Key)
	}
	if encrypted, _ := e.options.Encryption.Encrypts(cfg); !encrypted {
		return nil
	}
	for _, m := range msgs {
		if err := e.options.Encryption.Encrypt(q, cfg, who, source, m); err != nil {
			return err
		}
	}
	return nil
}

// EncryptFor is Encrypt for a service that sends one message for source. A queue that is
// not there refuses it later.
func (e *Queues) EncryptFor(q arn.ARN, who *caller.Caller, source arn.ARN, m *message.Message) error {
	if e.options.Encryption == nil {
		return nil // Admits refuses keys that are not there
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

// Encrypted says whether and how messages of a queue are encrypted.
func (e *Queues) Encrypted(qs *Queue) (encrypted, managed bool) {
	if e.options.Encryption == nil {
		return false, false
	}
	return e.options.Encryption.Encrypts(qs.Machine.Config())
}

// EncryptManaged encrypts a message for a queue under the store's own key.
func (e *Queues) EncryptManaged(qs *Queue, m *message.Message) error {
	return e.options.Encryption.Encrypt(qs.ARN, qs.Machine.Config(), nil, arn.ARN{}, m)
}

// errNoEncryption refuses to read what is encrypted where no keys are.
var errNoEncryption = errors.New("queues: the message is encrypted")

// decrypt decrypts a message for a caller; nil is the root of the queue's account. refused
// says that it is the caller, or the key, and not the message.
func (e *Queues) decrypt(qs *Queue, who *caller.Caller, m *message.Message) (refused bool, err error) {
	if m.Cipher == nil {
		return false, nil
	}
	if e.options.Encryption == nil {
		return false, errNoEncryption
	}
	if who == nil {
		who = authorize.RootOf(qs.ARN.Account)
	}
	var cfg queue.Config
	qs.Shard.View(func() { cfg = qs.Machine.Config() })
	err = e.options.Encryption.Decrypt(cfg, who, m)
	return fault.Is(err), err
}

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

// Encryption keeps the messages of encrypted queues and topics, and the events of
// functions, unreadable at rest. It is called without any lock, but for what is under the
// store's own key.
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
	// EncryptWaiting encrypts what waits for the subscribers of a topic, or for a function,
	// under a key of KMS. An empty one is the store's where that is the default; else it
	// stays in clear. Errors: as Encrypt.
	EncryptWaiting(owner arn.ARN, key string, who *caller.Caller, source arn.ARN, m *message.Message) error
	// Default reports that the store's own key encrypts where no other does.
	Default() bool
	// Open decrypts for the server itself, which nobody has to allow, whatever the state
	// of the key. Errors: KMSAccessDenied, if the key is gone; any other says that the
	// message is damaged.
	Open(m *message.Message) error
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

// Encrypting reports that messages can be encrypted, and whether those are for which
// nobody has said how.
func (e *Queues) Encrypting() (possible, always bool) {
	c := e.options.Encryption
	return c != nil, c != nil && c.Default()
}

// EncryptWaiting encrypts what waits for a topic's subscribers or for a function, as
// Encryption.EncryptWaiting says. nil and zero are the root of the owner's account, and no
// source.
func (e *Queues) EncryptWaiting(owner arn.ARN, key string, who *caller.Caller, source arn.ARN, m *message.Message) error {
	if e.options.Encryption == nil {
		return nil
	}
	return e.options.Encryption.EncryptWaiting(owner, key, who, source, m)
}

// OpenWaiting decrypts a message for the server itself, if it is encrypted. Errors: those
// of Encryption.Open.
func (e *Queues) OpenWaiting(m *message.Message) error {
	switch {
	case m.Cipher == nil:
		return nil
	case e.options.Encryption == nil:
		return errNoEncryption
	}
	return e.options.Encryption.Open(m)
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

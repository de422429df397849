// Package encryption keeps messages unreadable at rest: those of encrypted queues and
// topics, and the events of functions.
package encryption

import (
	"errors"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/key"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
)

// Keys keep the messages of encrypted queues and topics, and the events of
// functions, unreadable at rest. They are called without any lock, but for what is under the
// store's own key.
type Keys interface {
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
	// MayDecrypt refuses a caller to whom the present key of a queue decrypts nothing. Errors: as
	// Encrypt.
	MayDecrypt(q arn.ARN, cfg queue.Config, who *caller.Caller) error
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

// Messages encrypts and decrypts, where there are keys.
type Messages struct {
	Keys Keys // nil: messages are kept in clear
}

// Encrypt encrypts messages that a caller sends to a queue, if it is an encrypted one.
// source is the ARN of what a service sends for, else zero. Errors: those of Keys.
func (e *Messages) Encrypt(q arn.ARN, cfg queue.Config, who *caller.Caller, source arn.ARN, msgs ...*message.Message) error {
	if e.Keys == nil {
		return key.Find(q, cfg.Key)
	}
	if encrypted, _ := e.Keys.Encrypts(cfg); !encrypted {
		return nil
	}
	for _, m := range msgs {
		if err := e.Keys.Encrypt(q, cfg, who, source, m); err != nil {
			return err
		}
	}
	return nil
}

// Encrypting reports that messages can be encrypted, and whether those are for which
// nobody has said how.
func (e *Messages) Encrypting() (possible, always bool) {
	c := e.Keys
	return c != nil, c != nil && c.Default()
}

// EncryptWaiting encrypts what waits for a topic's subscribers or for a function, as
// Keys.EncryptWaiting says. nil and zero are the root of the owner's account, and no
// source.
func (e *Messages) EncryptWaiting(owner arn.ARN, key string, who *caller.Caller, source arn.ARN, m *message.Message) error {
	if e.Keys == nil {
		return nil
	}
	return e.Keys.EncryptWaiting(owner, key, who, source, m)
}

// OpenWaiting decrypts a message for the server itself, if it is encrypted. Errors: those
// of Keys.Open.
func (e *Messages) OpenWaiting(m *message.Message) error {
	switch {
	case m.Cipher == nil:
		return nil
	case e.Keys == nil:
		return ErrNoKeys
	}
	return e.Keys.Open(m)
}

// ErrNoKeys refuses to read what is encrypted where no keys are.
var ErrNoKeys = errors.New("queues: the message is encrypted")

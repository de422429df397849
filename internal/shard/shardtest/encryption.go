package shardtest

import (
	"bytes"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
)

// Encryption is one of queues, topics and functions that nobody needs a key for: it makes
// what is encrypted unlike what it was, and no more.
type Encryption struct{}

func flipped(p []byte) ([]byte, error) {
	p = bytes.Clone(p)
	for i := range p {
		p[i] ^= 0x5a
	}
	return p, nil
}

// Encrypts implements encryption.Keys.
func (Encryption) Encrypts(queue.Config) (encrypted, managed bool) { return true, true }

// Encrypt implements encryption.Keys.
func (Encryption) Encrypt(_ arn.ARN, _ queue.Config, _ *caller.Caller, _ arn.ARN, m *message.Message) error {
	_, err := m.Encrypt(nil, flipped)
	return err
}

// Decrypt implements encryption.Keys.
func (Encryption) Decrypt(_ queue.Config, _ *caller.Caller, m *message.Message) error {
	return m.Decrypt(flipped)
}

// MayDecrypt implements encryption.Keys.
func (Encryption) MayDecrypt(arn.ARN, queue.Config, *caller.Caller) error { return nil }

// EncryptWaiting implements encryption.Keys.
func (Encryption) EncryptWaiting(_ arn.ARN, _ string, _ *caller.Caller, _ arn.ARN, m *message.Message) error {
	_, err := m.Encrypt(nil, flipped)
	return err
}

// Default implements encryption.Keys.
func (Encryption) Default() bool { return true }

// Open implements encryption.Keys.
func (Encryption) Open(m *message.Message) error { return m.Decrypt(flipped) }

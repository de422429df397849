package encryption_test

import (
	"errors"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/queues/encryption"
)

var errKMS = errors.New("kms")

// keys encrypt as plain says, until some message is refused.
type keys struct {
	plain     bool
	refuse    int // the how many-th message
	encrypted int
}

func (k *keys) Encrypts(queue.Config) (encrypted, managed bool) { return !k.plain, false }

func (k *keys) Encrypt(arn.ARN, queue.Config, *caller.Caller, arn.ARN, *message.Message) error {
	if k.encrypted++; k.encrypted == k.refuse {
		return errKMS
	}
	return nil
}

func (k *keys) Decrypt(queue.Config, *caller.Caller, *message.Message) error { return nil }

func (k *keys) MayDecrypt(arn.ARN, queue.Config, *caller.Caller) error { return nil }

func (k *keys) EncryptWaiting(arn.ARN, string, *caller.Caller, arn.ARN, *message.Message) error {
	return errKMS
}
func (k *keys) Default() bool { return !k.plain }

func (k *keys) Open(*message.Message) error { return errKMS }

// TestMessages: messages are encrypted where there are keys and the queue is to be; one that
// cannot be refuses all; what is encrypted is never taken for what is in clear.
func TestMessages(t *testing.T) {
	q := arn.Queue("us-east-1", "000000000000", "q")
	three := []*message.Message{{}, {}, {}}
	for name, c := range map[string]struct {
		keys *keys
		n    int
		err  error
	}{
		"an encrypted queue":    {&keys{}, 3, nil},
		"a plain queue":         {&keys{plain: true}, 0, nil},
		"the second is refused": {&keys{refuse: 2}, 2, errKMS},
	} {
		e := &encryption.Messages{Keys: c.keys}
		if err := e.Encrypt(q, queue.Config{}, nil, arn.ARN{}, three...); !errors.Is(err, c.err) || c.keys.encrypted != c.n {
			t.Errorf("%s: %d encrypted, %v", name, c.keys.encrypted, err)
		}
		if possible, always := e.Encrypting(); !possible || always == c.keys.plain {
			t.Errorf("%s: %v, %v", name, possible, always)
		}
	}
	sealed := &message.Message{Cipher: []byte("sealed")}
	with, without := &encryption.Messages{Keys: &keys{}}, &encryption.Messages{}
	if err := with.OpenWaiting(&message.Message{}); err != nil {
		t.Errorf("what is in clear was to be decrypted: %v", err)
	}
	if err := with.OpenWaiting(sealed); !errors.Is(err, errKMS) {
		t.Errorf("a refusal of KMS: %v", err)
	}
	if err := without.OpenWaiting(sealed); !errors.Is(err, encryption.ErrNoKeys) {
		t.Errorf("without keys, what is encrypted: %v", err)
	}
	if err := with.EncryptWaiting(q, "", nil, arn.ARN{}, &message.Message{}); !errors.Is(err, errKMS) {
		t.Errorf("a refusal of KMS: %v", err)
	}
	if err := without.EncryptWaiting(q, "", nil, arn.ARN{}, &message.Message{}); err != nil {
		t.Errorf("without keys: %v", err)
	}
	if err := without.Encrypt(q, queue.Config{Key: "alias/none"}, nil, arn.ARN{}, three...); err == nil {
		t.Error("without keys a queue's key was found")
	}
	if possible, always := without.Encrypting(); possible || always {
		t.Error("without keys it can encrypt")
	}
}

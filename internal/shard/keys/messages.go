package keys

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/seal"
)

// Messages encrypts the messages of queues: SSE-SQS under a key of the store, SSE-KMS
// under data keys, of which each message carries its own as KMS has encrypted it.
type Messages struct {
	keys    *Module
	sealer  *seal.Sealer
	clock   clock.Clock
	managed bool

	sealing *lru.Cache[dataKeyOf, dataKey] // by what it is used for
	opening *lru.Cache[openingOf, dataKey]
}

// dataKeys is how many data keys are kept for encryption, and for decryption.
const dataKeys = 4096

// dataKeyOf is whose a data key is: one queue's and one principal's.
type dataKeyOf struct{ queue, key, principal string }

type openingOf struct{ blob, principal string }

type dataKey struct {
	sealer *seal.Sealer
	blob   []byte // as KMS has encrypted it
	until  time.Time
}

// NewMessages makes it. Without managed, SSE-SQS leaves messages in clear: where the root
// key stands beside the data, they would cost time and be no safer.
func NewMessages(keys *Module, c clock.Clock, managed bool) *Messages {
	sealing, err := lru.New[dataKeyOf, dataKey](dataKeys)
	if err != nil {
		panic(err) // the size is positive
	}
	opening, err := lru.New[openingOf, dataKey](dataKeys)
	if err != nil {
		panic(err)
	}
	return &Messages{keys: keys, sealer: keys.sealing.Sealer("messages"), clock: c, managed: managed, sealing: sealing, opening: opening}
}

// The first byte of what an encrypted message has for a body: how it was sealed. The ARN
// of the queue follows, for which it was; and of underKMS the data key.
const (
	underStore byte = 1
	underKMS   byte = 2
)

var errMessage = errors.New("keys: an encrypted message cannot be read")

// Encrypts implements queues.Encryption.
func (e *Messages) Encrypts(cfg queue.Config) (encrypted, managed bool) {
	managed = e.managed && cfg.Managed
	return managed || cfg.Key != "", managed
}

// Encrypt implements queues.Encryption.
func (e *Messages) Encrypt(q arn.ARN, cfg queue.Config, who *caller.Caller, source arn.ARN, m *message.Message) error {
	name := q.String()
	if cfg.Key == "" {
		return m.Encrypt(func(plaintext []byte) ([]byte, error) {
			return sealed(appendText([]byte{underStore}, name), plaintext, e.sealer)
		})
	}
	with, err := e.dataKey(q, cfg, who, source)
	if err != nil {
		return err
	}
	return m.Encrypt(func(plaintext []byte) ([]byte, error) {
		return sealed(appendText(appendText([]byte{underKMS}, name), string(with.blob)), plaintext, with.sealer)
	})
}

// sealed seals a plaintext behind a header, which it is bound to.
func sealed(header, plaintext []byte, with *seal.Sealer) ([]byte, error) {
	value, err := with.Seal(plaintext, seal.Context("message", string(header)))
	return append(header, value...), err
}

func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

func takeText(p []byte) (text string, rest []byte, ok bool) {
	n, w := binary.Uvarint(p)
	if w <= 0 || n > uint64(len(p)-w) {
		return "", nil, false
	}
	return string(p[w : w+int(n)]), p[w+int(n):], true
}

// access is what a use of a queue's key is decided by. Nobody is the root of the queue's
// account.
func access(q arn.ARN, who *caller.Caller, source arn.ARN, operation string) *Access {
	if who == nil {
		who = authorize.RootOf(q.Account)
	}
	a := &Access{Operation: operation, Caller: who, Context: map[string]string{"aws:sqs:arn": q.String()}}
	if who.Kind != caller.Service {
		a.Via = "sqs." + q.Region + ".amazonaws.com"
	}
	if !source.IsZero() {
		a.Source, a.SourceAccount = source.String(), source.Account
	}
	return a
}

func principal(who *caller.Caller) string {
	switch {
	case who == nil:
		return ""
	case who.Kind == caller.Service:
		return strings.Join(who.Services, " ")
	}
	return who.ARN + " " + who.ID
}

// dataKey is the data key of a queue and a principal, for as long as the queue's data
// keys are reused; or another one, for which both the right to have one made and the
// right to decrypt are needed.
func (e *Messages) dataKey(q arn.ARN, cfg queue.Config, who *caller.Caller, source arn.ARN) (dataKey, error) {
	of := dataKeyOf{q.String(), cfg.Key, principal(who)}
	if who != nil && who.Kind == caller.Service {
		of.principal += " " + source.String()
	}
	now := e.clock.Now()
	if found, ok := e.sealing.Get(of); ok && now.Before(found.until) {
		return found, nil
	}
	k, err := e.keys.Find(q.Account, q.Region, cfg.Key)
	if err != nil {
		return dataKey{}, err
	}
	for _, operation := range []string{"GenerateDataKey", "Decrypt"} {
		if err := e.keys.Allow(k, access(q, who, source, operation)); err != nil {
			return dataKey{}, err
		}
	}
	if err := usable(k, "GenerateDataKey"); err != nil {
		return dataKey{}, err
	}
	drawn, err := Random(seal.KeySize)
	if err != nil {
		return dataKey{}, err
	}
	made := dataKey{until: now.Add(cfg.KeyReuse)}
	if made.blob, err = e.keys.Encrypt(k, drawn, map[string]string{"aws:sqs:arn": q.String()}); err != nil {
		return dataKey{}, err
	}
	if made.sealer, err = seal.WithKey(drawn); err != nil {
		return dataKey{}, err
	}
	e.sealing.Add(of, made)
	return made, nil
}

func usable(k *kms.Key, operation string) error {
	if err := k.Usable(operation, kms.EncryptDecrypt); err != nil {
		return err
	}
	if !k.Symmetric() {
		return kms.ErrUsage.With(k.ARN().String(), k.Spec, operation)
	}
	return nil
}

// Decrypt implements queues.Encryption.
func (e *Messages) Decrypt(cfg queue.Config, who *caller.Caller, m *message.Message) error {
	if len(m.Cipher) == 0 {
		return errMessage
	}
	name, rest, ok := takeText(m.Cipher[1:])
	if !ok {
		return errMessage
	}
	with := e.sealer
	switch m.Cipher[0] {
	case underStore:
	case underKMS:
		var blob string
		if blob, rest, ok = takeText(rest); !ok {
			return errMessage
		}
		q, err := arn.Parse(name)
		if err != nil {
			return errMessage
		}
		if with, err = e.openDataKey(q, blob, cfg, who); err != nil {
			return err
		}
	default:
		return errMessage
	}
	header := m.Cipher[:len(m.Cipher)-len(rest)]
	return m.Decrypt(func([]byte) ([]byte, error) { return with.Open(rest, seal.Context("message", string(header))) })
}

// openDataKey opens the data key of a message that was sent to a queue, which may be
// another than it is received from.
func (e *Messages) openDataKey(q arn.ARN, blob string, cfg queue.Config, who *caller.Caller) (*seal.Sealer, error) {
	of := openingOf{blob, principal(who)}
	now := e.clock.Now()
	if found, ok := e.opening.Get(of); ok && now.Before(found.until) {
		return found.sealer, nil
	}
	k, err := e.keys.KeyOf(q.Region, []byte(blob))
	if err != nil {
		return nil, err
	}
	if err := e.keys.Allow(k, access(q, who, arn.ARN{}, "Decrypt")); err != nil {
		return nil, err
	}
	if err := usable(k, "Decrypt"); err != nil {
		return nil, err
	}
	plain, _, err := e.keys.Decrypt(k, []byte(blob), map[string]string{"aws:sqs:arn": q.String()})
	if err != nil {
		return nil, errMessage
	}
	sealer, err := seal.WithKey(plain)
	if err != nil {
		return nil, err
	}
	e.opening.Add(of, dataKey{sealer: sealer, until: now.Add(cfg.KeyReuse)})
	return sealer, nil
}

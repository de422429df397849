package keys

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/seal"
)

// Messages encrypts the messages of queues and topics, and the events of functions: under a key
// of the store (SSE-SQS), or under data keys of KMS. Each message carries its data key,
// encrypted by KMS.
type Messages struct {
	keys    *Module
	sealer  *seal.Sealer
	clock   clock.Clock
	managed bool

	sealing *lru.Cache[dataKeyOf, dataKey] // by use
	opening *lru.Cache[openingOf, dataKey]
}

// dataKeys bounds the caches of data keys for encryption, and for decryption.
const dataKeys = 4096

// topicReuse is how long a topic's data key is used. Source: the SNS developer guide,
// "Key management": up to five minutes.
const topicReuse = 5 * time.Minute

// dataKeyOf identifies the use of a data key: by one queue or topic, and one principal.
type dataKeyOf struct{ of, key, principal string }

type openingOf struct{ blob, principal string }

type dataKey struct {
	sealer *seal.Sealer
	blob   []byte // encrypted by KMS
	made   time.Time
}

// usable reports whether the data key may still be used, by the current period of reuse.
func (k *dataKey) usable(now time.Time, reuse time.Duration) bool {
	age := now.Sub(k.made)
	return 0 <= age && age < reuse // a clock may be set back
}

// NewMessages makes it. Without managed, SSE-SQS leaves messages in clear: if the root key is
// stored beside the data, encryption would take time and add no safety.
func NewMessages(keys *Module, c clock.Clock, managed bool) *Messages {
	sealing, err := lru.New[dataKeyOf, dataKey](dataKeys)
	if err != nil {
		panic(err) // the size is positive
	}
	opening, err := lru.New[openingOf, dataKey](dataKeys)
	if err != nil {
		panic(err)
	}
	return &Messages{keys: keys, sealer: keys.sealing.Sealer(messagesPurpose), clock: c, managed: managed, sealing: sealing, opening: opening}
}

// The first byte of an encrypted message's body: how it was sealed. The ARN of the queue, topic
// or function that it was sealed for follows; after underKMS also the data key.
const (
	underStore byte = 1
	underKMS   byte = 2
)

var errMessage = errors.New("keys: an encrypted message cannot be read")

// Encrypts implements encryption.Keys.
func (e *Messages) Encrypts(cfg queue.Config) (encrypted, managed bool) {
	managed = e.managed && cfg.Managed
	return managed || cfg.Key != "", managed
}

// Encrypt implements encryption.Keys.
func (e *Messages) Encrypt(q arn.ARN, cfg queue.Config, who *caller.Caller, source arn.ARN, m *message.Message) error {
	return e.encrypt(use{of: q, key: cfg.Key, reuse: cfg.KeyReuse, who: who, source: source}, m)
}

// EncryptWaiting implements encryption.Keys.
func (e *Messages) EncryptWaiting(owner arn.ARN, key string, who *caller.Caller, source arn.ARN, m *message.Message) error {
	if key == "" && !e.managed {
		return nil
	}
	return e.encrypt(use{of: owner, key: key, reuse: topicReuse, who: who, source: source}, m)
}

// Default implements encryption.Keys.
func (e *Messages) Default() bool { return e.managed }

func (e *Messages) encrypt(u use, m *message.Message) error {
	name, how, with := u.of.String(), underStore, dataKey{sealer: e.sealer}
	if u.key != "" {
		var err error
		if with, err = e.dataKey(u); err != nil {
			return err
		}
		how = underKMS
	}
	return encryptUnder(m, name, how, with)
}

// encryptUnder encrypts a message for the queue, topic or function of a name.
func encryptUnder(m *message.Message, name string, how byte, with dataKey) (err error) {
	plain := plaintexts.Get().(*[]byte)
	defer func() {
		clear(*plain)
		if cap(*plain) <= keptPlaintext {
			plaintexts.Put(plain)
		}
	}()
	*plain, err = m.Encrypt(*plain, func(plaintext []byte) ([]byte, error) {
		// The header, which is authenticated with the ciphertext, and the ciphertext are one
		// allocation.
		out := make([]byte, 0, 1+2*binary.MaxVarintLen32+len(name)+len(with.blob)+len(plaintext)+seal.Overhead)
		out = mutation.AppendText(append(out, how), name)
		if how == underKMS {
			out = mutation.AppendText(out, with.blob)
		}
		return with.sealer.AppendSealed(out, plaintext, seal.Context("message", string(out)))
	})
	return err
}

// plaintexts is a pool of buffers for plaintexts.
var plaintexts = sync.Pool{New: func() any { return new([]byte) }}

// keptPlaintext is the largest buffer that is returned to the pool, in bytes.
const keptPlaintext = 64 << 10

// use is a use of a key for the messages of a queue or a topic.
type use struct {
	of     arn.ARN
	key    string // as its attribute names it
	reuse  time.Duration
	who    *caller.Caller // nil: the root of its account
	source arn.ARN        // of the resource for which a service acts, else zero
}

// context is the encryption context that AWS uses for each service's data keys.
func (u *use) context() map[string]string {
	name := map[string]string{"sns": "aws:sns:topicArn", "lambda": "aws:lambda:FunctionArn"}[u.of.Service]
	return map[string]string{cmp.Or(name, "aws:sqs:arn"): u.of.String()}
}

// access is the Access of the use.
func (u *use) access(operation string) *Access {
	a := &Access{Operation: operation, Caller: u.who, Context: u.context()}
	if a.Caller == nil {
		a.Caller = authorize.RootOf(u.of.Account)
	}
	if a.Caller.Kind != caller.Service {
		a.Via = u.of.Service + "." + u.of.Region + ".amazonaws.com"
	}
	if !u.source.IsZero() {
		a.Source, a.SourceAccount = u.source.String(), u.source.Account
	}
	return a
}

// principal identifies whose permission a cached data key stands for. Sessions of one role and
// name differ in their policies, tags and source identity: each is its access key, or, if it is
// stored without that, all that is stored of it.
func principal(who *caller.Caller) string {
	switch {
	case who == nil:
		return ""
	case who.Kind == caller.Service:
		return strings.Join(who.Services, " ")
	case who.Issued.IsZero():
		return who.ARN + " " + who.ID
	case who.AccessKey != "":
		return who.ARN + " " + who.ID + " " + who.AccessKey
	}
	all, err := json.Marshal(who)
	if err != nil {
		panic(err) // it has only types that JSON can encode
	}
	return string(all)
}

// dataKey is the cached data key of a use, or a new one, which needs the permissions to
// generate and to decrypt a data key.
func (e *Messages) dataKey(u use) (dataKey, error) {
	of := dataKeyOf{u.of.String(), u.key, principal(u.who)}
	if u.who != nil && u.who.Kind == caller.Service {
		of.principal += " " + u.source.String()
	}
	now := e.clock.Now()
	if found, ok := e.sealing.Get(of); ok && found.usable(now, u.reuse) {
		return found, nil
	}
	k, err := e.keys.Find(u.of.Account, u.of.Region, u.key)
	if err != nil {
		return dataKey{}, err
	}
	for _, operation := range []string{"GenerateDataKey", "Decrypt"} {
		if err := e.keys.Allow(k, u.access(operation)); err != nil {
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
	made := dataKey{made: now}
	if made.blob, err = e.keys.Encrypt(k, drawn, u.context()); err != nil {
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

// Decrypt implements encryption.Keys.
func (e *Messages) Decrypt(cfg queue.Config, who *caller.Caller, m *message.Message) error {
	return e.decrypt(m, cfg.KeyReuse, func(k *kms.Key, of arn.ARN) error {
		return e.mayDecrypt(k, use{of: of, who: who})
	}, principal(who))
}

// MayDecrypt implements encryption.Keys.
func (e *Messages) MayDecrypt(q arn.ARN, cfg queue.Config, who *caller.Caller) error {
	if cfg.Key == "" {
		return nil
	}
	k, err := e.keys.Find(q.Account, q.Region, cfg.Key)
	if err != nil {
		return err
	}
	return e.mayDecrypt(k, use{of: q, who: who})
}

// mayDecrypt refuses a use of a key that is not allowed, or not possible now.
func (e *Messages) mayDecrypt(k *kms.Key, u use) error {
	if err := e.keys.Allow(k, u.access("Decrypt")); err != nil {
		return err
	}
	return usable(k, "Decrypt")
}

// Open implements encryption.Keys.
func (e *Messages) Open(m *message.Message) error {
	return e.decrypt(m, topicReuse, func(*kms.Key, arn.ARN) error { return nil }, "the server")
}

// decrypt decrypts a message for a principal. For a key of KMS, allowed must permit that; its
// decision is cached with the data key, for reuse.
func (e *Messages) decrypt(m *message.Message, reuse time.Duration, allowed func(k *kms.Key, of arn.ARN) error, who string) error {
	if len(m.Cipher) == 0 {
		return errMessage
	}
	name, rest, ok := mutation.TakeText(m.Cipher[1:])
	if !ok {
		return errMessage
	}
	with := e.sealer
	switch m.Cipher[0] {
	case underStore:
	case underKMS:
		var blob string
		if blob, rest, ok = mutation.TakeText(rest); !ok {
			return errMessage
		}
		of, err := arn.Parse(name)
		if err != nil {
			return errMessage
		}
		if with, err = e.openDataKey(of, blob, reuse, allowed, who); err != nil {
			return err
		}
	default:
		return errMessage
	}
	header := m.Cipher[:len(m.Cipher)-len(rest)]
	return m.Decrypt(func([]byte) ([]byte, error) { return with.Open(rest, seal.Context("message", string(header))) })
}

// openDataKey opens the data key of a message that was sent to a queue or a topic. This may be
// another one than it is received from.
func (e *Messages) openDataKey(of arn.ARN, blob string, reuse time.Duration, allowed func(k *kms.Key, of arn.ARN) error, who string) (*seal.Sealer, error) {
	opening := openingOf{blob, who}
	now := e.clock.Now()
	if found, ok := e.opening.Get(opening); ok && found.usable(now, reuse) {
		return found.sealer, nil
	}
	k, err := e.keys.KeyOf(of.Region, []byte(blob))
	if err != nil {
		return nil, err
	}
	if err := allowed(k, of); err != nil {
		return nil, err
	}
	u := use{of: of}
	plain, _, err := e.keys.Decrypt(k, []byte(blob), u.context())
	if err != nil {
		return nil, errMessage
	}
	sealer, err := seal.WithKey(plain)
	if err != nil {
		return nil, err
	}
	e.opening.Add(opening, dataKey{sealer: sealer, made: now})
	return sealer, nil
}

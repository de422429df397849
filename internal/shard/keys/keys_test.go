package keys_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/keys"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/test/soak"
)

const account, region = shardtest.Account, shardtest.Region

// open opens the module on a journal.
func open(t *testing.T, j *journal.Journal, root *seal.Root, c clock.Clock) *keys.Module {
	t.Helper()
	sealing, err := keys.OpenSealing(j, shardtest.Start, nil, func(string) (*seal.Root, error) { return root, nil })
	if err != nil {
		t.Fatal(err)
	}
	k := kernel.New(kernel.Options{Journal: j, Clock: c, Logger: slog.New(slog.DiscardHandler)})
	m := keys.New(k, sealing)
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return m
}

func create(t *testing.T, m *keys.Module) *kms.Key {
	t.Helper()
	k, err := m.Create(kms.New{Account: account, Region: region, Spec: kms.SymmetricDefault, Usage: kms.EncryptDecrypt})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// everything tells all keys with their secrets as they are kept, aliases and grants.
func everything(m *keys.Module) string {
	all, _ := m.List(account, region, "", 1000)
	aliases, _ := m.Aliases(account, region, "", "", 1000)
	grants, _ := m.Grants("", 1000, func(*kms.Key, *kms.Grant) bool { return true })
	text, err := json.Marshal([]any{all, aliases, grants})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// A key that is given its id is made once.
func TestCreateOnce(t *testing.T) {
	j := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(j.Close)
	m := open(t, j, seal.NewRoot(), clock.NewVirtual(shardtest.Start))
	made := kms.New{ID: "0f7f0b5e-3f6e-4c3f-9d6e-0c5a3c0e7a11", Account: account, Region: region, Spec: kms.SymmetricDefault, Usage: kms.EncryptDecrypt}
	first, err := m.Create(made)
	if err != nil || first.ID != made.ID {
		t.Fatal(first, err)
	}
	made.Description = "another"
	again, err := m.Create(made)
	if err != nil || again.Description != "" || again.Current().ID != first.Current().ID {
		t.Errorf("%+v, %v", again, err)
	}
	if all, _ := m.List(account, region, "", 10); len(all) != 1 {
		t.Errorf("%d keys", len(all))
	}
}

// Whatever was acknowledged is there after a crash, and nothing of it by half; and what
// was encrypted is decrypted, under any material that the key has had.
func TestCrash(t *testing.T) {
	root := seal.NewRoot()
	var id, other, grant string
	var blobs [][]byte
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	change := func(command func(k *kms.Key, now time.Time) error) func(m *keys.Module) {
		return func(m *keys.Module) {
			_, err := m.Change(id, command)
			ok(err)
		}
	}
	encrypt := func(m *keys.Module) {
		k, err := m.Find(account, region, id)
		ok(err)
		blob, err := m.Encrypt(k, []byte("secret"), map[string]string{"n": "1"})
		ok(err)
		blobs = append(blobs, blob)
	}
	rotate := func(m *keys.Module) {
		k, err := m.Find(account, region, id)
		ok(err)
		_, err = m.RotateOnDemand(k)
		ok(err)
	}
	shardtest.CrashInSteps(t, soak.Seeds(t, 1)[0], soak.Size(1, 3), func(j *journal.Journal) *keys.Module {
		return open(t, j, root, clock.NewVirtual(shardtest.Start))
	}, func(m *keys.Module) string {
		for i, blob := range blobs {
			k, err := m.KeyOf(region, blob)
			if err != nil || i >= len(k.Materials) {
				continue // it is of later than what the crash has left
			}
			plain, material, err := m.Decrypt(k, blob, map[string]string{"n": "1"})
			if err != nil || string(plain) != "secret" || material != k.Materials[i].ID {
				t.Errorf("ciphertext %d: %q under %s, %v", i, plain, material, err)
			}
			if _, _, err := m.Decrypt(k, blob, nil); !errors.Is(err, keys.ErrCiphertext) {
				t.Errorf("ciphertext %d without its context: %v", i, err)
			}
		}
		return everything(m)
	},
		func(m *keys.Module) { id = create(t, m).ID },
		encrypt,
		func(m *keys.Module) { ok(m.CreateAlias(account, region, "alias/a", id)) },
		func(m *keys.Module) {
			g, err := m.CreateGrant(kms.Grant{Key: id, Grantee: "AIDAX", Operations: []string{"Decrypt"}})
			ok(err)
			grant = g.ID
		},
		rotate, encrypt, rotate, encrypt,
		change(func(k *kms.Key, now time.Time) error { return k.EnableRotation(90, now) }),
		change(func(k *kms.Key, _ time.Time) error { return k.Tag(map[string]string{"a": "b"}) }),
		change(func(k *kms.Key, _ time.Time) error { return k.PutPolicy(kms.DefaultPolicy(account)) }),
		change(func(k *kms.Key, _ time.Time) error { return k.Disable() }),
		change(func(k *kms.Key, _ time.Time) error { return k.Enable() }),
		func(m *keys.Module) { other = create(t, m).ID },
		func(m *keys.Module) { ok(m.UpdateAlias(account, region, "alias/a", other)) },
		func(m *keys.Module) {
			ok(m.EndGrant(id, grant, func(*kms.Key, *kms.Grant) error { return nil }))
		},
		func(m *keys.Module) { ok(m.DeleteAlias(account, region, "alias/a")) },
		change(func(k *kms.Key, now time.Time) error { return k.ScheduleDeletion(7, now) }),
		change(func(k *kms.Key, _ time.Time) error { return k.CancelDeletion() }),
		func(m *keys.Module) { // a service's key comes with its alias
			_, err := m.Find(account, region, "alias/aws/sqs")
			ok(err)
		},
	)
}

// What time does to keys: they rotate, and go with all that they have.
func TestTime(t *testing.T) {
	c := clock.NewVirtual(shardtest.Start)
	m := open(t, shardtest.JournalOf(t, memory.New(), nil), seal.NewRoot(), c)
	k := create(t, m)
	blob, err := m.Encrypt(k, []byte("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		command func(k *kms.Key, now time.Time) error
		days    int
		want    int // materials; 0: the key is gone
	}{
		{func(k *kms.Key, now time.Time) error { return k.EnableRotation(90, now) }, 89, 1},
		{nil, 1, 2},
		{nil, 180, 4},
		{func(k *kms.Key, _ time.Time) error { return k.Disable() }, 200, 4}, // it waits until the key is enabled
		{func(k *kms.Key, _ time.Time) error { return k.Enable() }, 1, 5},
		{func(k *kms.Key, now time.Time) error { return k.ScheduleDeletion(7, now) }, 6, 5},
		{nil, 1, 0},
	}
	for i, s := range steps {
		if s.command != nil {
			if _, err := m.Change(k.ID, s.command); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Advance(t.Context(), time.Duration(s.days)*24*time.Hour); err != nil {
			t.Fatal(err)
		}
		m.Tick(c.Now().UnixMilli())
		found, err := m.Find(account, region, k.ID)
		if s.want == 0 {
			if !errors.Is(err, kms.ErrNoKey) {
				t.Errorf("step %d: %v", i, err)
			}
			continue
		}
		if err != nil || len(found.Materials) != s.want {
			t.Fatalf("step %d: %d materials, %v", i, len(found.Materials), err)
		}
		if plain, _, err := m.Decrypt(found, blob, nil); err != nil || string(plain) != "x" {
			t.Errorf("step %d: %q, %v", i, plain, err)
		}
	}
	if _, err := m.KeyOf(region, blob); !errors.Is(err, keys.ErrForeign) {
		t.Errorf("a ciphertext of a key that is gone: %v", err)
	}
}

// Any change of a ciphertext, its key or its context fails.
func TestCiphertexts(t *testing.T) {
	m := open(t, shardtest.JournalOf(t, memory.New(), nil), seal.NewRoot(), clock.NewVirtual(shardtest.Start))
	k, other := create(t, m), create(t, m)
	context := map[string]string{"a": "b", "c": "d"}
	blob, err := m.Encrypt(k, []byte("x"), context)
	if err != nil {
		t.Fatal(err)
	}
	for i := range blob {
		changed := bytes.Clone(blob)
		changed[i] ^= 1
		found, err := m.KeyOf(region, changed)
		if err == nil {
			_, _, err = m.Decrypt(found, changed, context)
		}
		if !errors.Is(err, keys.ErrCiphertext) && !errors.Is(err, keys.ErrForeign) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
	for _, changed := range []map[string]string{nil, {"a": "b"}, {"a": "d", "c": "b"}, {"A": "b", "c": "d"}, {"a": "bc", "": "d"}, {"a": "b", "c": "d", "e": ""}} {
		if _, _, err := m.Decrypt(k, blob, changed); !errors.Is(err, keys.ErrCiphertext) {
			t.Errorf("under %v: %v", changed, err)
		}
	}
	if _, _, err := m.Decrypt(other, blob, context); !errors.Is(err, keys.ErrCiphertext) {
		t.Errorf("under another key: %v", err)
	}
	for n := range len(blob) {
		if _, err := m.KeyOf(region, blob[:n]); err == nil {
			if _, _, err := m.Decrypt(k, blob[:n], context); !errors.Is(err, keys.ErrCiphertext) {
				t.Errorf("%d bytes of it: %v", n, err)
			}
		}
	}
}

// Who a grant is for is known by the unique id; without policies that are enforced it and
// the key's policy let others in.
func TestAllow(t *testing.T) {
	m := open(t, shardtest.JournalOf(t, memory.New(), nil), seal.NewRoot(), clock.NewVirtual(shardtest.Start))
	k := create(t, m)
	if _, err := m.CreateGrant(kms.Grant{Key: k.ID, Grantee: "AIDAZOE", Operations: []string{"Decrypt"}, Equals: map[string]string{"a": "b"}}); err != nil {
		t.Fatal(err)
	}
	zoe := &caller.Caller{Kind: caller.User, Account: "999988887777", ARN: "arn:aws:iam::999988887777:user/zoe", ID: "AIDAZOE", Name: "zoe"}
	another := *zoe
	another.ID = "AIDAANOTHER"
	own := &caller.Caller{Kind: caller.User, Account: account, ARN: "arn:aws:iam::" + account + ":user/ann", ID: "AIDAANN", Name: "ann"}
	for _, tt := range []struct {
		who       *caller.Caller
		operation string
		context   map[string]string
		allowed   bool
	}{
		{zoe, "Decrypt", map[string]string{"a": "b"}, true},
		{zoe, "Decrypt", map[string]string{"a": "c"}, false},
		{zoe, "Decrypt", map[string]string{"a": "b", "c": "d"}, false},
		{zoe, "Encrypt", map[string]string{"a": "b"}, false},
		{&another, "Decrypt", map[string]string{"a": "b"}, false},
		{own, "Encrypt", nil, true},
	} {
		err := m.Allow(k, &keys.Access{Operation: tt.operation, Caller: tt.who, Context: tt.context})
		if (err == nil) != tt.allowed || err != nil && !errors.Is(err, keys.ErrDenied) {
			t.Errorf("%s of %s under %v: %v", tt.operation, tt.who.ID, tt.context, err)
		}
	}
}

// A grant under no encryption context but an empty one is still that after a restart.
func TestGrantOfAnEmptyContext(t *testing.T) {
	st, root := memory.New(), seal.NewRoot()
	m := open(t, shardtest.JournalOf(t, st, nil), root, clock.NewVirtual(shardtest.Start))
	k := create(t, m)
	if _, err := m.CreateGrant(kms.Grant{Key: k.ID, Grantee: "AIDAZOE", Operations: []string{"Decrypt"}, Equals: map[string]string{}}); err != nil {
		t.Fatal(err)
	}
	zoe := &caller.Caller{Kind: caller.User, Account: "999988887777", ARN: "arn:aws:iam::999988887777:user/zoe", ID: "AIDAZOE", Name: "zoe"}
	for _, m := range []*keys.Module{m, open(t, shardtest.JournalOf(t, st, nil), root, clock.NewVirtual(shardtest.Start))} {
		if err := m.Allow(k, &keys.Access{Operation: "Decrypt", Caller: zoe}); err != nil {
			t.Error(err)
		}
		if err := m.Allow(k, &keys.Access{Operation: "Decrypt", Caller: zoe, Context: map[string]string{"a": "b"}}); !errors.Is(err, keys.ErrDenied) {
			t.Errorf("under another context: %v", err)
		}
	}
}

// Conditions on an encryption context ignore the case of names: a Deny holds for any of those
// that differ in nothing else.
func TestContextInAnotherCase(t *testing.T) {
	m := open(t, shardtest.JournalOf(t, memory.New(), nil), seal.NewRoot(), clock.NewVirtual(shardtest.Start))
	k, err := m.Create(kms.New{Account: account, Region: region, Spec: kms.SymmetricDefault, Usage: kms.EncryptDecrypt, Policy: `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Principal":"*","Action":"kms:*","Resource":"*"},
		{"Effect":"Deny","Principal":"*","Action":"kms:Decrypt","Resource":"*","Condition":{"StringEquals":{"kms:EncryptionContext:Level":"secret"}}}]}`})
	if err != nil {
		t.Fatal(err)
	}
	zoe := &caller.Caller{Kind: caller.User, Account: "999988887777", ARN: "arn:aws:iam::999988887777:user/zoe", ID: "AIDAZOE", Name: "zoe"}
	for range 50 { // a map's order is random
		if err := m.Allow(k, &keys.Access{Operation: "Decrypt", Caller: zoe, Context: map[string]string{"level": "secret", "LEVEL": "public", "leveL": "public"}}); err == nil {
			t.Fatal("a further name lets the caller decrypt what is secret")
		}
	}
	if err := m.Allow(k, &keys.Access{Operation: "Decrypt", Caller: zoe, Context: map[string]string{"level": "public"}}); err != nil {
		t.Error(err)
	}
}

// What may be decrypted with a queue's key follows the key's state at once, whatever data keys are cached.
func TestMayDecrypt(t *testing.T) {
	j := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(j.Close)
	m := open(t, j, seal.NewRoot(), clock.NewVirtual(shardtest.Start))
	k := create(t, m)
	e, q := keys.NewMessages(m, clock.NewVirtual(shardtest.Start), false), arn.Queue(region, account, "orders")
	cfg, sent := queue.Config{Key: k.ID, KeyReuse: time.Hour}, &message.Message{Body: []byte("x")}
	if err := e.Encrypt(q, cfg, nil, arn.ARN{}, sent); err != nil {
		t.Fatal(err)
	}
	if err := e.Decrypt(cfg, nil, sent); err != nil {
		t.Fatal(err)
	}
	stranger := &caller.Caller{Account: "999999999999", ARN: "arn:aws:iam::999999999999:user/zoe", Kind: caller.User}
	for _, tt := range []struct {
		when   string
		change func(k *kms.Key, now time.Time) error
		cfg    queue.Config
		who    *caller.Caller
		want   fault.Kind
	}{
		{"no key", nil, queue.Config{}, nil, fault.KindOf(nil)},
		{"enabled", nil, cfg, nil, fault.KindOf(nil)},
		{"a stranger", nil, cfg, stranger, fault.KMSAccessDenied},
		{"disabled", func(k *kms.Key, _ time.Time) error { return k.Disable() }, cfg, nil, fault.KMSDisabled},
		{"enabled again", func(k *kms.Key, _ time.Time) error { return k.Enable() }, cfg, nil, fault.KindOf(nil)},
		{"to be deleted", func(k *kms.Key, now time.Time) error { return k.ScheduleDeletion(7, now) }, cfg, nil, fault.KMSInvalidState},
		{"no such key", nil, queue.Config{Key: "0f7f0b5e-3f6e-4c3f-9d6e-0c5a3c0e7a11"}, nil, fault.KMSNotFound},
	} {
		if tt.change != nil {
			if _, err := m.Change(k.ID, tt.change); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.MayDecrypt(q, tt.cfg, tt.who); fault.KindOf(err) != tt.want {
			t.Errorf("%s: %v", tt.when, err)
		}
	}
}

// BenchmarkEncrypt is a message of 1 KiB under the store's key, as a queue with SSE-SQS has it.
func BenchmarkEncrypt(b *testing.B) {
	sealing, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		b.Fatal(err)
	}
	e := keys.NewMessages(keys.New(kernel.New(kernel.Options{
		Journal: journal.Open(journal.Options{Store: memory.New()}), Clock: clock.System, Logger: slog.New(slog.DiscardHandler),
	}), sealing), clock.System, true)
	q, m := arn.Queue(region, account, "orders"), &message.Message{Body: bytes.Repeat([]byte("x"), 1024)}
	b.SetBytes(int64(len(m.Body)))
	for b.Loop() {
		m.Cipher = nil
		if err := e.Encrypt(q, queue.Config{Managed: true}, nil, arn.ARN{}, m); err != nil {
			b.Fatal(err)
		}
	}
}

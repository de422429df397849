package sources_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/ingest"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/sources"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/soak"
)

const (
	first  = "the first of the secrets"
	second = "the second of the secrets"
)

func sealer(t *testing.T) *seal.Sealer {
	t.Helper()
	keys, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	return keys.Sealer(sources.Purpose)
}

func open(t *testing.T, j *journal.Journal, s *seal.Sealer) *sources.Module {
	t.Helper()
	k := kernel.New(kernel.Options{Journal: j, Clock: clock.NewVirtual(shardtest.Start), Logger: slog.New(slog.DiscardHandler)})
	m := sources.New(k, s)
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return m
}

func source(name string) ingest.Source {
	return ingest.Source{
		Name: name, Account: "000000000000", Target: "arn:aws:sqs:us-east-1:000000000000:orders",
		Verification: ingest.Verification{Kind: ingest.APIKey},
	}
}

// everything is all that is known of sources, and who may post.
func everything(m *sources.Module) string {
	all, _ := m.List("", 1000)
	told := []any{all}
	for _, s := range all {
		for _, secret := range []string{first, second} {
			c := m.Find(s.Name)
			told = append(told, c != nil && c.Verify(shardtest.Start, header{secret}, nil) == nil)
		}
	}
	text, err := json.Marshal(told)
	if err != nil {
		panic(err)
	}
	return string(text)
}

type header struct{ value string }

func (h header) Values(string) []string { return []string{h.value} }

// Whatever was acknowledged is there after a crash, and no command by half.
func TestCrash(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, s := t.Context(), sealer(t)
	put := func(m *sources.Module, name string, secrets ...string) {
		was, _ := m.Get(name)
		_, err := m.Put(ctx, source(name), secrets, was.Target)
		check(err)
	}
	shardtest.CrashInSteps(t, soak.Seeds(t, 1)[0], soak.Size(1, 3), func(j *journal.Journal) *sources.Module { return open(t, j, s) }, everything,
		func(m *sources.Module) { put(m, "shop", first) },
		func(m *sources.Module) { put(m, "billing", first) },
		func(m *sources.Module) { put(m, "shop", second, first) },
		func(m *sources.Module) { check(m.SetPaused(ctx, "shop", true)) },
		func(m *sources.Module) { put(m, "shop") },
		func(m *sources.Module) { check(m.Delete(ctx, "billing")) },
		func(m *sources.Module) { put(m, "shop", second) },
		func(m *sources.Module) { check(m.SetPaused(ctx, "shop", false)) },
	)
}

// A change without secrets leaves them; what is refused changes nothing.
func TestPut(t *testing.T) {
	j := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(j.Close)
	m := open(t, j, sealer(t))
	if _, err := m.Put(t.Context(), source("shop"), nil, ""); !errors.Is(err, ingest.ErrInvalid) {
		t.Errorf("without a secret: %v", err)
	}
	if made, err := m.Put(t.Context(), source("shop"), []string{first}, ""); !made || err != nil {
		t.Fatalf("%v, %v", made, err)
	}
	changed := source("shop")
	changed.Limits.PerSecond = 5
	if made, err := m.Put(t.Context(), changed, nil, changed.Target); made || err != nil {
		t.Fatalf("%v, %v", made, err)
	}
	if c := m.Find("shop"); c.Limits.PerSecond != 5 || c.Verify(shardtest.Start, header{first}, nil) != nil {
		t.Errorf("%+v", c.Limits)
	}
	for _, target := range []string{"", "arn:aws:sqs:us-east-1:000000000000:another"} {
		if _, err := m.Put(t.Context(), changed, nil, target); !errors.Is(err, sources.ErrChanged) {
			t.Errorf("of another target: %v", err)
		}
	}
	if _, err := m.Put(t.Context(), source("none"), []string{first}, changed.Target); !errors.Is(err, sources.ErrChanged) {
		t.Errorf("of a source that is not there: %v", err)
	}
	was := changed.Target
	changed.Target = "arn"
	if _, err := m.Put(t.Context(), changed, nil, was); !errors.Is(err, ingest.ErrInvalid) || m.Find("shop").Target == "arn" {
		t.Errorf("%v, %s", err, m.Find("shop").Target)
	}
	for _, err := range []error{m.Delete(t.Context(), "x"), m.SetPaused(t.Context(), "x", true)} {
		if !errors.Is(err, sources.ErrNone) {
			t.Error(err)
		}
	}
	for i := range 5 {
		if _, err := m.Put(t.Context(), source("more"+string(rune('a'+i))), []string{first}, ""); err != nil {
			t.Fatal(err)
		}
	}
	page, more := m.List("morea", 3)
	if len(page) != 3 || !more || page[0].Name != "moreb" {
		t.Errorf("%v, %v", page, more)
	}
}

// Secrets are sealed in the store, each for its source; with another key a source takes
// nothing, until it is given secrets again.
func TestSecretsAreSealed(t *testing.T) {
	st, right, wrong := memory.New(), sealer(t), sealer(t)
	with := func(s *seal.Sealer, f func(m *sources.Module)) {
		t.Helper()
		log := journal.Open(journal.Options{Store: st})
		k := kernel.New(kernel.Options{Journal: log, Clock: clock.NewVirtual(shardtest.Start), Logger: slog.New(slog.DiscardHandler)})
		m := sources.New(k, s)
		if err := k.Load(); err != nil {
			t.Fatal(err)
		}
		f(m)
		err := k.Close()
		log.Close()
		if err != nil {
			t.Error(err)
		}
		for _, value := range storetest.Dump(t, st) {
			if bytes.Contains(value, []byte(first)) {
				t.Error("a secret is in clear")
			}
		}
	}
	with(right, func(m *sources.Module) {
		if _, err := m.Put(t.Context(), source("shop"), []string{first}, ""); err != nil {
			t.Fatal(err)
		}
	})
	with(wrong, func(m *sources.Module) {
		info, err := m.Get("shop")
		if err != nil || info.Broken == nil || m.Find("shop") != nil {
			t.Errorf("%+v, %v", info, err)
		}
		if _, err := m.Put(t.Context(), source("shop"), nil, source("shop").Target); !errors.Is(err, ingest.ErrInvalid) {
			t.Errorf("put without secrets: %v", err)
		}
	})
	with(right, func(m *sources.Module) {
		if m.Find("shop").Verify(shardtest.Start, header{first}, nil) != nil {
			t.Error("after a restart the secret is not known")
		}
	})
}

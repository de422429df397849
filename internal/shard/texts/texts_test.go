package texts_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/sms"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/soak"
)

var (
	here  = texts.Place{Account: "000000000000", Region: "us-east-1"}
	there = texts.Place{Account: "000000000000", Region: "eu-west-1"}
)

func open(t *testing.T, j *journal.Journal) *texts.Module {
	t.Helper()
	k := kernel.New(kernel.Options{Journal: j, Clock: clock.NewVirtual(shardtest.Start), Logger: slog.New(slog.DiscardHandler)})
	m := texts.New(k, texts.Options{})
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return m
}

// everything tells all that is known of both places.
func everything(m *texts.Module) string {
	var all []any
	for _, p := range []texts.Place{here, there} {
		out, _ := m.OptedOut(p, "", 1000)
		numbers, _ := m.Destinations(p, "", 1000)
		all = append(all, m.Attributes(p), out, numbers, m.Spent(p))
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Whatever was acknowledged is there after a crash, and no command by half.
func TestCrash(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	spend := func(m *texts.Module, p texts.Place, cost sms.MicroUSD) {
		c := texts.Charge{Place: p, Number: "+1", Cost: cost, Most: -1}
		if _, refused := m.Reserve(c); refused != "" {
			t.Fatal(refused)
		}
		m.Spend(c, cost)
		m.Attributes(p) // waits until that is durable
	}
	shardtest.CrashInSteps(t, soak.Seeds(t, 1)[0], soak.Size(1, 3), func(j *journal.Journal) *texts.Module { return open(t, j) }, everything,
		func(m *texts.Module) {
			check(m.SetAttributes(ctx, here, map[string]string{sms.DefaultSenderID: "Godwit"}))
		},
		func(m *texts.Module) {
			check(m.SetAttributes(ctx, there, map[string]string{sms.MonthlySpendLimit: "5"}))
		},
		func(m *texts.Module) { spend(m, here, 400_000) },
		func(m *texts.Module) { spend(m, there, 4_400_000) },
		func(m *texts.Module) { m.OptOutEverywhere("+4930") },
		func(m *texts.Module) { m.OptOutEverywhere("+4931") },
		func(m *texts.Module) { check(m.OptIn(ctx, there, "+4930")) },
		func(m *texts.Module) { check(m.AddDestination(ctx, here, "+1", "123456")) },
		func(m *texts.Module) { check(m.AddDestination(ctx, there, "+2", "123456")) },
		func(m *texts.Module) { check(m.Verify(ctx, here, "+1", "123456")) },
		func(m *texts.Module) { check(m.RemoveDestination(ctx, there, "+2")) },
		func(m *texts.Module) { spend(m, here, 100_000) },
		func(m *texts.Module) { check(m.SetAttributes(ctx, here, map[string]string{sms.DefaultSenderID: ""})) },
	)
}

// One-time passwords are sealed in the store, also those that an earlier version has kept in
// clear, and good after a restart; one that cannot be opened is nobody's.
func TestPasswordsAreSealed(t *testing.T) {
	const phone, password = "+15551234567", "271828"
	sealing, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	st := memory.New()
	// with runs the module on the store, and reports whether a password is in clear after it.
	with := func(sealer *seal.Sealer, f func(m *texts.Module)) (inClear bool) {
		t.Helper()
		log := journal.Open(journal.Options{Store: st})
		k := kernel.New(kernel.Options{Journal: log, Clock: clock.NewVirtual(shardtest.Start), Logger: slog.New(slog.DiscardHandler)})
		m := texts.New(k, texts.Options{Sealer: sealer})
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
			inClear = inClear || bytes.Contains(value, []byte(password))
		}
		return inClear
	}
	sealer := sealing.Sealer(texts.Purpose)
	add := func(m *texts.Module) {
		if err := m.AddDestination(t.Context(), here, phone, password); err != nil {
			t.Error(err)
		}
	}
	wrong := func(m *texts.Module) {
		for _, guess := range []string{"", "314159"} {
			if err := m.Verify(t.Context(), here, phone, guess); err == nil {
				t.Errorf("verified by %q", guess)
			}
		}
	}
	if !with(nil, add) {
		t.Fatal("an earlier version has nothing in clear: the test proves nothing")
	}
	var b mutation.Batch
	for key, value := range storetest.Dump(t, st) {
		if k, err := keyspace.Parse(key); err != nil || k.ID != keyspace.KindSMSDestination {
			continue
		}
		sealed, err := texts.SealRecord(key, value, sealer)
		if err != nil || sealed == nil || bytes.Contains(sealed, []byte(password)) {
			t.Fatalf("%q, %v", sealed, err)
		}
		b.Set(key, sealed)
		if again, err := texts.SealRecord(key, sealed, sealer); again != nil || err != nil {
			t.Errorf("sealed twice: %q, %v", again, err)
		}
	}
	if err := st.Apply(store.Sync, &b); err != nil {
		t.Fatal(err)
	}
	if with(sealer, wrong) {
		t.Error("a try has put the password in clear")
	}
	with(other.Sealer(texts.Purpose), func(m *texts.Module) {
		wrong(m)
		if err := m.Verify(t.Context(), here, phone, password); err == nil {
			t.Error("verified by a password that cannot be opened")
		}
	})
	if with(sealer, add) {
		t.Error("a password is in clear")
	}
	with(sealer, func(m *texts.Module) {
		if err := m.Verify(t.Context(), here, phone, password); err != nil {
			t.Errorf("after a restart: %v", err)
		}
	})
}

package identity_test

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/test/soak"
)

// everything tells all entities and access keys of the account.
func everything(m *identity.Module) string {
	all := map[string]any{}
	_ = m.Read(account, func(a *iam.Account) error {
		for _, kind := range iam.Kinds {
			for _, e := range a.List(kind, "") {
				all[string(kind)+e.Name] = e
				for _, k := range a.Keys(e) { // of users only
					all[k.ID] = k
				}
			}
		}
		return nil
	})
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Whatever was acknowledged is there after a crash, and no command by half, however many
// records it has changed.
func TestCrash(t *testing.T) {
	const arn = "arn:aws:iam::" + account + ":policy/most"
	step := func(command func(a *iam.Account, now time.Time) error) func(m *identity.Module) {
		return func(m *identity.Module) {
			if err := m.Run(account, command); err != nil {
				t.Fatal(err)
			}
		}
	}
	entity := func(kind iam.Kind, prefix, name string) *iam.Entity {
		e := &iam.Entity{Kind: kind, Path: "/", Name: name, ID: iam.NewID(prefix, account, identity.NewRandom()), Created: shardtest.Start}
		switch kind {
		case iam.Role:
			e.Role = &iam.RolePart{Trust: trustAccount, MaxSession: 3600}
		case iam.Policy:
			e.Policy = &iam.PolicyPart{Versions: []iam.Version{{Number: 1, Document: allowSend, Created: shardtest.Start}}, Default: 1, Latest: 1}
		default:
		}
		return e
	}
	create := func(kind iam.Kind, prefix, name string) func(m *identity.Module) {
		return step(func(a *iam.Account, _ time.Time) error { return a.Create(entity(kind, prefix, name)) })
	}
	shardtest.CrashInSteps(t, soak.Seeds(t, 1)[0], soak.Size(1, 3), func(j *journal.Journal) *identity.Module {
		k := kernel.New(kernel.Options{Journal: j, Clock: clock.NewVirtual(shardtest.Start), Logger: slog.New(slog.DiscardHandler)})
		m := identity.New(k, identity.Options{})
		if err := k.Load(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = k.Close() })
		return m
	}, everything,
		create(iam.User, iam.PrefixUser, "ann"),
		create(iam.Group, iam.PrefixGroup, "humans"),
		create(iam.Policy, iam.PrefixPolicy, "most"),
		create(iam.Role, iam.PrefixRole, "job"),
		step(func(a *iam.Account, _ time.Time) error { // several records in one
			for _, name := range []string{"bob", "eve", "zoe"} {
				if err := a.Create(entity(iam.User, iam.PrefixUser, name)); err != nil {
					return err
				}
				if err := a.AddToGroup("humans", name); err != nil {
					return err
				}
				if err := a.CreateKey(name, &iam.AccessKey{ID: iam.NewID(iam.PrefixKey, account, identity.NewRandom()), Active: true, Created: shardtest.Start, Secret: []byte(name)}); err != nil {
					return err
				}
			}
			return nil
		}),
		step(func(a *iam.Account, _ time.Time) error { return a.Attach(iam.Group, "humans", arn) }),
		step(func(a *iam.Account, _ time.Time) error { return a.PutInline(iam.Role, "job", "p", allowSend) }),
		step(func(a *iam.Account, now time.Time) error {
			_, err := a.AddVersion(arn, denyAll, true, now)
			return err
		}),
		step(func(a *iam.Account, _ time.Time) error { return a.SetBoundary(iam.User, "ann", arn) }),
		step(func(a *iam.Account, _ time.Time) error { return a.SetTrust("job", trustAccount+" ") }),
		step(func(a *iam.Account, _ time.Time) error { return a.Rename(iam.User, "ann", "anna", "/team/") }),
		step(func(a *iam.Account, _ time.Time) error {
			return a.Tag(iam.Role, "job", []iam.Tag{{Key: "a", Value: "b"}})
		}),
		step(func(a *iam.Account, _ time.Time) error { return a.RemoveFromGroup("humans", "eve") }),
		step(func(a *iam.Account, _ time.Time) error {
			u, err := a.Find(iam.User, "eve")
			if err != nil {
				return err
			}
			if err := a.DeleteKey("eve", a.Keys(u)[0].ID); err != nil {
				return err
			}
			return a.Delete(iam.User, "eve")
		}),
		create(iam.User, iam.PrefixUser, "eve"),
		step(func(a *iam.Account, _ time.Time) error { return a.Detach(iam.Group, "humans", arn) }),
		step(func(a *iam.Account, _ time.Time) error { return a.DeleteInline(iam.Role, "job", "p") }),
		step(func(a *iam.Account, _ time.Time) error { return a.Delete(iam.Role, "job") }),
	)
}

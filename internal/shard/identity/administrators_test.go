package identity_test

import (
	"log/slog"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store/memory"
)

// What takes an account's last administrator is reported, whichever change it is; what leaves
// one, or changes what had none, is not.
func TestLastAdministratorIsReported(t *testing.T) {
	const (
		all     = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`
		humans  = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::123456789012:root"},"Action":"sts:AssumeRole"}]}`
		service = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
	)
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	type step func(a *iam.Account) error
	user := func(name string) step {
		return func(a *iam.Account) error {
			if err := a.Create(&iam.Entity{Kind: iam.User, Account: account, Path: "/", Name: name, ID: "AIDA" + name, Created: at}); err != nil {
				return err
			}
			return a.CreateKey(name, &iam.AccessKey{ID: "AKIA" + name, Active: true, Created: at})
		}
	}
	inline := func(name string) step {
		return func(a *iam.Account) error { return a.PutInline(iam.User, name, "p", all) }
	}
	role := func(trust string) step {
		return func(a *iam.Account) error {
			err := a.Create(&iam.Entity{Kind: iam.Role, Account: account, Path: "/", Name: "r", ID: "AROAR", Created: at, Role: &iam.RolePart{Trust: trust}})
			if err != nil {
				return err
			}
			return a.PutInline(iam.Role, "r", "p", all)
		}
	}
	group := func(a *iam.Account) error {
		if err := a.Create(&iam.Entity{Kind: iam.Group, Account: account, Path: "/", Name: "g", ID: "AGPAG", Created: at}); err != nil {
			return err
		}
		if err := a.PutInline(iam.Group, "g", "p", all); err != nil {
			return err
		}
		return a.AddToGroup("g", "A")
	}
	for name, tt := range map[string]struct {
		before []step
		change step
		want   bool
	}{
		"its policy":         {[]step{user("A"), inline("A")}, func(a *iam.Account) error { return a.DeleteInline(iam.User, "A", "p") }, true},
		"its key":            {[]step{user("A"), inline("A")}, func(a *iam.Account) error { return a.DeleteKey("A", "AKIAA") }, true},
		"its key's state":    {[]step{user("A"), inline("A")}, func(a *iam.Account) error { return a.SetKey("A", "AKIAA", false) }, true},
		"a deny":             {[]step{user("A"), inline("A")}, func(a *iam.Account) error { return a.PutInline(iam.User, "A", "no", denyAll) }, true},
		"a policy for less":  {[]step{user("A"), inline("A")}, func(a *iam.Account) error { return a.PutInline(iam.User, "A", "p", allowSend) }, true},
		"its group":          {[]step{user("A"), group}, func(a *iam.Account) error { return a.RemoveFromGroup("g", "A") }, true},
		"its group's policy": {[]step{user("A"), group}, func(a *iam.Account) error { return a.DeleteInline(iam.Group, "g", "p") }, true},
		"a role's trust":     {[]step{role(humans)}, func(a *iam.Account) error { return a.SetTrust("r", service) }, true},
		"one of two":         {[]step{user("A"), inline("A"), user("B"), inline("B")}, func(a *iam.Account) error { return a.DeleteInline(iam.User, "A", "p") }, false},
		"a role is left":     {[]step{user("A"), inline("A"), role(humans)}, func(a *iam.Account) error { return a.DeleteInline(iam.User, "A", "p") }, false},
		"there was none":     {[]step{user("A"), role(service)}, func(a *iam.Account) error { return a.DeleteKey("A", "AKIAA") }, false},
		"what fails":         {[]step{user("A"), inline("A")}, func(a *iam.Account) error { return a.Delete(iam.User, "A") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			j := journal.Open(journal.Options{Store: memory.New()})
			k := kernel.New(kernel.Options{Journal: j, Clock: clock.System, Logger: slog.New(slog.DiscardHandler)})
			told := 0
			m := identity.New(k, identity.Options{Orphaned: func(of string) {
				told++
				if of != account {
					t.Errorf("told of %s", of)
				}
			}})
			if err := k.Load(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = k.Close()
				j.Close()
			})
			for _, s := range tt.before {
				if err := m.Run(account, func(a *iam.Account, _ time.Time) error { return s(a) }); err != nil {
					t.Fatal(err)
				}
			}
			if told != 0 {
				t.Fatal("told too early")
			}
			err := m.Run(account, func(a *iam.Account, _ time.Time) error { return tt.change(a) })
			if (err != nil) != (name == "what fails") {
				t.Fatal(err)
			}
			if (told == 1) != tt.want {
				t.Errorf("told %d times", told)
			}
		})
	}
}

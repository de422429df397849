package setup

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store/memory"
)

const (
	account = "000000000000"
	secret  = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYSECRETKEY1"
	all     = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`
)

var at = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func open(t *testing.T, steps ...func(a *iam.Account) error) *Setup {
	t.Helper()
	j := journal.Open(journal.Options{Store: memory.New()})
	k := kernel.New(kernel.Options{Journal: j, Clock: clock.NewVirtual(at), Logger: slog.New(slog.DiscardHandler)})
	m := identity.New(k, identity.Options{})
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = k.Close()
		j.Close()
	})
	for _, step := range steps {
		if err := m.Run(account, func(a *iam.Account, _ time.Time) error { return step(a) }); err != nil {
			t.Fatal(err)
		}
	}
	return New(Options{Identities: m, Config: config.Config{Account: account}})
}

func user(n int) func(a *iam.Account) error {
	return func(a *iam.Account) error {
		name := fmt.Sprint("user", n)
		if err := a.Create(&iam.Entity{Kind: iam.User, Account: account, Path: "/", Name: name, ID: fmt.Sprint("AIDA", n), Created: at}); err != nil {
			return err
		}
		return a.CreateKey(name, &iam.AccessKey{ID: fmt.Sprint("AKIA", n), Secret: []byte(secret), Active: n%2 == 0, Created: at})
	}
}

// Users come page by page with their groups, policies and keys, of which no secret is shown.
func TestUsers(t *testing.T) {
	s := open(t, user(0), user(1), user(2), user(3), user(4), func(a *iam.Account) error {
		if err := a.Create(&iam.Entity{Kind: iam.Group, Account: account, Path: "/", Name: "shop", ID: "AGPA", Created: at}); err != nil {
			return err
		}
		return a.AddToGroup("shop", "user1")
	}, func(a *iam.Account) error { return a.PutInline(iam.User, "user1", "everything", all) })
	s.Identities.Used("AKIA1", "sqs", "us-east-1")
	for search, want := range map[string]string{"": "user0 user1 user2 user3 user4", "USER1": "user1", "nobody": ""} {
		var names []string
		for in := (&ListEntities{Limit: 2, Search: search}); ; {
			out, err := s.ListUsers(t.Context(), nil, in)
			if err != nil || len(out.Users) > 2 {
				t.Fatalf("%+v, %v", out, err)
			}
			for _, u := range out.Users {
				names = append(names, u.Name)
			}
			if out.Next == nil {
				break
			}
			in.Cursor = *out.Next
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("of %q: %s, want %s", search, got, want)
		}
	}
	out, err := s.ListUsers(t.Context(), nil, &ListEntities{Limit: 10, Search: "user1"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"groups":["shop"]`, `"policies":["everything"]`, `"id":"AKIA1"`, `"active":false`, `"arn":"arn:aws:iam::000000000000:user/user1"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing of %s", want, text)
		}
	}
	keys, err := s.ListKeys(t.Context(), nil, &ListEntities{Limit: 3})
	if err != nil || len(keys.Keys) != 3 || keys.Next == nil {
		t.Errorf("keys are %+v, %v", keys, err)
	}
	shown, err := json.Marshal(keys)
	if err != nil || strings.Contains(string(shown)+string(text), secret) {
		t.Errorf("a secret is shown, or %v", err)
	}
	if other, err := s.ListUsers(t.Context(), nil, &ListEntities{Limit: 10, Account: "111122223333"}); err != nil || len(other.Users) != 0 {
		t.Errorf("another account has %+v, %v", other, err)
	}
}

// A role says whether others than services may become it.
func TestRoles(t *testing.T) {
	const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{%s},"Action":"sts:AssumeRole"}]}`
	role := func(name, principal string) func(a *iam.Account) error {
		return func(a *iam.Account) error {
			return a.Create(&iam.Entity{
				Kind: iam.Role, Account: account, Path: "/", Name: name, ID: "AROA" + name, Created: at,
				Role: &iam.RolePart{Trust: fmt.Sprintf(trust, principal), MaxSession: 3600},
			})
		}
	}
	s := open(t, role("function", `"Service":"lambda.amazonaws.com"`), role("people", `"AWS":"arn:aws:iam::000000000000:root"`))
	out, err := s.ListRoles(t.Context(), nil, &ListEntities{Limit: 10})
	if err != nil || len(out.Roles) != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	for i, want := range []bool{false, true} {
		if r := out.Roles[i]; r.TrustsOthers != want || r.MaxSessionSeconds != 3600 || r.LastUsedAt != nil || r.Policies == nil {
			t.Errorf("%s is %+v", r.Name, r)
		}
	}
}

// Settings are those of the server, with what addresses have of passwords masked.
func TestSettings(t *testing.T) {
	s := New(Options{Config: config.Config{Listen: "127.0.0.1:4566", PushFCMURL: "http://anna:hunter2@proxy.example.com:25"}})
	out, err := s.ListSettings(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, one := range out.Settings {
		if one.Help == "" && one.Name == "listen" {
			t.Error("listen has no help")
		}
		values[one.Name] = one.Value
	}
	if values["listen"] != "127.0.0.1:4566" {
		t.Errorf("listen is %q", values["listen"])
	}
	for name, value := range values {
		if strings.Contains(value, "hunter2") {
			t.Errorf("%s shows a password: %s", name, value)
		}
	}
}

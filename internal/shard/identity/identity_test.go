package identity_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/sigv4"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

const account = "123456789012"

const (
	allowSend = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"*"}]}`
	denyAll   = `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"*","Resource":"*"}]}`
)

// world is a store over which modules come and go.
type world struct {
	t     *testing.T
	store store.Store
	shard *kernel.Shard
	stop  func()
	*identity.Module
}

func open(t *testing.T, st store.Store, sealer identity.Sealer) *world {
	t.Helper()
	j := journal.Open(journal.Options{Store: st})
	k := kernel.New(kernel.Options{Journal: j, Clock: clock.System, Logger: slog.New(slog.DiscardHandler)})
	w := &world{t: t, store: st, shard: k.OwnShard(keyspace.IdentityStream), Module: identity.New(k, identity.Options{Sealer: sealer})}
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	w.stop = func() {
		_ = k.Close()
		j.Close()
	}
	t.Cleanup(func() { w.stop() })
	return w
}

// again is the world after a restart.
func (w *world) again(sealer identity.Sealer) *world {
	w.stop()
	w.stop = func() {}
	return open(w.t, w.store, sealer)
}

func (w *world) run(command func(a *iam.Account, now time.Time) error) {
	w.t.Helper()
	if err := w.Run(account, command); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) user(name string) (id, secret string) {
	w.t.Helper()
	key, made := iam.NewID(iam.PrefixKey, account, identity.NewRandom()), identity.NewSecret()
	sealed, err := w.Seal(key, made)
	if err != nil {
		w.t.Fatal(err)
	}
	w.run(func(a *iam.Account, now time.Time) error {
		e := &iam.Entity{Kind: iam.User, Path: "/", Name: name, ID: iam.NewID(iam.PrefixUser, account, identity.NewRandom()), Created: now}
		if err := a.Create(e); err != nil {
			return err
		}
		return a.CreateKey(name, &iam.AccessKey{ID: key, Active: true, Created: now, Secret: sealed})
	})
	return key, string(made)
}

func (w *world) role(name, trust string) *iam.Entity {
	w.t.Helper()
	bound, unknown := w.BindPolicy(trust)
	if unknown != "" {
		w.t.Fatal(unknown)
	}
	w.run(func(a *iam.Account, now time.Time) error {
		return a.Create(&iam.Entity{
			Kind: iam.Role, Path: "/", Name: name, ID: iam.NewID(iam.PrefixRole, account, identity.NewRandom()), Created: now,
			Role: &iam.RolePart{Trust: bound, MaxSession: 3600},
		})
	})
	return w.RoleOf("arn:aws:iam::" + account + ":role/" + name)
}

const trustAccount = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"` + account + `"},"Action":"sts:AssumeRole"}}`

func sealer(t *testing.T) identity.Sealer {
	t.Helper()
	keys, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	return keys.Sealer("identity")
}

// What was acknowledged is there after a restart: keys, sessions, and what they may do.
func TestRestart(t *testing.T) {
	s := sealer(t)
	w := open(t, memory.New(), s)
	key, secret := w.user("ann")
	role := w.role("job", trustAccount)
	w.run(func(a *iam.Account, _ time.Time) error { return a.PutInline(iam.Role, "job", "send", allowSend) })
	session := &identity.Session{Kind: caller.Session, Account: account, Of: role.ID, Name: "s", Expires: clock.System.Now().UTC().Truncate(time.Second).Add(time.Hour), Tags: map[string]string{"team": "a"}, Policies: []string{allowSend}}
	token, err := w.NewSession(session)
	if err != nil {
		t.Fatal(err)
	}
	w.Used(key, "sqs", "us-east-1")

	w = w.again(s)
	c, err := w.Credential(key, "")
	if err != nil || c.Secret != secret || c.Caller.ARN != "arn:aws:iam::"+account+":user/ann" {
		t.Errorf("the user's key: %v, %v", c, err)
	}
	c, err = w.Credential(session.AccessKey, token)
	if err != nil || c.Secret != string(session.Secret) || !c.Expires.Equal(session.Expires) {
		t.Fatalf("the session: %v, %v", c, err)
	}
	want := &caller.Caller{
		Kind: caller.Session, Account: account, ARN: "arn:aws:sts::" + account + ":assumed-role/job/s", ID: role.ID + ":s", Name: "s",
		Role: role.ARN(), RoleID: role.ID, AccessKey: session.AccessKey, Tags: map[string]string{"team": "a"}, Policies: []string{allowSend}, Capped: true,
	}
	if d := cmp.Diff(want, c.Caller); d != "" {
		t.Errorf("the session's caller: %s", d)
	}
	who, boundary, caps, err := w.PoliciesOf(c.Caller)
	if err != nil || len(who) != 1 || boundary != nil || len(caps) != 1 {
		t.Errorf("policies: %d, %v, %d, %v", len(who), boundary, len(caps), err)
	}
	if use, ok := w.LastUse(key); !ok || use.Service != "sqs" {
		t.Errorf("the latest use: %v, %v", use, ok)
	}

	// The store has no secret in clear, and all of its records can be read.
	for _, text := range []string{secret, string(session.Secret)} {
		each(t, w.store, func(k, value []byte) {
			if bytes.Contains(value, []byte(text)) || bytes.Contains(value, []byte(base64.StdEncoding.EncodeToString([]byte(text)))) {
				t.Errorf("%q has a secret in clear", k)
			}
		})
	}
	each(t, w.store, func(k, value []byte) {
		if record, err := keyspace.Parse(k); err != nil || identity.CheckRecord(record.ID, value) != nil {
			t.Errorf("%q cannot be read", k)
		}
	})
	if text := fmt.Sprintf("%v %+v %#v", session.Secret, *session, session.Secret); strings.Contains(text, string(session.Secret)) {
		t.Error("a secret shows itself")
	}
}

func each(t *testing.T, st store.Store, f func(k, value []byte)) {
	t.Helper()
	err := store.Each(st, keyspace.Prefix([]byte{keyspace.IdentitySpace}), func(k, value []byte) error {
		f(k, value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What an earlier version has kept in clear is sealed by the first start with a sealer, and
// nothing but that sealer opens it again.
func TestSealing(t *testing.T) {
	w := open(t, memory.New(), nil)
	key, secret := w.user("ann")
	s := sealer(t)
	w = w.again(s).again(s)
	if c, err := w.Credential(key, ""); err != nil || c.Secret != secret {
		t.Errorf("the key: %v, %v", c, err)
	}
	each(t, w.store, func(k, value []byte) {
		if bytes.Contains(value, []byte(base64.StdEncoding.EncodeToString(append([]byte{0}, secret...)))) {
			t.Errorf("%q has a secret in clear", k)
		}
	})
}

// A token is its key's alone, and cannot be changed, made up, or taken to another server.
func TestTokens(t *testing.T) {
	w := open(t, memory.New(), nil)
	role := w.role("job", trustAccount)
	make1 := func() (*identity.Session, string) {
		s := &identity.Session{Kind: caller.Session, Account: account, Of: role.ID, Name: "s"}
		token, err := w.NewSession(s)
		if err != nil {
			t.Fatal(err)
		}
		return s, token
	}
	s, token := make1()
	other, _ := make1()
	if _, err := w.Credential(s.AccessKey, token); err != nil {
		t.Fatal(err)
	}
	refused := func(what, key, token string) {
		t.Helper()
		if _, err := w.Credential(key, token); !errors.Is(err, sigv4.ErrToken) && !errors.Is(err, sigv4.ErrUnknownKey) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("another session's", other.AccessKey, token)
	refused("none", s.AccessKey, "")
	refused("no token", s.AccessKey, "AAAA")
	raw, _ := base64.StdEncoding.DecodeString(token)
	for i := range raw {
		changed := bytes.Clone(raw)
		changed[i] ^= 1
		refused(fmt.Sprint("changed at ", i), s.AccessKey, base64.StdEncoding.EncodeToString(changed))
	}
	elsewhere := open(t, memory.New(), nil)
	if _, err := elsewhere.Credential(s.AccessKey, token); err == nil {
		t.Error("another server takes the token")
	}
	// The role goes, and its sessions with it; a new one of the name is another.
	w.run(func(a *iam.Account, _ time.Time) error { return a.Delete(iam.Role, "job") })
	refused("of a deleted role", s.AccessKey, token)
	w.role("job", trustAccount)
	refused("of a deleted role whose name is used again", s.AccessKey, token)
}

// A key stops with the next request, and what policies say with the next decision.
func TestRevision(t *testing.T) {
	w := open(t, memory.New(), nil)
	key, _ := w.user("ann")
	c, err := w.Credential(key, "")
	if err != nil {
		t.Fatal(err)
	}
	may := func() policy.Decision {
		all, boundary, session, err := w.PoliciesOf(c.Caller)
		if err != nil {
			t.Fatal(err)
		}
		r := policy.Decide(&policy.Request{Caller: c.Caller, Action: "sqs:SendMessage", Resource: "arn:aws:sqs:us-east-1:" + account + ":q"},
			&policy.Policies{Identity: all, Boundary: boundary, Session: session})
		return r.Decision
	}
	if got := may(); got != policy.ImplicitDeny {
		t.Errorf("without policies: %v", got)
	}
	w.run(func(a *iam.Account, now time.Time) error {
		if err := a.Create(&iam.Entity{Kind: iam.Group, Path: "/", Name: "g", ID: "AGPAX", Created: now}); err != nil {
			return err
		}
		return errors.Join(a.AddToGroup("g", "ann"), a.PutInline(iam.Group, "g", "p", allowSend))
	})
	if got := may(); got != policy.Allow {
		t.Errorf("by the group: %v", got)
	}
	w.run(func(a *iam.Account, _ time.Time) error { return a.PutInline(iam.User, "ann", "p", denyAll) })
	if got := may(); got != policy.ExplicitDeny {
		t.Errorf("denied: %v", got)
	}
	w.run(func(a *iam.Account, _ time.Time) error { return a.SetKey("ann", key, false) })
	if _, err := w.Credential(key, ""); !errors.Is(err, sigv4.ErrUnknownKey) {
		t.Errorf("an inactive key: %v", err)
	}
	failed := errors.New("failed")
	err = w.Run(account, func(a *iam.Account, _ time.Time) error {
		if err := a.SetKey("ann", key, true); err != nil {
			return err
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if _, err := w.Credential(key, ""); err == nil {
		t.Error("what failed has changed something")
	}
}

// Who was named by a trust policy is that one, and not who has the name later.
func TestBound(t *testing.T) {
	w := open(t, memory.New(), nil)
	w.user("ann")
	named := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + account + `:user/ann"},"Action":"sts:AssumeRole"}]}`
	if _, unknown := w.BindPolicy(strings.ReplaceAll(named, "ann", "bob")); unknown != "arn:aws:iam::"+account+":user/bob" {
		t.Errorf("a trust policy for nobody: %q", unknown)
	}
	w.role("job", named)
	role := func() *iam.Entity { return w.RoleOf("arn:aws:iam::" + account + ":role/job") }
	may := func(key string) bool {
		c, err := w.Credential(key, "")
		if err != nil {
			t.Fatal(err)
		}
		trust, err := w.TrustOf(role())
		if err != nil {
			t.Fatal(err)
		}
		r := policy.Decide(&policy.Request{Caller: c.Caller, Action: "sts:AssumeRole", Resource: role().ARN(), Owner: account}, &policy.Policies{Resource: trust, Rule: policy.ResourceSide})
		return r.Allowed()
	}
	var first, id string
	_ = w.Read(account, func(a *iam.Account) error {
		u, err := a.Find(iam.User, "ann")
		first, id = a.Keys(u)[0].ID, u.ID
		return err
	})
	if !may(first) || w.ShowPolicy(role().Role.Trust) != named {
		t.Error("who is named may not assume the role")
	}
	w.run(func(a *iam.Account, _ time.Time) error {
		return errors.Join(a.DeleteKey("ann", first), a.Delete(iam.User, "ann"))
	})
	second, _ := w.user("ann")
	if may(second) {
		t.Error("who has the name of a deleted user may assume its role")
	}
	if shown := w.ShowPolicy(role().Role.Trust); shown != strings.ReplaceAll(named, "arn:aws:iam::"+account+":user/ann", id) {
		t.Errorf("the policy shows %s", shown)
	}
}

// A federated user may what both the user that has made the token and the token's own policies
// allow; of the account's root the token's decide. What the user is denied, or its boundary
// leaves out, the token does not give back.
func TestFederated(t *testing.T) {
	const allowSQS = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sqs:*","Resource":"*"}]}`
	w := open(t, memory.New(), nil)
	w.user("ann")
	w.user("bob")
	var ann, bob string
	w.run(func(a *iam.Account, _ time.Time) error {
		for name, id := range map[string]*string{"ann": &ann, "bob": &bob} {
			e, err := a.Find(iam.User, name)
			if err != nil {
				return err
			}
			*id = e.ID
		}
		return a.PutInline(iam.User, "ann", "p", allowSQS)
	})
	may := func(of, action string, policies ...string) policy.Decision {
		t.Helper()
		session := &identity.Session{Kind: caller.Federated, Account: account, Of: of, Name: "fed", Expires: clock.System.Now().Add(time.Hour), Policies: policies}
		token, err := w.NewSession(session)
		if err != nil {
			t.Fatal(err)
		}
		c, err := w.Credential(session.AccessKey, token)
		if err != nil {
			t.Fatal(err)
		}
		all, boundary, caps, err := w.PoliciesOf(c.Caller)
		if err != nil {
			t.Fatal(err)
		}
		r := policy.Decide(&policy.Request{Caller: c.Caller, Action: action, Resource: "arn:aws:sqs:us-east-1:" + account + ":q"},
			&policy.Policies{Identity: all, Boundary: boundary, Session: caps, Capped: c.Caller.Capped})
		return r.Decision
	}
	check := func(what string, got, want policy.Decision) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("both allow", may(ann, "sqs:SendMessage", allowSend), policy.Allow)
	check("only the user", may(ann, "sqs:DeleteQueue", allowSend), policy.ImplicitDeny)
	check("only the token", may(bob, "sqs:SendMessage", allowSend), policy.ImplicitDeny)
	check("a token without policies", may(ann, "sqs:SendMessage"), policy.ImplicitDeny)
	check("root's", may("", "sqs:SendMessage", allowSend), policy.Allow)
	check("root's, beyond its policies", may("", "sqs:DeleteQueue", allowSend), policy.ImplicitDeny)
	check("root's without policies", may("", "sqs:SendMessage"), policy.ImplicitDeny)
	w.run(func(a *iam.Account, _ time.Time) error { return a.PutInline(iam.User, "ann", "d", denyAll) })
	check("the user is denied", may(ann, "sqs:SendMessage", allowSend), policy.ExplicitDeny)
}

// A federated user has the tags of the user that has made the token; the token's own override
// them.
func TestTagsOfFederated(t *testing.T) {
	w := open(t, memory.New(), nil)
	w.user("ann")
	var ann string
	w.run(func(a *iam.Account, _ time.Time) error {
		e, err := a.Find(iam.User, "ann")
		if err != nil {
			return err
		}
		ann = e.ID
		return a.Tag(iam.User, "ann", []iam.Tag{{Key: "Team", Value: "sales"}, {Key: "site", Value: "north"}})
	})
	for of, want := range map[string]map[string]string{ann: {"team": "board", "site": "north"}, "": {"team": "board"}} {
		session := &identity.Session{Kind: caller.Federated, Account: account, Of: of, Name: "fed", Expires: clock.System.Now().Add(time.Hour), Tags: map[string]string{"team": "board"}}
		token, err := w.NewSession(session)
		if err != nil {
			t.Fatal(err)
		}
		c, err := w.Credential(session.AccessKey, token)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(c.Caller.Tags, want) {
			t.Errorf("made by %q: the tags are %v, want %v", of, c.Caller.Tags, want)
		}
	}
}

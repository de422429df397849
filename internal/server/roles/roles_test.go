package roles_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server/roles"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store/memory"
)

const (
	account  = "123456789012"
	stranger = "210987654321"
)

var (
	began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f     = arn.Function("us-east-1", account, "f")
	queue = arn.ARN{Service: "sqs", Region: "us-east-1", Account: account, Resource: "q"}
	other = arn.ARN{Service: "sqs", Region: "us-east-1", Account: account, Resource: "other"}
)

// bare is a server's resources without policies and tags.
type bare struct{}

func (bare) PolicyOf(context.Context, arn.ARN) *policy.Policy  { return nil }
func (bare) TagsOf(context.Context, arn.ARN) map[string]string { return nil }

// world has identities, on a clock of its own.
type world struct {
	t     *testing.T
	clock *clock.Virtual
	*identity.Module
}

func newWorld(t *testing.T) *world {
	t.Helper()
	sealing, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	c := clock.NewVirtual(began)
	j := journal.Open(journal.Options{Store: memory.New()})
	k := kernel.New(kernel.Options{Journal: j, Clock: c, Logger: slog.New(slog.DiscardHandler)})
	w := &world{t: t, clock: c, Module: identity.New(k, identity.Options{Sealer: sealing.Sealer("identity")})}
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = k.Close()
		j.Close()
	})
	return w
}

func (w *world) authorizer() *authorize.Authorizer {
	return &authorize.Authorizer{Identities: w.Module, Resources: bare{}}
}

func (w *world) change(command func(a *iam.Account, now time.Time) error) {
	w.t.Helper()
	if err := w.Run(account, command); err != nil {
		w.t.Fatal(err)
	}
}

// role makes one that a service may assume, and that may do an action on a resource.
func (w *world) role(name, service, action string, on arn.ARN) (its string) {
	w.t.Helper()
	trust, unknown := w.BindPolicy(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"` + service + `"},"Action":"sts:AssumeRole"}}`)
	if unknown != "" {
		w.t.Fatal(unknown)
	}
	w.change(func(a *iam.Account, now time.Time) error {
		if err := a.Create(&iam.Entity{
			Kind: iam.Role, Path: "/", Name: name, ID: iam.NewID(iam.PrefixRole, account, identity.NewRandom()), Created: now,
			Role: &iam.RolePart{Trust: trust, MaxSession: 3600},
		}); err != nil {
			return err
		}
		return a.PutInline(iam.Role, name, "p", `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"`+action+`","Resource":"`+on.String()+`"}}`)
	})
	return "arn:aws:iam::" + account + ":role/" + name
}

func (w *world) drop(name string) {
	w.t.Helper()
	w.change(func(a *iam.Account, _ time.Time) error {
		if err := a.DeleteInline(iam.Role, name, "p"); err != nil {
			return err
		}
		return a.Delete(iam.Role, name)
	})
}

// TestAssumable: where roles count, one has to be there, of the function's own account, and
// trust Lambda.
func TestAssumable(t *testing.T) {
	w := newWorld(t)
	good, snss := w.role("good", "lambda.amazonaws.com", "sqs:SendMessage", queue), w.role("bad", "sns.amazonaws.com", "sqs:SendMessage", queue)
	strict, lax := &roles.Sessions{Identities: w.Module, Clock: w.clock, Strict: true}, &roles.Sessions{Identities: w.Module, Clock: w.clock}
	abroad := f
	abroad.Account = stranger
	for name, c := range map[string]struct {
		of   arn.ARN
		role string
		ok   bool
	}{
		"trusts Lambda":     {f, good, true},
		"trusts SNS":        {f, snss, false},
		"is not there":      {f, "arn:aws:iam::" + account + ":role/none", false},
		"another account's": {abroad, good, false},
	} {
		if err := strict.Assumable(c.of, c.role); (err == nil) != c.ok || err != nil && !errors.Is(err, invoke.ErrRole) {
			t.Errorf("a role that %s: %v", name, err)
		}
		if err := lax.Assumable(c.of, c.role); err != nil {
			t.Errorf("where roles do not count, a role that %s: %v", name, err)
		}
	}
}

// TestCredentials: a function runs as its role, for as long as this very role is there and
// the session outlasts the call.
func TestCredentials(t *testing.T) {
	w := newWorld(t)
	s := &roles.Sessions{Identities: w.Module, Clock: w.clock, Strict: true}
	target := &function.Target{Function: f, Name: "f", Timeout: time.Minute, Role: w.role("r", "lambda.amazonaws.com", "sqs:SendMessage", queue)}
	c, err := s.Credentials(target)
	if err != nil {
		t.Fatal(err)
	}
	who := w.Known(c.AccessKey, c.Token)
	if who == nil || who.ARN != "arn:aws:sts::"+account+":assumed-role/r/f" || who.Role != target.Role {
		t.Errorf("the credentials are of %+v", who)
	}
	if !s.Lasts(target, c) {
		t.Error("new credentials do not last")
	}
	if s.Lasts(target, nil) {
		t.Error("a function without credentials goes on without, though its role is there")
	}
	w.clock.SetAtLeast(c.Expires.Add(-5*time.Minute - target.Timeout))
	if !s.Lasts(target, c) {
		t.Error("credentials that outlast the call do not last")
	}
	w.clock.SetAtLeast(w.clock.Now().Add(time.Millisecond))
	if s.Lasts(target, c) {
		t.Error("credentials last that may end during the call")
	}
	fresh, err := s.Credentials(target)
	if err != nil {
		t.Fatal(err)
	}
	w.drop("r")
	if s.Lasts(target, fresh) {
		t.Error("credentials outlive their role")
	}
	if _, err := s.Credentials(target); !errors.Is(err, invoke.ErrRole) {
		t.Errorf("credentials of a role that is gone: %v", err)
	}
	w.role("r", "lambda.amazonaws.com", "sqs:SendMessage", queue)
	if s.Lasts(target, fresh) {
		t.Error("credentials are those of another role that has the name now")
	}
	lax := &roles.Sessions{Identities: w.Module, Clock: w.clock}
	target.Role = "arn:aws:iam::" + account + ":role/none"
	if c, err := lax.Credentials(target); c != nil || err != nil {
		t.Errorf("where roles need not be there: %v, %v", c, err)
	}
}

// TestActing: functions and services do what their role may, and nothing where its trust is
// another's.
func TestActing(t *testing.T) {
	w := newWorld(t)
	s := &roles.Sessions{Identities: w.Module, Clock: w.clock, Strict: true}
	function := &function.Target{Function: f, Name: "f", Role: w.role("fr", "lambda.amazonaws.com", "sqs:SendMessage", queue)}
	act := s.Acting(w.authorizer())
	if who, err := act(t.Context(), function, queue, "sqs:SendMessage"); err != nil || who.Role != function.Role || who.Kind != caller.Session {
		t.Errorf("what the role may: %+v, %v", who, err)
	}
	for what, c := range map[string]struct {
		on     arn.ARN
		action string
	}{"another action": {queue, "sqs:ReceiveMessage"}, "another queue": {other, "sqs:SendMessage"}} {
		if _, err := act(t.Context(), function, c.on, c.action); fault.KindOf(err) != fault.AccessDenied {
			t.Errorf("%s: %v", what, err)
		}
	}
	if (&roles.Sessions{Identities: w.Module, Clock: w.clock}).Acting(w.authorizer()) != nil {
		t.Error("where nobody asks for permissions somebody is asked")
	}
	topic := arn.ARN{Service: "sns", Region: "us-east-1", Account: account, Resource: "t"}
	service := &roles.Service{Sessions: s, Principal: "sns.amazonaws.com", Session: "sns", Authorizer: w.authorizer()}
	its := w.role("sr", "sns.amazonaws.com", "sqs:SendMessage", queue)
	for what, c := range map[string]struct {
		role   string
		action string
		ok     bool
	}{
		"what its role may":     {its, "sqs:SendMessage", true},
		"what its role may not": {its, "sqs:DeleteMessage", false},
		"as Lambda's role":      {function.Role, "sqs:SendMessage", false},
	} {
		if err := service.May(t.Context(), topic, c.role, c.action, queue); (err == nil) != c.ok || err != nil && fault.KindOf(err) != fault.AccessDenied {
			t.Errorf("SNS, %s: %v", what, err)
		}
	}
	if service.Assumable(topic, its) != nil || service.Assumable(topic, function.Role) == nil {
		t.Error("SNS may assume Lambda's role, or not its own")
	}
}

// TestExternalID: Firehose assumes a role with its account's number as the external id, and
// other services with none.
func TestExternalID(t *testing.T) {
	w := newWorld(t)
	s := &roles.Sessions{Identities: w.Module, Clock: w.clock, Strict: true}
	trusting := func(name, service, id string) string {
		its := w.role(name, service, "sqs:SendMessage", queue)
		w.change(func(a *iam.Account, _ time.Time) error {
			return a.SetTrust(name, `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"`+service+`"},"Action":"sts:AssumeRole","Condition":{"StringEquals":{"sts:ExternalId":"`+id+`"}}}}`)
		})
		return its
	}
	stream := arn.ARN{Service: "firehose", Region: "us-east-1", Account: account, Resource: "deliverystream/s"}
	topic := arn.ARN{Service: "sns", Region: "us-east-1", Account: account, Resource: "t"}
	for name, c := range map[string]struct {
		service, id string
		source      arn.ARN
		ok          bool
	}{
		"own":     {"firehose.amazonaws.com", account, stream, true},
		"other":   {"firehose.amazonaws.com", stranger, stream, false},
		"another": {"sns.amazonaws.com", account, topic, false},
	} {
		service := &roles.Service{Sessions: s, Principal: c.service, Session: "s", Authorizer: w.authorizer()}
		if err := service.Assumable(c.source, trusting(name, c.service, c.id)); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMoves: a move task reads and deletes here and sends there, or publishes; it waits for
// an authorizer, and does nothing where there is none.
func TestMoves(t *testing.T) {
	w := newWorld(t)
	w.change(func(a *iam.Account, now time.Time) error {
		if err := a.Create(&iam.Entity{Kind: iam.User, Path: "/", Name: "u", ID: iam.NewID(iam.PrefixUser, account, identity.NewRandom()), Created: now}); err != nil {
			return err
		}
		return a.PutInline(iam.User, "u", "p", `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":["sqs:ReceiveMessage","sqs:DeleteMessage","sqs:SendMessage","sns:Publish"],"Resource":"*"}}`)
	})
	allow := func(actions string) {
		w.change(func(a *iam.Account, _ time.Time) error {
			return a.PutInline(iam.User, "u", "p", `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":[`+actions+`],"Resource":"*"}}`)
		})
	}
	var id string
	if err := w.Read(account, func(a *iam.Account) error {
		u, err := a.Find(iam.User, "u")
		id = u.ID
		return err
	}); err != nil {
		t.Fatal(err)
	}
	user := &caller.Caller{Kind: caller.User, Account: account, ARN: "arn:aws:iam::" + account + ":user/u", ID: id, Name: "u"}
	subscription := arn.ARN{Service: "sns", Region: "us-east-1", Account: account, Resource: "t:00000000-0000-4000-8000-000000000001"}
	m := roles.NewMoves(w.clock, true)
	m.Open(w.authorizer(), nil)
	for _, c := range []struct {
		actions string
		to      arn.ARN
		ok      bool
	}{
		{`"sqs:ReceiveMessage","sqs:DeleteMessage","sqs:SendMessage"`, other, true},
		{`"sqs:DeleteMessage","sqs:SendMessage"`, other, false},
		{`"sqs:ReceiveMessage","sqs:SendMessage"`, other, false},
		{`"sqs:ReceiveMessage","sqs:DeleteMessage"`, other, false},
		{`"sqs:ReceiveMessage","sqs:DeleteMessage","sqs:SendMessage"`, subscription, false},
		{`"sqs:ReceiveMessage","sqs:DeleteMessage","sns:Publish"`, subscription, true},
	} {
		allow(c.actions)
		if err := m.May(user, queue, c.to); (err == nil) != c.ok || err != nil && fault.KindOf(err) != fault.AccessDenied {
			t.Errorf("%s to %s: %v", c.actions, c.to, err)
		}
	}
	if err := roles.NewMoves(w.clock, false).May(user, queue, other); err != nil {
		t.Errorf("where nobody asks for permissions: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		m := roles.NewMoves(clock.System, true)
		said := make(chan error, 1)
		go func() { said <- m.May(user, queue, other) }()
		synctest.Wait()
		select {
		case err := <-said:
			t.Errorf("a task did not wait for an authorizer: %v", err)
		default:
		}
		closed := errors.New("it could not be opened")
		m.Open(nil, closed)
		if err := <-said; !errors.Is(err, closed) {
			t.Errorf("without an authorizer: %v", err)
		}
	})
}

package authorize_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/policy"
)

const account = "111122223333"

var (
	issued  = time.Date(2030, 1, 1, 9, 30, 0, 0, time.UTC)
	user    = &caller.Caller{Kind: caller.User, Account: account, ARN: "arn:aws:iam::111122223333:user/ada", ID: "AIDA", Name: "ada", Tags: map[string]string{"Team": "a"}}
	session = &caller.Caller{
		Kind: caller.Session, Account: account, ARN: "arn:aws:sts::111122223333:assumed-role/r/s", ID: "AROA:s", Name: "s", Role: "arn:aws:iam::111122223333:role/r",
		Issued: issued, Provider: "idp", SourceIdentity: "ada", Claims: map[string][]string{"idp:sub": {"x", "y"}},
	}
	root    = authorize.RootOf(account)
	service = authorize.ServiceCaller("sns.amazonaws.com", "sns.us-east-1.amazonaws.com")
)

// Each condition key has the value that AWS documents for whoever calls, or none at all.
func TestKeys(t *testing.T) {
	known := func(who *caller.Caller) *authorize.Context {
		return &authorize.Context{
			Caller: who, Account: "444455556666", Region: "eu-west-1", Now: issued.UnixMilli() + 999, Address: "[::ffff:192.0.2.7]:1234", Transport: authorize.TLS,
			Source: "arn:aws:sns:eu-west-1:1:t", Owner: "777788889999",
			TagsOf: func() map[string]string { return map[string]string{"Env": "prod", "None": ""} },
			Need: &authorize.Need{
				Tags: map[string]string{"New": "v"}, TagKeys: []string{"New", "Old"},
				Keys: []authorize.Key{{Name: "sns:protocol", Values: []string{"sqs"}}},
			},
		}
	}
	for _, tt := range []struct {
		key  string
		who  *caller.Caller
		want []string
	}{
		{"aws:principaltag/team", user, []string{"a"}},
		{"aws:principaltag/other", user, nil},
		{"aws:resourcetag/ENV", user, []string{"prod"}},
		{"iam:resourcetag/env", user, []string{"prod"}},
		{"aws:resourcetag/none", user, []string{""}},
		{"aws:resourcetag/other", user, nil},
		{"aws:requesttag/new", user, []string{"v"}},
		{"aws:requesttag/old", user, nil},
		{"aws:tagkeys", user, []string{"New", "Old"}},
		{"sns:protocol", user, []string{"sqs"}},
		{"sns:endpoint", user, nil},
		{"aws:resourceaccount", user, []string{"444455556666"}},
		{"aws:requestedregion", user, []string{"eu-west-1"}},
		{"aws:currenttime", user, []string{"2030-01-01T09:30:00Z"}},
		{"aws:epochtime", user, []string{"1893490200"}},
		{"aws:securetransport", user, []string{"true"}},
		{"aws:sourceip", user, []string{"192.0.2.7"}},
		{"aws:viaawsservice", user, []string{"false"}},
		{"aws:calledvia", user, nil},
		{"aws:principalaccount", user, []string{account}},
		{"aws:principalarn", user, []string{user.ARN}},
		{"aws:principalarn", session, []string{session.Role}},
		{"aws:principalarn", root, []string{"arn:aws:iam::111122223333:root"}},
		{"aws:principalarn", service, nil},
		{"aws:principaltype", user, []string{"User"}},
		{"aws:principaltype", session, []string{"AssumedRole"}},
		{"aws:principaltype", root, []string{"Account"}},
		{"aws:principaltype", &caller.Caller{}, []string{"Anonymous"}},
		{"aws:userid", session, []string{"AROA:s"}},
		{"aws:userid", root, []string{account}},
		{"aws:username", user, []string{"ada"}},
		{"aws:username", session, nil},
		{"aws:federatedprovider", session, []string{"idp"}},
		{"aws:tokenissuetime", session, []string{"2030-01-01T09:30:00Z"}},
		{"aws:tokenissuetime", user, nil},
		{"aws:sourceidentity", session, []string{"ada"}},
		{"aws:multifactorauthpresent", user, nil},
		{"idp:sub", session, []string{"x", "y"}},
		{"idp:sub", user, nil},
		{"aws:principalisawsservice", user, []string{"false"}},
		{"aws:principalisawsservice", service, []string{"true"}},
		{"aws:principalservicename", service, []string{"sns.amazonaws.com"}},
		{"aws:principalservicenameslist", service, []string{"sns.amazonaws.com", "sns.us-east-1.amazonaws.com"}},
		{"aws:sourcearn", service, []string{"arn:aws:sns:eu-west-1:1:t"}},
		{"aws:sourcearn", user, nil},
		{"aws:sourceaccount", service, []string{"777788889999"}},
		{"aws:sourceaccount", user, nil},
		{"aws:userid", service, nil},
	} {
		if got := known(tt.who).Values(tt.key); !slices.Equal(got, tt.want) {
			t.Errorf("%s of %s: %q, want %q", tt.key, tt.who.ARN, got, tt.want)
		}
	}
}

// What is not known is no value: neither true nor false.
func TestUnknown(t *testing.T) {
	c := &authorize.Context{Caller: user}
	for _, key := range []string{"aws:securetransport", "aws:sourceip", "aws:resourcetag/x", "aws:requesttag/x", "aws:tagkeys", "aws:resourceaccount"} {
		if got := c.Values(key); got != nil {
			t.Errorf("%s is %q", key, got)
		}
	}
	c = &authorize.Context{Caller: user, Address: "192.0.2.7:1", Transport: authorize.Plain, Via: "sqs.amazonaws.com"}
	for key, want := range map[string][]string{
		"aws:securetransport": {"false"}, "aws:sourceip": nil, "aws:viaawsservice": {"true"}, "aws:calledvia": {"sqs.amazonaws.com"},
	} {
		if got := c.Values(key); !slices.Equal(got, want) {
			t.Errorf("through a service %s is %q, want %q", key, got, want)
		}
	}
	c = &authorize.Context{Caller: service}
	if got := c.Values("aws:securetransport"); !slices.Equal(got, []string{"true"}) {
		t.Errorf("of a service aws:securetransport is %q", got)
	}
}

// rights are everybody's policies. They implement Identities and Resources.
type rights struct {
	identity, own string // documents; empty: none
	err           error
	asked         []string
}

func parse(t string) *policy.Policy {
	p, err := policy.ParseLoose(t)
	if err != nil {
		panic(err)
	}
	return p
}

func (r *rights) PoliciesOf(*caller.Caller) (identity []*policy.Policy, boundary *policy.Policy, session []*policy.Policy, err error) {
	if r.identity != "" {
		p, err := policy.ParseIdentity(r.identity)
		if err != nil {
			return nil, nil, nil, err
		}
		identity = append(identity, p)
	}
	return identity, nil, nil, r.err
}

func (r *rights) PolicyOf(ctx context.Context, resource arn.ARN) *policy.Policy {
	r.asked = append(r.asked, resource.String())
	if r.own == "" || ctx.Err() != nil {
		return nil
	}
	return parse(r.own)
}

func (r *rights) TagsOf(ctx context.Context, _ arn.ARN) map[string]string {
	if ctx.Err() != nil {
		return nil
	}
	return map[string]string{"env": "prod"}
}

const queue = "arn:aws:sqs:us-east-1:111122223333:q"

func TestDecide(t *testing.T) {
	allow := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"` + queue + `"}]}`
	tagged := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sqs:*","Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/env":"prod"}}}]}`
	owned := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sqs:*","Resource":"*","Condition":{"StringEquals":{"aws:ResourceAccount":"111122223333"}}}]}`
	denyThere := `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"` + queue + `"}]}`
	allowThere := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:SendMessage","Resource":"` + queue + `"}]}`
	for _, tt := range []struct {
		name   string
		rights rights
		need   authorize.Need
		want   bool
		asks   bool // for the resource's policy
	}{
		{"nothing allows", rights{}, authorize.Need{Resource: queue}, false, false},
		{"its own policy", rights{identity: allow}, authorize.Need{Resource: queue}, true, false},
		{"another resource", rights{identity: allow}, authorize.Need{Resource: queue + "2"}, false, false},
		{"under another partition", rights{identity: allow, own: denyThere}, authorize.Need{Resource: "arn:aws-cn:sqs:us-east-1:111122223333:q", Shared: true}, false, true},
		{"by tags of the resource", rights{identity: tagged}, authorize.Need{Resource: queue}, true, false},
		{"about no resource", rights{identity: tagged}, authorize.Need{Resource: "*"}, false, false},
		{"in the caller's account", rights{identity: owned}, authorize.Need{Resource: "*"}, true, false},
		{"in another account", rights{identity: owned}, authorize.Need{Resource: "*", Account: "444455556666"}, false, false},
		{"the resource allows", rights{own: allowThere}, authorize.Need{Resource: queue, Shared: true}, true, true},
		{"the resource allows what it may not share", rights{own: allowThere}, authorize.Need{Resource: queue}, false, false},
		{"the resource denies", rights{identity: allow, own: denyThere}, authorize.Need{Resource: queue, Shared: true}, false, true},
		{"the resource has to allow", rights{identity: allow}, authorize.Need{Resource: queue, Shared: true, Must: true}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.need.Action = "sqs:SendMessage"
			a := &authorize.Authorizer{Identities: &tt.rights, Resources: &tt.rights}
			got, err := a.Decide(t.Context(), &tt.need, &authorize.Context{Caller: user})
			if err != nil || got.Allowed() != tt.want {
				t.Errorf("%+v, %v", got, err)
			}
			if asks := len(tt.rights.asked) > 0; asks != tt.asks || asks && tt.rights.asked[0] != queue {
				t.Errorf("asked for the policies of %q", tt.rights.asked)
			}
		})
	}
}

// TestEndedContext: a policy or tags that are not read, as the caller has gone, are not taken for
// none.
func TestEndedContext(t *testing.T) {
	const allow = `{"Effect":"Allow","Action":"sqs:*","Resource":"*"}`
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name, identity string
		need           authorize.Need
		asked          bool
	}{
		{"a policy", allow, authorize.Need{Shared: true}, true},
		{"tags", allow + `,{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/env":"prod"}}}`, authorize.Need{}, true},
		{"neither", allow, authorize.Need{}, false},
	} {
		r := &rights{
			identity: `{"Version":"2012-10-17","Statement":[` + tt.identity + `]}`,
			own:      `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"` + queue + `"}]}`,
		}
		a := &authorize.Authorizer{Identities: r, Resources: r}
		tt.need.Action, tt.need.Resource = "sqs:SendMessage", queue
		got, err := a.Decide(ctx, &tt.need, &authorize.Context{Caller: user})
		if errors.Is(err, context.Canceled) != tt.asked || got.Allowed() == tt.asked {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

// Where policies cannot be read nothing is allowed.
func TestUnreadable(t *testing.T) {
	reason := errors.New("damage")
	r := &rights{identity: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`, err: reason}
	a := &authorize.Authorizer{Identities: r, Resources: r}
	got, err := a.Decide(t.Context(), &authorize.Need{Action: "sqs:SendMessage", Resource: queue}, &authorize.Context{Caller: user})
	if !errors.Is(err, reason) || got.Allowed() {
		t.Errorf("%+v, %v", got, err)
	}
}

// Where there are no identities an account's root may do everything of its own, and
// nobody else anything.
func TestNobody(t *testing.T) {
	r := &rights{}
	a := &authorize.Authorizer{Identities: r, Resources: r}
	for who, want := range map[*caller.Caller]bool{root: true, user: false, authorize.RootOf("444455556666"): false} {
		got, err := a.Decide(t.Context(), &authorize.Need{Action: "sqs:SendMessage", Resource: queue, Account: account}, &authorize.Context{Caller: who})
		if err != nil || got.Allowed() != want {
			t.Errorf("%s: %+v, %v", who.ARN, got, err)
		}
	}
}

func TestLogStream(t *testing.T) {
	group := arn.ARN{Service: "logs", Region: "us-east-1", Account: account, Resource: "log-group:/g"}
	for stream, want := range map[string]string{
		"s": "arn:aws:logs:us-east-1:111122223333:log-group:/g:log-stream:s", "": "arn:aws:logs:us-east-1:111122223333:log-group:/g:log-stream:",
	} {
		if got := authorize.LogStream(group, stream); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

package policy_test

import (
	"errors"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/policy"
)

func TestBecause(t *testing.T) {
	for want, r := range map[string]policy.Result{
		"because no identity-based policy allows the sqs:x action": {Kind: policy.Identity},
		"because no resource-based policy allows the sqs:x action": {Kind: policy.Resource},
		"because no permissions boundary allows the sqs:x action":  {Kind: policy.Boundary},
		"because no session policy allows the sqs:x action":        {Kind: policy.Session},
		"with an explicit deny in an identity-based policy":        {Decision: policy.ExplicitDeny, Kind: policy.Identity},
		"with an explicit deny in a resource-based policy":         {Decision: policy.ExplicitDeny, Kind: policy.Resource},
		"with an explicit deny in a permissions boundary":          {Decision: policy.ExplicitDeny, Kind: policy.Boundary},
		"with an explicit deny in a session policy":                {Decision: policy.ExplicitDeny, Kind: policy.Session},
	} {
		if got := r.Because("sqs:x"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The result names the policy, the statement, and where that stands.
func TestResultNamesStatement(t *testing.T) {
	doc := `{"Version":"2012-10-17", "Statement": [ {"Sid":"one","Effect":"Allow","Action":"sns:*","Resource":"*"},
		{"Sid":"two","Effect":"Allow","Action":"sqs:*","Resource":"*"} ]}`
	second, err := policy.ParseIdentity(doc)
	if err != nil {
		t.Fatal(err)
	}
	r := policy.Request{Caller: callers["user"], Action: "sqs:SendMessage", Resource: queue}
	got := policy.Decide(&r, &policy.Policies{Identity: []*policy.Policy{nil, saying(t, "silent"), second}})
	if !got.Allowed() || got.Policy != 2 || got.Statement.Sid != "two" {
		t.Fatalf("%+v", got)
	}
	if text := doc[got.Statement.Start:got.Statement.End]; text != `{"Sid":"two","Effect":"Allow","Action":"sqs:*","Resource":"*"}` {
		t.Errorf("it stands at %s", text)
	}
	var matched []string
	second.Matches(&r, func(s *policy.Statement) { matched = append(matched, s.Sid) })
	if !slices.Equal(matched, []string{"two"}) {
		t.Errorf("matched %v", matched)
	}
}

// Each kind of document has its own elements.
func TestForms(t *testing.T) {
	const all = `"Effect":"Allow","Action":"*"`
	for name, tt := range map[string]struct {
		parse   func(string) (*policy.Policy, error)
		members string
		ok      bool
	}{
		"identity":                  {policy.ParseIdentity, all + `,"Resource":"*"`, true},
		"identity with Principal":   {policy.ParseIdentity, all + `,"Resource":"*","Principal":"*"`, false},
		"identity without Resource": {policy.ParseIdentity, all, false},
		"trust":                     {policy.ParseTrust, all + `,"Principal":"*"`, true},
		"trust with Resource":       {policy.ParseTrust, all + `,"Principal":"*","Resource":"*"`, false},
		"trust without Principal":   {policy.ParseTrust, all, false},
		"resource":                  {policy.Parse, all + `,"Principal":"*","Resource":"*"`, true},
		"resource without either":   {policy.Parse, all, false},
	} {
		if _, err := tt.parse(`{"Statement":{` + tt.members + `}}`); (err == nil) != tt.ok || err != nil && !errors.Is(err, policy.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestContextKeys(t *testing.T) {
	p, err := policy.ParseIdentity(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"arn:aws:sqs:*:*:${aws:username}",
		"Condition":{"StringLike":{"aws:PrincipalTag/Team":["${aws:userid}","x"]},"ArnLike":{"aws:SourceArn":"arn:aws:sns:*:${aws:PrincipalAccount}:*"},"Bool":{"AWS:principaltag/team":"true"}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"aws:username", "aws:PrincipalTag/Team", "aws:userid", "aws:SourceArn", "aws:principalaccount"}
	if got := p.ContextKeys(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// warm is a decision as a busy account has it: a session with two policies, a boundary
// and a session policy, on a resource with a policy of its own.
func warm(tb testing.TB) (*policy.Request, *policy.Policies) {
	tb.Helper()
	parse := func(p *policy.Policy, err error) *policy.Policy {
		if err != nil {
			tb.Fatal(err)
		}
		return p
	}
	managed := parse(policy.ParseIdentity(`{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":["sns:Publish","sns:Subscribe","sns:List*"],"Resource":"arn:aws:sns:*:111122223333:*"},
		{"Effect":"Allow","Action":["kms:Decrypt","kms:GenerateDataKey*"],"Resource":"*","Condition":{"StringEquals":{"kms:ViaService":"sqs.us-east-1.amazonaws.com"}}},
		{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"StringNotEquals":{"aws:RequestedRegion":["us-east-1","eu-west-1"]}}}]}`))
	inline := parse(policy.ParseIdentity(`{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":["sqs:SendMessage","sqs:ReceiveMessage","sqs:DeleteMessage"],"Resource":"arn:aws:sqs:*:111122223333:${aws:PrincipalTag/team, 'ord'}ers"}]}`))
	boundary := parse(policy.ParseIdentity(`{"Statement":{"Effect":"Allow","NotAction":["iam:*","sts:*"],"Resource":"*"}}`))
	session := parse(policy.ParseIdentity(`{"Statement":{"Effect":"Allow","Action":"sqs:*","Resource":"arn:aws:sqs:us-east-1:111122223333:*"}}`))
	resource := parse(policy.Parse(`{"Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage",
		"Resource":"` + queue + `","Condition":{"ArnEquals":{"aws:SourceArn":"` + topic + `"}}},
		{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"` + queue + `","Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}`))
	request := &policy.Request{
		Caller: callers["session"], Action: "sqs:SendMessage", Resource: queue, Owner: account,
		Context: keys{"aws:requestedregion": {"us-east-1"}, "aws:securetransport": {"true"}},
	}
	return request, &policy.Policies{
		Identity: []*policy.Policy{managed, inline}, Boundary: boundary, Session: []*policy.Policy{session}, Capped: true, Resource: resource,
	}
}

// A warm decision takes no memory.
func TestDecideAllocatesNothing(t *testing.T) {
	r, p := warm(t)
	allowed := false
	if n := testing.AllocsPerRun(100, func() { result := policy.Decide(r, p); allowed = result.Allowed() }); n != 0 || !allowed {
		t.Errorf("%v allocations, allowed: %t", n, allowed)
	}
}

func BenchmarkDecide(b *testing.B) {
	r, p := warm(b)
	b.ReportAllocs()
	for b.Loop() {
		if result := policy.Decide(r, p); !result.Allowed() {
			b.Fatal("refused")
		}
	}
}

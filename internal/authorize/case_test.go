package authorize_test

import (
	"context"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/policy"
)

// twice has a resource with two tags whose keys differ in case only.
type twice struct{ rights }

func (twice) TagsOf(context.Context, arn.ARN) map[string]string {
	return map[string]string{"Env": "prod", "env": "dev", "Team": "a"}
}

// A condition on a tag ignores the case of its key: with two such tags a Deny holds if it
// does for one, and an Allow if it does for both, whatever their order in memory.
func TestTagsThatDifferInCaseOnly(t *testing.T) {
	const allowAll = `{"Effect":"Allow","Action":"sqs:*","Resource":"*"},`
	for _, tt := range []struct {
		statements, condition string
		want                  bool
	}{
		{allowAll + `{"Effect":"Deny"`, `{"StringEquals":{"aws:ResourceTag/env":"prod"}}`, false},
		{allowAll + `{"Effect":"Deny"`, `{"StringEquals":{"aws:ResourceTag/ENV":"dev"}}`, false},
		{allowAll + `{"Effect":"Deny"`, `{"StringNotEquals":{"aws:ResourceTag/env":"prod"}}`, false},
		{allowAll + `{"Effect":"Deny"`, `{"ForAllValues:StringEquals":{"aws:ResourceTag/env":"prod"}}`, false},
		{allowAll + `{"Effect":"Deny"`, `{"StringEquals":{"aws:ResourceTag/env":"test"}}`, true},
		{allowAll + `{"Effect":"Deny"`, `{"Null":{"aws:ResourceTag/env":"true"}}`, true},
		{allowAll + `{"Effect":"Deny"`, `{"StringEquals":{"aws:RequestTag/env":"dev"}}`, false},
		{`{"Effect":"Allow"`, `{"StringEquals":{"aws:ResourceTag/env":"dev"}}`, false},
		{`{"Effect":"Allow"`, `{"StringEquals":{"aws:ResourceTag/env":["dev","prod"]}}`, true},
		{`{"Effect":"Allow"`, `{"StringNotEquals":{"aws:ResourceTag/env":"dev"}}`, false},
		{`{"Effect":"Allow"`, `{"StringNotEquals":{"aws:RequestTag/env":"test"}}`, true},
		{`{"Effect":"Allow"`, `{"StringEquals":{"aws:ResourceTag/team":"a"}}`, true},
	} {
		r := &twice{rights{identity: `{"Version":"2012-10-17","Statement":[` + tt.statements + `,"Action":"sqs:*","Resource":"*","Condition":` + tt.condition + `}]}`}}
		for range 50 { // a map's order is random
			a := &authorize.Authorizer{Identities: r, Resources: r}
			need := &authorize.Need{Action: "sqs:TagQueue", Resource: queue, Tags: map[string]string{"Env": "prod", "env": "dev"}}
			got, err := a.Decide(t.Context(), need, &authorize.Context{Caller: user})
			if err != nil || got.Allowed() != tt.want {
				t.Errorf("%s, %s: %v, %v, want %v", tt.statements, tt.condition, got.Decision, err, tt.want)
				break
			}
		}
	}
}

// So does one on a pair of an encryption context, which has a value for each such name.
func TestAlternativesOfKMS(t *testing.T) {
	known := &authorize.Context{Caller: user, Need: &authorize.Need{Keys: []authorize.Key{{Name: "kms:encryptioncontext:env", Values: []string{"prod", "dev"}}}}}
	for document, want := range map[string]policy.Decision{
		`{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"StringEquals":{"kms:EncryptionContext:Env":"dev"}}}`:           policy.ExplicitDeny,
		`{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEquals":{"kms:EncryptionContext:Env":"dev"}}}`:          policy.ImplicitDeny,
		`{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"StringEquals":{"kms:EncryptionContext:Env":["dev","prod"]}}}`: policy.Allow,
	} {
		p, err := policy.ParseIdentity(`{"Version":"2012-10-17","Statement":` + document + `}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Evaluate(&policy.Request{Caller: user, Action: "kms:Decrypt", Resource: "*", Context: known}); got != want {
			t.Errorf("%s: %v", document, got)
		}
	}
}

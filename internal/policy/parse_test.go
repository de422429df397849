package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/policy"
)

func TestParseRefuses(t *testing.T) {
	statement := func(members string) string { return `{"Statement":[{` + members + `}]}` }
	const rest = `"Effect":"Allow","Action":"*","Resource":"*",`
	condition := func(c string) string { return statement(rest + `"Principal":"*","Condition":` + c) }
	for name, doc := range map[string]string{
		"nothing":                 ``,
		"no JSON":                 `{`,
		"more than JSON":          `{"Statement":[]} x`,
		"no object":               `[]`,
		"null":                    `null`,
		"no UTF-8":                "{\"\xff\":1}",
		"too long":                `{"Id":"` + strings.Repeat("x", policy.MaxBytes) + `"}`,
		"no statement":            `{"Version":"2012-10-17"}`,
		"an empty list":           `{"Statement":[]}`,
		"null for a statement":    `{"Statement":[null]}`,
		"a number of statements":  `{"Statement":7}`,
		"deep nesting":            `{"Statement":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		"an unknown version":      `{"Version":"2012-10-18","Statement":[{` + rest + `"Principal":"*"}]}`,
		"an id of another type":   `{"Id":7,"Statement":[{` + rest + `"Principal":"*"}]}`,
		"an unknown element":      `{"Note":"x","Statement":[{` + rest + `"Principal":"*"}]}`,
		"a name in another case":  `{"statement":[{` + rest + `"Principal":"*"}]}`,
		"an element twice":        statement(rest + `"Principal":"*","Effect":"Deny"`),
		"unknown in a statement":  statement(rest + `"Principal":"*","Note":"x"`),
		"no effect":               statement(`"Action":"*","Resource":"*","Principal":"*"`),
		"an effect in small":      statement(`"Effect":"allow","Action":"*","Resource":"*","Principal":"*"`),
		"no principal":            statement(`"Effect":"Allow","Action":"*","Resource":"*"`),
		"no action":               statement(`"Effect":"Allow","Resource":"*","Principal":"*"`),
		"no resource":             statement(`"Effect":"Allow","Action":"*","Principal":"*"`),
		"an action and not":       statement(rest + `"Principal":"*","NotAction":"sqs:*"`),
		"a resource and not":      statement(rest + `"Principal":"*","NotResource":"*"`),
		"a principal and not":     statement(rest + `"Principal":"*","NotPrincipal":"*"`),
		"an empty list of names":  statement(`"Effect":"Allow","Action":[],"Resource":"*","Principal":"*"`),
		"an empty name":           statement(`"Effect":"Allow","Action":"","Resource":"*","Principal":"*"`),
		"no service in an action": statement(`"Effect":"Allow","Action":"SendMessage","Resource":"*","Principal":"*"`),
		"any service":             statement(`"Effect":"Allow","Action":"*:SendMessage","Resource":"*","Principal":"*"`),
		"a number of actions":     statement(`"Effect":"Allow","Action":[7],"Resource":"*","Principal":"*"`),
		"a name for a resource":   statement(`"Effect":"Allow","Action":"*","Resource":"orders","Principal":"*"`),
		"two of one Sid":          `{"Statement":[{"Sid":"a",` + rest + `"Principal":"*"},{"Sid":"a",` + rest + `"Principal":"*"}]}`,
		"a text for a principal":  statement(rest + `"Principal":"111122223333"`),
		"an empty principal":      statement(rest + `"Principal":{}`),
		"no principal in a list":  statement(rest + `"Principal":{"AWS":[]}`),
		"a list of principals":    statement(rest + `"Principal":["*"]`),
		"a short account":         statement(rest + `"Principal":{"AWS":"11112222333"}`),
		"part of an ARN":          statement(rest + `"Principal":{"AWS":"arn:aws:iam::111122223333:user/*"}`),
		"no identity":             statement(rest + `"Principal":{"AWS":"` + queue + `"}`),
		"any service's principal": statement(rest + `"Principal":{"Service":"*.amazonaws.com"}`),
		"an unknown kind":         statement(rest + `"Principal":{"Robot":"x"}`),
		"an unknown operator":     condition(`{"StringAlike":{"aws:x":"y"}}`),
		"an unknown quantifier":   condition(`{"ForSomeValues:StringLike":{"aws:x":"y"}}`),
		"Null with IfExists":      condition(`{"NullIfExists":{"aws:x":"true"}}`),
		"a list of conditions":    condition(`[{"StringLike":{"aws:x":"y"}}]`),
		"no keys":                 condition(`{"StringLike":"x"}`),
		"an empty key":            condition(`{"StringLike":{"":"y"}}`),
		"no operand":              condition(`{"StringLike":{"aws:x":[]}}`),
		"an object for operand":   condition(`{"StringLike":{"aws:x":{"y":1}}}`),
		"null for operand":        condition(`{"StringLike":{"aws:x":[null]}}`),
		"no number":               condition(`{"NumericEquals":{"aws:x":"0x10"}}`),
		"no date":                 condition(`{"DateEquals":{"aws:x":"yesterday"}}`),
		"a far date":              condition(`{"DateEquals":{"aws:x":"99999999999999"}}`),
		"no truth":                condition(`{"Bool":{"aws:x":"yes"}}`),
		"no truth for Null":       condition(`{"Null":{"aws:x":"yes"}}`),
		"no address":              condition(`{"IpAddress":{"aws:x":"10.0.0.0/33"}}`),
		"no bytes":                condition(`{"BinaryEquals":{"aws:x":"?"}}`),
	} {
		if _, err := policy.Parse(doc); !errors.Is(err, policy.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A document may have the greatest length, and not a byte more: those of resources and those of
// identities have different ones.
func TestLengths(t *testing.T) {
	const statement = `{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*"%s}]}`
	for name, tt := range map[string]struct {
		parse   func(string) (*policy.Policy, error)
		element string
		limit   int
	}{
		"a resource": {policy.Parse, `,"Principal":"*"`, policy.MaxBytes},
		"loose":      {policy.ParseLoose, `,"Principal":"*"`, policy.MaxBytes},
		"identity":   {policy.ParseIdentity, ``, 128 << 10},
	} {
		doc := fmt.Sprintf(statement, tt.element)
		doc += strings.Repeat(" ", tt.limit-len(doc))
		if _, err := tt.parse(doc); err != nil {
			t.Errorf("%s: %d bytes: %v", name, len(doc), err)
		}
		if _, err := tt.parse(doc + " "); !errors.Is(err, policy.ErrMalformed) {
			t.Errorf("%s: %d bytes: %v", name, len(doc)+1, err)
		}
	}
}

// FuzzParse: whatever is read can be evaluated, an allowing document with a
// denying statement beside it allows nothing, and a statement can be added to
// it and taken away again.
func FuzzParse(f *testing.F) {
	for _, doc := range []string{
		`{"Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"Federated":"arn:aws:iam::111122223333:oidc-provider/x"}}}`,
		`{"Statement":[{"Effect":"Deny","Action":"*","Resource":"arn:aws:*:😀??"}]}`,
		``, `{}`, `{"Statement":[]}`, `{"Statement":{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"}}`,
		`{"Version":"2012-10-17","Id":"x","Statement":[{"Sid":"a","Effect":"Deny","NotPrincipal":{"AWS":["111122223333","arn:aws:iam::111122223333:user/x"],"Service":"sns.amazonaws.com"},
			"NotAction":["sqs:Send*","sqs:?"],"NotResource":["arn:aws:sqs","arn:aws:sqs:*:1:${aws:username}"],
			"Condition":{"ForAllValues:StringNotLikeIfExists":{"aws:TagKeys":["${*}a*?","${aws:none, 'x'}"]},"Null":{"aws:x":true},
			"NumericLessThan":{"aws:n":1e3},"DateEquals":{"aws:CurrentTime":"2026"},"IpAddress":{"aws:SourceIp":"::/0"},"ArnLike":{"aws:SourceArn":"arn:*"}}}]}`,
	} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		for _, parse := range []func(string) (*policy.Policy, error){policy.ParseIdentity, policy.ParseTrust, policy.ParseLoose} {
			p, err := parse(doc)
			if err != nil {
				if !errors.Is(err, policy.ErrMalformed) {
					t.Fatal(err)
				}
				continue
			}
			p.ContextKeys()
			for _, s := range p.Statements() {
				if s.Start < 0 || s.End > len(doc) || doc[s.Start] != '{' || doc[s.End-1] != '}' {
					t.Fatalf("%s: a statement stands at %d to %d", doc, s.Start, s.End)
				}
			}
			policies := policy.Policies{Identity: []*policy.Policy{p}, Boundary: p, Session: []*policy.Policy{p}, Resource: p}
			policy.Decide(call(), &policies)
		}
		p, err := policy.Parse(doc)
		if err != nil {
			if !errors.Is(err, policy.ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		before := p.Evaluate(delivery())
		p.Evaluate(call())
		added, err := policy.Add(doc, "x", policy.Grant{Sid: "fuzzed", Accounts: []string{"999999999999"}, Actions: []string{"sqs:Purge"}, Resource: queue})
		if errors.Is(err, policy.ErrTaken) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(added) > policy.MaxBytes {
			return
		}
		again, err := policy.Parse(added)
		if err != nil {
			t.Fatalf("%s: %v", added, err)
		}
		if after := again.Evaluate(delivery()); after != before {
			t.Errorf("%s: another account's grant turns %d into %d", doc, before, after)
		}
		removed, err := policy.Remove(added, "fuzzed")
		if err != nil {
			t.Fatal(err)
		}
		if last, err := policy.Parse(removed); err != nil || len(last.Statements()) != len(p.Statements()) {
			t.Errorf("%s became %s: %v", doc, removed, err)
		}
		denied, err := policy.Parse(strings.Replace(removed, `"Statement":[`,
			`"Statement":[{"Effect":"Deny","Principal":"*","Action":"*","Resource":"*"},`, 1))
		if err == nil && len(denied.Statements()) > len(p.Statements()) && denied.Evaluate(delivery()) != policy.ExplicitDeny {
			t.Errorf("%s: a denial does not win", doc)
		}
	})
}

func BenchmarkEvaluate(b *testing.B) {
	p, err := policy.Parse(`{"Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage",
		"Resource":"` + queue + `","Condition":{"ArnEquals":{"aws:SourceArn":"` + topic + `"}}}]}`)
	if err != nil {
		b.Fatal(err)
	}
	r := delivery()
	b.ReportAllocs()
	for b.Loop() {
		if p.Evaluate(r) != policy.Allow {
			b.Fatal("refused")
		}
	}
}

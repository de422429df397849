package stack

import (
	"reflect"
	"testing"
)

// A stack policy denies what it does not allow, and what it says it denies.
func TestPolicy(t *testing.T) {
	const all = `{"Effect":"Allow","Principal":"*","Action":"Update:*","Resource":"*"}`
	for _, test := range []struct {
		statements, action, id string
		want                   error
	}{
		{all, updateModify, "Q", nil},
		{"", updateModify, "Q", ErrNotAllowed.With("Update:Modify", "Q")},
		{all + `,{"Effect":"Deny","Principal":"*","Action":"Update:Replace","Resource":"LogicalResourceId/Q"}`, updateReplace, "Q", ErrDenied.With(2, "Update:Replace", "Q")},
		{all + `,{"Effect":"Deny","Principal":"*","Action":"Update:Replace","Resource":"LogicalResourceId/Q"}`, updateModify, "Q", nil},
		{all + `,{"Effect":"Deny","Principal":"*","Action":["Update:Delete","Update:Replace"],"Resource":"LogicalResourceId/Prod*"}`, updateDelete, "ProdOrders", ErrDenied.With(2, "Update:Delete", "ProdOrders")},
		{all + `,{"Effect":"Deny","Principal":{"AWS":"*"},"Action":"Update:*","Resource":"*","Condition":{"StringEquals":{"ResourceType":["AWS::SNS::Topic"]}}}`, updateModify, "Q", nil},
		{all + `,{"Effect":"Deny","Principal":"*","Action":"Update:*","Resource":"*","Condition":{"StringLike":{"ResourceType":"AWS::SQS::*"}}}`, updateModify, "Q", ErrDenied.With(2, "Update:Modify", "Q")},
		{`{"Effect":"Allow","Principal":"*","NotAction":"Update:Delete","NotResource":"LogicalResourceId/R"}`, updateModify, "Q", nil},
		{`{"Effect":"Allow","Principal":"*","NotAction":"Update:Delete","NotResource":"LogicalResourceId/R"}`, updateModify, "R", ErrNotAllowed.With("Update:Modify", "R")},
	} {
		p, err := ParsePolicy(`{"Statement":[` + test.statements + `]}`)
		if err != nil {
			t.Errorf("%s: %v", test.statements, err)
			continue
		}
		if got := p.denies(test.action, test.id, "AWS::SQS::Queue"); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s, %s of %s: %v, want %v", test.statements, test.action, test.id, got, test.want)
		}
	}
	for _, bad := range []string{
		"", "{", "[]", `{"Statement":{}}`, `{"Statement":[{}]}`,
		`{"Statement":[{"Effect":"Maybe","Principal":"*","Action":"Update:*","Resource":"*"}]}`,
		`{"Statement":[{"Effect":"Allow","Principal":"arn","Action":"Update:*","Resource":"*"}]}`,
		`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:*","Resource":"*"}]}`,
		`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"Update:*","Resource":"Q"}]}`,
		`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"Update:*"}]}`,
		`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"Update:*","Resource":"*","Condition":{"Bool":{"x":"y"}}}]}`,
		`{"Statement":[],"More":1}`,
	} {
		if _, err := ParsePolicy(bad); err == nil {
			t.Errorf("%s is a policy", bad)
		}
	}
}

package stack

import "testing"

// A stack policy denies what it does not allow, and what it says it denies.
func TestPolicy(t *testing.T) {
	const all = `{"Effect":"Allow","Principal":"*","Action":"Update:*","Resource":"*"}`
	for _, test := range []struct{ statements, action, id, want string }{
		{all, updateModify, "Q", ""},
		{"", updateModify, "Q", "Action not allowed by stack policy: no statement allows [Update:Modify] for resource [LogicalResourceId/Q]"},
		{all + `,{"Effect":"Deny","Principal":"*","Action":"Update:Replace","Resource":"LogicalResourceId/Q"}`, updateReplace, "Q", "Action denied by stack policy: Statement [#2] does not allow [Update:Replace] for resource [LogicalResourceId/Q]"},
		{all + `,{"Effect":"Deny","Principal":"*","Action":"Update:Replace","Resource":"LogicalResourceId/Q"}`, updateModify, "Q", ""},
		{all + `,{"Effect":"Deny","Principal":"*","Action":["Update:Delete","Update:Replace"],"Resource":"LogicalResourceId/Prod*"}`, updateDelete, "ProdOrders", "Action denied by stack policy: Statement [#2] does not allow [Update:Delete] for resource [LogicalResourceId/ProdOrders]"},
		{all + `,{"Effect":"Deny","Principal":{"AWS":"*"},"Action":"Update:*","Resource":"*","Condition":{"StringEquals":{"ResourceType":["AWS::SNS::Topic"]}}}`, updateModify, "Q", ""},
		{all + `,{"Effect":"Deny","Principal":"*","Action":"Update:*","Resource":"*","Condition":{"StringLike":{"ResourceType":"AWS::SQS::*"}}}`, updateModify, "Q", "Action denied by stack policy: Statement [#2] does not allow [Update:Modify] for resource [LogicalResourceId/Q]"},
		{`{"Effect":"Allow","Principal":"*","NotAction":"Update:Delete","NotResource":"LogicalResourceId/R"}`, updateModify, "Q", ""},
		{`{"Effect":"Allow","Principal":"*","NotAction":"Update:Delete","NotResource":"LogicalResourceId/R"}`, updateModify, "R", "Action not allowed by stack policy: no statement allows [Update:Modify] for resource [LogicalResourceId/R]"},
	} {
		p, err := ParsePolicy(`{"Statement":[` + test.statements + `]}`)
		if err != nil {
			t.Errorf("%s: %v", test.statements, err)
			continue
		}
		if got := p.denies(test.action, test.id, "AWS::SQS::Queue"); got != test.want {
			t.Errorf("%s, %s of %s: %q, want %q", test.statements, test.action, test.id, got, test.want)
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

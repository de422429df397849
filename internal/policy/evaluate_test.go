package policy_test

import (
	"strings"
	"testing"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/policy"
)

// keys is a Context of given values, by condition key in lower case.
type keys map[string][]string

func (k keys) Values(key string) []string { return k[key] }

const (
	queue = "arn:aws:sqs:us-east-1:111122223333:orders"
	topic = "arn:aws:sns:us-east-1:111122223333:news"
)

// delivery is a request that a topic's service makes of a queue.
func delivery() *policy.Request {
	return &policy.Request{
		Caller: &caller.Caller{Kind: caller.Service, Services: []string{"sns.amazonaws.com"}}, Action: "sqs:SendMessage", Resource: queue,
		Context: keys{
			"aws:sourcearn": {topic}, "aws:sourceaccount": {"111122223333"},
			"aws:currenttime": {"2026-03-01T12:00:00Z"}, "aws:epochtime": {"1772366400"}, "aws:securetransport": {"true"},
		},
	}
}

// call is a request of a user in a role.
func call() *policy.Request {
	return &policy.Request{
		Caller: &caller.Caller{
			Kind: caller.Session, Account: "444455556666", ARN: "arn:aws:sts::444455556666:assumed-role/reader/anna",
			Role: "arn:aws:iam::444455556666:role/reader", ID: "AROAREADERREADERREADE:anna", RoleID: "AROAREADERREADERREADE",
		},
		Action: "sqs:ReceiveMessage", Resource: queue,
		Context: keys{
			"aws:sourceip": {"203.0.113.7"}, "aws:username": {"anna"}, "aws:multifactorauthage": {"120"},
			"aws:tagkeys": {"environment", "webserver"}, "aws:principalorgid": {"o-a1b2c3"}, "aws:empty": {},
			"aws:securetransport": {"false"}, "aws:stars": {"a*b"}, "aws:cert": {"AQID"}, "aws:word": {"many", "words"},
			"aws:principalarn": {"arn:aws:iam::444455556666:role/reader"},
		},
	}
}

// The examples of the documentation: of SQS and SNS policies, and of the
// elements of the language.
func TestDocumentedExamples(t *testing.T) {
	for name, tt := range map[string]struct {
		doc    string
		change func(r *policy.Request)
		want   policy.Decision
	}{
		"a topic may send": {doc: `{"Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage",
			"Resource":"` + queue + `","Condition":{"ArnEquals":{"aws:SourceArn":"` + topic + `"}}}]}`, want: policy.Allow},
		"another topic may not": {
			doc: `{"Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage",
				"Resource":"` + queue + `","Condition":{"ArnEquals":{"aws:SourceArn":"` + topic + `"}}}]}`,
			change: func(r *policy.Request) { r.Context.(keys)["aws:sourcearn"] = []string{topic + "2"} },
		},
		"the older form": {doc: `{"Version":"2008-10-17","Id":"` + queue + `/SQSDefaultPolicy","Statement":{"Sid":"s1","Effect":"Allow",
			"Principal":{"AWS":"*"},"Action":"SQS:SendMessage","Resource":"` + queue + `",
			"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:sns:us-east-1:111122223333:*"}}}}`, want: policy.Allow},
		"a whole account is no service": {doc: `{"Statement":[{"Effect":"Allow","Principal":{"AWS":"111122223333"},"Action":"sqs:*","Resource":"*"}]}`},
		"another service":               {doc: `{"Statement":[{"Effect":"Allow","Principal":{"Service":"s3.amazonaws.com"},"Action":"sqs:*","Resource":"*"}]}`},
		"several services": {
			doc:  `{"Statement":[{"Effect":"Allow","Principal":{"Service":["s3.amazonaws.com","sns.amazonaws.com"],"AWS":"444455556666"},"Action":"sqs:*","Resource":"*"}]}`,
			want: policy.Allow,
		},
		"every action of every queue": {doc: `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"}]}`, want: policy.Allow},
		"only encrypted connections": {
			doc: `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:*","Resource":"*"},
				{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}`,
			want: policy.Allow,
		},
		"deny comes first wherever it stands": {
			doc: `{"Statement":[{"Effect":"Deny","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:Send*","Resource":"*"},
				{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"}]}`,
			want: policy.ExplicitDeny,
		},
		"a deny that is about another account": {
			doc: `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"},
				{"Effect":"Deny","Principal":"*","Action":"*","Resource":"*","Condition":{"StringNotEquals":{"aws:SourceAccount":["111122223333","999999999999"]}}}]}`,
			want: policy.Allow,
		},
		"a period": {
			doc: `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":{
				"DateGreaterThan":{"aws:CurrentTime":"2026-01-31T12:00Z"},"DateLessThan":{"aws:CurrentTime":"2026-03-01T15:00:00+02:00"}}}]}`,
			want: policy.Allow,
		},
		"a period that is over": {
			doc: `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":{"DateLessThan":{"aws:CurrentTime":"2026-03-01"}}}]}`,
		},
		"epoch seconds": {
			doc:  `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":{"DateLessThanEquals":{"aws:EpochTime":1772366400}}}]}`,
			want: policy.Allow,
		},
		"all but one principal": {
			doc:  `{"Statement":[{"Effect":"Deny","NotPrincipal":{"AWS":"444455556666"},"Action":"*","Resource":"*"}]}`,
			want: policy.ExplicitDeny,
		},
		"all but what is asked": {doc: `{"Statement":[{"Effect":"Allow","Principal":"*","NotAction":["sqs:SendMessage","sqs:DeleteQueue"],"Resource":"*"}]}`},
		"all but another action": {
			doc: `{"Statement":[{"Effect":"Allow","Principal":"*","NotAction":"sqs:DeleteQueue","Resource":"*"}]}`, want: policy.Allow,
		},
		"all but this resource": {doc: `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","NotResource":"` + queue + `"}]}`},
		"all but another resource": {
			doc: `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","NotResource":"` + queue + `2"}]}`, want: policy.Allow,
		},
		"an incomplete ARN": {doc: `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"arn:aws:sqs"}]}`, want: policy.Allow},
		"one account's queues": {
			doc: `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"arn:aws:sqs:*:111122223333:ord?rs"}]}`, want: policy.Allow,
		},
		"a wildcard stays in its part": {doc: `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"arn:*:orders:a:b:c"}]}`},
		"no statement applies":         {doc: `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:ReceiveMessage","Resource":"*"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := policy.Parse(tt.doc)
			if err != nil {
				t.Fatal(err)
			}
			r := delivery()
			if tt.change != nil {
				tt.change(r)
			}
			if got := p.Evaluate(r); got != tt.want {
				t.Errorf("decision %d, want %d", got, tt.want)
			}
		})
	}
}

func TestPrincipals(t *testing.T) {
	for principal, want := range map[string]bool{
		`"*"`:                    true,
		`{"AWS":"*"}`:            true,
		`{"AWS":"444455556666"}`: true,
		`{"AWS":"arn:aws:iam::444455556666:root"}`:                                  true,
		`{"AWS":["111122223333","arn:aws:iam::444455556666:role/reader"]}`:          true,
		`{"AWS":"arn:aws:sts::444455556666:assumed-role/reader/anna"}`:              true,
		`{"AWS":"arn:aws:sts::444455556666:assumed-role/reader/bert"}`:              false,
		`{"AWS":"arn:aws:iam::444455556666:user/anna"}`:                             false,
		`{"AWS":"111122223333"}`:                                                    false,
		`{"AWS":"AROAXXXXXXXXXXXXXXXXX"}`:                                           false,
		`{"Service":"sns.amazonaws.com"}`:                                           false,
		`{"CanonicalUser":"79a59df9","Federated":"cognito-identity.amazonaws.com"}`: false,
	} {
		p, err := policy.Parse(`{"Statement":[{"Effect":"Allow","Principal":` + principal + `,"Action":"*","Resource":"*"}]}`)
		if err != nil {
			t.Errorf("%s: %v", principal, err)
			continue
		}
		if got := p.Evaluate(call()) == policy.Allow; got != want {
			t.Errorf("%s: allowed is %t", principal, got)
		}
	}
}

func TestActions(t *testing.T) {
	for action, want := range map[string]bool{
		"*": true, "sqs:*": true, "SQS:RECEIVEMESSAGE": true, "sqs:Receive*": true, "sqs:*Message": true, "sqs:?eceive?essage": true,
		"sqs:*e*e*e*": true, "sqs:Receive": false, "sqs:ReceiveMessage?": false, "sns:*": false, "sqs:Send*": false, "sqs:*x": false,
	} {
		if got := policy.MatchAction(action, "sqs:ReceiveMessage"); got != want {
			t.Errorf("%s: %t", action, got)
		}
	}
}

// holds evaluates one condition on a call.
func holds(t *testing.T, version, condition string) bool {
	t.Helper()
	p, err := policy.Parse(`{"Version":"` + version + `","Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":` + condition + `}]}`)
	if err != nil {
		t.Errorf("%s: %v", condition, err)
		return false
	}
	return p.Evaluate(call()) == policy.Allow
}

func TestConditions(t *testing.T) {
	for condition, want := range map[string]bool{
		`{"StringEquals":{"aws:username":"anna"}}`:                                     true,
		`{"StringEquals":{"AWS:UserName":["bert","anna"]}}`:                            true,
		`{"StringEquals":{"aws:username":"Anna"}}`:                                     false,
		`{"StringEquals":{"aws:username":"ann*"}}`:                                     false,
		`{"stringequals":{"aws:username":"anna"}}`:                                     true,
		`{"StringNotEquals":{"aws:username":["bert","anna"]}}`:                         false,
		`{"StringNotEquals":{"aws:username":["bert","carl"]}}`:                         true,
		`{"StringEqualsIgnoreCase":{"aws:username":"ANNA"}}`:                           true,
		`{"StringNotEqualsIgnoreCase":{"aws:username":"ANNA"}}`:                        false,
		`{"StringLike":{"aws:username":["b*","a?n*"]}}`:                                true,
		`{"StringLike":{"aws:username":"A*"}}`:                                         false,
		`{"StringLike":{"aws:username":"anna?"}}`:                                      false,
		`{"StringNotLike":{"aws:username":"a*"}}`:                                      false,
		`{"StringNotLike":{"aws:username":"b*"}}`:                                      true,
		`{"StringEquals":{"aws:username":"anna","aws:sourceip":"1.2.3.4"}}`:            false, // both keys
		`{"StringEquals":{"aws:username":"anna"},"Bool":{"aws:securetransport":true}}`: false, // both operators
		`{"StringEquals":{"aws:word":"many"}}`:                                         false, // several values
		`{"StringNotEquals":{"aws:word":"many"}}`:                                      false,

		// Without a value.
		`{"StringEquals":{"aws:none":"x"}}`:                     false,
		`{"StringEquals":{"aws:empty":"x"}}`:                    false,
		`{"StringLike":{"aws:none":"*"}}`:                       false,
		`{"StringNotEquals":{"aws:none":"x"}}`:                  true,
		`{"StringNotLike":{"aws:none":"*"}}`:                    true,
		`{"ArnNotEquals":{"aws:none":"` + queue + `"}}`:         true,
		`{"NotIpAddress":{"aws:none":"10.0.0.0/8"}}`:            true,
		`{"NumericNotEquals":{"aws:none":1}}`:                   true,
		`{"DateNotEquals":{"aws:none":"2026-01-01"}}`:           true,
		`{"Bool":{"aws:none":"false"}}`:                         false,
		`{"BoolIfExists":{"aws:none":"true"}}`:                  true,
		`{"BoolIfExists":{"aws:securetransport":"true"}}`:       false,
		`{"StringEqualsIfExists":{"aws:none":"x"}}`:             true,
		`{"StringEqualsIfExists":{"aws:username":"x"}}`:         false,
		`{"Null":{"aws:none":"true"}}`:                          true,
		`{"Null":{"aws:none":false}}`:                           false,
		`{"Null":{"aws:username":"true"}}`:                      false,
		`{"Null":{"aws:username":"false"}}`:                     true,
		`{"Null":{"aws:empty":"true"}}`:                         true,
		`{"ForAllValues:StringEquals":{"aws:none":"x"}}`:        true,
		`{"ForAllValues:StringEquals":{"aws:empty":"x"}}`:       true,
		`{"ForAnyValue:StringEquals":{"aws:none":"x"}}`:         false,
		`{"ForAnyValue:StringNotEquals":{"aws:none":"x"}}`:      false,
		`{"ForAnyValue:StringEqualsIfExists":{"aws:none":"x"}}`: false,

		// Sets.
		`{"ForAllValues:StringEquals":{"aws:TagKeys":["environment","webserver","cost"]}}`: true,
		`{"ForAllValues:StringEquals":{"aws:TagKeys":["environment","cost"]}}`:             false,
		`{"ForAllValues:StringNotEquals":{"aws:TagKeys":["cost"]}}`:                        true,
		`{"ForAllValues:StringNotEquals":{"aws:TagKeys":["environment"]}}`:                 false,
		`{"ForAnyValue:StringEquals":{"aws:TagKeys":["environment","cost"]}}`:              true,
		`{"ForAnyValue:StringEquals":{"aws:TagKeys":["cost"]}}`:                            false,
		`{"ForAnyValue:StringNotEquals":{"aws:TagKeys":["environment"]}}`:                  true,
		`{"ForAnyValue:StringNotEquals":{"aws:TagKeys":["environment","webserver"]}}`:      false,
		`{"ForAnyValue:StringLike":{"aws:TagKeys":"web*"}}`:                                true,

		// Numbers, truth, addresses, bytes.
		`{"NumericLessThan":{"aws:MultiFactorAuthAge":"300"}}`:        true,
		`{"NumericLessThan":{"aws:MultiFactorAuthAge":120}}`:          false,
		`{"NumericLessThanEquals":{"aws:MultiFactorAuthAge":1.2e2}}`:  true,
		`{"NumericGreaterThan":{"aws:MultiFactorAuthAge":119.5}}`:     true,
		`{"NumericGreaterThanEquals":{"aws:MultiFactorAuthAge":121}}`: false,
		`{"NumericEquals":{"aws:MultiFactorAuthAge":["1","120.0"]}}`:  true,
		`{"NumericNotEquals":{"aws:MultiFactorAuthAge":["1","120"]}}`: false,
		`{"NumericEquals":{"aws:username":0}}`:                        false,
		`{"Bool":{"aws:SecureTransport":"FALSE"}}`:                    true,
		`{"Bool":{"aws:SecureTransport":true}}`:                       false,
		`{"IpAddress":{"aws:SourceIp":"203.0.113.0/24"}}`:             true,
		`{"IpAddress":{"aws:SourceIp":["10.0.0.0/8","203.0.113.7"]}}`: true,
		`{"IpAddress":{"aws:SourceIp":"203.0.114.0/24"}}`:             false,
		`{"IpAddress":{"aws:SourceIp":"2001:db8::/32"}}`:              false,
		`{"IpAddress":{"aws:username":"0.0.0.0/0"}}`:                  false,
		`{"NotIpAddress":{"aws:SourceIp":"203.0.113.0/24"}}`:          false,
		`{"BinaryEquals":{"aws:cert":"AQID"}}`:                        true,
		`{"BinaryEquals":{"aws:cert":"AQIE"}}`:                        false,

		// ARNs, part by part.
		`{"ArnEquals":{"aws:PrincipalArn":"arn:aws:iam::444455556666:role/*"}}`:   true,
		`{"ArnLike":{"aws:PrincipalArn":"arn:*:iam:*:44445555666?:role/reader"}}`: true,
		`{"ArnLike":{"aws:PrincipalArn":"arn:aws:*:role/reader"}}`:                false,
		`{"ArnLike":{"aws:PrincipalArn":"arn:aws:iam::999999999999:role/*"}}`:     false,
		`{"ArnNotLike":{"aws:PrincipalArn":"arn:aws:iam::444455556666:*"}}`:       false,
		`{"ArnNotEquals":{"aws:PrincipalArn":"arn:aws:iam::999999999999:*"}}`:     true,
		`{"ArnLike":{"aws:username":"arn:*:*:*:*:*"}}`:                            false, // no ARN

		// Variables.
		`{"StringEquals":{"aws:username":"${aws:username}"}}`:                                  true,
		`{"StringEquals":{"aws:username":"${ AWS:UserName }"}}`:                                true,
		`{"StringLike":{"aws:username":"${aws:stars}"}}`:                                       false,
		`{"StringLike":{"aws:stars":"${aws:stars}"}}`:                                          true, // by the letter
		`{"StringLike":{"aws:stars":"a${*}b"}}`:                                                true,
		`{"StringLike":{"aws:username":"a${*}"}}`:                                              false,
		`{"StringEquals":{"aws:username":"${aws:none, 'anna'}"}}`:                              true,
		`{"StringEquals":{"aws:username":"${aws:none}"}}`:                                      false,
		`{"StringEquals":{"aws:word":"${aws:word}"}}`:                                          false, // several values
		`{"StringEquals":{"aws:username":"${aws:username"}}`:                                   false, // not closed
		`{"ArnLike":{"aws:PrincipalArn":"arn:aws:iam::444455556666:role/${aws:x, 'reader'}"}}`: true,
	} {
		if got := holds(t, policy.Version2012, condition); got != want {
			t.Errorf("%s: %t", condition, got)
		}
	}
	// The older language has none.
	if holds(t, policy.Version2008, `{"StringEquals":{"aws:username":"${aws:username}"}}`) {
		t.Error("a variable in the older language")
	}
}

// Text that makes naive matchers run for ages.
func TestPatternsAreQuick(t *testing.T) {
	long := strings.Repeat("a", 4000)
	p, err := policy.Parse(`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","Condition":{"StringLike":{"aws:x":"` +
		strings.Repeat("a*", 1000) + `b"}}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	r := call()
	r.Context = keys{"aws:x": {long}}
	if p.Evaluate(r) == policy.Allow {
		t.Error("it matches")
	}
}

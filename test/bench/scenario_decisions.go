package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/policy"
)

// decisionTime is what a decision may take, in µs, by policies that are compiled.
const decisionTime = 2.0

// The resources that are decided about.
const (
	decisionAccount = "111122223333"
	decisionQueue   = "arn:aws:sqs:us-east-1:" + decisionAccount + ":orders"
	decisionTopic   = "arn:aws:sns:us-east-1:" + decisionAccount + ":orders"
)

// decision is one that is measured, and all the policies that it is made by. It is the
// Identities and the Resources of its Authorizer.
type decision struct {
	what     string
	who      *caller.Caller
	identity []*policy.Policy
	boundary *policy.Policy
	session  []*policy.Policy
	resource *policy.Policy
}

// PoliciesOf implements authorize.Identities.
func (d *decision) PoliciesOf(*caller.Caller) (identity []*policy.Policy, boundary *policy.Policy, session []*policy.Policy, err error) {
	return d.identity, d.boundary, d.session, nil
}

// PolicyOf implements authorize.Resources.
func (d *decision) PolicyOf(context.Context, arn.ARN) *policy.Policy { return d.resource }

// TagsOf implements authorize.Resources.
func (d *decision) TagsOf(context.Context, arn.ARN) map[string]string { return nil }

// runDecisions decides in this process, by policies that are at hand.
func runDecisions(ctx context.Context, b *bench) error {
	t := &table{
		title: "Decisions",
		note: fmt.Sprintf("One processor; µs for whether sqs:SendMessage is allowed, by compiled policies that are at hand; "+
			"the least of %d rounds.", signatureRounds),
		header: []string{"by", "µs"},
	}
	b.report.tables = append(b.report.tables, t)
	all, err := decisions()
	if err != nil {
		return err
	}
	for _, d := range all {
		authorizer := &authorize.Authorizer{Identities: d, Resources: d}
		var failed error
		decide := func() {
			need := authorize.Need{Action: "sqs:SendMessage", Resource: decisionQueue, Account: decisionAccount, Shared: true}
			known := authorize.Context{Caller: d.who, Region: "us-east-1", Address: "192.0.2.1:40000", Transport: authorize.TLS}
			if d.who.Kind == caller.Service {
				known.Source, known.Owner = decisionTopic, decisionAccount
			}
			result, err := authorizer.Decide(ctx, &need, &known)
			if err == nil && !result.Allowed() {
				err = errors.New(d.what + ": refused")
			}
			if err != nil {
				failed = err
			}
		}
		least := math.Inf(1) // others only add
		for range signatureRounds {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			least = min(least, each(decide))
		}
		if failed != nil {
			return failed
		}
		t.add(d.what, figure(least))
		b.judge(least <= decisionTime, figure(least)+" µs", "a decision by %s: at most %.0f µs", d.what, decisionTime)
	}
	return nil
}

// decisions are those of a topic, a user and a session of a role.
func decisions() ([]*decision, error) {
	var failed error
	parsed := func(p *policy.Policy, err error) *policy.Policy {
		failed = errors.Join(failed, err)
		return p
	}
	queue := parsed(policy.Parse(`{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"` + decisionQueue + `",
			"Condition":{"ArnEquals":{"aws:SourceArn":"` + decisionTopic + `"}}},
		{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"` + decisionQueue + `","Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}`))
	may := parsed(policy.ParseIdentity(`{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":["sqs:SendMessage","sqs:ReceiveMessage","sqs:DeleteMessage"],"Resource":"arn:aws:sqs:*:` + decisionAccount + `:${aws:PrincipalTag/team, 'ord'}ers"},
		{"Effect":"Allow","Action":["kms:Decrypt","kms:GenerateDataKey*"],"Resource":"*","Condition":{"StringEquals":{"kms:ViaService":"sqs.us-east-1.amazonaws.com"}}},
		{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"StringNotEquals":{"aws:RequestedRegion":["us-east-1","eu-west-1"]}}}]}`))
	attached := []*policy.Policy{may}
	for i := range 9 { // as many as AWS lets be attached
		attached = append(attached, parsed(policy.ParseIdentity(`{"Version":"2012-10-17","Statement":[
			{"Effect":"Allow","Action":["sns:Publish","sns:List*"],"Resource":"arn:aws:sns:*:`+decisionAccount+`:topic-`+strconv.Itoa(i)+`-*"},
			{"Effect":"Allow","Action":"lambda:InvokeFunction","Resource":"*","Condition":{"IpAddress":{"aws:SourceIp":"192.0.2.0/24"}}}]}`)))
	}
	boundary := parsed(policy.ParseIdentity(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","NotAction":["iam:*","sts:*"],"Resource":"*"}}`))
	session := parsed(policy.ParseIdentity(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sqs:*","Resource":"arn:aws:sqs:us-east-1:` + decisionAccount + `:*"}}`))
	root := "arn:aws:iam::" + decisionAccount
	return []*decision{
		{what: "a queue's policy, of a topic", who: authorize.ServiceCaller("sns.amazonaws.com"), resource: queue},
		{
			what: "a user's policy and the queue's", identity: []*policy.Policy{may}, resource: queue,
			who: &caller.Caller{Kind: caller.User, Account: decisionAccount, ARN: root + ":user/ann", ID: "AIDAEXAMPLE", Name: "ann"},
		},
		{
			what: "a role's 10 policies, a boundary, a session policy and the queue's", identity: attached, boundary: boundary,
			session: []*policy.Policy{session}, resource: queue,
			who: &caller.Caller{
				Kind: caller.Session, Account: decisionAccount, ARN: "arn:aws:sts::" + decisionAccount + ":assumed-role/clerk/s",
				ID: "AROAEXAMPLE:s", Name: "s", Role: root + ":role/clerk", RoleID: "AROAEXAMPLE", Capped: true,
			},
		},
	}, failed
}

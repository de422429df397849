package sdk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
)

const defaultActions = `["SNS:GetTopicAttributes","SNS:SetTopicAttributes","SNS:AddPermission","SNS:RemovePermission","SNS:DeleteTopic",` +
	`"SNS:Subscribe","SNS:ListSubscriptionsByTopic","SNS:Publish"]`

// defaultStatement is what a topic's policy holds from the start.
func defaultStatement(topic string) string {
	return `{"Sid":"__default_statement_ID","Effect":"Allow","Principal":{"AWS":"*"},"Action":` + defaultActions +
		`,"Resource":"` + topic + `","Condition":{"StringEquals":{"AWS:SourceOwner":"` + account + `"}}}`
}

func TestTopicPermissions(t *testing.T) {
	c := topicsClient(start(t))
	topic := createTopic(t, c, "orders")
	add := func(label string, accounts, actions []string) error {
		return errorOf(c.AddPermission(t.Context(), &sns.AddPermissionInput{TopicArn: &topic, Label: &label, AWSAccountId: accounts, ActionName: actions}))
	}
	remove := func(label string) error {
		return errorOf(c.RemovePermission(t.Context(), &sns.RemovePermissionInput{TopicArn: &topic, Label: &label}))
	}
	const head = `{"Version":"2008-10-17","Id":"__default_policy_ID","Statement":[`
	want := func(what string, err error, statements ...string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		equal(t, what, head+strings.Join(statements, ",")+"]}", topicAttributes(t, c, topic)["Policy"])
	}
	first := defaultStatement(topic)
	one := `{"Sid":"one","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111122223333:root"},"Action":"SNS:Publish","Resource":"` + topic + `"}`
	two := `{"Sid":"two","Effect":"Allow","Principal":{"AWS":["arn:aws:iam::111122223333:root","arn:aws:iam::444455556666:root"]},` +
		`"Action":["SNS:Subscribe","SNS:Receive"],"Resource":"` + topic + `"}`

	want("from the start", nil, first)
	want("one", add("one", []string{"111122223333"}, []string{"Publish"}), first, one)
	want("two", add("two", []string{"111122223333", "444455556666"}, []string{"Subscribe", "Receive"}), first, one, two)
	for _, tc := range []struct {
		label    string
		accounts []string
		actions  []string
		text     string
	}{
		{"one", []string{"111122223333"}, []string{"Publish"}, "Statement already exists"},
		{"__default_statement_ID", []string{"111122223333"}, []string{"Publish"}, "Statement already exists"},
		{"x", []string{"111122223333"}, []string{"Publish", "NoAction"}, "Policy statement action out of service scope!"},
		{"x", []string{"111122223333"}, []string{"*"}, "Policy statement action out of service scope!"},
		{"x", []string{"111122223333"}, []string{"CreateTopic"}, "Policy statement action out of service scope!"},
		{"x", []string{"111122223333", "11112222333"}, []string{"Publish"}, "Policy Error: PrincipalNotFound"},
		{"x", nil, []string{"Publish"}, "AWSAccountId"},
		{"x", []string{"111122223333"}, nil, "ActionName"},
	} {
		if tc.accounts == nil {
			tc.accounts = []string{}
		}
		if tc.actions == nil {
			tc.actions = []string{}
		}
		refused(t, add(tc.label, tc.accounts, tc.actions), "InvalidParameter", 400, "Invalid parameter: "+tc.text)
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("%012d", i))
	}
	refused(t, add("many", many, []string{"Publish"}), "InvalidParameter", 400, "Invalid parameter: Policy Reason: Policy is longer than 30720 bytes")
	want("after refusals", nil, first, one, two)

	want("none removed", remove("none"), first, one, two)
	want("one removed", remove("one"), first, two)
	want("the default removed", remove("__default_statement_ID"), two)
	refused(t, remove("two"), "InvalidParameter", 400, "Invalid parameter: two Reason: Policy must include at least one statement")
	const noLabel = "1 validation error detected: Value null at 'label' failed to satisfy constraint: Member must not be null"
	refused(t, add("", []string{"111122223333"}, []string{"Publish"}), "ValidationError", 400, noLabel)
	refused(t, remove(""), "ValidationError", 400, noLabel)
	want("the last one stays", nil, two)

	topic = topicARN("none")
	refused(t, add("one", []string{"111122223333"}, []string{"Publish"}), "NotFound", 404, "Topic does not exist")
	refused(t, remove("one"), "NotFound", 404, "Topic does not exist")
}

// What a topic's policy may be; a topic keeps the one it has if it may not.
func TestTopicPolicyRefusals(t *testing.T) {
	c := topicsClient(start(t))
	topic := createTopic(t, c, "orders")
	const scope, single = "Policy statement action out of service scope!", "Policy statement must apply to a single resource!"
	for policy, text := range map[string]string{
		`{`: "Policy Error: null", `[]`: "Policy Error: null", `{}`: "Policy Error: null", policyOf(``): "Policy Error: null",
		policyOf(`{"Effect":"Allow","Principal":"*","Action":"SNS:Publish"}`):                             "Policy Error: null",
		policyOf(`{"Effect":"Allow","Principal":{"AWS":"nobody"},"Action":"SNS:Publish","Resource":"*"}`): "Policy Error: null",
		policyOf(allowAll("SNS:Publish") + `,` + allowAll("sns:*")):                                       scope,
		policyOf(allowAll("*")):               scope,
		policyOf(allowAll("sqs:SendMessage")): scope,
		policyOf(allowAll("sns:CreateTopic")): scope,
		policyOf(allowAll("sns:Get*")):        scope,
		policyOf(`{"Effect":"Deny","Principal":"*","NotAction":"SNS:Publish","Resource":"*"}`):                                     scope,
		policyOf(`{"Effect":"Allow","Principal":"*","Action":"SNS:Publish","Resource":["` + topic + `","` + topicARN("b") + `"]}`): single,
		policyOf(`{"Effect":"Allow","Principal":"*","Action":"SNS:Publish","Resource":"arn:` + strings.Repeat("x", 30720) + `"}`):  "Policy Reason: Policy is longer than 30720 bytes",
	} {
		refused(t, errorOf(c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{
			TopicArn: &topic, AttributeName: aws.String("Policy"), AttributeValue: &policy,
		})), "InvalidParameter", 400, "Invalid parameter: "+text)
		refused(t, errorOf(c.CreateTopic(t.Context(), &sns.CreateTopicInput{
			Name: aws.String("another"), Attributes: map[string]string{"Policy": policy},
		})), "InvalidParameter", 400, "Invalid parameter: Attributes Reason: "+text)
	}
	equal(t, "the policy", `{"Version":"2008-10-17","Id":"__default_policy_ID","Statement":[`+defaultStatement(topic)+`]}`, topicAttributes(t, c, topic)["Policy"])
	equal(t, "topics", 1, len(must(c.ListTopics(t.Context(), &sns.ListTopicsInput{}))(t).Topics))
	for _, action := range []string{"sns:publish", "SNS:Publish", "sns:*Permission", "sns:Receive"} {
		policy := policyOf(allowAll(action))
		must(c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{
			TopicArn: &topic, AttributeName: aws.String("Policy"), AttributeValue: &policy,
		}))(t)
		equal(t, "the policy", policy, topicAttributes(t, c, topic)["Policy"])
	}
}

// A topic's policy lets other accounts publish, or not; its own may in any case.
func TestTopicPolicyAdmitsPublishers(t *testing.T) {
	const friend, stranger = "111122223333", "444455556666"
	endpoint := start(t)
	c, queues := topicsClient(endpoint), client(endpoint)
	topic, queue := createTopic(t, c, "orders"), createQueue(t, queues, "q")
	subscribe(t, c, topic, "sqs", queueARN("q"), "RawMessageDelivery", "true")
	setPolicy := func(policy string) {
		t.Helper()
		must(c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: aws.String("Policy"), AttributeValue: &policy}))(t)
	}
	// check publishes as each account, both ways, and compares who was heard.
	because := "because no resource-based policy allows the SNS:Publish action"
	check := func(what string, want ...string) {
		t.Helper()
		for _, who := range []string{account, friend, stranger} {
			theirs := topicsClientOf(endpoint, region, who)
			text := "User: arn:aws:iam::" + who + ":root is not authorized to perform: SNS:Publish on resource: " + topic + " " + because
			one := errorOf(theirs.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &who}))
			batch := errorOf(theirs.PublishBatch(t.Context(), &sns.PublishBatchInput{
				TopicArn: &topic, PublishBatchRequestEntries: []types.PublishBatchRequestEntry{batchEntry("a", who)},
			}))
			if !slices.Contains(want, who) {
				refused(t, one, "AuthorizationError", 403, text)
				refused(t, batch, "AuthorizationError", 403, text)
				continue
			}
			if one != nil || batch != nil {
				t.Errorf("%s: %s: %v, %v", what, who, one, batch)
				continue
			}
			equal(t, what, []string{who, who}, []string{*takeMessage(t, queues, queue).Body, *takeMessage(t, queues, queue).Body})
		}
	}
	check("the default policy", account)
	must(c.AddPermission(t.Context(), &sns.AddPermissionInput{
		TopicArn: &topic, Label: aws.String("friend"), AWSAccountId: []string{friend}, ActionName: []string{"Publish"},
	}))(t)
	check("a permission", account, friend)
	must(c.RemovePermission(t.Context(), &sns.RemovePermissionInput{TopicArn: &topic, Label: aws.String("friend")}))(t)
	check("no permission", account)
	setPolicy(policyOf(allowAll("SNS:Publish")))
	check("everybody", account, friend, stranger)
	setPolicy(policyOf(allowAll("SNS:Publish") + `,{"Effect":"Deny","Principal":{"AWS":"` + stranger + `"},"Action":"SNS:Publish","Resource":"*"}`))
	because = "with an explicit deny in a resource-based policy"
	check("deny wins", account, friend)
	because = "because no resource-based policy allows the SNS:Publish action"
	setPolicy(policyOf(`{"Effect":"Allow","Principal":"*","Action":"SNS:Publish","Resource":"` + topic + `","Condition":{
		"IpAddress":{"aws:SourceIp":"127.0.0.0/8"},"StringEquals":{"aws:PrincipalAccount":"` + friend + `"}}}`))
	check("a friend from here", account, friend)
	setPolicy(policyOf(`{"Effect":"Allow","Principal":"*","Action":"SNS:Publish","Resource":"*","Condition":{"NotIpAddress":{"aws:SourceIp":"127.0.0.0/8"}}}`))
	check("from elsewhere", account)
	setPolicy(policyOf(allowAll("SNS:Subscribe")))
	check("another action", account)
	setPolicy("")
	check("the default one again", account)
	must(c.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &topic}))(t)
	theirs := topicsClientOf(endpoint, region, friend)
	refused(t, errorOf(theirs.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("m")})), "AuthorizationError", 403,
		"User: arn:aws:iam::"+friend+":root is not authorized to perform: SNS:Publish on resource: "+topic+
			" because no resource-based policy allows the SNS:Publish action")
}

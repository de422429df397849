package resources_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/internal/server/resources"
)

// twice applies a set that has to differ, once, and then not any more, whether it is asked dry or
// not, nor once it was exported.
func twice(t *testing.T, to *resources.Server, text string) (exported string) {
	t.Helper()
	set := read(t, text)
	if n, lines := apply(t, to, set, false); n == 0 {
		t.Errorf("there are no changes:\n%s", lines)
	}
	for _, dry := range []bool{true, false} {
		if n, lines := apply(t, to, set, dry); n != 0 {
			t.Errorf("a second time:\n%s", lines)
		}
	}
	exported = export(t, to)
	if n, lines := apply(t, to, read(t, exported), true); n != 0 {
		t.Errorf("what was exported differs:\n%s\n%s", lines, exported)
	}
	return exported
}

// A topic's policy is left out of an export where it is the default alone.
func TestPoliciesOfTopics(t *testing.T) {
	from, clients := start(t, "000000000000", "us-east-1")
	topics := sns.NewFromConfig(clients)
	made := func(name string) *string {
		t.Helper()
		out, err := topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name})
		if err != nil {
			t.Fatal(err)
		}
		return out.TopicArn
	}
	policy := func(arn *string) string {
		t.Helper()
		out, err := topics.GetTopicAttributes(t.Context(), &sns.GetTopicAttributesInput{TopicArn: arn})
		if err != nil {
			t.Fatal(err)
		}
		return out.Attributes["Policy"]
	}
	made("plain")
	added, edited := made("added"), made("edited")
	if _, err := topics.AddPermission(t.Context(), &sns.AddPermissionInput{TopicArn: added, Label: aws.String("partner"), AWSAccountId: []string{"111122223333"}, ActionName: []string{"Publish"}}); err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(policy(edited), `"SNS:DeleteTopic",`, "", 1)
	if _, err := topics.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: edited, AttributeName: aws.String("Policy"), AttributeValue: &without}); err != nil {
		t.Fatal(err)
	}
	file := export(t, from)
	if strings.Count(file, "Policy:") != 2 || !strings.Contains(file, "partner") {
		t.Errorf("it has\n%s", file)
	}
	if n, text := apply(t, from, read(t, file), true); n != 0 {
		t.Errorf("what was exported differs:\n%s", text)
	}
	to, others := start(t, "444455556666", "eu-west-1")
	apply(t, to, read(t, file), false)
	topics = sns.NewFromConfig(others)
	if text := policy(made("added")); !strings.Contains(text, "partner") || !strings.Contains(text, "111122223333") {
		t.Errorf("elsewhere, the policy is %s", text)
	}
	if text := policy(made("edited")); strings.Contains(text, "DeleteTopic") || !strings.Contains(text, "444455556666") {
		t.Errorf("elsewhere, the policy is %s", text)
	}
	if n, text := apply(t, to, read(t, "Topics: [{Name: plain, Attributes: {Policy: }}]"), false); n != 0 {
		t.Errorf("no policy is not the default:\n%s", text)
	}
	if n, text := apply(t, to, read(t, file), true); n != 0 {
		t.Errorf("elsewhere, a second time:\n%s", text)
	}
}

const protection = `
Account: "000000000000"
Region: us-east-1
Topics:
  - Name: cards
    DataProtectionPolicy:
      Name: __example
      Version: 2021-06-01
      Statement:
        - DataDirection: Inbound
          Principal: ["*"]
          DataIdentifier: ["arn:aws:dataprotection::aws:data-identifier/CreditCardNumber"]
          Operation: {Deny: {}}
`

// Data protection policies go with their topics.
func TestDataProtection(t *testing.T) {
	from, _ := start(t, "000000000000", "us-east-1")
	if n, text := apply(t, from, read(t, protection), true); n != 2 || !strings.Contains(text, "DataProtectionPolicy") {
		t.Errorf("a dry run has:\n%s", text)
	}
	file := twice(t, from, protection)
	to, clients := start(t, "444455556666", "eu-west-1")
	twice(t, to, file)
	_, err := sns.NewFromConfig(clients).Publish(t.Context(), &sns.PublishInput{TopicArn: aws.String("arn:aws:sns:eu-west-1:444455556666:cards"), Message: aws.String("my card is 4111 1111 1111 1111")})
	if err == nil {
		t.Error("a card number is published")
	}
}

// Tags are text, with the values that the file has.
func TestTagsAreText(t *testing.T) {
	to, clients := start(t, "000000000000", "us-east-1")
	queue := "Queues: [{QueueName: q, Tags: {empty: \"\", none: , json: '{\"b\": 1,  \"a\": 2}', yes: True, number: 007, team: &o a team, also: *o}}]"
	twice(t, to, queue)
	tags := func() map[string]string {
		t.Helper()
		out, err := sqs.NewFromConfig(clients).ListQueueTags(t.Context(), &sqs.ListQueueTagsInput{QueueUrl: aws.String(*clients.BaseEndpoint + "/000000000000/q")})
		if err != nil {
			t.Fatal(err)
		}
		return out.Tags
	}
	for name, want := range map[string]string{"empty": "", "none": "", "json": `{"b": 1,  "a": 2}`, "yes": "True", "number": "007", "team": "a team", "also": "a team"} {
		if got, ok := tags()[name]; !ok || got != want {
			t.Errorf("tag %s is %q, %v; want %q", name, got, ok, want)
		}
	}
	if n, text := apply(t, to, read(t, strings.Replace(queue, "True", "true", 1)), false); n != 1 || tags()["yes"] != "true" {
		t.Errorf("in another case:\n%s", text)
	}
	if _, err := resources.Read(strings.NewReader("Queues: [{QueueName: q, Tags: {a: [b]}}]")); err == nil || !strings.Contains(err.Error(), "tag a: want text") {
		t.Errorf("a list is taken for a tag: %v", err)
	}
	twice(t, to, "Topics: [{Name: t, Attributes: {DisplayName: '{\"b\": 1}'}, Tags: {number: 1.0}}]")
	topic, err := sns.NewFromConfig(clients).GetTopicAttributes(t.Context(), &sns.GetTopicAttributesInput{TopicArn: aws.String("arn:aws:sns:us-east-1:000000000000:t")})
	if err != nil || topic.Attributes["DisplayName"] != `{"b": 1}` {
		t.Errorf("its name is %q, %v", topic.Attributes["DisplayName"], err)
	}
	if n, text := apply(t, to, read(t, "Topics: [{Name: t, Attributes: {DisplayName: \"007\"}}]"), false); n != 1 {
		t.Errorf("a name of digits:\n%s", text)
	}
	if n, text := apply(t, to, read(t, "Topics: [{Name: t, Attributes: {DisplayName: \"7\"}}]"), false); n != 1 {
		t.Errorf("and another one:\n%s", text)
	}
}

// Numbers of a document keep their digits, to the file and from it.
func TestNumbersOfDocuments(t *testing.T) {
	to, clients := start(t, "000000000000", "us-east-1")
	const policy = `{"id":[{"numeric":["=",12345678.12345]}],"price":[{"numeric":[">",1e5]}]}`
	topics := sns.NewFromConfig(clients)
	apply(t, to, read(t, "Topics: [{Name: t}]\nQueues: [{QueueName: q}]"), false)
	if _, err := topics.Subscribe(t.Context(), &sns.SubscribeInput{
		TopicArn: aws.String("arn:aws:sns:us-east-1:000000000000:t"), Protocol: aws.String("sqs"), Endpoint: aws.String("arn:aws:sqs:us-east-1:000000000000:q"),
		Attributes: map[string]string{"FilterPolicy": policy},
	}); err != nil {
		t.Fatal(err)
	}
	const account = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"sqs:SendMessage","Resource":"*","Condition":{"NumericEquals":{"aws:MultiFactorAuthAge":123456789012345678901}}}}`
	if _, err := sqs.NewFromConfig(clients).SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: aws.String(*clients.BaseEndpoint + "/000000000000/q"), Attributes: map[string]string{string(sqstypes.QueueAttributeNamePolicy): account},
	}); err != nil {
		t.Fatal(err)
	}
	file := export(t, to)
	for _, want := range []string{"12345678.12345", "1e5", "123456789012345678901"} {
		if !strings.Contains(file, want) {
			t.Errorf("%s is missing of\n%s", want, file)
		}
	}
	set := read(t, file)
	if got := set.Subscriptions[0].Attributes["FilterPolicy"]; got != policy {
		t.Errorf("the filter policy is read as %s", got)
	}
	if got := set.Queues[0].Attributes["Policy"]; !strings.Contains(got, ":123456789012345678901}") {
		t.Errorf("the policy is read as %s", got)
	}
	if n, text := apply(t, to, set, true); n != 0 {
		t.Errorf("what was exported differs:\n%s", text)
	}
	other := strings.Replace(file, "123456789012345678901", "123456789012345678902", 1)
	if n, _ := apply(t, to, read(t, other), true); n != 1 {
		t.Errorf("another number is the same")
	}
}

// What a server says in other words is no difference.
func TestSecondTime(t *testing.T) {
	to, _ := start(t, "000000000000", "us-east-1")
	exported := twice(t, to, `
Queues:
  - QueueName: q
    Attributes:
      VisibilityTimeout: 045
      DelaySeconds: 00
      Policy:
        Version: 2012-10-17
        Statement: {Effect: Allow, Principal: "*", Action: "sqs:SendMessage", Resource: "*"}
Topics:
  - Name: t
    Attributes:
      DeliveryPolicy: {http: {defaultHealthyRetryPolicy: {numRetries: 5, minDelayTarget: 1, maxDelayTarget: 60}}}
Subscriptions:
  - TopicArn: t
    Protocol: sqs
    Endpoint: arn:aws:sqs:us-east-1:000000000000:q
    Attributes:
      DeliveryPolicy: {healthyRetryPolicy: {numRetries: 5, minDelayTarget: 1, maxDelayTarget: 60}}
Alarms:
  - AlarmName: a
    Namespace: AWS/SQS
    MetricName: ApproximateNumberOfMessagesVisible
    Statistic: Maximum
    Period: 60
    EvaluationPeriods: 1
    Threshold: 100
    ComparisonOperator: GreaterThanThreshold
`)
	if !strings.Contains(exported, "2012-10-17\"") {
		t.Errorf("it is\n%s", exported)
	}
	if n, text := apply(t, to, read(t, "Topics: [{Name: t, Attributes: {DeliveryPolicy: {http: {disableSubscriptionOverrides: true, defaultHealthyRetryPolicy: {numRetries: 5, minDelayTarget: 1, maxDelayTarget: 60}}}}}]"), false); n != 1 {
		t.Errorf("with what is not the default:\n%s", text)
	}
	for _, policy := range []string{"{status: [paid]}", "{}"} {
		set := read(t, "Subscriptions: [{TopicArn: t, Protocol: sqs, Endpoint: \"arn:aws:sqs:us-east-1:000000000000:q\", Attributes: {FilterPolicy: "+policy+"}}]")
		if n, text := apply(t, to, set, false); n != 1 {
			t.Errorf("a filter policy %s:\n%s", policy, text)
		}
		if n, text := apply(t, to, set, false); n != 0 {
			t.Errorf("a filter policy %s a second time:\n%s", policy, text)
		}
	}
}

// Each document of a file counts.
func TestDocuments(t *testing.T) {
	set := read(t, "---\n# nothing yet\n---\nRegion: us-east-1\nAccount: \"1\"\nQueues: [{QueueName: a}]\n---\nRegion: us-east-1\nAccount: \"1\"\nQueues: [{QueueName: b}]\nTopics: [{Name: t}]\n---\n")
	if len(set.Queues) != 2 || len(set.Topics) != 1 || set.Region != "us-east-1" || set.Account != "1" {
		t.Errorf("it is read as %+v", set)
	}
	for text, want := range map[string]string{
		"Queues: [{QueueName: a}]\n---\nQueues: [{}]":                        "queue 2 has no QueueName",
		"Queues: [{QueueName: a}]\n---\nQueue: []":                           `line 3: there is no "Queue"`,
		"Queues: [{QueueName: a}]\n---\nRegion: a\nQueues: [{QueueName: b}]": "its documents have to be of one Account and Region",
		"Topics: [{Name: t, Attributes: {Policy: &p {a: *p}}}]":              "contains itself",
		"Queues: {QueueName: a}":                                             "line 1: want a list, have a mapping",
		"Queues:\n  - a":                                                     "line 2: a text does not belong here",
		"Queues: [{QueueName: [a]}]":                                         "line 1: a list does not belong here",
		"Queues: [{QueueName: a}]\n---\n{":                                   "did not find",
	} {
		if _, err := resources.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A subscription whose topic is nowhere is refused with that; one whose topic the file makes is not.
func TestSubscriptionWithoutATopic(t *testing.T) {
	to, _ := start(t, "000000000000", "us-east-1")
	set := read(t, "Queues: [{QueueName: q}]\nTopics: [{Name: t}]\nSubscriptions:\n"+
		"- {TopicArn: nope, Protocol: sqs, Endpoint: \"arn:aws:sqs:us-east-1:000000000000:q\"}\n- {TopicArn: t, Protocol: sqs, Endpoint: \"arn:aws:sqs:us-east-1:000000000000:q\"}")
	for _, dry := range []bool{true, false} {
		var b bytes.Buffer
		if _, err := (&resources.Applying{To: to, Dry: dry, Out: &b}).Run(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		if strings.Count(b.String(), "! ") != 1 || !strings.Contains(b.String(), "! subscription of sqs arn:aws:sqs:us-east-1:000000000000:q to nope: Subscribe: there is no topic of this name") {
			t.Errorf("dry %v:\n%s", dry, &b)
		}
	}
}

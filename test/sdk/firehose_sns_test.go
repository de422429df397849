package sdk_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/firehose/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
)

func hoseARN(name string) string {
	return "arn:aws:firehose:" + region + ":" + account + ":deliverystream/" + name
}

// subscribeHose subscribes a stream with a role.
func subscribeHose(t *testing.T, c *sns.Client, topic, name string, more map[string]string) (arn string, err error) {
	t.Helper()
	attributes := map[string]string{"SubscriptionRoleArn": *hoseRole}
	maps.Copy(attributes, more)
	out, err := c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: new("firehose"), Endpoint: new(hoseARN(name)), Attributes: attributes, ReturnSubscriptionArn: true})
	if err != nil {
		return "", err
	}
	return *out.SubscriptionArn, nil
}

// A topic's messages are lines of a stream's objects: in their envelopes, without a
// signature, or raw.
func TestFirehoseSubscription(t *testing.T) {
	c, endpoint, dir := startHoses(t)
	topics := topicsClient(endpoint)
	topic := createTopic(t, topics, "t")
	makeHose(t, c, "whole", func(d *types.ExtendedS3DestinationConfiguration) { d.Prefix = new("whole/") })
	makeHose(t, c, "raw", func(d *types.ExtendedS3DestinationConfiguration) { d.Prefix = new("raw/") })
	whole := must(subscribeHose(t, topics, topic, "whole", nil))(t)
	raw := must(subscribeHose(t, topics, topic, "raw", map[string]string{"RawMessageDelivery": "true", "FilterPolicy": `{"a":["x"]}`}))(t)
	shown := must(topics.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: &raw}))(t).Attributes
	equal(t, "role", *hoseRole, shown["SubscriptionRoleArn"])
	equal(t, "pending", "false", shown["PendingConfirmation"])
	for _, body := range []string{"one", "two\nlines", "ends\n"} {
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &body, Subject: new("s"), MessageAttributes: map[string]snstypes.MessageAttributeValue{
			"a": {DataType: new("String"), StringValue: new("x")},
		}}))(t)
	}
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("filtered")}))(t)
	advance(t, endpoint, "60s")
	all := objects(t, dir)
	_, text := only(t, all, "bucket/raw/")
	equal(t, "raw messages", "one\ntwo\nlines\nends\n", sorted3(text))
	_, text = only(t, all, "bucket/whole/")
	bodies := map[string]bool{}
	for line := range strings.Lines(text) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, name := range []string{"Signature", "SignatureVersion", "SigningCertURL"} {
			if m[name] != nil {
				t.Errorf("there is %s", name)
			}
		}
		if m["Type"] != "Notification" || m["TopicArn"] != topic || m["MessageId"] == nil || m["Timestamp"] == nil || m["UnsubscribeURL"] == nil {
			t.Errorf("%v", m)
		}
		bodies[m["Message"].(string)] = true
	}
	equal(t, "messages", map[string]bool{"one": true, "two\nlines": true, "ends\n": true, "filtered": true}, bodies)

	set := func(name, value string) error {
		_, err := topics.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{SubscriptionArn: &whole, AttributeName: &name, AttributeValue: &value})
		return err
	}
	if err := set("SubscriptionRoleArn", "arn:aws:iam::000000000000:role/other"); err != nil {
		t.Error(err)
	}
	refused(t, set("SubscriptionRoleArn", ""), "InvalidParameter", http.StatusBadRequest, "Invalid parameter: SubscriptionRoleArn: subscriptions of the protocol firehose need a role")
	_, err := topics.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: new("firehose"), Endpoint: new(hoseARN("x"))})
	refused(t, err, "InvalidParameter", http.StatusBadRequest, "Invalid parameter: Attributes Reason: SubscriptionRoleArn: subscriptions of the protocol firehose need a role")
	_, err = topics.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: new("firehose"), Endpoint: new("http://x"), Attributes: map[string]string{"SubscriptionRoleArn": *hoseRole}})
	refused(t, err, "InvalidParameter", http.StatusBadRequest, "Invalid parameter: Firehose endpoint ARN")
	for _, name := range []string{"c", "d", "e"} {
		must(subscribeHose(t, topics, topic, name, nil))(t)
	}
	_, err = subscribeHose(t, topics, topic, "f", nil)
	refusedWith(t, err, "SubscriptionLimitExceeded", "*")
	must(topics.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &raw}))(t)
	must(subscribeHose(t, topics, topic, "f", nil))(t)
}

// sorted3 is a text of raw messages, whose order is not told, in the order of the test.
func sorted3(text string) string {
	out := ""
	for _, body := range []string{"one\n", "two\nlines\n", "ends\n"} {
		if strings.Count(text, body) == 1 {
			out += body
		}
	}
	if len(out) != len(text) {
		return text
	}
	return out
}

// What a stream does not take is tried again, by AWS's schedule, and goes to the
// dead-letter queue once it is gone.
func TestFirehoseSubscriptionFails(t *testing.T) {
	c, endpoint, dir := startHoses(t)
	topics, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, topics, "t")
	createQueue(t, queues, "dead")
	makeHose(t, c, "s", func(d *types.ExtendedS3DestinationConfiguration) { d.BufferingHints.IntervalInSeconds = new(int32(0)) })
	must(subscribeHose(t, topics, topic, "s", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `"}`}))(t)
	fault := func(name string) {
		admin(t, endpoint+"/_godwit/faults", `{"arn":"`+hoseARN("s")+`","fault":"`+name+`"}`)
	}
	publish := func() {
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("m")}))(t)
	}
	fault("unavailable")
	publish()
	advance(t, endpoint, "500ms")
	fault("none")
	equal(t, "objects while it was unavailable", 0, len(objects(t, dir)))
	advance(t, endpoint, "1500ms")
	equal(t, "objects after a retry", 1, len(objects(t, dir)))

	fault("throttled")
	publish()
	advance(t, endpoint, "5s")
	fault("none")
	advance(t, endpoint, "4s")
	equal(t, "objects before the retry of what was throttled", 1, len(objects(t, dir)))
	advance(t, endpoint, "5s")
	equal(t, "objects behind it", 2, len(objects(t, dir)))

	must(c.DeleteDeliveryStream(t.Context(), &firehose.DeleteDeliveryStreamInput{DeliveryStreamName: new("s")}))(t)
	publish()
	advance(t, endpoint, "1s")
	dead := must(queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: new(endpoint + "/" + account + "/dead")}))(t)
	equal(t, "dead letters", 1, len(dead.Messages))
}

// Deliveries are made as the subscription's role, which has to trust SNS and may put
// records; roles of streams have to trust Firehose.
func TestFirehoseRoles(t *testing.T) {
	dir := t.TempDir()
	endpoint := startWith(t, func(c *config.Config) { c.FirehoseDirectory = dir })
	c, topics, identities := firehoseAs(endpoint, account), topicsClient(endpoint), iamClient(endpoint)
	trust := func(service string) *string {
		return new(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + service + `.amazonaws.com"},"Action":"sts:AssumeRole"}]}`)
	}
	create := func() error {
		_, err := c.CreateDeliveryStream(t.Context(), &firehose.CreateDeliveryStreamInput{DeliveryStreamName: new("s"), ExtendedS3DestinationConfiguration: toBucket(func(d *types.ExtendedS3DestinationConfiguration) {
			d.BufferingHints.IntervalInSeconds = new(int32(0))
		})})
		return err
	}
	refusedWith(t, create(), "InvalidArgumentException", "Firehose is unable to assume role "+*hoseRole+". Please check the role provided.")
	must(identities.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: new("hose"), AssumeRolePolicyDocument: trust("sns")}))(t)
	refusedWith(t, create(), "InvalidArgumentException", "*")
	must(identities.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: new("hose"), PolicyDocument: trust("firehose")}))(t)
	if err := create(); err != nil {
		t.Fatal(err)
	}
	topic := createTopic(t, topics, "t")
	must(subscribeHose(t, topics, topic, "s", nil))(t)
	delivered := func(what string, want int) {
		t.Helper()
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("m")}))(t)
		advance(t, endpoint, "1s")
		equal(t, what, want, len(objects(t, dir)))
	}
	delivered("a role that does not trust SNS", 0)
	must(identities.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: new("hose"), PolicyDocument: trust("sns")}))(t)
	delivered("a role that may nothing", 0)
	must(identities.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: new("hose"), PolicyName: new("p"), PolicyDocument: new(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["firehose:PutRecord","firehose:PutRecordBatch"],"Resource":"` + hoseARN("s") + `"}]}`)}))(t)
	delivered("a role that may", 1)

	// Who subscribes has to be allowed to pass the role, and callers to put.
	eve := makeUser(t, endpoint, "eve", `{"Effect":"Allow","Action":["sns:Subscribe","firehose:DescribeDeliveryStream"],"Resource":"*"}`)
	passes := sns.New(sns.Options{BaseEndpoint: &endpoint, Region: region, Credentials: eve, RetryMaxAttempts: 1, HTTPClient: eager})
	_, err := passes.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: new("firehose"), Endpoint: new(hoseARN("other")), Attributes: map[string]string{"SubscriptionRoleArn": *hoseRole}})
	refusedWith(t, err, "AuthorizationError", "*")
	asEve := firehose.New(firehose.Options{Region: region, BaseEndpoint: &endpoint, Credentials: eve, RetryMaxAttempts: 1, HTTPClient: eager})
	must(asEve.DescribeDeliveryStream(t.Context(), &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: new("s")}))(t)
	_, err = asEve.PutRecord(t.Context(), &firehose.PutRecordInput{DeliveryStreamName: new("s"), Record: &types.Record{Data: []byte("x")}})
	refusedWith(t, err, "AccessDeniedException", "User: arn:aws:iam::"+account+":user/eve is not authorized to perform: firehose:PutRecord on resource: "+hoseARN("s")+" because no identity-based policy allows the firehose:PutRecord action")
}

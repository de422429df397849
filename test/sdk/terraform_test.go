package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logstypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// TestTerraformsCalls makes, reads, changes and removes resources by the calls that
// Terraform's AWS provider 5.100 makes for them, and compares the fields that it compares:
// what differs from the configuration is drift. test/clients runs Terraform itself where it
// is installed.
func TestTerraformsCalls(t *testing.T) {
	endpoint := start(t)
	role(t, iamClientOf(endpoint, "test", secretOf("test"), ""), "billing", allow("*", "sqs:*", "sns:*", "lambda:*"))
	s := &stack{
		endpoint: endpoint, sqs: client(endpoint), sns: topicsClient(endpoint), lambda: functionsClient(endpoint),
		cw: metricsClient(endpoint), logs: logsClient(endpoint), urls: map[string]string{}, arns: map[string]string{},
	}
	s.code[0], s.code[1] = zipOf(t, "bootstrap", "a"), zipOf(t, "bootstrap", "b")
	resources := []resource{
		s.queue("dead", fields{"MessageRetentionPeriod": "1209600"}, nil),
		s.queue("orders", fields{
			"VisibilityTimeout": "60", "ReceiveMessageWaitTimeSeconds": "20", "MaximumMessageSize": "131072",
			"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":3}`,
		}, fields{
			"VisibilityTimeout": "90", "DelaySeconds": "5", "RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":5}`,
		}),
		s.queue("steps.fifo", fields{
			"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId", "SqsManagedSseEnabled": "true",
		}, fields{"ContentBasedDeduplication": "true"}),
		s.queueDocument("dead", "RedriveAllowPolicy", `{"redrivePermission":"byQueue","sourceQueueArns":["`+queueARN("orders")+`"]}`),
		s.topic("orders", nil, fields{"DisplayName": "orders", "SignatureVersion": "2", "TracingConfig": "PassThrough", "DeliveryPolicy": retries(4)},
			fields{"DisplayName": "Orders", "DeliveryPolicy": retries(8)}),
		s.topic("steps.fifo", fields{"FifoTopic": "true", "ContentBasedDeduplication": "true", "FifoThroughputScope": "MessageGroup"}, nil, nil),
		s.topicPolicy("orders"),
		s.platformApplication("GCM", "shop", fields{"PlatformCredential": "{}", "EventDeliveryFailure": topicARN("orders"), "SuccessFeedbackSampleRate": "10"},
			fields{"SuccessFeedbackSampleRate": "50", "EventDeliveryFailure": ""}),
		s.platformApplication("APNS", "shop", fields{"PlatformPrincipal": "id", "PlatformCredential": "key", "ApplePlatformTeamID": "team", "ApplePlatformBundleID": "b"},
			fields{"PlatformPrincipal": "id", "PlatformCredential": "another", "ApplePlatformTeamID": "other"}),
		s.dataProtection("orders"), s.smsPreferences(),
		s.queueDocument("orders", "Policy", `{"Version":"2012-10-17","Statement":[{"Sid":"topics","Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},`+
			`"Action":"sqs:SendMessage","Resource":"`+queueARN("orders")+`","Condition":{"ArnEquals":{"aws:SourceArn":"`+topicARN("orders")+`"}}}]}`),
		s.subscription("queue", "orders", "sqs", queueARN("orders"),
			fields{"FilterPolicy": `{"status":["confirmed"]}`, "FilterPolicyScope": "MessageAttributes", "RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `"}`},
			fields{"FilterPolicy": `{"status":["confirmed","canceled"]}`, "FilterPolicyScope": "MessageBody", "RawMessageDelivery": "true"}),
		s.subscription("steps", "steps.fifo", "sqs", queueARN("steps.fifo"), nil, nil),
		s.logGroup("/shop/billing", 7, 14), s.logGroup("/shop/plain", 0, 0), s.logStream("/shop/plain", "audit"),
		s.layer(), s.layerPermission(), s.function(), s.alias(), s.functionURL(), s.invokeConfig(),
		s.permission("orders", "", "sns.amazonaws.com", topicARN("orders")), s.permission("live", "live", "arn:aws:iam::111111111111:root", ""),
		s.subscription("function", "orders", "lambda", functionARN("billing"), nil, nil),
		s.mapping(), s.alarm(), s.compositeAlarm(),
		s.permission("logs", "", "logs.amazonaws.com", logGroupARN+"/shop/plain:*"), s.subscriptionFilter("/shop/plain", "errors"),
	}
	lifeCycle(t, resources)
}

// lifeCycle makes, reads, changes and removes resources. What one needs goes before it.
func lifeCycle(t *testing.T, resources []resource) {
	t.Helper()
	for _, r := range resources {
		t.Run("create "+r.name, func(t *testing.T) {
			r.create(t)
			equal(t, "made", r.want[0], r.read(t))
		})
	}
	for n, step := range []string{"apply", "change"} {
		if step == "change" {
			for _, r := range resources {
				t.Run("change "+r.name, func(t *testing.T) {
					if r.change != nil {
						r.change(t)
					}
					equal(t, "changed", r.want[1], r.read(t))
				})
			}
		}
		for _, r := range resources {
			t.Run("no drift after "+step+" of "+r.name, func(t *testing.T) { equal(t, "drift", r.want[n], r.read(t)) })
		}
	}
	for _, r := range slices.Backward(resources) {
		t.Run("destroy "+r.name, func(t *testing.T) { r.destroy(t) })
	}
}

// resource is what Terraform manages as one. want is what it compares, as made and as changed.
type resource struct {
	name            string
	create, destroy func(t *testing.T)
	change          func(t *testing.T) // nil: nothing of it changes
	read            func(t *testing.T) fields
	want            [2]fields
}

// fields are attributes by name. Those that are JSON are compared by what they say.
type fields map[string]string

// and is a copy with others in it, which go first.
func (f fields) and(others fields) fields {
	all := fields{}
	maps.Copy(all, f)
	maps.Copy(all, others)
	return all
}

// said writes JSON in one way, since Terraform compares documents by what they say.
func said(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	if _, number := v.(float64); number {
		return text
	}
	again, _ := json.Marshal(v) // it was JSON
	return string(again)
}

func (f fields) said() fields {
	all := fields{}
	for name, value := range f {
		all[name] = said(value)
	}
	return all
}

type stack struct {
	endpoint string
	sqs      *sqs.Client
	sns      *sns.Client
	lambda   *lambda.Client
	cw       *cloudwatch.Client
	logs     *cloudwatchlogs.Client
	code     [2][]byte
	urls     map[string]string // of queues, by name
	arns     map[string]string // of subscriptions, by name; mapping is a UUID
}

// gone checks that a read finds nothing, by the code that the provider looks for.
func gone(t *testing.T, err error, code string) {
	t.Helper()
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok || api.ErrorCode() != code {
		t.Errorf("after the end: %v, want %s", err, code)
	}
}

// unset is what the provider has for attributes of queues that it is not answered.
var unset = fields{
	"ContentBasedDeduplication": "false", "DeduplicationScope": "", "FifoQueue": "false", "FifoThroughputLimit": "", "KmsMasterKeyId": "",
	"KmsDataKeyReusePeriodSeconds": "300", "RedrivePolicy": "", "SqsManagedSseEnabled": "false",
}

// defaults are those of attributes of queues in a configuration.
var defaults = unset.and(fields{
	"DelaySeconds": "0", "MaximumMessageSize": "262144", "MessageRetentionPeriod": "345600", "ReceiveMessageWaitTimeSeconds": "0", "VisibilityTimeout": "30",
})

// queue is an aws_sqs_queue. The provider names every attribute that has a value.
func (s *stack) queue(name string, made, changed fields) resource {
	tags := [2]map[string]string{{"team": "a", "project": "rental"}, {"team": "b", "project": "rental", "more": ""}}
	full := [2]fields{}
	for n, f := range []fields{made, made.and(changed)} {
		full[n] = defaults.and(f)
		if f["SqsManagedSseEnabled"] == "" { // computed: what is answered is taken
			full[n]["SqsManagedSseEnabled"] = "true"
		}
		full[n]["QueueArn"] = queueARN(name)
	}
	read := func(t *testing.T) fields {
		t.Helper()
		got := must(s.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(s.urls[name]), AttributeNames: []sqstypes.QueueAttributeName{"All"}}))(t)
		all := fields{}
		for attribute := range full[0] {
			all[attribute] = unset[attribute]
			if value, ok := got.Attributes[attribute]; ok {
				all[attribute] = value
			}
		}
		for key, value := range must(s.sqs.ListQueueTags(t.Context(), &sqs.ListQueueTagsInput{QueueUrl: aws.String(s.urls[name])}))(t).Tags {
			all["tag "+key] = value
		}
		return all.said()
	}
	r := resource{
		name: "queue " + name, read: read,
		create: func(t *testing.T) {
			attributes := map[string]string{}
			for attribute, value := range defaults.and(made) {
				// Neither what is empty or false, nor that of keys.
				if value != "" && value != "false" && attribute != "KmsDataKeyReusePeriodSeconds" {
					attributes[attribute] = value
				}
			}
			s.urls[name] = *must(s.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes, Tags: tags[0]}))(t).QueueUrl
		},
		destroy: func(t *testing.T) {
			url := s.urls[name]
			must(s.sqs.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}))(t)
			_, err := s.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{"All"}})
			gone(t, err, "AWS.SimpleQueueService.NonExistentQueue")
		},
	}
	for n := range tags {
		if changed == nil {
			tags[n] = tags[0]
		}
		for key, value := range tags[n] {
			full[n]["tag "+key] = value
		}
		r.want[n] = full[n].said()
	}
	if changed != nil {
		r.change = func(t *testing.T) {
			url := s.urls[name]
			must(s.sqs.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: changed}))(t)
			must(s.sqs.TagQueue(t.Context(), &sqs.TagQueueInput{QueueUrl: &url, Tags: map[string]string{"team": "b", "more": ""}}))(t)
		}
	}
	return r
}

// queueDocument is an aws_sqs_queue_policy, or the like of another attribute: a document
// that is set and, at the end, set to nothing.
func (s *stack) queueDocument(queue, attribute, document string) resource {
	get := func(t *testing.T) (string, error) {
		out, err := s.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(s.urls[queue]), AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeName(attribute)}})
		if err != nil {
			return "", err
		}
		return out.Attributes[attribute], nil
	}
	set := func(t *testing.T, value string) {
		t.Helper()
		must(s.sqs.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: aws.String(s.urls[queue]), Attributes: map[string]string{attribute: value}}))(t)
	}
	want := fields{"document": said(document)}
	return resource{
		name: attribute + " of " + queue, want: [2]fields{want, want},
		create: func(t *testing.T) { set(t, document) },
		read:   func(t *testing.T) fields { return fields{"document": said(must(get(t))(t))} },
		destroy: func(t *testing.T) {
			set(t, "")
			equal(t, "after the end", "", must(get(t))(t))
		},
	}
}

// retries is a topic's delivery policy. The provider compares it with what is answered
// without changes of its own.
func retries(longest int) string {
	return `{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":` + strconv.Itoa(longest) + `,"numRetries":5,"numNoDelayRetries":1,` +
		`"numMinDelayRetries":1,"numMaxDelayRetries":1,"backoffFunction":"linear"},"disableSubscriptionOverrides":false,` +
		`"defaultRequestPolicy":{"headerContentType":"application/json"}}}`
}

// topic is an aws_sns_topic: made with some attributes, given the others one by one.
func (s *stack) topic(name string, made, set, changed fields) resource {
	resourceARN := topicARN(name)
	unanswered := fields{
		"DisplayName": "", "DeliveryPolicy": "", "SignatureVersion": "0", "TracingConfig": "", "FifoTopic": "false", "ContentBasedDeduplication": "false",
		"FifoThroughputScope": "", "KmsMasterKeyId": "", "ArchivePolicy": "", "SQSSuccessFeedbackSampleRate": "0", "SQSFailureFeedbackRoleArn": "",
	}
	assign := func(t *testing.T, all fields) {
		t.Helper()
		for attribute, value := range all {
			must(s.sns.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &resourceARN, AttributeName: &attribute, AttributeValue: &value}))(t)
		}
	}
	r := resource{
		name: "topic " + name,
		create: func(t *testing.T) {
			out := must(s.sns.CreateTopic(t.Context(), &sns.CreateTopicInput{
				Name: &name, Attributes: made, Tags: []snstypes.Tag{{Key: aws.String("project"), Value: aws.String("rental")}},
			}))(t)
			equal(t, "ARN", resourceARN, *out.TopicArn)
			assign(t, set)
		},
		read: func(t *testing.T) fields {
			got := must(s.sns.GetTopicAttributes(t.Context(), &sns.GetTopicAttributesInput{TopicArn: &resourceARN}))(t)
			all := fields{"owner": got.Attributes["Owner"]}
			for attribute, value := range unanswered {
				all[attribute] = value
				if given, ok := got.Attributes[attribute]; ok {
					all[attribute] = given
				}
			}
			for _, tag := range must(s.sns.ListTagsForResource(t.Context(), &sns.ListTagsForResourceInput{ResourceArn: &resourceARN}))(t).Tags {
				all["tag "+*tag.Key] = *tag.Value
			}
			return all.said()
		},
		destroy: func(t *testing.T) {
			must(s.sns.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &resourceARN}))(t)
			_, err := s.sns.GetTopicAttributes(t.Context(), &sns.GetTopicAttributesInput{TopicArn: &resourceARN})
			gone(t, err, "NotFound")
		},
	}
	was := unanswered.and(made).and(set).and(fields{"owner": account, "tag project": "rental"})
	r.want = [2]fields{was.said(), was.and(changed).said()}
	if changed != nil {
		r.change = func(t *testing.T) { assign(t, changed) }
	}
	return r
}

// platformApplication is an aws_sns_platform_application, of which no credential is ever
// shown: the provider compares hashes of its own.
func (s *stack) platformApplication(platform, name string, made, changed fields) resource {
	resourceARN := "arn:aws:sns:us-east-1:" + account + ":app/" + platform + "/" + name
	shown := func(all ...fields) fields {
		out := fields{"Enabled": "true"}
		for _, some := range all {
			for attribute, value := range some {
				if out[attribute] = value; value == "" || attribute == "PlatformCredential" || attribute == "PlatformPrincipal" {
					delete(out, attribute)
				}
			}
		}
		return out
	}
	return resource{
		name: "platform application " + platform, want: [2]fields{shown(made), shown(made, changed)},
		create: func(t *testing.T) {
			out := must(s.sns.CreatePlatformApplication(t.Context(), &sns.CreatePlatformApplicationInput{Name: &name, Platform: &platform, Attributes: made}))(t)
			equal(t, "ARN", resourceARN, *out.PlatformApplicationArn)
		},
		read: func(t *testing.T) fields {
			got := must(s.sns.GetPlatformApplicationAttributes(t.Context(), &sns.GetPlatformApplicationAttributesInput{PlatformApplicationArn: &resourceARN}))(t).Attributes
			delete(got, "AuthenticationMethod") // the provider knows nothing of it
			return got
		},
		change: func(t *testing.T) {
			must(s.sns.SetPlatformApplicationAttributes(t.Context(), &sns.SetPlatformApplicationAttributesInput{PlatformApplicationArn: &resourceARN, Attributes: changed}))(t)
		},
		destroy: func(t *testing.T) {
			must(s.sns.DeletePlatformApplication(t.Context(), &sns.DeletePlatformApplicationInput{PlatformApplicationArn: &resourceARN}))(t)
			_, err := s.sns.GetPlatformApplicationAttributes(t.Context(), &sns.GetPlatformApplicationAttributesInput{PlatformApplicationArn: &resourceARN})
			gone(t, err, "NotFound")
		},
	}
}

// dataProtection is an aws_sns_topic_data_protection_policy. At the end the provider sets an
// empty one.
func (s *stack) dataProtection(topic string) resource {
	resourceARN := topicARN(topic)
	documents := [2]string{
		protection(protecting("deny", "Inbound", "EmailAddress", `{"Deny":{}}`)),
		protection(protecting("mask", "Inbound", "EmailAddress", `{"Deidentify":{"MaskConfig":{"MaskWithCharacter":"#"}}}`)),
	}
	set := func(t *testing.T, document string) {
		t.Helper()
		must(s.sns.PutDataProtectionPolicy(t.Context(), &sns.PutDataProtectionPolicyInput{ResourceArn: &resourceARN, DataProtectionPolicy: &document}))(t)
	}
	get := func(t *testing.T) string {
		t.Helper()
		return aws.ToString(must(s.sns.GetDataProtectionPolicy(t.Context(), &sns.GetDataProtectionPolicyInput{ResourceArn: &resourceARN}))(t).DataProtectionPolicy)
	}
	return resource{
		name: "data protection policy of topic " + topic, want: [2]fields{{"policy": said(documents[0])}, {"policy": said(documents[1])}},
		create: func(t *testing.T) { set(t, documents[0]) },
		change: func(t *testing.T) { set(t, documents[1]) },
		read:   func(t *testing.T) fields { return fields{"policy": said(get(t))} },
		destroy: func(t *testing.T) {
			set(t, "")
			equal(t, "the policy at the end", "", get(t))
		},
	}
}

// smsPreferences are an aws_sns_sms_preferences. At the end the provider sets each to
// nothing.
func (s *stack) smsPreferences() resource {
	made := fields{"MonthlySpendLimit": "10", "DefaultSMSType": "Transactional"}
	changed := fields{"MonthlySpendLimit": "20", "DefaultSMSType": "Transactional", "DefaultSenderID": "Orders", "DeliveryStatusSuccessSamplingRate": "50"}
	set := func(t *testing.T, all fields) {
		t.Helper()
		must(s.sns.SetSMSAttributes(t.Context(), &sns.SetSMSAttributesInput{Attributes: all}))(t)
	}
	read := func(t *testing.T) fields {
		t.Helper()
		return must(s.sns.GetSMSAttributes(t.Context(), &sns.GetSMSAttributesInput{}))(t).Attributes
	}
	return resource{
		name: "preferences of text messages", want: [2]fields{made, changed}, read: read,
		create: func(t *testing.T) { set(t, made) },
		change: func(t *testing.T) { set(t, changed) },
		destroy: func(t *testing.T) {
			set(t, fields{
				"MonthlySpendLimit": "", "DeliveryStatusIAMRole": "", "DeliveryStatusSuccessSamplingRate": "", "DefaultSenderID": "", "DefaultSMSType": "",
				"UsageReportS3Bucket": "",
			})
			equal(t, "what is left", fields{"MonthlySpendLimit": "1"}, read(t))
		},
	}
}

// topicPolicy is an aws_sns_topic_policy. At the end the provider sets the policy that
// AWS makes for a topic.
func (s *stack) topicPolicy(topic string) resource {
	resourceARN := topicARN(topic)
	document := `{"Version":"2012-10-17","Statement":[{"Sid":"publish","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111111111111:root"},"Action":"sns:Publish","Resource":"` + resourceARN + `"}]}`
	set := func(t *testing.T, value string) {
		t.Helper()
		must(s.sns.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &resourceARN, AttributeName: aws.String("Policy"), AttributeValue: &value}))(t)
	}
	want := fields{"policy": said(document), "owner": account}
	return resource{
		name: "policy of topic " + topic, want: [2]fields{want, want},
		create: func(t *testing.T) { set(t, document) },
		read: func(t *testing.T) fields {
			got := must(s.sns.GetTopicAttributes(t.Context(), &sns.GetTopicAttributesInput{TopicArn: &resourceARN}))(t).Attributes
			return fields{"policy": said(got["Policy"]), "owner": got["Owner"]}
		},
		destroy: func(t *testing.T) {
			set(t, `{"Version":"2008-10-17","Id":"__default_policy_ID","Statement":[{"Sid":"__default_statement_ID","Effect":"Allow","Principal":{"AWS":"*"},`+
				`"Action":["SNS:GetTopicAttributes","SNS:SetTopicAttributes","SNS:AddPermission","SNS:RemovePermission","SNS:DeleteTopic","SNS:Subscribe",`+
				`"SNS:ListSubscriptionsByTopic","SNS:Publish"],"Resource":"`+resourceARN+`","Condition":{"StringEquals":{"AWS:SourceOwner":"`+account+`"}}}]}`)
		},
	}
}

// subscription is an aws_sns_topic_subscription.
func (s *stack) subscription(name, topic, protocol, endpoint string, made, changed fields) resource {
	resourceARN := topicARN(topic)
	computed := fields{
		"TopicArn": resourceARN, "Protocol": protocol, "Endpoint": endpoint, "Owner": account, "PendingConfirmation": "false", "ConfirmationWasAuthenticated": "true",
		"RawMessageDelivery": "false", "FilterPolicy": "", "FilterPolicyScope": "", "RedrivePolicy": "", "DeliveryPolicy": "", "ReplayPolicy": "", "SubscriptionRoleArn": "",
	}
	r := resource{
		name: "subscription " + name,
		create: func(t *testing.T) {
			s.arns[name] = *must(s.sns.Subscribe(t.Context(), &sns.SubscribeInput{
				TopicArn: &resourceARN, Protocol: &protocol, Endpoint: &endpoint, Attributes: made, ReturnSubscriptionArn: true,
			}))(t).SubscriptionArn
		},
		read: func(t *testing.T) fields {
			// The provider looks whether the subscription is in the list, and then at it.
			listed := false
			for _, subscription := range must(s.sns.ListSubscriptionsByTopic(t.Context(), &sns.ListSubscriptionsByTopicInput{TopicArn: &resourceARN}))(t).Subscriptions {
				listed = listed || *subscription.SubscriptionArn == s.arns[name]
			}
			if !listed {
				t.Error("it is not listed")
			}
			got := subscriptionAttributes(t, s.sns, s.arns[name])
			equal(t, "ARN", s.arns[name], got["SubscriptionArn"])
			all := fields{}
			for attribute := range computed {
				all[attribute] = got[attribute]
			}
			return all.said()
		},
		destroy: func(t *testing.T) {
			must(s.sns.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: aws.String(s.arns[name])}))(t)
			_, err := s.sns.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: aws.String(s.arns[name])})
			gone(t, err, "NotFound")
		},
	}
	r.want = [2]fields{computed.and(made).said(), computed.and(made).and(changed).said()}
	if changed != nil {
		r.change = func(t *testing.T) {
			// In this order: a policy may only fit the scope that is set before it.
			for _, attribute := range []string{"FilterPolicyScope", "FilterPolicy", "RawMessageDelivery"} {
				must(s.sns.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
					SubscriptionArn: aws.String(s.arns[name]), AttributeName: &attribute, AttributeValue: aws.String(changed[attribute]),
				}))(t)
			}
		}
	}
	return r
}

// logGroup is an aws_cloudwatch_log_group; days of 0 are for ever.
func (s *stack) logGroup(name string, days, changed int32) resource {
	want := func(days int32, team string) fields {
		return fields{"retention": strconv.Itoa(int(days)), "class": "STANDARD", "arn": logGroupARN + name + ":*", "key": "", "tag team": team, "tag project": "rental"}
	}
	retain := func(t *testing.T, days int32) {
		t.Helper()
		if days > 0 {
			must(s.logs.PutRetentionPolicy(t.Context(), &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: &name, RetentionInDays: &days}))(t)
		}
	}
	// The provider asks for a prefix, and takes the one of that name.
	find := func(ctx context.Context) (fields, error) {
		out, err := s.logs.DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: &name})
		if err != nil {
			return nil, err
		}
		for _, g := range out.LogGroups {
			if *g.LogGroupName == name {
				return fields{
					"retention": strconv.Itoa(int(aws.ToInt32(g.RetentionInDays))), "class": string(g.LogGroupClass), "arn": *g.Arn, "key": aws.ToString(g.KmsKeyId),
				}, nil
			}
		}
		return nil, nil
	}
	return resource{
		name: "log group " + name, want: [2]fields{want(days, "a"), want(changed, "b")},
		create: func(t *testing.T) {
			must(s.logs.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &name, LogGroupClass: "STANDARD", Tags: map[string]string{"team": "a", "project": "rental"}}))(t)
			retain(t, days)
		},
		read: func(t *testing.T) fields {
			all := must(find(t.Context()))(t)
			if all == nil {
				t.Fatal("it is not found")
			}
			for key, value := range must(s.logs.ListTagsForResource(t.Context(), &cloudwatchlogs.ListTagsForResourceInput{ResourceArn: aws.String(logGroupARN + name)}))(t).Tags {
				all["tag "+key] = value
			}
			return all
		},
		change: func(t *testing.T) {
			retain(t, changed)
			must(s.logs.TagResource(t.Context(), &cloudwatchlogs.TagResourceInput{ResourceArn: aws.String(logGroupARN + name), Tags: map[string]string{"team": "b"}}))(t)
		},
		destroy: func(t *testing.T) {
			must(s.logs.DeleteLogGroup(t.Context(), &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: &name}))(t)
			if left := must(find(t.Context()))(t); left != nil {
				t.Error("it is found after the end")
			}
		},
	}
}

// logStream is an aws_cloudwatch_log_stream.
func (s *stack) logStream(group, name string) resource {
	find := func(t *testing.T) fields {
		t.Helper()
		for _, stream := range must(s.logs.DescribeLogStreams(t.Context(), &cloudwatchlogs.DescribeLogStreamsInput{LogGroupName: &group, LogStreamNamePrefix: &name}))(t).LogStreams {
			if *stream.LogStreamName == name {
				return fields{"arn": *stream.Arn}
			}
		}
		return nil
	}
	want := fields{"arn": logGroupARN + group + ":log-stream:" + name}
	return resource{
		name: "log stream " + name, want: [2]fields{want, want}, read: find,
		create: func(t *testing.T) {
			must(s.logs.CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &group, LogStreamName: &name}))(t)
		},
		destroy: func(t *testing.T) {
			must(s.logs.DeleteLogStream(t.Context(), &cloudwatchlogs.DeleteLogStreamInput{LogGroupName: &group, LogStreamName: &name}))(t)
			equal(t, "after the end", fields(nil), find(t))
		},
	}
}

// subscriptionFilter is an aws_cloudwatch_log_subscription_filter, to the function.
func (s *stack) subscriptionFilter(group, name string) resource {
	put := func(t *testing.T, pattern string) {
		t.Helper()
		in := subscriptionInput(group, name, pattern, functionARN("billing"))
		in.Distribution = logstypes.DistributionByLogStream // the provider's default
		must(s.logs.PutSubscriptionFilter(t.Context(), in))(t)
	}
	find := func(t *testing.T) fields {
		t.Helper()
		for _, f := range must(s.logs.DescribeSubscriptionFilters(t.Context(), &cloudwatchlogs.DescribeSubscriptionFiltersInput{LogGroupName: &group, FilterNamePrefix: &name}))(t).SubscriptionFilters {
			if *f.FilterName == name {
				return fields{"pattern": *f.FilterPattern, "destination": *f.DestinationArn, "distribution": string(f.Distribution), "role": aws.ToString(f.RoleArn), "group": *f.LogGroupName}
			}
		}
		return nil
	}
	want := func(pattern string) fields {
		return fields{"pattern": pattern, "destination": functionARN("billing"), "distribution": "ByLogStream", "role": "", "group": group}
	}
	return resource{
		name: "subscription filter " + name, want: [2]fields{want(""), want("ERROR")}, read: find,
		create: func(t *testing.T) { put(t, "") }, change: func(t *testing.T) { put(t, "ERROR") },
		destroy: func(t *testing.T) {
			must(s.logs.DeleteSubscriptionFilter(t.Context(), &cloudwatchlogs.DeleteSubscriptionFilterInput{LogGroupName: &group, FilterName: &name}))(t)
			equal(t, "after the end", fields(nil), find(t))
		},
	}
}

// function is an aws_lambda_function that publishes a version with each change.
func (s *stack) function() resource {
	name := aws.String("billing")
	settled := func(t *testing.T) *lambda.GetFunctionOutput {
		t.Helper()
		out := must(s.lambda.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: name}))(t)
		if c := out.Configuration; c.State != lambdatypes.StateActive || c.LastUpdateStatus != lambdatypes.LastUpdateStatusSuccessful {
			t.Fatalf("it is %s, its update %s", c.State, c.LastUpdateStatus)
		}
		return out
	}
	logging := &lambdatypes.LoggingConfig{LogFormat: lambdatypes.LogFormatText, LogGroup: aws.String("/shop/billing")}
	want := func(code []byte, version, description, memory, variables, concurrency, team string) fields {
		return fields{
			"arn": functionARN("billing"), "qualified arn": functionARN("billing") + ":" + version, "version": version, "description": description, "memory": memory,
			"timeout": "10", "handler": "bootstrap", "runtime": "provided.al2023", "role": "arn:aws:iam::000000000000:role/billing", "package": "Zip",
			"architecture": "x86_64", "storage": "1024", "dead letters": queueARN("dead"), "tracing": "PassThrough", "format": "Text", "group": "/shop/billing",
			"application level": "", "system level": "", "variables": said(variables), "concurrency": concurrency, "tag team": team, "tag project": "rental",
			"hash": *digest(code), "size": strconv.Itoa(len(code)), "layers": "0", "vpc": "false", "snap start": "None", "signing": "",
		}
	}
	return resource{
		name: "function",
		want: [2]fields{
			want(s.code[0], "1", "bills orders", "128", `{"MODE":"a","MORE":"x"}`, "", "a"),
			want(s.code[1], "2", "bills", "256", `{"MODE":"b"}`, "5", "b"),
		},
		create: func(t *testing.T) {
			must(s.lambda.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
				FunctionName: name, Role: aws.String("arn:aws:iam::000000000000:role/billing"), Runtime: lambdatypes.RuntimeProvidedal2023, Handler: aws.String("bootstrap"),
				Code: &lambdatypes.FunctionCode{ZipFile: s.code[0]}, Description: aws.String("bills orders"), MemorySize: aws.Int32(128), Timeout: aws.Int32(10),
				Publish: true, PackageType: lambdatypes.PackageTypeZip, Architectures: []lambdatypes.Architecture{lambdatypes.ArchitectureX8664},
				Environment:      &lambdatypes.Environment{Variables: map[string]string{"MODE": "a", "MORE": "x"}},
				DeadLetterConfig: &lambdatypes.DeadLetterConfig{TargetArn: aws.String(queueARN("dead"))},
				EphemeralStorage: &lambdatypes.EphemeralStorage{Size: aws.Int32(1024)}, LoggingConfig: logging,
				Tags: map[string]string{"team": "a", "project": "rental"},
			}))(t)
		},
		read: func(t *testing.T) fields {
			out := settled(t)
			c := out.Configuration
			all := fields{
				"arn": *c.FunctionArn, "description": aws.ToString(c.Description), "memory": strconv.Itoa(int(*c.MemorySize)), "timeout": strconv.Itoa(int(*c.Timeout)),
				"handler": *c.Handler, "runtime": string(c.Runtime), "role": *c.Role, "package": string(c.PackageType), "architecture": string(c.Architectures[0]),
				"storage": strconv.Itoa(int(*c.EphemeralStorage.Size)), "dead letters": *c.DeadLetterConfig.TargetArn, "tracing": string(c.TracingConfig.Mode),
				"format": string(c.LoggingConfig.LogFormat), "group": *c.LoggingConfig.LogGroup, "application level": string(c.LoggingConfig.ApplicationLogLevel),
				"system level": string(c.LoggingConfig.SystemLogLevel), "hash": *c.CodeSha256, "size": strconv.FormatInt(c.CodeSize, 10), "layers": strconv.Itoa(len(c.Layers)),
				"vpc": strconv.FormatBool(c.VpcConfig != nil && aws.ToString(c.VpcConfig.VpcId) != ""), "concurrency": "",
				"snap start": string(lambdatypes.SnapStartApplyOnNone), "signing": aws.ToString(c.SigningJobArn) + aws.ToString(c.SigningProfileVersionArn),
			}
			if c.SnapStart != nil {
				all["snap start"] = string(c.SnapStart.ApplyOn)
			}
			variables := must(json.Marshal(c.Environment.Variables))(t)
			all["variables"] = string(variables)
			if out.Concurrency != nil {
				all["concurrency"] = strconv.Itoa(int(*out.Concurrency.ReservedConcurrentExecutions))
			}
			for key, value := range out.Tags {
				all["tag "+key] = value
			}
			// The latest version is the last of the list.
			pages := lambda.NewListVersionsByFunctionPaginator(s.lambda, &lambda.ListVersionsByFunctionInput{FunctionName: name, MaxItems: aws.Int32(10000)})
			for pages.HasMorePages() {
				for _, version := range must(pages.NextPage(t.Context()))(t).Versions {
					all["version"], all["qualified arn"] = *version.Version, *version.FunctionArn
				}
			}
			signing := must(s.lambda.GetFunctionCodeSigningConfig(t.Context(), &lambda.GetFunctionCodeSigningConfigInput{FunctionName: name}))(t)
			if aws.ToString(signing.CodeSigningConfigArn) != "" {
				t.Errorf("there is a code signing config %s", *signing.CodeSigningConfigArn)
			}
			return all
		},
		change: func(t *testing.T) {
			must(s.lambda.TagResource(t.Context(), &lambda.TagResourceInput{Resource: aws.String(functionARN("billing")), Tags: map[string]string{"team": "b"}}))(t)
			must(s.lambda.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{
				FunctionName: name, Description: aws.String("bills"), MemorySize: aws.Int32(256), Environment: &lambdatypes.Environment{Variables: map[string]string{"MODE": "b"}},
			}))(t)
			settled(t)
			must(s.lambda.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: name, ZipFile: s.code[1], Architectures: []lambdatypes.Architecture{lambdatypes.ArchitectureX8664}}))(t)
			settled(t)
			must(s.lambda.PutFunctionConcurrency(t.Context(), &lambda.PutFunctionConcurrencyInput{FunctionName: name, ReservedConcurrentExecutions: aws.Int32(5)}))(t)
			must(s.lambda.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: name}))(t)
			out := must(s.lambda.GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: name, Qualifier: aws.String("2")}))(t)
			equal(t, "the new version", lambdatypes.StateActive, out.State)
		},
		destroy: func(t *testing.T) {
			must(s.lambda.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: name}))(t)
			_, err := s.lambda.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: name})
			gone(t, err, "ResourceNotFoundException")
		},
	}
}

// alias is an aws_lambda_alias that follows the function's version.
func (s *stack) alias() resource {
	function, name := aws.String("billing"), aws.String("live")
	want := func(version, description string) fields {
		return fields{"arn": functionARN("billing") + ":live", "version": version, "description": description, "routing": "false"}
	}
	return resource{
		name: "alias", want: [2]fields{want("1", ""), want("2", "in use")},
		create: func(t *testing.T) {
			must(s.lambda.CreateAlias(t.Context(), &lambda.CreateAliasInput{
				FunctionName: function, Name: name, FunctionVersion: aws.String("1"), Description: aws.String(""), RoutingConfig: &lambdatypes.AliasRoutingConfiguration{},
			}))(t)
		},
		read: func(t *testing.T) fields {
			out := must(s.lambda.GetAlias(t.Context(), &lambda.GetAliasInput{FunctionName: function, Name: name}))(t)
			return fields{
				"arn": *out.AliasArn, "version": *out.FunctionVersion, "description": aws.ToString(out.Description),
				"routing": strconv.FormatBool(out.RoutingConfig != nil && len(out.RoutingConfig.AdditionalVersionWeights) > 0),
			}
		},
		change: func(t *testing.T) {
			must(s.lambda.UpdateAlias(t.Context(), &lambda.UpdateAliasInput{
				FunctionName: function, Name: name, FunctionVersion: aws.String("2"), Description: aws.String("in use"), RoutingConfig: &lambdatypes.AliasRoutingConfiguration{},
			}))(t)
		},
		destroy: func(t *testing.T) {
			must(s.lambda.DeleteAlias(t.Context(), &lambda.DeleteAliasInput{FunctionName: function, Name: name}))(t)
			_, err := s.lambda.GetAlias(t.Context(), &lambda.GetAliasInput{FunctionName: function, Name: name})
			gone(t, err, "ResourceNotFoundException")
		},
	}
}

// functionURL is an aws_lambda_function_url of the alias, which lets everybody in.
func (s *stack) functionURL() resource {
	function, live, public, anyone := aws.String("billing"), aws.String("live"), aws.String("FunctionURLAllowPublicAccess"), aws.String("*")
	want := func(origins string, age string) fields {
		return fields{"arn": functionARN("billing") + ":live", "auth": "NONE", "mode": "BUFFERED", "id": "32", "origins": origins, "age": age}
	}
	return resource{
		name: "function URL", want: [2]fields{want("https://a.example", "60"), want("", "")},
		create: func(t *testing.T) {
			must(s.lambda.CreateFunctionUrlConfig(t.Context(), &lambda.CreateFunctionUrlConfigInput{
				FunctionName: function, Qualifier: live, AuthType: lambdatypes.FunctionUrlAuthTypeNone, InvokeMode: lambdatypes.InvokeModeBuffered,
				Cors: &lambdatypes.Cors{AllowOrigins: []string{"https://a.example"}, AllowMethods: []string{"*"}, MaxAge: aws.Int32(60)},
			}))(t)
			must(s.lambda.AddPermission(t.Context(), &lambda.AddPermissionInput{
				FunctionName: function, Qualifier: live, StatementId: public, Principal: anyone, Action: aws.String("lambda:InvokeFunctionUrl"),
				FunctionUrlAuthType: lambdatypes.FunctionUrlAuthTypeNone,
			}))(t)
			must(s.lambda.AddPermission(t.Context(), &lambda.AddPermissionInput{
				FunctionName: function, Qualifier: live, StatementId: aws.String("FunctionURLAllowInvokeAction"), Principal: anyone, Action: aws.String("lambda:InvokeFunction"),
				InvokedViaFunctionUrl: aws.Bool(true),
			}))(t)
		},
		read: func(t *testing.T) fields {
			out := must(s.lambda.GetFunctionUrlConfig(t.Context(), &lambda.GetFunctionUrlConfigInput{FunctionName: function, Qualifier: live}))(t)
			_, id, _ := strings.Cut(*out.FunctionUrl, "/function-url/")
			all := fields{
				"arn": *out.FunctionArn, "auth": string(out.AuthType), "mode": string(out.InvokeMode), "id": strconv.Itoa(len(strings.TrimSuffix(id, "/"))), "origins": "", "age": "",
			}
			if out.Cors != nil {
				all["origins"], all["age"] = strings.Join(out.Cors.AllowOrigins, ","), strconv.Itoa(int(*out.Cors.MaxAge))
			}
			return all
		},
		change: func(t *testing.T) {
			must(s.lambda.UpdateFunctionUrlConfig(t.Context(), &lambda.UpdateFunctionUrlConfigInput{FunctionName: function, Qualifier: live, Cors: &lambdatypes.Cors{}}))(t)
		},
		destroy: func(t *testing.T) {
			must(s.lambda.DeleteFunctionUrlConfig(t.Context(), &lambda.DeleteFunctionUrlConfigInput{FunctionName: function, Qualifier: live}))(t)
			_, err := s.lambda.GetFunctionUrlConfig(t.Context(), &lambda.GetFunctionUrlConfigInput{FunctionName: function, Qualifier: live})
			gone(t, err, "ResourceNotFoundException")
		},
	}
}

// invokeConfig is an aws_lambda_function_event_invoke_config.
func (s *stack) invokeConfig() resource {
	function := aws.String("billing")
	put := func(t *testing.T, retries int32) {
		t.Helper()
		must(s.lambda.PutFunctionEventInvokeConfig(t.Context(), &lambda.PutFunctionEventInvokeConfigInput{
			FunctionName: function, MaximumRetryAttempts: &retries, MaximumEventAgeInSeconds: aws.Int32(120),
			DestinationConfig: &lambdatypes.DestinationConfig{OnFailure: &lambdatypes.OnFailure{Destination: aws.String(queueARN("dead"))}},
		}))(t)
	}
	want := func(retries string) fields {
		return fields{"arn": functionARN("billing") + ":$LATEST", "age": "120", "retries": retries, "failure": queueARN("dead"), "success": ""}
	}
	return resource{
		name: "event invoke config", want: [2]fields{want("1"), want("0")},
		create: func(t *testing.T) { put(t, 1) },
		change: func(t *testing.T) { put(t, 0) },
		read: func(t *testing.T) fields {
			out := must(s.lambda.GetFunctionEventInvokeConfig(t.Context(), &lambda.GetFunctionEventInvokeConfigInput{FunctionName: function}))(t)
			all := fields{
				"arn": *out.FunctionArn, "age": strconv.Itoa(int(*out.MaximumEventAgeInSeconds)), "retries": strconv.Itoa(int(*out.MaximumRetryAttempts)),
				"failure": *out.DestinationConfig.OnFailure.Destination, "success": "",
			}
			if to := out.DestinationConfig.OnSuccess; to != nil {
				all["success"] = aws.ToString(to.Destination)
			}
			return all
		},
		destroy: func(t *testing.T) {
			must(s.lambda.DeleteFunctionEventInvokeConfig(t.Context(), &lambda.DeleteFunctionEventInvokeConfigInput{FunctionName: function}))(t)
			_, err := s.lambda.GetFunctionEventInvokeConfig(t.Context(), &lambda.GetFunctionEventInvokeConfigInput{FunctionName: function})
			gone(t, err, "ResourceNotFoundException")
		},
	}
}

// permission is an aws_lambda_permission: a statement that the provider looks up in the
// policy by its id.
func (s *stack) permission(id, qualifier, principal, source string) resource {
	function, q := aws.String("billing"), aws.String(qualifier)
	target := functionARN("billing")
	if qualifier == "" {
		q = nil
	} else {
		target += ":" + qualifier
	}
	find := func(t *testing.T) (fields, error) {
		t.Helper()
		out, err := s.lambda.GetPolicy(t.Context(), &lambda.GetPolicyInput{FunctionName: function, Qualifier: q})
		if err != nil {
			return nil, err
		}
		var policy struct {
			Statement []struct {
				Sid, Effect, Action, Resource string
				Principal                     any
				Condition                     map[string]map[string]string
			}
		}
		if err := json.Unmarshal([]byte(*out.Policy), &policy); err != nil {
			return nil, err
		}
		for _, statement := range policy.Statement {
			if statement.Sid == id {
				by := must(json.Marshal(statement.Principal))(t)
				return fields{
					"action": statement.Action, "effect": statement.Effect, "resource": statement.Resource, "principal": string(by),
					"source": statement.Condition["ArnLike"]["AWS:SourceArn"],
				}, nil
			}
		}
		return nil, nil
	}
	by := `{"Service":"` + principal + `"}`
	if source == "" {
		by = `{"AWS":"` + principal + `"}`
	}
	want := fields{"action": "lambda:InvokeFunction", "effect": "Allow", "resource": target, "principal": by, "source": source}
	return resource{
		name: "permission " + id, want: [2]fields{want, want},
		create: func(t *testing.T) {
			in := &lambda.AddPermissionInput{FunctionName: function, Qualifier: q, StatementId: &id, Action: aws.String("lambda:InvokeFunction"), Principal: &principal}
			if source != "" {
				in.SourceArn = &source
			}
			must(s.lambda.AddPermission(t.Context(), in))(t)
		},
		read: func(t *testing.T) fields { return must(find(t))(t) },
		destroy: func(t *testing.T) {
			must(s.lambda.RemovePermission(t.Context(), &lambda.RemovePermissionInput{FunctionName: function, Qualifier: q, StatementId: &id}))(t)
			left, err := find(t)
			if left != nil {
				t.Errorf("after the end: %v", left)
			}
			if err != nil {
				gone(t, err, "ResourceNotFoundException")
			}
		},
	}
}

// mapping is an aws_lambda_event_source_mapping of an alias.
func (s *stack) mapping() resource {
	pattern := `{"body":{"status":["confirmed"]}}`
	filter := &lambdatypes.FilterCriteria{Filters: []lambdatypes.Filter{{Pattern: &pattern}}}
	want := func(size, state, concurrency string) fields {
		return fields{
			"function": functionARN("billing") + ":live", "source": queueARN("orders"), "size": size, "window": "0", "state": state, "filter": pattern,
			"concurrency": concurrency, "responses": "ReportBatchItemFailures", "tag team": "a",
		}
	}
	get := func(t *testing.T) (*lambda.GetEventSourceMappingOutput, error) {
		return s.lambda.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: aws.String(s.arns["mapping"])})
	}
	return resource{
		name: "event source mapping", want: [2]fields{want("10", "Enabled", "2"), want("5", "Disabled", "4")},
		create: func(t *testing.T) {
			out := must(s.lambda.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
				FunctionName: aws.String(functionARN("billing") + ":live"), EventSourceArn: aws.String(queueARN("orders")), BatchSize: aws.Int32(10), Enabled: aws.Bool(true),
				FilterCriteria: filter, ScalingConfig: &lambdatypes.ScalingConfig{MaximumConcurrency: aws.Int32(2)},
				FunctionResponseTypes: []lambdatypes.FunctionResponseType{"ReportBatchItemFailures"}, Tags: map[string]string{"team": "a"},
			}))(t)
			s.arns["mapping"] = *out.UUID
		},
		read: func(t *testing.T) fields {
			out := must(get(t))(t)
			all := fields{
				"function": *out.FunctionArn, "source": *out.EventSourceArn, "size": strconv.Itoa(int(*out.BatchSize)), "window": strconv.Itoa(int(aws.ToInt32(out.MaximumBatchingWindowInSeconds))),
				"state": *out.State, "filter": *out.FilterCriteria.Filters[0].Pattern, "concurrency": strconv.Itoa(int(*out.ScalingConfig.MaximumConcurrency)),
				"responses": string(out.FunctionResponseTypes[0]),
			}
			for key, value := range must(s.lambda.ListTags(t.Context(), &lambda.ListTagsInput{Resource: out.EventSourceMappingArn}))(t).Tags {
				all["tag "+key] = value
			}
			return all
		},
		change: func(t *testing.T) {
			must(s.lambda.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{
				UUID: aws.String(s.arns["mapping"]), FunctionName: aws.String(functionARN("billing") + ":live"), BatchSize: aws.Int32(5), Enabled: aws.Bool(false),
				ScalingConfig: &lambdatypes.ScalingConfig{MaximumConcurrency: aws.Int32(4)},
			}))(t)
		},
		destroy: func(t *testing.T) {
			must(s.lambda.DeleteEventSourceMapping(t.Context(), &lambda.DeleteEventSourceMappingInput{UUID: aws.String(s.arns["mapping"])}))(t)
			_, err := get(t)
			gone(t, err, "ResourceNotFoundException")
		},
	}
}

// alarm is an aws_cloudwatch_metric_alarm.
func (s *stack) alarm() resource {
	name, topic := "dead-letters", topicARN("orders")
	input := func(threshold float64, back ...string) *cloudwatch.PutMetricAlarmInput {
		return &cloudwatch.PutMetricAlarmInput{
			AlarmName: &name, AlarmDescription: aws.String("something was given up"), ComparisonOperator: cwtypes.ComparisonOperatorGreaterThanThreshold,
			EvaluationPeriods: aws.Int32(1), MetricName: aws.String("ApproximateNumberOfMessagesVisible"), Namespace: aws.String("AWS/SQS"), Period: aws.Int32(60),
			Statistic: cwtypes.StatisticMaximum, Threshold: &threshold, TreatMissingData: aws.String("notBreaching"), ActionsEnabled: aws.Bool(true),
			AlarmActions: []string{topic}, OKActions: back, Dimensions: dimensions("QueueName", "dead"), Tags: []cwtypes.Tag{{Key: aws.String("team"), Value: aws.String("a")}},
		}
	}
	want := func(threshold, back string) fields {
		return fields{
			"arn": alarmARN(name), "description": "something was given up", "operator": "GreaterThanThreshold", "periods": "1", "to alarm": "0", "metric": "ApproximateNumberOfMessagesVisible",
			"namespace": "AWS/SQS", "period": "60", "statistic": "Maximum", "extended": "", "threshold": threshold, "missing": "notBreaching", "enabled": "true", "unit": "",
			"alarm": topic, "ok": back, "insufficient": "0", "dimension": "QueueName dead", "low samples": "", "tag team": "a",
		}
	}
	find := func(t *testing.T) []cwtypes.MetricAlarm {
		t.Helper()
		return must(s.cw.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}, AlarmTypes: []cwtypes.AlarmType{cwtypes.AlarmTypeMetricAlarm}}))(t).MetricAlarms
	}
	return resource{
		name: "alarm", want: [2]fields{want("0", ""), want("5", topic)},
		create: func(t *testing.T) { must(s.cw.PutMetricAlarm(t.Context(), input(0)))(t) },
		change: func(t *testing.T) { must(s.cw.PutMetricAlarm(t.Context(), input(5, topic)))(t) },
		read: func(t *testing.T) fields {
			found := find(t)
			if len(found) != 1 {
				t.Fatalf("%d alarms", len(found))
			}
			a := found[0]
			all := fields{
				"arn": *a.AlarmArn, "description": *a.AlarmDescription, "operator": string(a.ComparisonOperator), "periods": strconv.Itoa(int(*a.EvaluationPeriods)),
				"to alarm": strconv.Itoa(int(aws.ToInt32(a.DatapointsToAlarm))), "metric": *a.MetricName, "namespace": *a.Namespace, "period": strconv.Itoa(int(*a.Period)),
				"statistic": string(a.Statistic), "extended": aws.ToString(a.ExtendedStatistic), "threshold": strconv.FormatFloat(*a.Threshold, 'f', -1, 64),
				"missing": aws.ToString(a.TreatMissingData), "enabled": strconv.FormatBool(*a.ActionsEnabled), "unit": string(a.Unit), "alarm": a.AlarmActions[0], "ok": "",
				"insufficient": strconv.Itoa(len(a.InsufficientDataActions)), "dimension": *a.Dimensions[0].Name + " " + *a.Dimensions[0].Value,
				"low samples": aws.ToString(a.EvaluateLowSampleCountPercentile),
			}
			for _, action := range a.OKActions {
				all["ok"] += action
			}
			for _, tag := range must(s.cw.ListTagsForResource(t.Context(), &cloudwatch.ListTagsForResourceInput{ResourceARN: a.AlarmArn}))(t).Tags {
				all["tag "+*tag.Key] = *tag.Value
			}
			return all
		},
		destroy: func(t *testing.T) {
			must(s.cw.DeleteAlarms(t.Context(), &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{name}}))(t)
			equal(t, "after the end", 0, len(find(t)))
		},
	}
}

package sdk_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/firehose/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"godwit.dev/godwit/internal/config"
)

// endpointsTarget is what attacks on endpoints name.
type endpointsTarget struct{ name, application, device, topic, stream string }

// endpointsAttacks ask for what is about one thing.
var endpointsAttacks = map[string]func(ctx context.Context, push *sns.Client, hoses *firehose.Client, v endpointsTarget) error{
	"GetPlatformApplicationAttributes": func(ctx context.Context, c *sns.Client, _ *firehose.Client, v endpointsTarget) error {
		return errorOf(c.GetPlatformApplicationAttributes(ctx, &sns.GetPlatformApplicationAttributesInput{PlatformApplicationArn: &v.application}))
	},
	"SetPlatformApplicationAttributes": func(ctx context.Context, c *sns.Client, _ *firehose.Client, v endpointsTarget) error {
		return errorOf(c.SetPlatformApplicationAttributes(ctx, &sns.SetPlatformApplicationAttributesInput{PlatformApplicationArn: &v.application, Attributes: map[string]string{"PlatformCredential": "mine"}}))
	},
	"DeletePlatformApplication": func(ctx context.Context, c *sns.Client, _ *firehose.Client, v endpointsTarget) error {
		return errorOf(c.DeletePlatformApplication(ctx, &sns.DeletePlatformApplicationInput{PlatformApplicationArn: &v.application}))
	},
	"CreatePlatformEndpoint": func(ctx context.Context, c *sns.Client, _ *firehose.Client, v endpointsTarget) error {
		return errorOf(c.CreatePlatformEndpoint(ctx, &sns.CreatePlatformEndpointInput{PlatformApplicationArn: &v.application, Token: new("canary-token")}))
	},
	"ListEndpointsByPlatformApplication": func(ctx context.Context, c *sns.Client, _ *firehose.Client, v endpointsTarget) error {
		return errorOf(c.ListEndpointsByPlatformApplication(ctx, &sns.ListEndpointsByPlatformApplicationInput{PlatformApplicationArn: &v.application}))
	},
	"GetEndpointAttributes": func(ctx context.Context, c *sns.Client, _ *firehose.Client, v endpointsTarget) error {
		return errorOf(c.GetEndpointAttributes(ctx, &sns.GetEndpointAttributesInput{EndpointArn: &v.device}))
	},
	"SetEndpointAttributes": func(ctx context.Context, c *sns.Client, _ *firehose.Client, v endpointsTarget) error {
		return errorOf(c.SetEndpointAttributes(ctx, &sns.SetEndpointAttributesInput{EndpointArn: &v.device, Attributes: map[string]string{"Token": "mine"}}))
	},
	"DeleteEndpoint": func(ctx context.Context, c *sns.Client, _ *firehose.Client, v endpointsTarget) error {
		return errorOf(c.DeleteEndpoint(ctx, &sns.DeleteEndpointInput{EndpointArn: &v.device}))
	},
	"Publish to a device": func(ctx context.Context, c *sns.Client, _ *firehose.Client, v endpointsTarget) error {
		return errorOf(c.Publish(ctx, &sns.PublishInput{TargetArn: &v.device, Message: new("x")}))
	},
	"GetDataProtectionPolicy": func(ctx context.Context, c *sns.Client, _ *firehose.Client, v endpointsTarget) error {
		return errorOf(c.GetDataProtectionPolicy(ctx, &sns.GetDataProtectionPolicyInput{ResourceArn: &v.topic}))
	},
	"PutDataProtectionPolicy": func(ctx context.Context, c *sns.Client, _ *firehose.Client, v endpointsTarget) error {
		return errorOf(c.PutDataProtectionPolicy(ctx, &sns.PutDataProtectionPolicyInput{ResourceArn: &v.topic, DataProtectionPolicy: new(`{"Name":"n","Version":"2021-06-01","Statement":[]}`)}))
	},
	"DescribeDeliveryStream": func(ctx context.Context, _ *sns.Client, c *firehose.Client, v endpointsTarget) error {
		return errorOf(c.DescribeDeliveryStream(ctx, &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: &v.stream}))
	},
	"PutRecord": func(ctx context.Context, _ *sns.Client, c *firehose.Client, v endpointsTarget) error {
		return errorOf(c.PutRecord(ctx, &firehose.PutRecordInput{DeliveryStreamName: &v.stream, Record: &types.Record{Data: []byte("x")}}))
	},
	"PutRecordBatch": func(ctx context.Context, _ *sns.Client, c *firehose.Client, v endpointsTarget) error {
		return errorOf(c.PutRecordBatch(ctx, &firehose.PutRecordBatchInput{DeliveryStreamName: &v.stream, Records: []types.Record{{Data: []byte("x")}}}))
	},
	"UpdateDestination": func(ctx context.Context, _ *sns.Client, c *firehose.Client, v endpointsTarget) error {
		return errorOf(c.UpdateDestination(ctx, &firehose.UpdateDestinationInput{
			DeliveryStreamName: &v.stream, DestinationId: new("destinationId-000000000001"), CurrentDeliveryStreamVersionId: new("1"),
			ExtendedS3DestinationUpdate: &types.ExtendedS3DestinationUpdate{BucketARN: new("arn:aws:s3:::mine")},
		}))
	},
	"StartDeliveryStreamEncryption": func(ctx context.Context, _ *sns.Client, c *firehose.Client, v endpointsTarget) error {
		return errorOf(c.StartDeliveryStreamEncryption(ctx, &firehose.StartDeliveryStreamEncryptionInput{DeliveryStreamName: &v.stream}))
	},
	"TagDeliveryStream": func(ctx context.Context, _ *sns.Client, c *firehose.Client, v endpointsTarget) error {
		return errorOf(c.TagDeliveryStream(ctx, &firehose.TagDeliveryStreamInput{DeliveryStreamName: &v.stream, Tags: []types.Tag{{Key: new("a")}}}))
	},
	"ListTagsForDeliveryStream": func(ctx context.Context, _ *sns.Client, c *firehose.Client, v endpointsTarget) error {
		return errorOf(c.ListTagsForDeliveryStream(ctx, &firehose.ListTagsForDeliveryStreamInput{DeliveryStreamName: &v.stream}))
	},
	"DeleteDeliveryStream": func(ctx context.Context, _ *sns.Client, c *firehose.Client, v endpointsTarget) error {
		return errorOf(c.DeleteDeliveryStream(ctx, &firehose.DeleteDeliveryStreamInput{DeliveryStreamName: &v.stream}))
	},
}

// endpointsLists list what is the caller's own.
var endpointsLists = map[string]func(ctx context.Context, push *sns.Client, hoses *firehose.Client) (any, error){
	"ListPlatformApplications": func(ctx context.Context, c *sns.Client, _ *firehose.Client) (any, error) {
		return shown(c.ListPlatformApplications(ctx, &sns.ListPlatformApplicationsInput{}))
	},
	"ListDeliveryStreams": func(ctx context.Context, _ *sns.Client, c *firehose.Client) (any, error) {
		return shown(c.ListDeliveryStreams(ctx, &firehose.ListDeliveryStreamsInput{}))
	},
	"GetSMSAttributes": func(ctx context.Context, c *sns.Client, _ *firehose.Client) (any, error) {
		return shown(c.GetSMSAttributes(ctx, &sns.GetSMSAttributesInput{}))
	},
	"ListPhoneNumbersOptedOut": func(ctx context.Context, c *sns.Client, _ *firehose.Client) (any, error) {
		return shown(c.ListPhoneNumbersOptedOut(ctx, &sns.ListPhoneNumbersOptedOutInput{}))
	},
	"ListSMSSandboxPhoneNumbers": func(ctx context.Context, c *sns.Client, _ *firehose.Client) (any, error) {
		return shown(c.ListSMSSandboxPhoneNumbers(ctx, &sns.ListSMSSandboxPhoneNumbersInput{}))
	},
	"ListOriginationNumbers": func(ctx context.Context, c *sns.Client, _ *firehose.Client) (any, error) {
		return shown(c.ListOriginationNumbers(ctx, &sns.ListOriginationNumbersInput{}))
	},
}

// Applications, devices, numbers and delivery streams stay out of sight of strangers, as
// everything else does (TestStrangers).
func TestStrangersToEndpoints(t *testing.T) {
	const other = "444455556666"
	endpoint := startWith(t, func(c *config.Config) { c.FirehoseDirectory = t.TempDir() })
	push, hoses := topicsClient(endpoint), firehoseAs(endpoint, "test")
	ours := endpointsTarget{name: "victim", stream: "victim"}
	ours.application = createApplication(t, push, "GCM", "victim", "EventDeliveryFailure", createTopic(t, push, "canary"))
	ours.device = createEndpoint(t, push, ours.application, "canary-token")
	ours.topic = createTopic(t, push, "victim")
	absent := endpointsTarget{
		name: "absent", stream: "absent", topic: topicARN("absent"),
		application: strings.Replace(ours.application, "victim", "absent", 1), device: strings.Replace(ours.device, "victim", "absent", 1),
	}
	must(iamClient(endpoint).CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: new("hose"), AssumeRolePolicyDocument: new(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"firehose.amazonaws.com"},"Action":"sts:AssumeRole"}]}`)}))(t)
	must(hoses.CreateDeliveryStream(t.Context(), &firehose.CreateDeliveryStreamInput{
		DeliveryStreamName: new("victim"), ExtendedS3DestinationConfiguration: toBucket(),
		Tags: []types.Tag{{Key: new("t"), Value: new("canary")}},
	}))(t)
	must(hoses.PutRecord(t.Context(), &firehose.PutRecordInput{DeliveryStreamName: new("victim"), Record: &types.Record{Data: []byte("canary")}}))(t)

	for who, caller := range map[string]struct {
		keys    aws.CredentialsProvider
		outside bool
	}{
		"a user who may nothing":          {makeUser(t, endpoint, "eve"), false},
		"another account's root":          {credentials.NewStaticCredentialsProvider(other, secretOf(other), ""), true},
		"another account's administrator": {userOf(t, iamClientOf(endpoint, other, secretOf(other), ""), "mallory", allow("*", "*")), true},
	} {
		t.Run(who, func(t *testing.T) {
			c := sns.New(sns.Options{BaseEndpoint: &endpoint, Region: region, Credentials: caller.keys, RetryMaxAttempts: 1, HTTPClient: eager})
			h := firehose.New(firehose.Options{BaseEndpoint: &endpoint, Region: region, Credentials: caller.keys, RetryMaxAttempts: 1, HTTPClient: eager})
			for name, f := range endpointsAttacks {
				one, two := f(t.Context(), c, h, ours), f(t.Context(), c, h, absent)
				if one == nil {
					t.Errorf("%s is allowed", name)
					continue
				}
				if strings.Contains(one.Error(), "canary") {
					t.Errorf("%s tells: %v", name, one)
				}
				told := func(err error, v endpointsTarget) string { return toldOf(err, target{name: v.name}) }
				if a, b := told(one, ours), told(two, absent); a != b {
					t.Errorf("%s tells what is there:\n%s\n%s", name, a, b)
				}
			}
			for name, f := range endpointsLists {
				text, err := f(t.Context(), c, h)
				if !caller.outside && err == nil {
					t.Errorf("%s is allowed", name)
				} else if shown := fmt.Sprint(text, err); strings.Contains(shown, "canary") || err == nil && strings.Contains(shown, "victim") {
					t.Errorf("%s shows %v, %v", name, text, err)
				}
			}
			for _, path := range []string{"outbox/push?endpoint=" + ours.device, "outbox/sms", "outbox", "deliveries?subscription=" + ours.device, "v1/cluster"} {
				if r := operatorCall(t, endpoint+"/_godwit/"+path, http.MethodGet, caller.keys); r.Status < 400 || strings.Contains(r.Body, "canary") {
					t.Errorf("/_godwit/%s: %d %s", path, r.Status, r.Body)
				}
			}
		})
	}
	if got := endpointAttributes(t, push, ours.device); got["Token"] != "canary-token" {
		t.Errorf("the device after all that: %v", got)
	}
	list := must(push.ListEndpointsByPlatformApplication(t.Context(), &sns.ListEndpointsByPlatformApplicationInput{PlatformApplicationArn: &ours.application}))(t)
	equal(t, "devices after all that", 1, len(list.Endpoints))
	streams := must(hoses.ListDeliveryStreams(t.Context(), &firehose.ListDeliveryStreamsInput{}))(t)
	if !slices.Equal(streams.DeliveryStreamNames, []string{"victim"}) {
		t.Errorf("streams after all that: %v", streams.DeliveryStreamNames)
	}
}

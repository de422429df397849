package sdk_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	firehosetypes "github.com/aws/aws-sdk-go-v2/service/firehose/types"

	"godwit.dev/godwit/internal/config"
)

// hose is a delivery stream to a bucket.
const hose = `
Parameters: {Seconds: {Type: Number, Default: 60}}
Resources:
  May:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: firehose.amazonaws.com}, Action: "sts:AssumeRole"}]}
      Policies: [{PolicyName: all, PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: "s3:*", Resource: "*"}]}}]
  Hose:
    Type: AWS::KinesisFirehose::DeliveryStream
    Properties:
      DeliveryStreamType: DirectPut
      ExtendedS3DestinationConfiguration:
        BucketARN: arn:aws:s3:::bucket
        RoleARN: !GetAtt May.Arn
        Prefix: orders/
        BufferingHints: {IntervalInSeconds: !Ref Seconds, SizeInMBs: "2"}
      Tags: [{Key: team, Value: rentals}]
Outputs: {Name: {Value: !Ref Hose}, Arn: {Value: !GetAtt Hose.Arn}}
`

// A delivery stream of a stack is made, changed in place, encrypted, replaced under another
// name, and deleted.
func TestStackDeliveryStream(t *testing.T) {
	dir := t.TempDir()
	ctx, endpoint := t.Context(), startWith(t, func(c *config.Config) { c.FirehoseDirectory = dir })
	hoses, c := firehoseAs(endpoint, account), cloudformationAs(endpoint, account)
	s := deployed(t, c, "hoses", hose)
	out := s.outputs()
	if !strings.HasPrefix(out["Name"], "hoses-Hose-") {
		t.Errorf("the stream is called %s", out["Name"])
	}
	is := func(name string) *firehosetypes.DeliveryStreamDescription {
		t.Helper()
		return must(hoses.DescribeDeliveryStream(ctx, &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: &name}))(t).DeliveryStreamDescription
	}
	to := func(name string) *firehosetypes.ExtendedS3DestinationDescription {
		t.Helper()
		return is(name).Destinations[0].ExtendedS3DestinationDescription
	}
	tags := func(name string) string {
		t.Helper()
		all := must(hoses.ListTagsForDeliveryStream(ctx, &firehose.ListTagsForDeliveryStreamInput{DeliveryStreamName: &name}))(t).Tags
		if len(all) != 1 {
			t.Fatalf("%d tags", len(all))
		}
		return *all[0].Key + "=" + *all[0].Value
	}
	equal(t, "ARN", *is(out["Name"]).DeliveryStreamARN, out["Arn"])
	equal(t, "interval", int32(60), *to(out["Name"]).BufferingHints.IntervalInSeconds)
	equal(t, "size", int32(2), *to(out["Name"]).BufferingHints.SizeInMBs)
	equal(t, "tags", "team=rentals", tags(out["Name"]))

	changed := strings.Replace(hose, "Prefix: orders/", "Prefix: returns/", 1)
	changed = strings.Replace(changed, "{Key: team, Value: rentals}", "{Key: group, Value: press}", 1)
	changed = strings.Replace(changed, "DeliveryStreamType: DirectPut", "DeliveryStreamType: DirectPut\n      DeliveryStreamEncryptionConfigurationInput: {KeyType: AWS_OWNED_CMK}", 1)
	s.update(types.StackStatusUpdateComplete, changed, "Seconds", "120")
	equal(t, "interval and prefix", "returns/", *to(out["Name"]).Prefix)
	equal(t, "interval", int32(120), *to(out["Name"]).BufferingHints.IntervalInSeconds)
	equal(t, "encryption", firehosetypes.DeliveryStreamEncryptionStatusEnabled, is(out["Name"]).DeliveryStreamEncryptionConfiguration.Status)
	equal(t, "tags", "group=press", tags(out["Name"]))

	named := strings.Replace(changed, "DeliveryStreamType: DirectPut", "DeliveryStreamType: DirectPut\n      DeliveryStreamName: orders", 1)
	s.update(types.StackStatusUpdateComplete, named, "Seconds", "120")
	equal(t, "replaced", "orders", s.outputs()["Name"])
	equal(t, "streams", []string{"orders"}, must(hoses.ListDeliveryStreams(ctx, &firehose.ListDeliveryStreamsInput{}))(t).DeliveryStreamNames)

	taken := deployedBadly(t, c, "taken", named)
	taken.told("Resource of type 'AWS::KinesisFirehose::DeliveryStream' with identifier 'orders' already exists.")
	unknown := deployedBadly(t, c, "unknown", strings.Replace(hose, "Prefix: orders/", "Suffix: orders/", 1))
	unknown.told("#/ExtendedS3DestinationConfiguration: extraneous key [Suffix] is not permitted")
	s.remove()
	equal(t, "streams", 0, len(must(hoses.ListDeliveryStreams(ctx, &firehose.ListDeliveryStreamsInput{}))(t).DeliveryStreamNames))
}

package sdk_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// stackUnderTest is a stack that a test deploys and changes.
type stackUnderTest struct {
	*testing.T

	c  *cloudformation.Client
	id string
}

var allCapabilities = []types.Capability{types.CapabilityCapabilityNamedIam, types.CapabilityCapabilityAutoExpand}

// deployed makes a stack, which has to succeed.
func deployed(t *testing.T, c *cloudformation.Client, name, template string, parameters ...string) *stackUnderTest {
	t.Helper()
	made := must(c.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: &name, TemplateBody: &template, Capabilities: allCapabilities, Parameters: pairs(parameters)}))(t)
	s := &stackUnderTest{t, c, *made.StackId}
	s.ends(types.StackStatusCreateComplete)
	return s
}

// deployedBadly makes a stack, which has to be rolled back.
func deployedBadly(t *testing.T, c *cloudformation.Client, name, template string, parameters ...string) *stackUnderTest {
	t.Helper()
	made := must(c.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: &name, TemplateBody: &template, Capabilities: allCapabilities, Parameters: pairs(parameters)}))(t)
	s := &stackUnderTest{t, c, *made.StackId}
	s.ends(types.StackStatusRollbackComplete)
	return s
}

// ends waits until nothing is under way, and says what has happened if the status is another one.
func (s *stackUnderTest) ends(status types.StackStatus) {
	s.Helper()
	if is := awaitStack(s.T, s.c, s.id); is.StackStatus != status {
		s.Fatalf("%s: %q", is.StackStatus, eventsOfStack(s.T, s.c, s.id))
	}
}

// update changes the stack, which has to end with a status.
func (s *stackUnderTest) update(status types.StackStatus, template string, parameters ...string) {
	s.Helper()
	must(s.c.UpdateStack(s.Context(), &cloudformation.UpdateStackInput{StackName: &s.id, TemplateBody: &template, Capabilities: allCapabilities, Parameters: pairs(parameters)}))(s.T)
	s.ends(status)
}

func (s *stackUnderTest) outputs() map[string]string {
	s.Helper()
	out := map[string]string{}
	for _, o := range awaitStack(s.T, s.c, s.id).Outputs {
		out[*o.OutputKey] = *o.OutputValue
	}
	return out
}

// told refuses that no event says a text.
func (s *stackUnderTest) told(text string) {
	s.Helper()
	if lines := strings.Join(eventsOfStack(s.T, s.c, s.id), "\n"); !strings.Contains(lines, text) {
		s.Errorf("no event says %q:\n%s", text, lines)
	}
}

func (s *stackUnderTest) remove() {
	s.Helper()
	must(s.c.DeleteStack(s.Context(), &cloudformation.DeleteStackInput{StackName: &s.id}))(s.T)
	s.ends(types.StackStatusDeleteComplete)
}

// safe is a key with an alias, and a queue under it.
const safe = `
Parameters: {Words: {Type: String, Default: "orders"}}
Resources:
  Key:
    Type: AWS::KMS::Key
    Properties:
      Description: !Ref Words
      EnableKeyRotation: true
      RotationPeriodInDays: 100
      PendingWindowInDays: "7"
      KeyPolicy:
        Version: 2012-10-17
        Statement: [{Sid: all, Effect: Allow, Principal: {AWS: !Sub "arn:aws:iam::${AWS::AccountId}:root"}, Action: "kms:*", Resource: "*"}]
      Tags: [{Key: team, Value: rentals}]
  Name: {Type: AWS::KMS::Alias, Properties: {AliasName: alias/orders, TargetKeyId: !Ref Key}}
  Orders: {Type: AWS::SQS::Queue, Properties: {KmsMasterKeyId: !Ref Name}}
Outputs: {Key: {Value: !Ref Key}, Arn: {Value: !GetAtt Key.Arn}, KeyId: {Value: !GetAtt Key.KeyId}, Alias: {Value: !Ref Name}, Queue: {Value: !Ref Orders}}
`

// A function's variables are under the key that its template names, as Lambda calls it otherwise.
func TestStackFunctionUnderKey(t *testing.T) {
	endpoint := start(t)
	const template = `
Resources:
  Key: {Type: AWS::KMS::Key}
  May: {Type: AWS::IAM::Role, Properties: {AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: lambda.amazonaws.com}, Action: "sts:AssumeRole"}]}}}
  Price: {Type: AWS::Lambda::Function, Properties: {Role: !GetAtt May.Arn, Runtime: python3.13, Handler: index.handler, Code: {ZipFile: ""}, KmsKeyArn: !GetAtt Key.Arn, Environment: {Variables: {RATE: "3"}}}}
Outputs: {Key: {Value: !GetAtt Key.Arn}, Name: {Value: !Ref Price}}
`
	s := deployed(t, cloudformationAs(endpoint, account), "prices", template)
	out := s.outputs()
	equal(t, "key", out["Key"], aws.ToString(configuration(t, functionsClient(endpoint), out["Name"]).KMSKeyArn))
	s.update(types.StackStatusUpdateComplete, strings.Replace(template, "KmsKeyArn: !GetAtt Key.Arn, ", "", 1))
	equal(t, "key", "", aws.ToString(configuration(t, functionsClient(endpoint), out["Name"]).KMSKeyArn))
}

// A key of a stack is made as its properties say and changed in place; what it is made with does
// not change, and its alias is replaced under another name.
func TestStackKey(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	keys := newKMS(t, endpoint, account)
	s := deployed(t, cloudformationAs(endpoint, account), "safe", safe)
	out := s.outputs()
	of := func() *kmstypes.KeyMetadata {
		return must(keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: new(out["Key"])}))(t).KeyMetadata
	}
	key := of()
	equal(t, "Ref", *key.KeyId, out["Key"])
	equal(t, "GetAtt Arn", *key.Arn, out["Arn"])
	equal(t, "GetAtt KeyId", *key.KeyId, out["KeyId"])
	equal(t, "Ref of an alias", "alias/orders", out["Alias"])
	equal(t, "description", "orders", *key.Description)
	rotation := func() *kms.GetKeyRotationStatusOutput {
		return must(keys.GetKeyRotationStatus(ctx, &kms.GetKeyRotationStatusInput{KeyId: key.KeyId}))(t)
	}
	equal(t, "period", int32(100), *rotation().RotationPeriodInDays)
	policy := func() string {
		return *must(keys.GetKeyPolicy(ctx, &kms.GetKeyPolicyInput{KeyId: key.KeyId}))(t).Policy
	}
	if has := policy(); !strings.Contains(has, `"all"`) {
		t.Error(has)
	}
	aliasOf := func(name string) string {
		return *must(keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &name}))(t).KeyMetadata.KeyId
	}
	equal(t, "alias", *key.KeyId, aliasOf("alias/orders"))
	queue := must(client(endpoint).GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: new(out["Queue"]), AttributeNames: []sqstypes.QueueAttributeName{"KmsMasterKeyId"}}))(t)
	equal(t, "key of the queue", "alias/orders", queue.Attributes["KmsMasterKeyId"])
	tags := func() []kmstypes.Tag {
		return must(keys.ListResourceTags(ctx, &kms.ListResourceTagsInput{KeyId: key.KeyId}))(t).Tags
	}
	equal(t, "tag", "rentals", *tags()[0].TagValue)

	changed := strings.Replace(safe, "      EnableKeyRotation: true\n      RotationPeriodInDays: 100\n", "", 1)
	changed = strings.Replace(changed, "[{Key: team, Value: rentals}]", "[{Key: group, Value: press}]", 1)
	changed = changed[:strings.Index(changed, "      KeyPolicy:")] + changed[strings.Index(changed, "      Tags:"):]
	s.update(types.StackStatusUpdateComplete, changed, "Words", "returns")
	equal(t, "description", "returns", *of().Description)
	equal(t, "rotates", false, rotation().KeyRotationEnabled)
	equal(t, "tags", "group=press", *tags()[0].TagKey+"="+*tags()[0].TagValue)
	if has := policy(); strings.Contains(has, `"all"`) || !strings.Contains(has, "Enable IAM User Permissions") {
		t.Errorf("the policy is not that of a key without one: %s", has)
	}
	s.update(types.StackStatusUpdateComplete, strings.Replace(changed, "      PendingWindowInDays:", "      Enabled: false\n      PendingWindowInDays:", 1), "Words", "returns")
	equal(t, "enabled", false, of().Enabled)
	s.update(types.StackStatusUpdateComplete, changed, "Words", "returns")
	equal(t, "enabled", true, of().Enabled)

	s.update(types.StackStatusUpdateRollbackComplete, strings.Replace(changed, "      PendingWindowInDays:", "      KeySpec: RSA_2048\n      PendingWindowInDays:", 1), "Words", "returns")
	s.told("You cannot modify the KeySpec property")
	equal(t, "the key", *key.KeyId, s.outputs()["Key"])

	s.update(types.StackStatusUpdateComplete, strings.Replace(changed, "alias/orders", "alias/returns", 1), "Words", "returns")
	equal(t, "replaced", "alias/returns", s.outputs()["Alias"])
	equal(t, "alias", *key.KeyId, aliasOf("alias/returns"))
	if _, err := keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: new("alias/orders")}); err == nil {
		t.Error("the alias that was replaced is still there")
	}

	s.remove()
	equal(t, "state", kmstypes.KeyStatePendingDeletion, of().KeyState)
	equal(t, "window", 7*24*time.Hour, of().DeletionDate.Sub(*of().CreationDate))
	equal(t, "aliases", 0, len(must(keys.ListAliases(ctx, &kms.ListAliasesInput{KeyId: key.KeyId}))(t).Aliases))
}

// A key that is disabled from the beginning, and what KMS refuses.
func TestStackKeyRefusals(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	keys, c := newKMS(t, endpoint, account), cloudformationAs(endpoint, account)
	s := deployed(t, c, "still", `{"Resources": {"K": {"Type": "AWS::KMS::Key", "Properties": {"Enabled": "false", "KeySpec": "HMAC_256", "KeyUsage": "GENERATE_VERIFY_MAC"}}},
		"Outputs": {"Key": {"Value": {"Ref": "K"}}}}`)
	is := must(keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: new(s.outputs()["Key"])}))(t).KeyMetadata
	equal(t, "spec and state", "HMAC_256 Disabled", string(is.KeySpec)+" "+string(is.KeyState))
	for properties, why := range map[string]string{
		`"MultiRegion": true`:       "Keys of several regions are not built yet.",
		`"Sharpness": 3`:            "extraneous key [Sharpness] is not permitted",
		`"PendingWindowInDays": []`: "#/PendingWindowInDays: expected type: Integer, found: JSONArray",
	} {
		refused := deployedBadly(t, c, "refused", `{"Resources": {"K": {"Type": "AWS::KMS::Key", "Properties": {`+properties+`}}}}`)
		refused.told(why)
		refused.remove()
	}
	must(keys.CreateAlias(ctx, &kms.CreateAliasInput{AliasName: new("alias/taken"), TargetKeyId: is.KeyId}))(t)
	taken := deployedBadly(t, c, "taken", `{"Resources": {"K": {"Type": "AWS::KMS::Key"}, "A": {"Type": "AWS::KMS::Alias", "Properties": {"AliasName": "alias/taken", "TargetKeyId": {"Ref": "K"}}}}}`)
	taken.told("Resource of type 'AWS::KMS::Alias' with identifier 'alias/taken' already exists.")
}

// An access key of a stack signs, can be made inactive, is replaced with its serial number, and
// goes with the stack.
func TestStackAccessKey(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	who := iamClient(endpoint)
	const template = `
Resources:
  Ann: {Type: AWS::IAM::User}
  Key: {Type: AWS::IAM::AccessKey, Properties: {UserName: !Ref Ann}}
Outputs: {User: {Value: !Ref Ann}, Key: {Value: !Ref Key}, Secret: {Value: !GetAtt Key.SecretAccessKey}}
`
	s := deployed(t, cloudformationAs(endpoint, account), "ann", template)
	out := s.outputs()
	calls := func() (*sts.GetCallerIdentityOutput, error) {
		out := s.outputs()
		as := sts.New(sts.Options{Region: region, BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider(out["Key"], out["Secret"], ""), RetryMaxAttempts: 1, HTTPClient: eager})
		return as.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	}
	equal(t, "who calls", "arn:aws:iam::"+account+":user/"+out["User"], *must(calls())(t).Arn)
	s.update(types.StackStatusUpdateComplete, strings.Replace(template, "!Ref Ann}}", "!Ref Ann, Status: Inactive}}", 1))
	if _, err := calls(); err == nil {
		t.Error("a key that is not active signs")
	}
	s.update(types.StackStatusUpdateComplete, strings.Replace(template, "!Ref Ann}}", "!Ref Ann, Serial: 2}}", 1))
	if now := s.outputs(); now["Key"] == out["Key"] {
		t.Error("another serial number has not replaced the key")
	}
	must(calls())(t)
	listed := must(who.ListAccessKeys(ctx, &iam.ListAccessKeysInput{UserName: new(out["User"])}))(t).AccessKeyMetadata
	equal(t, "keys", 1, len(listed))
	equal(t, "status", iamtypes.StatusTypeActive, listed[0].Status)
	s.remove()
	equal(t, "users", 0, len(must(who.ListUsers(ctx, &iam.ListUsersInput{}))(t).Users))
}

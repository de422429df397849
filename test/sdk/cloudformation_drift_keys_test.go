package sdk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// aliases is a key with two names.
const aliases = `
Resources:
  Key: {Type: AWS::KMS::Key}
  Name: {Type: AWS::KMS::Alias, Properties: {AliasName: alias/first, TargetKeyId: !Ref Key}}
  Other: {Type: AWS::KMS::Alias, Properties: {AliasName: alias/second, TargetKeyId: !GetAtt Key.Arn}}
`

// What is changed beside a stack of its keys, versions, aliases and access keys is reported, and
// nothing is of what is as the stack has made it.
func TestStackDriftOfKeysAndVersions(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c, keys, functions, identities := cloudformationAs(endpoint, account), newKMS(t, endpoint, account), functionsClient(endpoint), iamClient(endpoint)
	const clerk = "Resources:\n  Ann: {Type: AWS::IAM::User}\n  Own: {Type: AWS::IAM::AccessKey, Properties: {UserName: !Ref Ann, Status: Active}}\nOutputs: {User: {Value: !Ref Ann}, Key: {Value: !Ref Own}}\n"
	outputs := map[string]map[string]string{}
	for name, template := range map[string]string{"safe": safe, "rates": rates, "clerk": clerk, "aliases": aliases} {
		outputs[name] = deployed(t, c, name, template).outputs()
		if found := compared(t, c, name); found.StackDriftStatus != types.StackDriftStatusInSync {
			t.Errorf("%s is new, and %s: %q", name, found.StackDriftStatus, drifts(t, c, name))
		}
		if lines := drifts(t, c, name, types.StackResourceDriftStatusNotChecked); len(lines) > 0 {
			t.Errorf("not checked: %q", lines)
		}
	}
	key := outputs["safe"]["Key"]
	must(keys.DisableKeyRotation(ctx, &kms.DisableKeyRotationInput{KeyId: &key}))(t)
	must(keys.UpdateKeyDescription(ctx, &kms.UpdateKeyDescriptionInput{KeyId: &key, Description: new("others")}))(t)
	must(keys.UntagResource(ctx, &kms.UntagResourceInput{KeyId: &key, TagKeys: []string{"team"}}))(t)
	must(keys.TagResource(ctx, &kms.TagResourceInput{KeyId: &key, Tags: []kmstypes.Tag{{TagKey: new("group"), TagValue: new("press")}}}))(t)
	other := must(keys.CreateKey(ctx, &kms.CreateKeyInput{}))(t).KeyMetadata.KeyId
	must(keys.UpdateAlias(ctx, &kms.UpdateAliasInput{AliasName: new("alias/orders"), TargetKeyId: other}))(t)
	function := outputs["rates"]["Name"]
	must(functions.UpdateAlias(ctx, &lambda.UpdateAliasInput{FunctionName: &function, Name: new("live"), FunctionVersion: new("$LATEST"), Description: new("")}))(t)
	must(functions.DeleteFunction(ctx, &lambda.DeleteFunctionInput{FunctionName: &function, Qualifier: new("1")}))(t)
	must(identities.UpdateAccessKey(ctx, &iam.UpdateAccessKeyInput{UserName: new(outputs["clerk"]["User"]), AccessKeyId: new(outputs["clerk"]["Key"]), Status: iamtypes.StatusTypeInactive}))(t)
	must(keys.DeleteAlias(ctx, &kms.DeleteAliasInput{AliasName: new("alias/first")}))(t)
	for name, want := range map[string][]string{
		"aliases": {"Name DELETED"},
		"safe": {
			`Key MODIFIED /Description NOT_EQUAL orders others /EnableKeyRotation NOT_EQUAL true false /RotationPeriodInDays REMOVE 100 null /Tags/0 REMOVE {"Key":"team","Value":"rentals"} null /Tags/0 ADD null {"Key":"group","Value":"press"}`,
			"Name MODIFIED /TargetKeyId NOT_EQUAL " + key + " " + *other,
		},
		"rates": {"First DELETED", "Live MODIFIED /Description REMOVE serves null /FunctionVersion NOT_EQUAL 1 $LATEST"},
		"clerk": {"Own MODIFIED /Status NOT_EQUAL Active Inactive"},
	} {
		compared(t, c, name)
		if lines := drifts(t, c, name, types.StackResourceDriftStatusModified, types.StackResourceDriftStatusDeleted); !slices.Equal(lines, want) {
			t.Errorf("drifts of %s:\n%s\nwant\n%s", name, strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	}
}

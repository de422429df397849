package sdk_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// Who may manage access keys of its own, as a policy of AWS's documentation says, asks when
// they were used, and not when those of others were.
func TestOwnAccessKeys(t *testing.T) {
	endpoint, ctx := start(t), t.Context()
	who := makeUser(t, endpoint, "ann", statement("Allow", `["iam:CreateAccessKey","iam:DeleteAccessKey","iam:GetAccessKeyLastUsed","iam:GetUser","iam:ListAccessKeys","iam:UpdateAccessKey"]`,
		"arn:aws:iam::*:user/${aws:username}"))
	makeUser(t, endpoint, "bob")
	ann := iamAs(endpoint, who)
	theirs := *must(iamClient(endpoint).ListAccessKeys(ctx, &iam.ListAccessKeysInput{UserName: new("bob")}))(t).AccessKeyMetadata[0].AccessKeyId
	mine := must(ann.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{}))(t).AccessKey.AccessKeyId
	if got, err := ann.GetAccessKeyLastUsed(ctx, &iam.GetAccessKeyLastUsedInput{AccessKeyId: mine}); err != nil || *got.UserName != "ann" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, id := range []string{theirs, "AKIAIOSFODNN7EXAMPLE"} {
		_, err := ann.GetAccessKeyLastUsed(ctx, &iam.GetAccessKeyLastUsedInput{AccessKeyId: &id})
		deniedTo(t, id, err)
		if err == nil || strings.Contains(err.Error(), "bob") {
			t.Errorf("%s: %v", id, err)
		}
	}
	must(ann.UpdateAccessKey(ctx, &iam.UpdateAccessKeyInput{AccessKeyId: mine, Status: iamtypes.StatusTypeInactive}))(t)
	must(ann.DeleteAccessKey(ctx, &iam.DeleteAccessKeyInput{AccessKeyId: mine}))(t)
	_, err := ann.DeleteAccessKey(ctx, &iam.DeleteAccessKeyInput{UserName: new("bob"), AccessKeyId: &theirs})
	deniedTo(t, "a key of bob's", err)
}

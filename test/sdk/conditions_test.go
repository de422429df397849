package sdk_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
)

// conditional is a call of a user whose policy allows everything under a condition: which
// holds as it is, and not in the other form.
type conditional struct {
	name, holds, fails string
	call               func(ctx context.Context) error
}

// hold tries them.
func hold(t *testing.T, endpoint, user string, all []conditional) {
	t.Helper()
	users := iamClient(endpoint)
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			under := func(condition string) error {
				must(users.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{
					UserName: &user, PolicyName: new("p"),
					PolicyDocument: new(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Condition":` + condition + `}}`),
				}))(t)
				return c.call(t.Context())
			}
			deniedTo(t, "what the condition does not hold for", under(c.fails))
			if err := under(c.holds); err != nil {
				t.Errorf("what it holds for: %v", err)
			}
		})
	}
}

// equals is a condition on a key with a value.
func equals(key, value string) string { return `{"StringEquals":{"` + key + `":"` + value + `"}}` }

// within is one on a key with several values.
func within(key, value string) string {
	return `{"ForAllValues:StringEquals":{"` + key + `":"` + value + `"},"Null":{"` + key + `":"false"}}`
}

// Whatever KMS's documentation names can be asked of a use of a key.
func TestKMSConditions(t *testing.T) {
	endpoint := start(t)
	root, eve := newKMS(t, endpoint, "test"), kmsAs(endpoint, makeUser(t, endpoint, "eve"))
	key := makeKey(t, root, &kms.CreateKeyInput{Tags: []types.Tag{{TagKey: new("team"), TagValue: new("red")}}}).KeyId
	signing := makeKey(t, root, &kms.CreateKeyInput{KeySpec: types.KeySpecEccNistP256, KeyUsage: types.KeyUsageTypeSignVerify}).KeyId
	mac := makeKey(t, root, &kms.CreateKeyInput{KeySpec: types.KeySpecHmac256, KeyUsage: types.KeyUsageTypeGenerateVerifyMac}).KeyId
	must(root.CreateAlias(t.Context(), &kms.CreateAliasInput{AliasName: new("alias/a"), TargetKeyId: key}))(t)
	blob := must(root.Encrypt(t.Context(), &kms.EncryptInput{KeyId: key, Plaintext: []byte("x")}))(t).CiphertextBlob

	encrypt := func(ctx context.Context) error {
		_, err := eve.Encrypt(ctx, &kms.EncryptInput{KeyId: key, Plaintext: []byte("x"), EncryptionContext: map[string]string{"Order": "7"}})
		return err
	}
	byAlias := func(ctx context.Context) error {
		_, err := eve.Encrypt(ctx, &kms.EncryptInput{KeyId: new("alias/a"), Plaintext: []byte("x")})
		return err
	}
	grant := func(ctx context.Context) error {
		_, err := eve.CreateGrant(ctx, &kms.CreateGrantInput{
			KeyId: key, GranteePrincipal: new("arn:aws:iam::" + account + ":user/eve"), RetiringPrincipal: new("arn:aws:iam::" + account + ":root"),
			Operations: []types.GrantOperation{"Decrypt"}, Constraints: &types.GrantConstraints{EncryptionContextSubset: map[string]string{"Order": "7"}},
		})
		return err
	}
	create := func(ctx context.Context) error {
		_, err := eve.CreateKey(ctx, &kms.CreateKeyInput{KeySpec: types.KeySpecHmac256, KeyUsage: types.KeyUsageTypeGenerateVerifyMac, Tags: []types.Tag{{TagKey: new("team"), TagValue: new("red")}}})
		return err
	}
	hold(t, endpoint, "eve", []conditional{
		{"transport", `{"Bool":{"aws:SecureTransport":"false"}}`, `{"Bool":{"aws:SecureTransport":"true"}}`, encrypt},
		{"address", `{"IpAddress":{"aws:SourceIp":"127.0.0.0/8"}}`, `{"IpAddress":{"aws:SourceIp":"203.0.113.0/24"}}`, encrypt},
		{"account", equals("kms:CallerAccount", account), equals("kms:CallerAccount", "999988887777"), encrypt},
		{"service", `{"Null":{"kms:ViaService":"true"}}`, equals("kms:ViaService", "sqs."+region+".amazonaws.com"), encrypt},
		{"context", equals("kms:EncryptionContext:Order", "7"), equals("kms:EncryptionContext:Order", "8"), encrypt},
		{"context's keys", within("kms:EncryptionContextKeys", "Order"), within("kms:EncryptionContextKeys", "Other"), encrypt},
		{"algorithm", equals("kms:EncryptionAlgorithm", "SYMMETRIC_DEFAULT"), equals("kms:EncryptionAlgorithm", "RSAES_OAEP_SHA_1"), encrypt},
		{"spec", equals("kms:KeySpec", "SYMMETRIC_DEFAULT"), equals("kms:KeySpec", "RSA_2048"), encrypt},
		{"usage", equals("kms:KeyUsage", "ENCRYPT_DECRYPT"), equals("kms:KeyUsage", "SIGN_VERIFY"), encrypt},
		{"origin", equals("kms:KeyOrigin", "AWS_KMS"), equals("kms:KeyOrigin", "EXTERNAL"), encrypt},
		{"regions", `{"Bool":{"kms:MultiRegion":"false"}}`, `{"Bool":{"kms:MultiRegion":"true"}}`, encrypt},
		{"alias of the request", equals("kms:RequestAlias", "alias/a"), equals("kms:RequestAlias", "alias/b"), byAlias},
		{"no alias in the request", `{"Null":{"kms:RequestAlias":"true"}}`, equals("kms:RequestAlias", "alias/a"), encrypt},
		{"aliases of the key", `{"ForAnyValue:StringEquals":{"kms:ResourceAliases":"alias/a"}}`, `{"ForAnyValue:StringEquals":{"kms:ResourceAliases":"alias/b"}}`, encrypt},
		{"tag of the key", equals("aws:ResourceTag/team", "red"), equals("aws:ResourceTag/team", "blue"), encrypt},
		{"operations of a grant", within("kms:GrantOperations", "Decrypt"), within("kms:GrantOperations", "Encrypt"), grant},
		{"grantee", equals("kms:GranteePrincipal", "arn:aws:iam::"+account+":user/eve"), equals("kms:GranteePrincipal", "arn:aws:iam::"+account+":user/bob"), grant},
		{"who retires", equals("kms:RetiringPrincipal", "arn:aws:iam::"+account+":root"), equals("kms:RetiringPrincipal", "arn:aws:iam::"+account+":user/bob"), grant},
		{"constraint", equals("kms:GrantConstraintType", "EncryptionContextSubset"), equals("kms:GrantConstraintType", "EncryptionContextEquals"), grant},
		{"context of a grant", equals("kms:EncryptionContext:Order", "7"), equals("kms:EncryptionContext:Order", "8"), grant},
		{"grant for a service", `{"Bool":{"kms:GrantIsForAWSResource":"false"}}`, `{"Bool":{"kms:GrantIsForAWSResource":"true"}}`, grant},
		{"spec of a new key", equals("kms:KeySpec", "HMAC_256"), equals("kms:KeySpec", "SYMMETRIC_DEFAULT"), create},
		{"tags of a new key", equals("aws:RequestTag/team", "red"), equals("aws:RequestTag/team", "blue"), create},
		{"lockout of a new key", `{"Bool":{"kms:BypassPolicyLockoutSafetyCheck":"false"}}`, `{"Bool":{"kms:BypassPolicyLockoutSafetyCheck":"true"}}`, create},
		{"tags", equals("aws:RequestTag/team", "red"), equals("aws:RequestTag/team", "blue"), func(ctx context.Context) error {
			_, err := eve.TagResource(ctx, &kms.TagResourceInput{KeyId: key, Tags: []types.Tag{{TagKey: new("team"), TagValue: new("red")}}})
			return err
		}},
		{"keys of tags", within("aws:TagKeys", "other"), within("aws:TagKeys", "team"), func(ctx context.Context) error {
			_, err := eve.UntagResource(ctx, &kms.UntagResourceInput{KeyId: key, TagKeys: []string{"other"}})
			return err
		}},
		{"period of a rotation", `{"NumericEquals":{"kms:RotationPeriodInDays":"100"}}`, `{"NumericGreaterThan":{"kms:RotationPeriodInDays":"100"}}`, func(ctx context.Context) error {
			_, err := eve.EnableKeyRotation(ctx, &kms.EnableKeyRotationInput{KeyId: key, RotationPeriodInDays: new(int32(100))})
			return err
		}},
		{"key pair", equals("kms:DataKeyPairSpec", "ECC_NIST_P256"), equals("kms:DataKeyPairSpec", "RSA_2048"), func(ctx context.Context) error {
			_, err := eve.GenerateDataKeyPair(ctx, &kms.GenerateDataKeyPairInput{KeyId: key, KeyPairSpec: types.DataKeyPairSpecEccNistP256})
			return err
		}},
		{"same key", `{"Bool":{"kms:ReEncryptOnSameKey":"true"}}`, `{"Bool":{"kms:ReEncryptOnSameKey":"false"}}`, func(ctx context.Context) error {
			_, err := eve.ReEncrypt(ctx, &kms.ReEncryptInput{CiphertextBlob: blob, DestinationKeyId: new("alias/a")})
			return err
		}},
		{"signature", equals("kms:SigningAlgorithm", "ECDSA_SHA_256"), equals("kms:SigningAlgorithm", "ECDSA_SHA_384"), func(ctx context.Context) error {
			_, err := eve.Sign(ctx, &kms.SignInput{KeyId: signing, Message: []byte("x"), SigningAlgorithm: types.SigningAlgorithmSpecEcdsaSha256})
			return err
		}},
		{"kind of message", equals("kms:MessageType", "RAW"), equals("kms:MessageType", "DIGEST"), func(ctx context.Context) error {
			_, err := eve.Sign(ctx, &kms.SignInput{KeyId: signing, Message: []byte("x"), SigningAlgorithm: types.SigningAlgorithmSpecEcdsaSha256})
			return err
		}},
		{"code", equals("kms:MacAlgorithm", "HMAC_SHA_256"), equals("kms:MacAlgorithm", "HMAC_SHA_512"), func(ctx context.Context) error {
			_, err := eve.GenerateMac(ctx, &kms.GenerateMacInput{KeyId: mac, Message: []byte("x"), MacAlgorithm: types.MacAlgorithmSpecHmacSha256})
			return err
		}},
		{"lockout", `{"Bool":{"kms:BypassPolicyLockoutSafetyCheck":"false"}}`, `{"Bool":{"kms:BypassPolicyLockoutSafetyCheck":"true"}}`, func(ctx context.Context) error {
			_, err := eve.PutKeyPolicy(ctx, &kms.PutKeyPolicyInput{KeyId: mac, Policy: new(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"` + account + `"},"Action":"kms:*","Resource":"*"}}`)})
			return err
		}},
		{"window", `{"NumericEquals":{"kms:ScheduleKeyDeletionPendingWindowInDays":"9"}}`, `{"NumericGreaterThan":{"kms:ScheduleKeyDeletionPendingWindowInDays":"9"}}`, func(ctx context.Context) error {
			_, err := eve.ScheduleKeyDeletion(ctx, &kms.ScheduleKeyDeletionInput{KeyId: signing, PendingWindowInDays: new(int32(9))})
			return err
		}},
	})
}

// Tags and boundaries of users and roles can be asked.
func TestIAMConditions(t *testing.T) {
	endpoint := start(t)
	root, eve := iamClient(endpoint), iamAs(endpoint, makeUser(t, endpoint, "eve"))
	red := []iamtypes.Tag{{Key: new("team"), Value: new("red")}}
	boundary := *must(root.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: new("most"), PolicyDocument: new(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`)}))(t).Policy.Arn
	must(root.CreateUser(t.Context(), &iam.CreateUserInput{UserName: new("bob"), Tags: red, PermissionsBoundary: &boundary}))(t)
	must(root.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: new("job"), Tags: red, AssumeRolePolicyDocument: new(trustRoot)}))(t)
	getUser := func(ctx context.Context) error {
		_, err := eve.GetUser(ctx, &iam.GetUserInput{UserName: new("bob")})
		return err
	}
	getRole := func(ctx context.Context) error {
		_, err := eve.GetRole(ctx, &iam.GetRoleInput{RoleName: new("job")})
		return err
	}
	hold(t, endpoint, "eve", []conditional{
		{"tag of a user", equals("aws:ResourceTag/team", "red"), equals("aws:ResourceTag/team", "blue"), getUser},
		{"tag of a user, by IAM's key", equals("iam:ResourceTag/team", "red"), equals("iam:ResourceTag/team", "blue"), getUser},
		{"tag of a role", equals("aws:ResourceTag/team", "red"), equals("aws:ResourceTag/team", "blue"), getRole},
		{"tag of a request", equals("aws:RequestTag/team", "green"), equals("aws:RequestTag/team", "red"), func(ctx context.Context) error {
			_, err := eve.TagRole(ctx, &iam.TagRoleInput{RoleName: new("job"), Tags: []iamtypes.Tag{{Key: new("team"), Value: new("green")}}})
			return err
		}},
		{"keys of tags", within("aws:TagKeys", "team"), within("aws:TagKeys", "other"), func(ctx context.Context) error {
			_, err := eve.UntagUser(ctx, &iam.UntagUserInput{UserName: new("bob"), TagKeys: []string{"team"}})
			return err
		}},
		{"the boundary that a user has", equals("iam:PermissionsBoundary", boundary), equals("iam:PermissionsBoundary", boundary+"x"), func(ctx context.Context) error {
			_, err := eve.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: new("bob"), PolicyName: new("p"), PolicyDocument: new(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sqs:*","Resource":"*"}}`)})
			return err
		}},
	})
}

package sdk_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"
)

func newKMS(t *testing.T, endpoint, who string) *kms.Client {
	t.Helper()
	return kms.New(kms.Options{Region: region, BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider(who, secretOf(who), ""), RetryMaxAttempts: 1, HTTPClient: eager})
}

// refusedWith checks an error's code and text.
func refusedWith(t *testing.T, err error, code, text string) {
	t.Helper()
	var refused smithy.APIError
	if !errors.As(err, &refused) || refused.ErrorCode() != code || text != "*" && refused.ErrorMessage() != text {
		t.Errorf("got %v, want %s: %s", err, code, text)
	}
}

func makeKey(t *testing.T, c *kms.Client, in *kms.CreateKeyInput) *types.KeyMetadata {
	t.Helper()
	out, err := c.CreateKey(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out.KeyMetadata
}

// ask runs a call that succeeds.
func ask[In, Out any](t *testing.T, call func(context.Context, *In, ...func(*kms.Options)) (*Out, error), in *In) *Out {
	t.Helper()
	out, err := call(t.Context(), in)
	if err != nil {
		t.Fatalf("%T: %v", in, err)
	}
	return out
}

// TestKMSEncrypt: what is encrypted is decrypted with its context alone, also after
// rotations, and without naming the key.
func TestKMSEncrypt(t *testing.T) {
	c := newKMS(t, start(t), account)
	key := makeKey(t, c, &kms.CreateKeyInput{})
	encryption := map[string]string{"a": "1", "b": "2"}
	plaintext := []byte("a secret")
	first := ask(t, c.Encrypt, &kms.EncryptInput{KeyId: key.KeyId, Plaintext: plaintext, EncryptionContext: encryption})
	if bytes.Contains(first.CiphertextBlob, plaintext) || *first.KeyId != *key.Arn || first.EncryptionAlgorithm != types.EncryptionAlgorithmSpecSymmetricDefault {
		t.Errorf("%+v", first)
	}
	ask(t, c.RotateKeyOnDemand, &kms.RotateKeyOnDemandInput{KeyId: key.KeyId})
	after := ask(t, c.Encrypt, &kms.EncryptInput{KeyId: key.Arn, Plaintext: plaintext, EncryptionContext: encryption})
	materials := map[string]bool{}
	for _, blob := range [][]byte{first.CiphertextBlob, after.CiphertextBlob} {
		out := ask(t, c.Decrypt, &kms.DecryptInput{CiphertextBlob: blob, EncryptionContext: encryption})
		if !bytes.Equal(out.Plaintext, plaintext) || *out.KeyId != *key.Arn {
			t.Errorf("%+v", out)
		}
		materials[*out.KeyMaterialId] = true
	}
	if len(materials) != 2 {
		t.Errorf("the materials are %v", materials)
	}
	for what, in := range map[string]*kms.DecryptInput{
		"no context":      {CiphertextBlob: first.CiphertextBlob},
		"another context": {CiphertextBlob: first.CiphertextBlob, EncryptionContext: map[string]string{"a": "1", "b": "3"}},
		"cut off":         {CiphertextBlob: first.CiphertextBlob[:len(first.CiphertextBlob)-1], EncryptionContext: encryption},
		"no ciphertext":   {CiphertextBlob: []byte("x")},
	} {
		_, err := c.Decrypt(t.Context(), in)
		t.Log(what)
		refusedWith(t, err, "InvalidCiphertextException", "")
	}
	other := makeKey(t, c, &kms.CreateKeyInput{})
	_, err := c.Decrypt(t.Context(), &kms.DecryptInput{CiphertextBlob: first.CiphertextBlob, EncryptionContext: encryption, KeyId: other.KeyId})
	refusedWith(t, err, "IncorrectKeyException", "*")
	moved := ask(t, c.ReEncrypt, &kms.ReEncryptInput{CiphertextBlob: first.CiphertextBlob, SourceEncryptionContext: encryption, DestinationKeyId: other.KeyId})
	if *moved.SourceKeyId != *key.Arn || *moved.KeyId != *other.Arn {
		t.Errorf("%+v", moved)
	}
	if out := ask(t, c.Decrypt, &kms.DecryptInput{CiphertextBlob: moved.CiphertextBlob}); !bytes.Equal(out.Plaintext, plaintext) {
		t.Errorf("%+v", out)
	}
	for size, code := range map[int]string{0: "ValidationException", 4096: "", 4097: "ValidationException"} {
		_, err := c.Encrypt(t.Context(), &kms.EncryptInput{KeyId: key.KeyId, Plaintext: make([]byte, size)})
		if code == "" && err != nil {
			t.Errorf("%d bytes: %v", size, err)
		} else if code != "" {
			refusedWith(t, err, code, "*")
		}
	}
	data := ask(t, c.GenerateDataKey, &kms.GenerateDataKeyInput{KeyId: key.KeyId, KeySpec: types.DataKeySpecAes256})
	if out := ask(t, c.Decrypt, &kms.DecryptInput{CiphertextBlob: data.CiphertextBlob}); len(data.Plaintext) != 32 || !bytes.Equal(out.Plaintext, data.Plaintext) {
		t.Errorf("%+v", out)
	}
	without := ask(t, c.GenerateDataKeyWithoutPlaintext, &kms.GenerateDataKeyWithoutPlaintextInput{KeyId: key.KeyId, NumberOfBytes: aws.Int32(64)})
	if out := ask(t, c.Decrypt, &kms.DecryptInput{CiphertextBlob: without.CiphertextBlob}); len(out.Plaintext) != 64 {
		t.Errorf("%+v", out)
	}
	if out := ask(t, c.GenerateRandom, &kms.GenerateRandomInput{NumberOfBytes: aws.Int32(24)}); len(out.Plaintext) != 24 {
		t.Errorf("%+v", out)
	}
}

// TestKMSStates: what a key refuses in which state, in KMS's words.
func TestKMSStates(t *testing.T) {
	endpoint := start(t)
	c := newKMS(t, endpoint, account)
	key := makeKey(t, c, &kms.CreateKeyInput{})
	blob := ask(t, c.Encrypt, &kms.EncryptInput{KeyId: key.KeyId, Plaintext: []byte("x")}).CiphertextBlob
	use := func() error {
		_, err := c.Decrypt(t.Context(), &kms.DecryptInput{CiphertextBlob: blob})
		return err
	}
	ask(t, c.DisableKey, &kms.DisableKeyInput{KeyId: key.KeyId})
	refusedWith(t, use(), "DisabledException", *key.Arn+" is disabled.")
	ask(t, c.EnableKey, &kms.EnableKeyInput{KeyId: key.KeyId})
	if err := use(); err != nil {
		t.Error(err)
	}
	_, err := c.CancelKeyDeletion(t.Context(), &kms.CancelKeyDeletionInput{KeyId: key.KeyId})
	refusedWith(t, err, "KMSInvalidStateException", *key.Arn+" is not pending deletion.")
	for _, days := range []int32{6, 31} {
		_, err := c.ScheduleKeyDeletion(t.Context(), &kms.ScheduleKeyDeletionInput{KeyId: key.KeyId, PendingWindowInDays: aws.Int32(days)})
		refusedWith(t, err, "ValidationException", "*")
	}
	gone := ask(t, c.ScheduleKeyDeletion, &kms.ScheduleKeyDeletionInput{KeyId: key.KeyId, PendingWindowInDays: aws.Int32(7)})
	if gone.KeyState != types.KeyStatePendingDeletion || *gone.PendingWindowInDays != 7 {
		t.Errorf("%+v", gone)
	}
	refusedWith(t, use(), "KMSInvalidStateException", *key.Arn+" is pending deletion.")
	policy := ask(t, c.GetKeyPolicy, &kms.GetKeyPolicyInput{KeyId: key.KeyId}).Policy
	ask(t, c.PutKeyPolicy, &kms.PutKeyPolicyInput{KeyId: key.KeyId, Policy: policy}) // AWS's table of key states has it succeed
	ask(t, c.CancelKeyDeletion, &kms.CancelKeyDeletionInput{KeyId: key.KeyId})
	if state := ask(t, c.DescribeKey, &kms.DescribeKeyInput{KeyId: key.KeyId}).KeyMetadata.KeyState; state != types.KeyStateDisabled {
		t.Errorf("it is %s", state)
	}
	ask(t, c.ScheduleKeyDeletion, &kms.ScheduleKeyDeletionInput{KeyId: key.KeyId, PendingWindowInDays: aws.Int32(7)})
	advance(t, endpoint, "168h")
	_, err = c.DescribeKey(t.Context(), &kms.DescribeKeyInput{KeyId: key.KeyId})
	refusedWith(t, err, "NotFoundException", "Key '"+*key.Arn+"' does not exist")
	refusedWith(t, use(), "AccessDeniedException",
		"The ciphertext refers to a customer master key that does not exist, does not exist in this region, or you are not allowed to access.")
	_, err = c.DescribeKey(t.Context(), &kms.DescribeKeyInput{KeyId: aws.String("alias/none")})
	refusedWith(t, err, "NotFoundException", "Alias arn:aws:kms:"+region+":"+account+":alias/none is not found.")
	_, err = c.DescribeKey(t.Context(), &kms.DescribeKeyInput{KeyId: aws.String("none")})
	refusedWith(t, err, "NotFoundException", "Invalid keyId 'none'")
}

// TestKMSRotation: a key rotates by itself, and what it has encrypted stays readable.
func TestKMSRotation(t *testing.T) {
	endpoint := start(t)
	c := newKMS(t, endpoint, account)
	key := makeKey(t, c, &kms.CreateKeyInput{})
	blob := ask(t, c.Encrypt, &kms.EncryptInput{KeyId: key.KeyId, Plaintext: []byte("x")}).CiphertextBlob
	for _, days := range []int32{89, 2561} {
		_, err := c.EnableKeyRotation(t.Context(), &kms.EnableKeyRotationInput{KeyId: key.KeyId, RotationPeriodInDays: aws.Int32(days)})
		refusedWith(t, err, "ValidationException", "*")
	}
	ask(t, c.EnableKeyRotation, &kms.EnableKeyRotationInput{KeyId: key.KeyId, RotationPeriodInDays: aws.Int32(90)})
	status := ask(t, c.GetKeyRotationStatus, &kms.GetKeyRotationStatusInput{KeyId: key.KeyId})
	if !status.KeyRotationEnabled || *status.RotationPeriodInDays != 90 {
		t.Errorf("%+v", status)
	}
	for range 2 {
		advance(t, endpoint, "2160h")
	}
	rotations := ask(t, c.ListKeyRotations, &kms.ListKeyRotationsInput{KeyId: key.KeyId}).Rotations
	if len(rotations) != 2 || rotations[0].RotationType != types.RotationTypeAutomatic {
		t.Errorf("%+v", rotations)
	}
	if out := ask(t, c.Decrypt, &kms.DecryptInput{CiphertextBlob: blob}); string(out.Plaintext) != "x" {
		t.Errorf("%q", out.Plaintext)
	}
	ask(t, c.DisableKeyRotation, &kms.DisableKeyRotationInput{KeyId: key.KeyId})
}

// TestKMSAsymmetric: keys that sign, authenticate and encrypt by public algorithms, as
// the standard library checks.
func TestKMSAsymmetric(t *testing.T) {
	c := newKMS(t, start(t), account)
	message := []byte("a message")
	signer := makeKey(t, c, &kms.CreateKeyInput{KeySpec: types.KeySpecEccNistP256, KeyUsage: types.KeyUsageTypeSignVerify})
	sign := &kms.SignInput{KeyId: signer.KeyId, Message: message, SigningAlgorithm: types.SigningAlgorithmSpecEcdsaSha256}
	signed := ask(t, c.Sign, sign)
	public := ask(t, c.GetPublicKey, &kms.GetPublicKeyInput{KeyId: signer.KeyId})
	parsed, err := x509.ParsePKIXPublicKey(public.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(message); !ecdsa.VerifyASN1(parsed.(*ecdsa.PublicKey), sum[:], signed.Signature) {
		t.Error("the standard library does not verify the signature")
	}
	verify := &kms.VerifyInput{KeyId: signer.KeyId, Message: message, Signature: signed.Signature, SigningAlgorithm: sign.SigningAlgorithm}
	if out := ask(t, c.Verify, verify); !out.SignatureValid {
		t.Errorf("%+v", out)
	}
	verify.Message = []byte("another")
	_, err = c.Verify(t.Context(), verify)
	refusedWith(t, err, "KMSInvalidSignatureException", "*")
	_, err = c.Encrypt(t.Context(), &kms.EncryptInput{KeyId: signer.KeyId, Plaintext: message})
	refusedWith(t, err, "InvalidKeyUsageException", *signer.Arn+" key usage is SIGN_VERIFY which is not valid for Encrypt.")

	mac := makeKey(t, c, &kms.CreateKeyInput{KeySpec: types.KeySpecHmac256, KeyUsage: types.KeyUsageTypeGenerateVerifyMac})
	code := ask(t, c.GenerateMac, &kms.GenerateMacInput{KeyId: mac.KeyId, Message: message, MacAlgorithm: types.MacAlgorithmSpecHmacSha256})
	check := &kms.VerifyMacInput{KeyId: mac.KeyId, Message: message, MacAlgorithm: types.MacAlgorithmSpecHmacSha256, Mac: code.Mac}
	if out := ask(t, c.VerifyMac, check); !out.MacValid {
		t.Errorf("%+v", out)
	}
	check.Mac[0] ^= 1
	_, err = c.VerifyMac(t.Context(), check)
	refusedWith(t, err, "KMSInvalidMacException", "*")

	box := makeKey(t, c, &kms.CreateKeyInput{KeySpec: types.KeySpecRsa2048, KeyUsage: types.KeyUsageTypeEncryptDecrypt})
	sealed := ask(t, c.Encrypt, &kms.EncryptInput{KeyId: box.KeyId, Plaintext: message, EncryptionAlgorithm: types.EncryptionAlgorithmSpecRsaesOaepSha256})
	opened := ask(t, c.Decrypt, &kms.DecryptInput{KeyId: box.KeyId, CiphertextBlob: sealed.CiphertextBlob, EncryptionAlgorithm: types.EncryptionAlgorithmSpecRsaesOaepSha256})
	if !bytes.Equal(opened.Plaintext, message) {
		t.Errorf("%q", opened.Plaintext)
	}
	rsa := makeKey(t, c, &kms.CreateKeyInput{KeySpec: types.KeySpecRsa2048, KeyUsage: types.KeyUsageTypeSignVerify})
	for _, algorithm := range rsa.SigningAlgorithms {
		made := ask(t, c.Sign, &kms.SignInput{KeyId: rsa.KeyId, Message: message, SigningAlgorithm: algorithm})
		ask(t, c.Verify, &kms.VerifyInput{KeyId: rsa.KeyId, Message: message, Signature: made.Signature, SigningAlgorithm: algorithm})
	}
	key := makeKey(t, c, &kms.CreateKeyInput{})
	pair := ask(t, c.GenerateDataKeyPair, &kms.GenerateDataKeyPairInput{KeyId: key.KeyId, KeyPairSpec: types.DataKeyPairSpecEccNistP256})
	if out := ask(t, c.Decrypt, &kms.DecryptInput{CiphertextBlob: pair.PrivateKeyCiphertextBlob}); !bytes.Equal(out.Plaintext, pair.PrivateKeyPlaintext) {
		t.Error("the private key is another one")
	}
	if _, err := x509.ParsePKCS8PrivateKey(pair.PrivateKeyPlaintext); err != nil {
		t.Error(err)
	}
}

// TestKMSGrants: a grant lets another account in for what it says, until it is revoked.
func TestKMSGrants(t *testing.T) {
	endpoint := start(t)
	const other = "999999999999"
	mine, theirs := newKMS(t, endpoint, account), newKMS(t, endpoint, other)
	key := makeKey(t, mine, &kms.CreateKeyInput{})
	in := map[string]string{"tenant": "a"}
	blob := ask(t, mine.Encrypt, &kms.EncryptInput{KeyId: key.KeyId, Plaintext: []byte("x"), EncryptionContext: in}).CiphertextBlob
	decrypt := func() error {
		_, err := theirs.Decrypt(t.Context(), &kms.DecryptInput{CiphertextBlob: blob, EncryptionContext: in})
		return err
	}
	refusedWith(t, decrypt(), "AccessDeniedException", "*")
	grant := ask(t, mine.CreateGrant, &kms.CreateGrantInput{
		KeyId: key.KeyId, GranteePrincipal: aws.String("arn:aws:iam::" + other + ":root"), Operations: []types.GrantOperation{types.GrantOperationDecrypt},
		Constraints: &types.GrantConstraints{EncryptionContextSubset: map[string]string{"tenant": "a"}},
	})
	if err := decrypt(); err != nil {
		t.Error(err)
	}
	_, err := theirs.Encrypt(t.Context(), &kms.EncryptInput{KeyId: key.Arn, Plaintext: []byte("x")})
	refusedWith(t, err, "AccessDeniedException", "*")
	if all := ask(t, mine.ListGrants, &kms.ListGrantsInput{KeyId: key.KeyId}).Grants; len(all) != 1 || *all[0].GrantId != *grant.GrantId {
		t.Errorf("%+v", all)
	}
	ask(t, mine.RevokeGrant, &kms.RevokeGrantInput{KeyId: key.KeyId, GrantId: grant.GrantId})
	refusedWith(t, decrypt(), "AccessDeniedException", "*")
}

// TestKMSGrantConstraints: the keys of a constraint are not case-sensitive, its values are, and both are bounded.
func TestKMSGrantConstraints(t *testing.T) {
	endpoint := start(t)
	const other = "999999999999"
	mine, theirs := newKMS(t, endpoint, account), newKMS(t, endpoint, other)
	grant := func(key *types.KeyMetadata, constraints *types.GrantConstraints) error {
		_, err := mine.CreateGrant(t.Context(), &kms.CreateGrantInput{
			KeyId: key.KeyId, GranteePrincipal: aws.String("arn:aws:iam::" + other + ":root"), Operations: []types.GrantOperation{types.GrantOperationEncrypt}, Constraints: constraints,
		})
		return err
	}
	for name, of := range map[string]func(map[string]string) *types.GrantConstraints{
		"subset": func(pairs map[string]string) *types.GrantConstraints {
			return &types.GrantConstraints{EncryptionContextSubset: pairs}
		},
		"equals": func(pairs map[string]string) *types.GrantConstraints {
			return &types.GrantConstraints{EncryptionContextEquals: pairs}
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := makeKey(t, mine, &kms.CreateKeyInput{})
			pairs := map[string]string{}
			for i := range 8 {
				pairs[fmt.Sprint("key-", i)] = strings.Repeat("ä", 384)
			}
			if err := grant(makeKey(t, mine, &kms.CreateKeyInput{}), of(pairs)); err != nil {
				t.Error(err)
			}
			pairs["key-8"] = "x"
			refusedWith(t, grant(key, of(pairs)), "ValidationException", "*")
			refusedWith(t, grant(key, of(map[string]string{"tenant": strings.Repeat("a", 385)})), "ValidationException", "*")
			if all := ask(t, mine.ListGrants, &kms.ListGrantsInput{KeyId: key.KeyId}).Grants; len(all) != 0 {
				t.Errorf("%+v", all)
			}
			if err := grant(key, of(map[string]string{"tenant": "a"})); err != nil {
				t.Fatal(err)
			}
			for _, tt := range []struct {
				context map[string]string
				allowed bool
			}{
				{map[string]string{"tenant": "a"}, true},
				{map[string]string{"Tenant": "a"}, true},
				{map[string]string{"tenant": "A"}, false},
				{map[string]string{"TENANT": "a", "more": "x"}, name == "subset"},
			} {
				_, err := theirs.Encrypt(t.Context(), &kms.EncryptInput{KeyId: key.Arn, Plaintext: []byte("x"), EncryptionContext: tt.context})
				if tt.allowed && err != nil {
					t.Errorf("%v: %v", tt.context, err)
				}
				if !tt.allowed {
					refusedWith(t, err, "AccessDeniedException", "*")
				}
			}
		})
	}
}

// TestKMSUnbuilt: what is not built is refused by name.
func TestKMSUnbuilt(t *testing.T) {
	c := newKMS(t, start(t), account)
	for _, in := range []*kms.CreateKeyInput{{MultiRegion: aws.Bool(true)}, {Origin: types.OriginTypeExternal}, {CustomKeyStoreId: aws.String("cks-1")}} {
		_, err := c.CreateKey(t.Context(), in)
		refusedWith(t, err, "UnsupportedOperationException", "*")
	}
	_, err := c.DescribeCustomKeyStores(t.Context(), &kms.DescribeCustomKeyStoresInput{})
	refusedWith(t, err, "UnsupportedOperationException", "DescribeCustomKeyStores is not built yet.")
}

// TestKMSTerraform plays what Terraform's provider does for aws_kms_key and
// aws_kms_alias: make, read, compare, change, remove.
func TestKMSTerraform(t *testing.T) {
	endpoint := start(t)
	c := newKMS(t, endpoint, account)
	policy := `{"Version":"2012-10-17","Id":"mine","Statement":[{"Sid":"all","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + account + `:root"},"Action":"kms:*","Resource":"*"}]}`
	key := makeKey(t, c, &kms.CreateKeyInput{
		Description: aws.String("for orders"), KeySpec: types.KeySpecSymmetricDefault, KeyUsage: types.KeyUsageTypeEncryptDecrypt, Policy: &policy,
		BypassPolicyLockoutSafetyCheck: false, MultiRegion: aws.Bool(false), Tags: []types.Tag{{TagKey: aws.String("team"), TagValue: aws.String("orders")}},
	})
	ask(t, c.EnableKeyRotation, &kms.EnableKeyRotationInput{KeyId: key.KeyId})
	read := func(description, policy string, enabled bool, tags string) {
		t.Helper()
		m := ask(t, c.DescribeKey, &kms.DescribeKeyInput{KeyId: key.KeyId}).KeyMetadata
		got := fmt.Sprint(*m.Description, " ", m.Enabled, " ", m.KeySpec, " ", m.KeyUsage, " ", m.KeyManager, " ", m.Origin, " ", *m.MultiRegion, " ", *m.AWSAccountId, " ", *m.Arn)
		want := fmt.Sprint(description, " ", enabled, " SYMMETRIC_DEFAULT ENCRYPT_DECRYPT CUSTOMER AWS_KMS false ", account, " arn:aws:kms:", region, ":", account, ":key/", *key.KeyId)
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := *ask(t, c.GetKeyPolicy, &kms.GetKeyPolicyInput{KeyId: key.KeyId, PolicyName: aws.String("default")}).Policy; got != policy {
			t.Errorf("the policy is %s", got)
		}
		var all []string
		for _, tag := range ask(t, c.ListResourceTags, &kms.ListResourceTagsInput{KeyId: key.KeyId}).Tags {
			all = append(all, *tag.TagKey+"="+*tag.TagValue)
		}
		if got := strings.Join(all, ","); got != tags {
			t.Errorf("the tags are %s", got)
		}
	}
	read("for orders", policy, true, "team=orders")
	if s := ask(t, c.GetKeyRotationStatus, &kms.GetKeyRotationStatusInput{KeyId: key.KeyId}); !s.KeyRotationEnabled || *s.RotationPeriodInDays != 365 {
		t.Errorf("%+v", s)
	}
	ask(t, c.CreateAlias, &kms.CreateAliasInput{AliasName: aws.String("alias/orders"), TargetKeyId: key.KeyId})
	_, err := c.CreateAlias(t.Context(), &kms.CreateAliasInput{AliasName: aws.String("alias/orders"), TargetKeyId: key.KeyId})
	refusedWith(t, err, "AlreadyExistsException", "An alias with the name arn:aws:kms:"+region+":"+account+":alias/orders already exists")
	aliased := func(want string) {
		t.Helper()
		all := kms.NewListAliasesPaginator(c, &kms.ListAliasesInput{})
		for all.HasMorePages() {
			page, err := all.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range page.Aliases {
				if *a.AliasName == "alias/orders" && *a.TargetKeyId == want && *a.AliasArn == "arn:aws:kms:"+region+":"+account+":alias/orders" {
					return
				}
			}
		}
		t.Errorf("no alias of %s", want)
	}
	aliased(*key.KeyId)

	policy2 := strings.Replace(policy, `"mine"`, `"other"`, 1)
	ask(t, c.UpdateKeyDescription, &kms.UpdateKeyDescriptionInput{KeyId: key.KeyId, Description: aws.String("for all")})
	ask(t, c.PutKeyPolicy, &kms.PutKeyPolicyInput{KeyId: key.KeyId, PolicyName: aws.String("default"), Policy: &policy2})
	ask(t, c.TagResource, &kms.TagResourceInput{KeyId: key.KeyId, Tags: []types.Tag{{TagKey: aws.String("stage"), TagValue: aws.String("test")}}})
	ask(t, c.UntagResource, &kms.UntagResourceInput{KeyId: key.KeyId, TagKeys: []string{"team"}})
	ask(t, c.DisableKeyRotation, &kms.DisableKeyRotationInput{KeyId: key.KeyId})
	ask(t, c.DisableKey, &kms.DisableKeyInput{KeyId: key.KeyId})
	read("for all", policy2, false, "stage=test")
	second := makeKey(t, c, &kms.CreateKeyInput{})
	ask(t, c.UpdateAlias, &kms.UpdateAliasInput{AliasName: aws.String("alias/orders"), TargetKeyId: second.KeyId})
	aliased(*second.KeyId)
	ask(t, c.DeleteAlias, &kms.DeleteAliasInput{AliasName: aws.String("alias/orders")})
	ask(t, c.ScheduleKeyDeletion, &kms.ScheduleKeyDeletionInput{KeyId: key.KeyId, PendingWindowInDays: aws.Int32(30)})
	if m := ask(t, c.DescribeKey, &kms.DescribeKeyInput{KeyId: key.KeyId}).KeyMetadata; m.KeyState != types.KeyStatePendingDeletion || m.DeletionDate == nil {
		t.Errorf("%+v", m)
	}
	bad := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + account + `:root"},"Action":"kms:Get*","Resource":"*"}]}`
	_, err = c.PutKeyPolicy(t.Context(), &kms.PutKeyPolicyInput{KeyId: second.KeyId, Policy: &bad})
	refusedWith(t, err, "MalformedPolicyDocumentException", "The new key policy will not allow you to update the key policy in the future.")
}

// TestKMSManagedKeys: AWS managed keys are made when they are first named, and can't be
// changed.
func TestKMSManagedKeys(t *testing.T) {
	endpoint := start(t)
	c := newKMS(t, endpoint, account)
	// aliases are there before the keys: Terraform's data source of one finds it in the
	// list, and then asks for its key, which makes it
	listed := func() (all []types.AliasListEntry) {
		var marker *string
		for {
			page := ask(t, c.ListAliases, &kms.ListAliasesInput{Limit: aws.Int32(1), Marker: marker})
			if all, marker = append(all, page.Aliases...), page.NextMarker; !page.Truncated {
				return all
			}
		}
	}
	entry := func(service string) types.AliasListEntry {
		name := "alias/aws/" + service
		return types.AliasListEntry{AliasName: &name, AliasArn: aws.String("arn:aws:kms:" + region + ":" + account + ":" + name)}
	}
	if _, err := newKMS(t, endpoint, "999999999999").DescribeKey(t.Context(), &kms.DescribeKeyInput{KeyId: entry("sns").AliasArn}); err == nil {
		t.Error("another account may describe it")
	}
	equal(t, "before the first use", []types.AliasListEntry{entry("lambda"), entry("sns"), entry("sqs")}, listed())
	key := ask(t, c.DescribeKey, &kms.DescribeKeyInput{KeyId: entry("sqs").AliasArn}).KeyMetadata
	used := entry("sqs")
	used.TargetKeyId, used.CreationDate, used.LastUpdatedDate = key.KeyId, key.CreationDate, key.CreationDate
	equal(t, "of the key", []types.AliasListEntry{used}, ask(t, c.ListAliases, &kms.ListAliasesInput{KeyId: key.KeyId}).Aliases)
	equal(t, "after the first use", []types.AliasListEntry{entry("lambda"), entry("sns"), used}, listed())
	if key.KeyManager != types.KeyManagerTypeAws {
		t.Errorf("%+v", key)
	}
	if again := ask(t, c.DescribeKey, &kms.DescribeKeyInput{KeyId: aws.String("alias/aws/sqs")}).KeyMetadata; *again.KeyId != *key.KeyId {
		t.Errorf("it is another one: %s", *again.KeyId)
	}
	policy := *ask(t, c.GetKeyPolicy, &kms.GetKeyPolicyInput{KeyId: key.KeyId}).Policy
	for _, part := range []string{`"kms:CallerAccount": "` + account + `"`, `"kms:ViaService": "sqs.` + region + `.amazonaws.com"`} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s: %s", part, policy)
		}
	}
	_, err := c.ScheduleKeyDeletion(t.Context(), &kms.ScheduleKeyDeletionInput{KeyId: key.KeyId})
	refusedWith(t, err, "AccessDeniedException", "*")
	_, err = c.CreateAlias(t.Context(), &kms.CreateAliasInput{AliasName: aws.String("alias/aws/mine"), TargetKeyId: key.KeyId})
	refusedWith(t, err, "InvalidAliasNameException", "*")
}

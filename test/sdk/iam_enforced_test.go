package sdk_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// startEnforced starts a server that verifies who calls.
func startEnforced(t *testing.T) (endpoint string) {
	return startWith(t, enforce)
}

// advanceAsRoot is advance where operators sign.
func advanceAsRoot(t *testing.T, endpoint, duration string) {
	t.Helper()
	body := `{"advance":"` + duration + `"}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+"/_godwit/clock", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	sum := sha256.Sum256([]byte(body))
	who := aws.Credentials{AccessKeyID: rootKey, SecretAccessKey: rootSecret}
	if err := v4.NewSigner().SignHTTP(t.Context(), who, req, hex.EncodeToString(sum[:]), "godwit", region, time.Now()); err != nil {
		t.Fatal(err)
	}
	if r := do(t, req); r.Status != http.StatusOK {
		t.Fatalf("advancing the clock: %d %s", r.Status, r.Body)
	}
}

// The root user's access key is of any form, so its account cannot be read out of it.
func TestAccountOfRootKey(t *testing.T) {
	endpoint := startEnforced(t)
	ctx := t.Context()
	root := stsClientOf(endpoint, rootKey, rootSecret, "")
	ann := stsAs(endpoint, makeUser(t, endpoint, "ann", statement("Allow", `"sts:GetAccessKeyInfo"`, "*")))
	for name, c := range map[string]*sts.Client{"its own": root, "a user's": ann} {
		equal(t, name, account, *must(c.GetAccessKeyInfo(ctx, &sts.GetAccessKeyInfoInput{AccessKeyId: new(rootKey)}))(t).Account)
	}
}

// The date of the root user is in whole seconds, as those of other users are.
func TestRootUser(t *testing.T) {
	endpoint := startEnforced(t)
	u := must(iamClientOf(endpoint, rootKey, rootSecret, "").GetUser(t.Context(), &iam.GetUserInput{}))(t).User
	equal(t, "root", []string{"arn:aws:iam::" + account + ":root", account}, []string{*u.Arn, *u.UserId})
	equal(t, "when", u.CreateDate.Truncate(time.Second), *u.CreateDate)
}

// Keys and sessions that were made are verified, and stop when they are taken away.
func TestEnforcedKeys(t *testing.T) {
	endpoint := startEnforced(t)
	c, ctx := iamClientOf(endpoint, rootKey, rootSecret, ""), t.Context()
	must(c.CreateUser(ctx, &iam.CreateUserInput{UserName: new("ann")}))(t)
	key := must(c.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: new("ann")}))(t).AccessKey
	who := func(id, secret, token string) error {
		_, err := stsClientOf(endpoint, id, secret, token).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		return err
	}
	if err := who(*key.AccessKeyId, *key.SecretAccessKey, ""); err != nil {
		t.Fatal(err)
	}
	refused(t, who(*key.AccessKeyId, "another", ""), "SignatureDoesNotMatch", http.StatusForbidden, signatureMismatch)
	session := must(stsClientOf(endpoint, *key.AccessKeyId, *key.SecretAccessKey, "").GetSessionToken(ctx, &sts.GetSessionTokenInput{}))(t).Credentials
	if err := who(*session.AccessKeyId, *session.SecretAccessKey, *session.SessionToken); err != nil {
		t.Fatal(err)
	}
	const unknown = "The security token included in the request is invalid."
	refused(t, who(*session.AccessKeyId, *session.SecretAccessKey, ""), "InvalidClientTokenId", http.StatusForbidden, unknown)
	refused(t, who(*session.AccessKeyId, *session.SecretAccessKey, (*session.SessionToken)[:40]), "InvalidClientTokenId", http.StatusForbidden, unknown)
	advanceAsRoot(t, endpoint, "12h1s")
	refused(t, who(*session.AccessKeyId, *session.SecretAccessKey, *session.SessionToken), "ExpiredToken", http.StatusForbidden, "The security token included in the request is expired")
	must(c.DeleteAccessKey(ctx, &iam.DeleteAccessKeyInput{UserName: new("ann"), AccessKeyId: key.AccessKeyId}))(t)
	refused(t, who(*key.AccessKeyId, *key.SecretAccessKey, ""), "InvalidClientTokenId", http.StatusForbidden, unknown)
}

const signatureMismatch = "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details."

// A function's role has to trust Lambda.
func TestEnforcedFunctionRole(t *testing.T) {
	endpoint := startEnforced(t)
	c, ctx := iamClientOf(endpoint, rootKey, rootSecret, ""), t.Context()
	must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("mine"), AssumeRolePolicyDocument: new(trustRoot)}))(t)
	must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("lambdas"), AssumeRolePolicyDocument: new(lambdaTrust)}))(t)
	functions := lambda.New(lambda.Options{BaseEndpoint: &endpoint, Region: region, Credentials: stsClientOf(endpoint, rootKey, rootSecret, "").Options().Credentials, RetryMaxAttempts: 1, HTTPClient: eager})
	create := func(role string) error {
		_, err := functions.CreateFunction(ctx, &lambda.CreateFunctionInput{
			FunctionName: new("f"), Role: new("arn:aws:iam::000000000000:role/" + role), PackageType: lambdatypes.PackageTypeImage, Code: &lambdatypes.FunctionCode{ImageUri: new("http://127.0.0.1:1/")},
		})
		return err
	}
	const refusal = "The role defined for the function cannot be assumed by Lambda."
	refused(t, create("mine"), "InvalidParameterValueException", http.StatusBadRequest, refusal)
	if err := create("lambdas"); err != nil {
		t.Error(err)
	}
}

package sdk_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"

	"godwit.dev/godwit/internal/config"
)

// What those tried who have a key, and not the permission.

// statement is one of a policy.
func statement(effect, actions, resource string) string {
	return `{"Effect":"` + effect + `","Action":` + actions + `,"Resource":"` + resource + `"}`
}

// makeUser makes a user with an access key, whose policy has the statements.
func makeUser(t *testing.T, endpoint, name string, statements ...string) *credentials.StaticCredentialsProvider {
	t.Helper()
	c, ctx := iamClient(endpoint), t.Context()
	must(c.CreateUser(ctx, &iam.CreateUserInput{UserName: &name}))(t)
	if len(statements) > 0 {
		must(c.PutUserPolicy(ctx, &iam.PutUserPolicyInput{
			UserName: &name, PolicyName: new("p"), PolicyDocument: new(`{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`),
		}))(t)
	}
	return longTerm(must(c.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: &name}))(t).AccessKey)
}

// longTerm is a provider of a user's credentials.
func longTerm(k *iamtypes.AccessKey) *credentials.StaticCredentialsProvider {
	provider := credentials.NewStaticCredentialsProvider(*k.AccessKeyId, *k.SecretAccessKey, "")
	return &provider
}

// session is a provider of a session's credentials.
func session(c *ststypes.Credentials) *credentials.StaticCredentialsProvider {
	provider := credentials.NewStaticCredentialsProvider(*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken)
	return &provider
}

func iamAs(endpoint string, who aws.CredentialsProvider) *iam.Client {
	return iam.New(iam.Options{BaseEndpoint: &endpoint, Region: region, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager})
}

func stsAs(endpoint string, who aws.CredentialsProvider) *sts.Client {
	return sts.New(sts.Options{BaseEndpoint: &endpoint, Region: region, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager})
}

func kmsAs(endpoint string, who aws.CredentialsProvider) *kms.Client {
	return kms.New(kms.Options{BaseEndpoint: &endpoint, Region: region, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager})
}

// deniedTo checks that policies denied a call.
func deniedTo(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s was allowed", what)
	} else if !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("%s: %v", what, err)
	}
}

// A key is made for the user as it is, whatever its path, and however it is spelt.
func TestAccessKeyOfAProtectedUser(t *testing.T) {
	endpoint := start(t)
	must(iamClient(endpoint).CreateUser(t.Context(), &iam.CreateUserInput{UserName: new("boss"), Path: new("/admins/")}))(t)
	must(iamClient(endpoint).CreateUser(t.Context(), &iam.CreateUserInput{UserName: new("chief")}))(t)
	users := "arn:aws:iam::" + account + ":user/"
	eve := iamAs(endpoint, makeUser(t, endpoint, "eve", statement("Allow", `"iam:*"`, "*"), statement("Deny", `"iam:*"`, users+"admins/*"), statement("Deny", `"iam:*"`, users+"chief")))
	for _, name := range []string{"boss", "BOSS", "chief", "Chief"} {
		_, err := eve.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name})
		deniedTo(t, "a key of "+name, err)
	}
}

// A user gets no name or path that one may not change users to.
func TestRenamedIntoAProtectedPath(t *testing.T) {
	endpoint := start(t)
	eve := iamAs(endpoint, makeUser(t, endpoint, "eve", statement("Allow", `"iam:UpdateUser"`, "arn:aws:iam::"+account+":user/eve")))
	_, err := eve.UpdateUser(t.Context(), &iam.UpdateUserInput{UserName: new("eve"), NewPath: new("/admins/")})
	deniedTo(t, "the path", err)
	_, err = eve.UpdateUser(t.Context(), &iam.UpdateUserInput{UserName: new("eve"), NewUserName: new("boss")})
	deniedTo(t, "the name", err)
	must(eve.UpdateUser(t.Context(), &iam.UpdateUserInput{UserName: new("eve"), NewUserName: new("eve")}))(t)
}

// What is denied by its name stays so if the name is written with another partition.
func TestAnotherPartition(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	createQueue(t, c, "dead")
	createQueue(t, c, "q", "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`","maxReceiveCount":1}`)
	eve := makeUser(t, endpoint, "eve", statement("Allow", `"sqs:*"`, "*"), statement("Deny", `"sqs:*"`, queueARN("dead")))
	_, err := c.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(strings.Replace(queueARN("dead"), ":aws:", ":aws-cn:", 1))},
		func(o *sqs.Options) { o.Credentials = eve })
	deniedTo(t, "moving what is dead", err)
}

// A region that is denied stays so if the request is signed for another.
func TestQueueOfADeniedRegion(t *testing.T) {
	endpoint := start(t)
	must(clientOf(endpoint, "eu-west-1", "test").CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: new("q")}))(t)
	eve := makeUser(t, endpoint, "eve", statement("Allow", `"sqs:*"`, "*"),
		`{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"StringNotEquals":{"aws:RequestedRegion":"`+region+`"}}}`)
	_, err := client(endpoint).PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: new(endpoint + "/queue/eu-west-1/" + account + "/q")}, func(o *sqs.Options) { o.Credentials = eve })
	deniedTo(t, "a queue of another region", err)
}

// makeIdleRole makes a role for functions that may nothing.
func makeIdleRole(t *testing.T, endpoint string) (arn string) {
	t.Helper()
	return *must(iamClient(endpoint).CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: new("idle"), AssumeRolePolicyDocument: new(lambdaTrust)}))(t).Role.Arn
}

// What comes of an event goes where the function's role may send it, and nowhere else.
func TestDeadLettersNeedTheRole(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	other := "999988887777"
	far := startFar(t)
	far.fail(100)
	functions := functionsClient(endpoint)
	theirs := "arn:aws:sqs:" + region + ":" + other + ":theirs"
	foreign := createQueue(t, clientOf(endpoint, region, other), "theirs", "Policy",
		policyOf(`{"Effect":"Allow","Principal":{"AWS":"`+account+`"},"Action":"sqs:SendMessage","Resource":"`+theirs+`"}`))
	secret := createQueue(t, c, "secret")
	for name, target := range map[string]string{"f": queueARN("secret"), "g": theirs} {
		role := roleARN
		if name == "f" {
			role = makeIdleRole(t, endpoint)
			must(iamClient(endpoint).PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: new("idle"), PolicyName: new("p"), PolicyDocument: new(allow(target, "sqs:SendMessage"))}))(t)
		}
		must(functions.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
			FunctionName: &name, Role: &role, PackageType: lambdatypes.PackageTypeImage, Code: &lambdatypes.FunctionCode{ImageUri: &far.URL},
			DeadLetterConfig: &lambdatypes.DeadLetterConfig{TargetArn: &target}, Timeout: new(int32(runTime)),
		}))(t)
	}
	// What they could send to when they were made they cannot any more.
	must(iamClient(endpoint).DeleteRolePolicy(t.Context(), &iam.DeleteRolePolicyInput{RoleName: new("idle"), PolicyName: new("p")}))(t)
	must(clientOf(endpoint, region, other).SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &foreign, Attributes: map[string]string{"Policy": ""}}))(t)
	advance(t, endpoint, "0s")
	for _, name := range []string{"f", "g"} {
		invokeAsync(t, functions, name, `"forged"`)
	}
	advance(t, endpoint, "10m")
	for what, q := range map[string]struct {
		c   *sqs.Client
		url string
	}{"a queue that the role may not send to": {c, secret}, "a queue of another account": {clientOf(endpoint, region, other), foreign}} {
		if got := must(q.c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q.url}))(t).Messages; len(got) > 0 {
			t.Errorf("%s got %q", what, *got[0].Body)
		}
	}
}

// A role that is not there lets Lambda take nothing out of queues.
func TestPollingWithoutARole(t *testing.T) {
	endpoint := start(t)
	far := startFar(t)
	functions, c := functionsClient(endpoint), client(endpoint)
	q := createQueue(t, c, "secret")
	role := makeIdleRole(t, endpoint)
	must(iamClient(endpoint).PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: new("idle"), PolicyName: new("p"), PolicyDocument: new(allow("*", "sqs:*"))}))(t)
	must(functions.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: new("f"), Role: &role, PackageType: lambdatypes.PackageTypeImage, Code: &lambdatypes.FunctionCode{ImageUri: &far.URL}, Timeout: new(int32(runTime)),
	}))(t)
	advance(t, endpoint, "0s")
	mapped(t, functions, "secret", "f", nil)
	must(iamClient(endpoint).DeleteRolePolicy(t.Context(), &iam.DeleteRolePolicyInput{RoleName: new("idle"), PolicyName: new("p")}))(t)
	must(iamClient(endpoint).DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: new("idle")}))(t)
	must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: new("a secret")}))(t)
	advance(t, endpoint, "1m")
	if got := far.ran(); len(got) > 0 {
		t.Errorf("the function got %q", got)
	}
}

// signedQuery asks for an action with presigned credentials, which stand in the query.
func signedQuery(t *testing.T, endpoint, service string, who aws.CredentialsProvider, form url.Values) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+"/?"+form.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := who.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	empty := sha256.Sum256(nil)
	signed, _, err := v4.NewSigner().PresignHTTP(t.Context(), keys, req, hex.EncodeToString(empty[:]), service, region, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if req, err = http.NewRequestWithContext(t.Context(), http.MethodGet, signed, nil); err != nil {
		t.Fatal(err)
	}
	return do(t, req)
}

// The tags that a session has to pass on, and its source identity, stay, also where its
// token stands in the query.
func TestChainedSessionKeepsItsTags(t *testing.T) {
	endpoint := start(t)
	c, ctx := iamClient(endpoint), t.Context()
	trust := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"` + account + `"},"Action":["sts:AssumeRole","sts:TagSession","sts:SetSourceIdentity"]}]}`
	for _, name := range []string{"first", "second"} {
		must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: &trust}))(t)
		must(c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &name, PolicyName: new("p"), PolicyDocument: new(`{"Version":"2012-10-17","Statement":[` + statement("Allow", `"*"`, "*") + `]}`)}))(t)
	}
	role := func(name string) *string { return new("arn:aws:iam::" + account + ":role/" + name) }
	first := must(stsAs(endpoint, makeUser(t, endpoint, "ann", statement("Allow", `"sts:*"`, "*"))).AssumeRole(ctx, &sts.AssumeRoleInput{
		RoleArn: role("first"), RoleSessionName: new("eve"), Tags: []ststypes.Tag{{Key: new("team"), Value: new("sales")}}, TransitiveTagKeys: []string{"team"}, SourceIdentity: new("eve"),
	}))(t).Credentials
	form := func(change ...string) url.Values {
		all := url.Values{"Action": {"AssumeRole"}, "Version": {"2011-06-15"}, "RoleArn": {*role("second")}, "RoleSessionName": {"eve"}}
		for i := 0; i < len(change); i += 2 {
			all.Set(change[i], change[i+1])
		}
		return all
	}
	if r := signedQuery(t, endpoint, "sts", session(first), form()); r.Status != http.StatusOK || !strings.Contains(r.Body, "<SourceIdentity>eve</SourceIdentity>") {
		t.Errorf("the source identity is lost: %d %s", r.Status, r.Body)
	}
	if r := signedQuery(t, endpoint, "sts", session(first), form("Tags.member.1.Key", "team", "Tags.member.1.Value", "board")); r.Status != http.StatusBadRequest || !strings.Contains(r.Body, "<Code>InvalidParameterValue</Code>") {
		t.Errorf("a tag was replaced: %d %s", r.Status, r.Body)
	}
	_, err := stsAs(endpoint, session(first)).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: role("second"), RoleSessionName: new("eve"), SourceIdentity: new("bob")})
	deniedTo(t, "another source identity", err)
}

// Who is not trusted to say so cannot say who is behind a session.
func TestSourceIdentityNeedsPermission(t *testing.T) {
	endpoint := start(t)
	c, ctx := iamClient(endpoint), t.Context()
	must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("r"), AssumeRolePolicyDocument: new(trustRoot)}))(t)
	eve := stsAs(endpoint, makeUser(t, endpoint, "eve", statement("Allow", `"sts:AssumeRole"`, "*")))
	in := &sts.AssumeRoleInput{RoleArn: new("arn:aws:iam::" + account + ":role/r"), RoleSessionName: new("eve")}
	must(eve.AssumeRole(ctx, in))(t)
	in.SourceIdentity = new("bob")
	_, err := eve.AssumeRole(ctx, in)
	deniedTo(t, "another name", err)
}

// What GetSessionToken gives does not lead to credentials that last longer.
func TestSessionsDoNotLastLonger(t *testing.T) {
	endpoint := start(t)
	ctx := t.Context()
	root := credentials.NewStaticCredentialsProvider("test", secretOf("test"), "")
	for name, who := range map[string]aws.CredentialsProvider{"root": root, "a user": makeUser(t, endpoint, "ann", statement("Allow", `"*"`, "*"))} {
		got := session(must(stsAs(endpoint, who).GetSessionToken(ctx, &sts.GetSessionTokenInput{}))(t).Credentials)
		if _, err := stsAs(endpoint, got).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, err := stsAs(endpoint, got).GetSessionToken(ctx, &sts.GetSessionTokenInput{})
		deniedTo(t, name+": another session", err)
		_, err = iamAs(endpoint, got).CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: new("ann")})
		refused(t, err, "InvalidClientTokenId", http.StatusForbidden, "The security token included in the request is invalid.")
	}
}

// Grants are ended by those whom they name and whom policies allow it, and who has a
// grant passes on no more than that.
func TestGrantsOfOthers(t *testing.T) {
	endpoint := start(t)
	root, ctx := newKMS(t, endpoint, account), t.Context()
	key := makeKey(t, root, &kms.CreateKeyInput{})
	nobody := kmsAs(endpoint, makeUser(t, endpoint, "nobody"))
	eve := kmsAs(endpoint, makeUser(t, endpoint, "eve"))
	user := func(name string) *string { return new("arn:aws:iam::" + account + ":user/" + name) }
	made := ask(t, root.CreateGrant, &kms.CreateGrantInput{
		KeyId: key.KeyId, GranteePrincipal: user("eve"), Operations: []kmstypes.GrantOperation{kmstypes.GrantOperationEncrypt, kmstypes.GrantOperationCreateGrant},
		Constraints: &kmstypes.GrantConstraints{EncryptionContextSubset: map[string]string{"team": "sales"}},
	})
	pass := func(constraints *kmstypes.GrantConstraints, operations ...kmstypes.GrantOperation) error {
		_, err := eve.CreateGrant(ctx, &kms.CreateGrantInput{KeyId: key.Arn, GranteePrincipal: user("eve"), Operations: operations, Constraints: constraints})
		return err
	}
	sales := &kmstypes.GrantConstraints{EncryptionContextSubset: map[string]string{"team": "sales"}}
	deniedTo(t, "a grant of more operations", pass(sales, kmstypes.GrantOperationDecrypt))
	deniedTo(t, "a grant without the constraints", pass(nil, kmstypes.GrantOperationEncrypt))
	deniedTo(t, "a grant with other constraints", pass(&kmstypes.GrantConstraints{EncryptionContextSubset: map[string]string{"team": "board"}}, kmstypes.GrantOperationEncrypt))
	for _, c := range []*kmstypes.GrantConstraints{sales, {EncryptionContextEquals: map[string]string{"team": "sales", "a": "b"}}} {
		if err := pass(c, kmstypes.GrantOperationEncrypt); err != nil {
			t.Error(err)
		}
	}
	_, err := nobody.RetireGrant(ctx, &kms.RetireGrantInput{KeyId: key.Arn, GrantId: made.GrantId})
	deniedTo(t, "ending a grant", err)
	ask(t, root.RetireGrant, &kms.RetireGrantInput{KeyId: key.Arn, GrantId: made.GrantId})
}

// Whom a grant names as who may retire it needs no policy for that, but a Deny holds, and so
// does the region.
func TestRetiringThatIsDenied(t *testing.T) {
	endpoint := start(t)
	root, ctx := newKMS(t, endpoint, account), t.Context()
	key := makeKey(t, root, &kms.CreateKeyInput{})
	user := func(name string) *string { return new("arn:aws:iam::" + account + ":user/" + name) }
	denied := kmsAs(endpoint, makeUser(t, endpoint, "denied", statement("Deny", `"kms:RetireGrant"`, "*")))
	eve := kmsAs(endpoint, makeUser(t, endpoint, "eve"))
	grant := func(in kms.CreateGrantInput) *kms.CreateGrantOutput {
		in.KeyId = key.KeyId
		return ask(t, root.CreateGrant, &in)
	}
	both := []kmstypes.GrantOperation{kmstypes.GrantOperationEncrypt, kmstypes.GrantOperationRetireGrant}
	for name, in := range map[string]kms.CreateGrantInput{
		"the retiring principal": {GranteePrincipal: user("eve"), RetiringPrincipal: user("denied"), Operations: both},
		"the grantee":            {GranteePrincipal: user("denied"), Operations: both},
	} {
		made := grant(in)
		_, err := denied.RetireGrant(ctx, &kms.RetireGrantInput{KeyId: key.Arn, GrantId: made.GrantId})
		deniedTo(t, name, err)
		_, err = denied.RetireGrant(ctx, &kms.RetireGrantInput{GrantToken: made.GrantToken})
		deniedTo(t, name+", by its token", err)
	}
	made := grant(kms.CreateGrantInput{GranteePrincipal: user("denied"), RetiringPrincipal: user("eve"), Operations: both})
	_, err := eve.RetireGrant(ctx, &kms.RetireGrantInput{GrantToken: made.GrantToken}, func(o *kms.Options) { o.Region = "eu-west-1" })
	refusedWith(t, err, "NotFoundException", "*")
	ask(t, eve.RetireGrant, &kms.RetireGrantInput{GrantToken: made.GrantToken})
	made = grant(kms.CreateGrantInput{GranteePrincipal: user("eve"), Operations: both})
	ask(t, eve.RetireGrant, &kms.RetireGrantInput{KeyId: key.Arn, GrantId: made.GrantId})
}

// An alias is taken from a key by those who may do that to it.
func TestAliasOfAnothersKey(t *testing.T) {
	endpoint := start(t)
	root, ctx := newKMS(t, endpoint, account), t.Context()
	before, mine := makeKey(t, root, &kms.CreateKeyInput{}), makeKey(t, root, &kms.CreateKeyInput{})
	ask(t, root.CreateAlias, &kms.CreateAliasInput{AliasName: new("alias/orders"), TargetKeyId: before.KeyId})
	eve := kmsAs(endpoint, makeUser(t, endpoint, "eve", statement("Allow", `"kms:UpdateAlias"`, *mine.Arn), statement("Allow", `"kms:UpdateAlias"`, "arn:aws:kms:"+region+":"+account+":alias/*")))
	_, err := eve.UpdateAlias(ctx, &kms.UpdateAliasInput{AliasName: new("alias/orders"), TargetKeyId: mine.KeyId})
	deniedTo(t, "another key for the alias", err)
}

// What a key will be is what conditions are asked about, whichever member says it.
func TestKeySpecByItsOldName(t *testing.T) {
	endpoint := start(t)
	eve := kmsAs(endpoint, makeUser(t, endpoint, "eve", statement("Allow", `"kms:*"`, "*"),
		`{"Effect":"Deny","Action":"kms:CreateKey","Resource":"*","Condition":{"StringEquals":{"kms:KeySpec":["RSA_2048","SYMMETRIC_DEFAULT"]}}}`))
	for name, in := range map[string]*kms.CreateKeyInput{
		"a spec": {KeySpec: kmstypes.KeySpecRsa2048, KeyUsage: kmstypes.KeyUsageTypeSignVerify}, "nothing": {},
		"the old member": {CustomerMasterKeySpec: kmstypes.CustomerMasterKeySpecRsa2048, KeyUsage: kmstypes.KeyUsageTypeSignVerify},
	} {
		_, err := eve.CreateKey(t.Context(), in)
		deniedTo(t, "a key by "+name, err)
	}
}

// An issuer whose address differs from a provider's in nothing but case is another one,
// and what conditions ask about any request they can ask here.
func TestIssuerOfAnotherCase(t *testing.T) {
	i := newIssuer(t)
	tenants := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if path != ".well-known/openid-configuration" {
			i.Config.Handler.ServeHTTP(w, r)
			return
		}
		at := "https://" + r.Host
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": at + "/" + tenant, "jwks_uri": at + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}})
	}))
	t.Cleanup(tenants.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tenants.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	endpoint := startWith(t, func(c *config.Config) { c.EndpointCA = file })
	c, ctx := iamClient(endpoint), t.Context()
	arn := *must(c.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{Url: new(tenants.URL + "/tenant"), ClientIDList: []string{"ci"}}))(t).OpenIDConnectProviderArn
	allow := `{"Effect":"Allow","Principal":{"Federated":"` + arn + `"},"Action":"sts:AssumeRoleWithWebIdentity"}`
	trusts := map[string]string{
		"open": allow,
		"tls":  allow + `,{"Effect":"Deny","Principal":{"Federated":"` + arn + `"},"Action":"sts:AssumeRoleWithWebIdentity","Condition":{"Bool":{"aws:SecureTransport":"false"}}}`,
		"near": allow + `,{"Effect":"Deny","Principal":{"Federated":"` + arn + `"},"Action":"sts:AssumeRoleWithWebIdentity","Condition":{"IpAddress":{"aws:SourceIp":"127.0.0.0/8"}}}`,
	}
	for name, statements := range trusts {
		must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: new(`{"Version":"2012-10-17","Statement":[` + statements + `]}`)}))(t)
	}
	now := serverTime(t, endpoint)
	anonymous := stsAs(endpoint, aws.AnonymousCredentials{})
	assume := func(ctx context.Context, role, tenant string) error {
		token := i.token(t, map[string]any{"iss": tenants.URL + "/" + tenant, "sub": "me", "aud": "ci", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()})
		_, err := anonymous.AssumeRoleWithWebIdentity(ctx, &sts.AssumeRoleWithWebIdentityInput{RoleArn: new("arn:aws:iam::" + account + ":role/" + role), RoleSessionName: new("run"), WebIdentityToken: &token})
		return err
	}
	if err := assume(ctx, "open", "tenant"); err != nil {
		t.Fatal(err)
	}
	if err := assume(ctx, "open", "TENANT"); err == nil {
		t.Error("another issuer was believed")
	}
	deniedTo(t, "a request without TLS", assume(ctx, "tls", "tenant"))
	deniedTo(t, "a request from an address that is denied", assume(ctx, "near", "tenant"))
}

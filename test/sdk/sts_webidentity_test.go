package sdk_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"godwit.dev/godwit/internal/config"
)

// issuer is an OpenID Connect provider.
type issuer struct {
	*httptest.Server
	key       *ecdsa.PrivateKey
	withdrawn atomic.Bool // its key is not shown any more
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			answer = map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}}
		case "/keys":
			public, err := key.PublicKey.Bytes()
			if err != nil {
				panic(err)
			}
			number := base64.RawURLEncoding.EncodeToString
			if i.withdrawn.Load() {
				answer = map[string]any{"keys": []any{}}
				break
			}
			answer = map[string]any{"keys": []any{map[string]string{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "1", "x": number(public[1:33]), "y": number(public[33:])}}}
		default:
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(i.Close)
	return i
}

// token signs claims.
func (i *issuer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	text := encode(map[string]string{"alg": "ES256", "kid": "1", "typ": "JWT"}) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	der, err := i.key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(raw(der))
}

// raw is an ECDSA signature of P-256 as JOSE has it: r and s of 32 bytes each.
func raw(der []byte) []byte {
	out := make([]byte, 64)
	at := 2
	for n := range 2 {
		size := int(der[at+1])
		number := der[at+2 : at+2+size]
		if len(number) > 32 {
			number = number[len(number)-32:]
		}
		copy(out[(n+1)*32-len(number):(n+1)*32], number)
		at += 2 + size
	}
	return out
}

// startTrusting starts a server that believes a provider's certificate.
func startTrusting(t *testing.T, provider *issuer) (endpoint string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: provider.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return startWith(t, func(c *config.Config) { c.EndpointCA = file })
}

// Tags and the source identity in a token are the session's, if the role lets them be set.
func TestWebIdentityTags(t *testing.T) {
	provider := newIssuer(t)
	endpoint := startTrusting(t, provider)
	c, ctx := iamClient(endpoint), t.Context()
	arn := *must(c.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{Url: &provider.URL, ClientIDList: []string{"ci"}}))(t).OpenIDConnectProviderArn
	trust := func(actions, condition string) *string {
		return new(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Federated":"` + arn + `"},"Action":` + actions + `,"Condition":` + condition + `}]}`)
	}
	const all = `["sts:AssumeRoleWithWebIdentity","sts:TagSession","sts:SetSourceIdentity"]`
	role := *must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("deploy"), AssumeRolePolicyDocument: trust(all, "{}")}))(t).Role.Arn
	// The role may see who it is, if the session is of the team; and nothing without it.
	must(c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: new("deploy"), PolicyName: new("p"), PolicyDocument: new(
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"iam:GetRole","Resource":"*","Condition":{` +
			`"StringEquals":{"aws:PrincipalTag/team":"red","aws:SourceIdentity":"ann","aws:FederatedProvider":"` + arn + `"},"Bool":{"aws:MultiFactorAuthPresent":"false"}}}}`)}))(t)
	now := serverTime(t, endpoint)
	s := stsAs(endpoint, aws.AnonymousCredentials{})
	ask := func(more map[string]any) (*sts.AssumeRoleWithWebIdentityOutput, error) {
		claims := map[string]any{"iss": provider.URL, "sub": "me", "aud": "ci", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
		maps.Copy(claims, more)
		return s.AssumeRoleWithWebIdentity(ctx, &sts.AssumeRoleWithWebIdentityInput{RoleArn: &role, RoleSessionName: new("run"), WebIdentityToken: new(provider.token(t, claims))})
	}
	may := func(out *sts.AssumeRoleWithWebIdentityOutput) error {
		_, err := iamAs(endpoint, session(out.Credentials)).GetRole(ctx, &iam.GetRoleInput{RoleName: new("deploy")})
		return err
	}
	const source = "https://aws.amazon.com/source_identity"
	nested := map[string]any{source: "ann", "https://aws.amazon.com/tags": map[string]any{
		"principal_tags": map[string]any{"team": []string{"red"}}, "transitive_tag_keys": []string{"team"},
	}}
	flat := map[string]any{source: "ann", "https://aws.amazon.com/tags/principal_tags/team": "red", "https://aws.amazon.com/tags/transitive_tag_keys": []string{"team"}}
	for _, claims := range []map[string]any{nested, flat} {
		if err := may(must(ask(claims))(t)); err != nil {
			t.Error(err)
		}
	}
	deniedTo(t, "a session without a source", may(must(ask(map[string]any{"https://aws.amazon.com/tags/principal_tags/team": "red"}))(t)))
	deniedTo(t, "a session of another team", may(must(ask(map[string]any{source: "ann", "https://aws.amazon.com/tags/principal_tags/team": "blue"}))(t)))

	const denied = "Not authorized to perform sts:AssumeRoleWithWebIdentity"
	for what, document := range map[string]*string{
		"no tags":     trust(`["sts:AssumeRoleWithWebIdentity","sts:SetSourceIdentity"]`, "{}"),
		"no source":   trust(`["sts:AssumeRoleWithWebIdentity","sts:TagSession"]`, "{}"),
		"other tags":  trust(all, `{"StringEquals":{"aws:RequestTag/team":"blue"}}`),
		"other keys":  trust(all, `{"ForAllValues:StringEquals":{"aws:TagKeys":"other"}}`),
		"other roots": trust(all, `{"StringEquals":{"sts:SourceIdentity":"bob"}}`),
		"not passed":  trust(all, `{"ForAnyValue:StringEquals":{"sts:TransitiveTagKeys":"other"}}`),
	} {
		t.Run(what, func(t *testing.T) {
			must(c.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: new("deploy"), PolicyDocument: document}))(t)
			_, err := ask(nested)
			refused(t, err, "AccessDenied", 403, denied)
		})
	}
	_, err := ask(map[string]any{"https://aws.amazon.com/tags/principal_tags/team": []string{"red", "blue"}})
	if err == nil || !strings.Contains(err.Error(), "InvalidIdentityToken") {
		t.Errorf("a tag of two values: %v", err)
	}
}

// Whether a second factor was there is known of sessions; long-term keys say nothing of it.
func TestMultiFactorAuthPresent(t *testing.T) {
	endpoint := start(t)
	eve := makeUser(t, endpoint, "eve")
	temporary := session(must(stsAs(endpoint, eve).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{}))(t).Credentials)
	for _, tt := range []struct {
		condition            string
		longTerm, ofASession bool
	}{
		{`{"Bool":{"aws:MultiFactorAuthPresent":"true"}}`, false, false},
		{`{"Bool":{"aws:MultiFactorAuthPresent":"false"}}`, false, true},
		{`{"BoolIfExists":{"aws:MultiFactorAuthPresent":"true"}}`, true, false},
		{`{"BoolIfExists":{"aws:MultiFactorAuthPresent":"false"}}`, true, true},
		{`{"Null":{"aws:MultiFactorAuthPresent":"true"}}`, true, false},
		// How long ago it was nobody knows, as nobody can have had one.
		{`{"NumericLessThan":{"aws:MultiFactorAuthAge":"3600"}}`, false, false},
		{`{"NumericGreaterThanEquals":{"aws:MultiFactorAuthAge":"0"}}`, false, false},
		{`{"NumericLessThanIfExists":{"aws:MultiFactorAuthAge":"3600"}}`, true, true},
		{`{"Null":{"aws:MultiFactorAuthAge":"true"}}`, true, true},
	} {
		must(iamClient(endpoint).PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{
			UserName: new("eve"), PolicyName: new("p"), PolicyDocument: new(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"kms:*","Resource":"*","Condition":` + tt.condition + `}}`),
		}))(t)
		for who, allowed := range map[aws.CredentialsProvider]bool{eve: tt.longTerm, temporary: tt.ofASession} {
			_, err := kmsAs(endpoint, who).ListKeys(t.Context(), &kms.ListKeysInput{})
			if (err == nil) != allowed {
				t.Errorf("%s: %v, want %t", tt.condition, err, allowed)
			}
		}
	}
}

// A token of an identity provider gives a session of the roles that trust it, by its
// claims, and no other.
func TestAssumeRoleWithWebIdentity(t *testing.T) {
	provider, other := newIssuer(t), newIssuer(t)
	endpoint := startTrusting(t, provider)
	c, ctx := iamClient(endpoint), t.Context()
	name := strings.TrimPrefix(provider.URL, "https://")
	arn := *must(c.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{Url: &provider.URL, ClientIDList: []string{"ci"}}))(t).OpenIDConnectProviderArn
	equal(t, "the provider's ARN", "arn:aws:iam::000000000000:oidc-provider/"+name, arn)
	trust := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Federated":"` + arn + `"},"Action":"sts:AssumeRoleWithWebIdentity","Condition":{"StringEquals":{"` + name + `:aud":"ci"},"StringLike":{"` + name + `:sub":"repo:me/*"}}}]}`
	role := must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("deploy"), AssumeRolePolicyDocument: &trust}))(t).Role
	everybody := strings.ReplaceAll(strings.ReplaceAll(trustRoot, "arn:aws:iam::000000000000:root", "*"), "AssumeRole", "AssumeRoleWithWebIdentity")
	open := must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("open"), AssumeRolePolicyDocument: &everybody}))(t).Role

	now := serverTime(t, endpoint)
	claims := func(change ...any) map[string]any {
		all := map[string]any{"iss": provider.URL, "sub": "repo:me/app", "aud": "ci", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
		for i := 0; i < len(change); i += 2 {
			if all[change[i].(string)] = change[i+1]; change[i+1] == nil {
				delete(all, change[i].(string))
			}
		}
		return all
	}
	s := sts.New(sts.Options{BaseEndpoint: &endpoint, Region: region, Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 1, HTTPClient: eager})
	ask := func(role *string, token string) (*sts.AssumeRoleWithWebIdentityOutput, error) {
		return s.AssumeRoleWithWebIdentity(ctx, &sts.AssumeRoleWithWebIdentityInput{RoleArn: role, RoleSessionName: new("run"), WebIdentityToken: &token})
	}
	got := must(ask(role.Arn, provider.token(t, claims())))(t)
	equal(t, "answer", []string{"repo:me/app", "ci", arn, "arn:aws:sts::000000000000:assumed-role/deploy/run"},
		[]string{*got.SubjectFromWebIdentityToken, *got.Audience, *got.Provider, *got.AssumedRoleUser.Arn})
	who := must(stsClientOf(endpoint, *got.Credentials.AccessKeyId, *got.Credentials.SecretAccessKey, *got.Credentials.SessionToken).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))(t)
	equal(t, "who", *got.AssumedRoleUser.Arn, *who.Arn)
	must(ask(role.Arn, provider.token(t, claims("aud", []string{"ci", "x"}, "azp", "ci"))))(t)
	must(ask(role.Arn, provider.token(t, claims("exp", now.Add(-4*time.Minute).Unix()))))(t) // within the tolerance

	const denied = "Not authorized to perform sts:AssumeRoleWithWebIdentity"
	for _, tc := range []struct {
		name   string
		role   *string
		token  string
		code   string
		status int
		text   string // empty: any
	}{
		{"another subject", role.Arn, provider.token(t, claims("sub", "repo:you/app")), "AccessDenied", 403, denied},
		{"another audience", role.Arn, provider.token(t, claims("aud", "x")), "InvalidIdentityToken", 400, "Incorrect token audience"},
		{"no expiry", role.Arn, provider.token(t, claims("exp", nil)), "InvalidIdentityToken", 400, "Missing a required claim: exp"},
		{"expired", role.Arn, provider.token(t, claims("exp", now.Add(-5*time.Minute).Unix())), "ExpiredTokenException", 400, ""},
		{"of the future", role.Arn, provider.token(t, claims("iat", now.Add(6*time.Minute).Unix())), "InvalidIdentityToken", 400, ""},
		{"another's signature", role.Arn, other.token(t, claims()), "InvalidIdentityToken", 400, "Couldn't verify the ID Token's signature"},
		{"another issuer", role.Arn, other.token(t, claims("iss", other.URL)), "InvalidIdentityToken", 400, "No OpenIDConnect provider found in your account for " + other.URL},
		{"no token", role.Arn, "nonsense", "InvalidIdentityToken", 400, ""},
		{"a role that is not there", new("arn:aws:iam::000000000000:role/none"), provider.token(t, claims()), "AccessDenied", 403, denied},
		{"a role that trusts everybody", open.Arn, provider.token(t, claims()), "AccessDenied", 403, denied},
	} {
		_, err := ask(tc.role, tc.token)
		if tc.text != "" {
			t.Run(tc.name, func(t *testing.T) { refused(t, err, tc.code, tc.status, tc.text) })
		} else if err == nil || !strings.Contains(err.Error(), tc.code) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	// A claim of another case is another claim.
	must(ask(role.Arn, provider.token(t, claims("SUB", "repo:you/app", "AUD", "x", "Exp", 1))))(t)
	for _, name := range []string{"SUB", "Sub"} {
		_, err := ask(role.Arn, provider.token(t, claims("sub", "repo:you/app", name, "repo:me/app")))
		refused(t, err, "AccessDenied", 403, denied)
	}
	_, err := ask(role.Arn, provider.token(t, claims("sub", nil, "SUB", "repo:me/app")))
	refused(t, err, "InvalidIdentityToken", 400, "Missing a required claim: sub")
	_, err = ask(role.Arn, provider.token(t, claims("aud", []string{"ci", "x"})))
	refused(t, err, "InvalidIdentityToken", 400, "Missing a required claim: azp")
	_, err = ask(role.Arn, provider.token(t, claims("aud", []string{"ci", "x"}, "azp", "x")))
	refused(t, err, "InvalidIdentityToken", 400, "Incorrect token audience")

	must(c.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{Url: &other.URL, ClientIDList: []string{"ci"}}))(t)
	_, err = ask(role.Arn, other.token(t, claims("iss", other.URL))) // whose certificate is the same; its keys are not fetched from where it is not
	if err == nil {
		t.Error("a provider that the role does not trust was admitted")
	}
}

// What a provider said of whoever came holds for the whole session: conditions and variables of
// the role's policies can ask for it; not for what nobody said, and not in another session.
func TestWebIdentityKeysInTheSession(t *testing.T) {
	provider := newIssuer(t)
	endpoint := startTrusting(t, provider)
	c, ctx := iamClient(endpoint), t.Context()
	name := strings.TrimPrefix(provider.URL, "https://")
	arn := *must(c.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{Url: &provider.URL, ClientIDList: []string{"ci"}}))(t).OpenIDConnectProviderArn
	role := must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("deploy"), AssumeRolePolicyDocument: new(policyOf(
		`{"Effect":"Allow","Principal":{"Federated":"` + arn + `"},"Action":"sts:AssumeRoleWithWebIdentity"},{"Effect":"Allow","Principal":{"AWS":"` + account + `"},"Action":"sts:AssumeRole"}`))}))(t).Role
	now := serverTime(t, endpoint)
	s := stsAs(endpoint, aws.AnonymousCredentials{})
	begin := func(more map[string]any) aws.CredentialsProvider {
		t.Helper()
		claims := map[string]any{"iss": provider.URL, "sub": "ann", "aud": "ci", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
		maps.Copy(claims, more)
		return session(must(s.AssumeRoleWithWebIdentity(ctx, &sts.AssumeRoleWithWebIdentityInput{RoleArn: role.Arn, RoleSessionName: new("run"), WebIdentityToken: new(provider.token(t, claims))}))(t).Credentials)
	}
	ann, bob := begin(map[string]any{"amr": []string{"pwd", "otp"}}), begin(map[string]any{"sub": "bob", "aud": []string{"ci", "other"}, "azp": "ci"})
	byRoot := session(must(stsAs(endpoint, makeUser(t, endpoint, "eve", statement("Allow", `"sts:AssumeRole"`, "*"))).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: role.Arn, RoleSessionName: new("run")}))(t).Credentials)
	for _, tt := range []struct {
		condition, resource string
		ann, bob, byRoot    bool
	}{
		{`{"StringEquals":{"` + name + `:sub":"ann"}}`, "*", true, false, false},
		{`{"StringEquals":{"` + strings.ToUpper(name) + `:SUB":"ann"}}`, "*", true, false, false},
		{`{"StringEquals":{"` + name + `:aud":"ci"}}`, "*", true, true, false},
		{`{"StringEquals":{"` + name + `:azp":"ci"}}`, "*", false, true, false},
		{`{"ForAnyValue:StringEquals":{"` + name + `:oaud":"other"}}`, "*", false, true, false},
		{`{"ForAnyValue:StringEquals":{"` + name + `:amr":"otp"}}`, "*", true, false, false},
		{`{"StringNotEquals":{"` + name + `:sub":"ann"}}`, "*", false, true, true},
		{`{"StringEquals":{"other.example:sub":"ann"}}`, "*", false, false, false},
		{`{}`, "arn:aws:iam::" + account + ":role/${" + name + ":sub}", false, false, false},
		{`{}`, "arn:aws:iam::" + account + ":role/deploy${" + name + ":sub, ''}", false, false, true},
	} {
		must(c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: new("deploy"), PolicyName: new("p"), PolicyDocument: new(
			policyOf(`{"Effect":"Allow","Action":"iam:GetRole","Resource":"` + tt.resource + `","Condition":` + tt.condition + `}`))}))(t)
		for what, of := range map[string]struct {
			who aws.CredentialsProvider
			may bool
		}{"ann": {ann, tt.ann}, "bob": {bob, tt.bob}, "a session of no provider": {byRoot, tt.byRoot}} {
			_, err := iamAs(endpoint, of.who).GetRole(ctx, &iam.GetRoleInput{RoleName: new("deploy")})
			if (err == nil) != of.may {
				t.Errorf("%s on %s for %s: %v, want %t", tt.condition, tt.resource, what, err, of.may)
			}
		}
	}
}

// A key that a provider has withdrawn is trusted for an hour at most.
func TestWithdrawnKeyOfIssuer(t *testing.T) {
	provider := newIssuer(t)
	endpoint := startTrusting(t, provider)
	c, ctx := iamClient(endpoint), t.Context()
	arn := *must(c.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{Url: &provider.URL, ClientIDList: []string{"ci"}}))(t).OpenIDConnectProviderArn
	role := must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("ci"), AssumeRolePolicyDocument: new(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Federated":"` + arn + `"},"Action":"sts:AssumeRoleWithWebIdentity"}]}`)}))(t).Role
	token := provider.token(t, map[string]any{"iss": provider.URL, "sub": "job", "aud": "ci", "iat": time.Now().Unix(), "exp": time.Now().Add(24 * time.Hour).Unix()})
	assume := func() error {
		_, err := stsAs(endpoint, aws.AnonymousCredentials{}).AssumeRoleWithWebIdentity(ctx, &sts.AssumeRoleWithWebIdentityInput{RoleArn: role.Arn, RoleSessionName: new("job"), WebIdentityToken: &token})
		return err
	}
	if err := assume(); err != nil {
		t.Fatal(err)
	}
	provider.withdrawn.Store(true)
	advance(t, endpoint, "1h1s")
	refused(t, assume(), "InvalidIdentityToken", http.StatusBadRequest, "Couldn't verify the ID Token's signature")
}

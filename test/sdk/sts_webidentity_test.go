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
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"godwit.dev/godwit/internal/config"
)

// issuer is an OpenID Connect provider.
type issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
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

// A token of an identity provider gives a session of the roles that trust it, by its
// claims, and no other.
func TestAssumeRoleWithWebIdentity(t *testing.T) {
	provider, other := newIssuer(t), newIssuer(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: provider.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	endpoint := startWith(t, func(c *config.Config) { c.EndpointCA = file })
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
	s := sts.New(sts.Options{BaseEndpoint: &endpoint, Region: region, Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 1, HTTPClient: eager{}})
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
	must(c.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{Url: &other.URL, ClientIDList: []string{"ci"}}))(t)
	_, err := ask(role.Arn, other.token(t, claims("iss", other.URL))) // whose certificate is the same; its keys are not fetched from where it is not
	if err == nil {
		t.Error("a provider that the role does not trust was admitted")
	}
}

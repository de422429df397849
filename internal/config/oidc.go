package config

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// OIDC are the settings of the console's sign-in by an OpenID Connect provider.
type OIDC struct {
	Issuer     string   `name:"console-oidc-issuer" placeholder:"URL" help:"Have people sign in to the console at this OpenID Connect provider, too, whom --console-oidc-roles gives a role. It sends them back to PUBLIC-URL/_godwit/ui/oidc/callback."`
	Client     string   `name:"console-oidc-client" placeholder:"ID" help:"The client id that the provider knows the console by."`
	SecretFile string   `name:"console-oidc-secret-file" placeholder:"FILE" help:"The client's secret, readable by its owner only; without one the client is a public one, which PKCE protects alone."`
	Scopes     []string `name:"console-oidc-scopes" default:"openid,email" placeholder:"SCOPE" help:"What the provider is asked for (${default})."`
	Roles      []string `name:"console-oidc-roles" placeholder:"CLAIM=VALUE=ROLE" help:"Who has which role of --account: whose claim has the value, or one of several; * is any. The first that is true decides, as groups=sre=operators. Nobody else is let in."`
}

// OIDCRole gives a role to people with a claim's value.
type OIDCRole struct {
	Claim, Value string // "*" is any value
	Role         string // its name, without a path
}

var errOIDCRole = errors.New("want CLAIM=VALUE=ROLE, such as groups=sre=operators")

// ParseOIDCRole parses an entry of OIDC.Roles. Values may contain =.
func ParseOIDCRole(text string) (r OIDCRole, err error) {
	claim, rest, _ := strings.Cut(text, "=")
	at := strings.LastIndexByte(rest, '=')
	if claim == "" || at <= 0 || at == len(rest)-1 || strings.ContainsAny(rest[at+1:], "/:* ") {
		return r, errOIDCRole
	}
	return OIDCRole{Claim: claim, Value: rest[:at], Role: rest[at+1:]}, nil
}

func (o *OIDC) check(check checkFunc, enforced bool) {
	if o.Issuer == "" {
		check(o.Client == "" && o.SecretFile == "" && len(o.Roles) == 0, "console-oidc-issuer", "the other settings of --console-oidc-… need it")
		return
	}
	check(enforced, "console-oidc-issuer", "nobody has to sign in here: it is for godwit serve, or --enforce, without --admin-listen")
	u, err := url.Parse(o.Issuer)
	own := err == nil && u.Scheme == "http" && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
	check(err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" && (u.Scheme == "https" || own),
		"console-oidc-issuer", "want https://HOST…, have %q", o.Issuer)
	check(o.Client != "", "console-oidc-client", "want the client id that the provider has given out")
	check(len(o.Roles) > 0, "console-oidc-roles", "without it nobody is let in")
	for _, text := range o.Roles {
		_, err := ParseOIDCRole(text)
		check(err == nil, "console-oidc-roles", "%v, have %q", err, text)
	}
}

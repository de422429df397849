// Package signon signs people in to the console by an OpenID Connect provider: the
// authorization code flow with PKCE, a state and a nonce. The provider's claims give a role
// according to the settings; without a role the sign-in is refused.
package signon

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
)

// Path redirects a browser to the provider, and callbackPath is where the provider redirects
// it to.
const (
	Path         = "/_godwit/ui/oidc/begin"
	callbackPath = "/_godwit/ui/oidc/callback"
)

const (
	// home is the console's page.
	home = "/_godwit/ui/"
	// signInTimeout is the timeout of a sign-in.
	signInTimeout = 10 * time.Minute
	// fetchTime is the timeout of requests to the provider.
	fetchTime = 10 * time.Second
	// maxName bounds the length of a session's name.
	maxName = 64
	// maxCode bounds a parameter of the provider's redirect, in bytes.
	maxCode = 4096
	// maxBack bounds the address of the page to return to, in bytes, as it is in the cookie.
	maxBack = 2048
	// cookie binds a sign-in to the browser that has begun it.
	cookie = "godwit-sign-in"
)

// Causes of a failed sign-in for the page: fixed words, so that it shows no foreign text.
const (
	refused     = "refused"     // by the provider
	over        = "over"        // expired, or begun in another browser
	unreachable = "unreachable" // no answer of the provider, or an invalid one
	nobody      = "nobody"      // no claim gives a role
)

// Options are the dependencies and settings of a SignOn.
type Options struct {
	Settings config.OIDC
	Secret   string // of the client; empty: a public client
	// Roles are the parsed Settings.Roles.
	Roles []config.OIDCRole
	// URL is the prefix of callbackPath's URL; empty: the request's host.
	URL string
	// Secure says that clients use TLS although this server does not see it.
	Secure bool
	// Clock is the machine's clock, as for the provider's tokens.
	Clock clock.Clock
	// Web makes requests to the provider.
	Web *http.Client
	// Role returns the caller with a role of the server's account and a session name; nil:
	// there is no such role.
	Role func(role, session string) *caller.Caller
	// Open begins a session, as session.Sessions.OpenAs does.
	Open func(w http.ResponseWriter, r *http.Request, owner string, again func() (*caller.Caller, error))
	// Note records a sign-in, or its error.
	Note   func(r *http.Request, who *caller.Caller, refusal error)
	Logger *slog.Logger
}

// SignOn serves Path and callbackPath. It is safe for concurrent use.
type SignOn struct {
	Options

	asking chan struct{} // has a token while the provider's configuration is being fetched

	sealed *sealed // sign-ins in progress

	mu       sync.Mutex
	provider *oidc.Provider // once its configuration was fetched
}

// New makes a SignOn. The provider's configuration is fetched with the first sign-in, so that
// the server starts without the provider.
func New(o Options) *SignOn {
	return &SignOn{Options: o, asking: make(chan struct{}, 1), sealed: newSealed(o.Clock)}
}

// Name is the provider's display name.
func (s *SignOn) Name() string {
	u, err := url.Parse(s.Settings.Issuer)
	if err != nil {
		return s.Settings.Issuer
	}
	return u.Host
}

// Handlers are the handlers, by patterns of http.ServeMux.
func (s *SignOn) Handlers() map[string]http.Handler {
	return map[string]http.Handler{
		"GET " + Path:         http.HandlerFunc(s.begin),
		"GET " + callbackPath: http.HandlerFunc(s.callback),
	}
}

func drawn() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it returns no error
	return base64.RawURLEncoding.EncodeToString(secret)
}

// known is the provider's configuration; nil: not fetched yet.
func (s *SignOn) known() *oidc.Provider {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.provider
}

// discovered fetches the provider's configuration until that succeeds, for one sign-in at a
// time, as anybody may begin one.
func (s *SignOn) discovered(ctx context.Context) (*oidc.Provider, error) {
	if known := s.known(); known != nil {
		return known, nil
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if known := s.known(); known != nil {
		return known, nil
	}
	// The provider uses the context for the keys that it fetches later.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), s.Web), s.Settings.Issuer)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.provider = found
	return found, nil
}

func (s *SignOn) client(p *oidc.Provider, callback string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: s.Settings.Client, ClientSecret: s.Secret, Endpoint: p.Endpoint(), RedirectURL: callback, Scopes: s.Settings.Scopes,
	}
}

// secure reports whether the browser uses TLS.
func (s *SignOn) secure(r *http.Request) bool { return s.Secure || r.TLS != nil }

// address is the URL of callbackPath for the browser.
func (s *SignOn) address(r *http.Request) string {
	if s.URL != "" {
		return strings.TrimRight(s.URL, "/") + callbackPath
	}
	scheme := "http://"
	if s.secure(r) {
		scheme = "https://"
	}
	return scheme + r.Host + callbackPath
}

// mark sets the cookie of a sign-in, or deletes it.
func (s *SignOn) mark(w http.ResponseWriter, r *http.Request, token string, maxAge int) {
	// Lax, because the provider's redirect comes from another site.
	http.SetCookie(w, &http.Cookie{
		Name: cookie, Value: token, Path: home + "oidc/", MaxAge: maxAge, HttpOnly: true, Secure: s.secure(r), SameSite: http.SameSiteLaxMode,
	})
}

// begin redirects the browser to the provider.
func (s *SignOn) begin(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), fetchTime)
	defer cancel()
	provider, err := s.discovered(ctx)
	if err != nil {
		s.Logger.Warn("the identity provider of the console does not answer", "issuer", s.Settings.Issuer, "error", err)
		s.back(w, r, home, unreachable)
		return
	}
	p := &pending{state: drawn(), nonce: drawn(), verifier: oauth2.GenerateVerifier(), callback: s.address(r), back: within(r.URL.Query().Get("to")), began: s.Clock.Now()}
	s.mark(w, r, s.sealed.seal(p), int(signInTimeout.Seconds()))
	at := s.client(provider, p.callback).AuthCodeURL(p.state, oidc.Nonce(p.nonce), oauth2.S256ChallengeOption(p.verifier))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, at, http.StatusSeeOther)
}

// within is the page of the console at an address; the first page for any other address.
func within(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, home) || strings.HasPrefix(u.Path, home+"oidc/") || strings.ContainsAny(to, "\\\r\n") {
		return home
	}
	page := (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
	if len(page) > maxBack {
		return home
	}
	return page
}

// take is the sign-in of the browser's cookie, once; nil: there is none.
func (s *SignOn) take(r *http.Request) *pending {
	c, err := r.Cookie(cookie)
	if err != nil {
		return nil
	}
	return s.sealed.take(c.Value)
}

// back redirects to the console, with the cause of a failure.
func (s *SignOn) back(w http.ResponseWriter, r *http.Request, to, why string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if why != "" {
		to = home + "?sign-in=" + why
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// failure is the error of a sign-in: a word for the page, the rest for the log.
type failure struct {
	word string
	err  error
}

func (f failure) Error() string { return f.err.Error() }

// callback handles the provider's redirect.
func (s *SignOn) callback(w http.ResponseWriter, r *http.Request) {
	p := s.take(r)
	s.mark(w, r, "", -1)
	query := r.URL.Query()
	if p == nil || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(p.state)) == 0 {
		s.back(w, r, home, over)
		return
	}
	who, owner, err := s.vouched(r, p, query)
	s.Note(r, who, err)
	if err != nil {
		s.Logger.Warn("a sign-in to the console by its identity provider was refused", "issuer", s.Settings.Issuer, "error", err)
		word := refused
		if f, ok := errors.AsType[failure](err); ok {
			word = f.word
		}
		s.back(w, r, home, word)
		return
	}
	role, session, id := roleName(who), who.Name, who.RoleID
	claims, provider, source := who.Claims, who.Provider, who.SourceIdentity
	s.Open(w, r, owner, func() (*caller.Caller, error) {
		now := s.Role(role, session)
		if now == nil || now.RoleID != id { // also if the role was deleted and created again
			return nil, errors.New("the role is gone")
		}
		now.Claims, now.Provider, now.SourceIdentity = claims, provider, source
		return now, nil
	})
	s.back(w, r, p.back, "")
}

// roleName is the name of a session's role, without its path.
func roleName(who *caller.Caller) string {
	return who.Role[strings.LastIndexByte(who.Role, '/')+1:]
}

// vouched returns the caller that the provider has authenticated, and the owner of its
// sessions.
func (s *SignOn) vouched(r *http.Request, p *pending, query url.Values) (who *caller.Caller, owner string, err error) {
	if word := query.Get("error"); word != "" {
		return nil, "", failure{refused, fmt.Errorf("the provider says %s", strconv.QuoteToASCII(word[:min(len(word), 100)]))}
	}
	// RFC 9207: an answer with another issuer is invalid.
	if issuer := query.Get("iss"); issuer != "" && issuer != s.Settings.Issuer {
		return nil, "", failure{refused, errors.New("the answer is of another issuer")}
	}
	code := query.Get("code")
	if code == "" || len(code) > maxCode {
		return nil, "", failure{refused, errors.New("the answer has no code")}
	}
	ctx, cancel := context.WithTimeout(r.Context(), fetchTime)
	defer cancel()
	ctx = oidc.ClientContext(ctx, s.Web)
	provider, err := s.discovered(ctx)
	if err != nil {
		return nil, "", failure{unreachable, err}
	}
	tokens, err := s.client(provider, p.callback).Exchange(ctx, code, oauth2.VerifierOption(p.verifier))
	if err != nil {
		if said, ok := errors.AsType[*oauth2.RetrieveError](err); ok { // its text may have secrets
			return nil, "", failure{refused, fmt.Errorf("the provider does not take the code: status %d, %s", said.Response.StatusCode, strconv.QuoteToASCII(said.ErrorCode))}
		}
		return nil, "", failure{unreachable, err}
	}
	raw, ok := tokens.Extra("id_token").(string)
	if !ok {
		return nil, "", failure{refused, errors.New("the provider gives no ID token")}
	}
	token, err := provider.Verifier(&oidc.Config{ClientID: s.Settings.Client, Now: s.Clock.Now}).Verify(ctx, raw)
	if err != nil {
		return nil, "", failure{refused, err}
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(p.nonce)) == 0 {
		return nil, "", failure{refused, errors.New("the ID token is of another sign-in")}
	}
	if token.Subject == "" {
		return nil, "", failure{refused, errors.New("the ID token names nobody")}
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return nil, "", failure{refused, err}
	}
	// If a token has several audiences, its authorized party must be this client.
	if party, ok := claims["azp"].(string); len(token.Audience) > 1 && (!ok || party != s.Settings.Client) {
		return nil, "", failure{refused, errors.New("the ID token was issued to another client")}
	}
	s.complete(ctx, provider, tokens, token.Subject, claims)
	who, err = s.having(token, claims)
	return who, token.Issuer + " " + token.Subject, err
}

// complete fetches, from the provider's userinfo endpoint, the claims that rules need and the
// token does not have.
func (s *SignOn) complete(ctx context.Context, provider *oidc.Provider, tokens *oauth2.Token, subject string, claims map[string]any) {
	all := true
	for _, rule := range s.Roles {
		all = all && claims[rule.Claim] != nil
	}
	if all || provider.UserInfoEndpoint() == "" {
		return
	}
	info, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil || info.Subject != subject { // of another subject
		s.Logger.Debug("the identity provider tells no more of somebody", "error", err)
		return
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return
	}
	for name, value := range more {
		if _, ok := claims[name]; !ok { // the signed token has priority
			claims[name] = value
		}
	}
}

// having returns the caller with the role of the first matching rule.
func (s *SignOn) having(token *oidc.IDToken, claims map[string]any) (*caller.Caller, error) {
	name := sessionName(token.Subject, claims)
	for _, rule := range s.Roles {
		if !holds(claims[rule.Claim], rule.Value) {
			continue
		}
		who := s.Role(rule.Role, name)
		if who == nil {
			return nil, failure{nobody, fmt.Errorf("there is no role %s", rule.Role)}
		}
		issuer := strings.TrimPrefix(strings.TrimPrefix(token.Issuer, "https://"), "http://")
		who.Provider = "arn:aws:iam::" + who.Account + ":oidc-provider/" + issuer
		key := strings.ToLower(issuer)
		who.Claims = map[string][]string{key + ":sub": {token.Subject}, key + ":aud": {s.Settings.Client}}
		return who, nil
	}
	return nil, failure{nobody, fmt.Errorf("no claim of %s gives a role", strconv.QuoteToASCII(name))}
}

// holds reports whether a claim is a value, or a list with it.
func holds(claim any, value string) bool {
	switch c := claim.(type) {
	case nil:
		return false
	case []any:
		return slices.ContainsFunc(c, func(one any) bool { return holds(one, value) })
	case string:
		return c != "" && (value == "*" || c == value)
	case bool:
		return strconv.FormatBool(c) == value
	case float64:
		return value == "*" || strconv.FormatFloat(c, 'f', -1, 64) == value
	}
	return false
}

// marked matches names with a digest, such as sessionName adds.
var marked = regexp.MustCompile(`-[0-9a-f]{10}$`)

// sessionName is the name of the session: the mail address, if the provider has verified it,
// else the subject. Characters that are invalid in session names are replaced, and a digest
// of the subject keeps such names distinct, and subjects from being taken for addresses: at some
// providers people choose theirs.
func sessionName(subject string, claims map[string]any) string {
	name, plain := subject, !strings.Contains(subject, "@")
	if address, ok := claims["email"].(string); ok && address != "" && claims["email_verified"] == true {
		name, plain = address, strings.Contains(address, "@")
	}
	fit := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_+=,.@-", r) {
			return r
		}
		return '-'
	}, name)
	if plain && fit == name && !marked.MatchString(fit) && len(fit) >= 2 && len(fit) <= maxName {
		return fit
	}
	digest := sha256.Sum256([]byte(subject))
	mark := "-" + hex.EncodeToString(digest[:5])
	return fit[:min(len(fit), maxName-len(mark))] + mark
}

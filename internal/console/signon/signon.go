// Package signon has people sign in to the console at an OpenID Connect provider: the
// authorization code flow with PKCE, a state and a nonce. Who the provider vouches for
// has the role that the settings give for a claim, and nobody else is let in.
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

// Path sends a browser to the provider, and CallbackPath is where that sends it back.
const (
	Path         = "/_godwit/ui/oidc/begin"
	CallbackPath = "/_godwit/ui/oidc/callback"
)

const (
	// home is the console's page.
	home = "/_godwit/ui/"
	// maxPending bounds the sign-ins that wait for the provider's answer; beyond it the
	// oldest has to be begun again.
	maxPending = 1000
	// signInTimeout is how long a sign-in waits for that.
	signInTimeout = 10 * time.Minute
	// fetchTime bounds what the provider takes to answer the server.
	fetchTime = 10 * time.Second
	// maxName is the greatest length of a session's name.
	maxName = 64
	// maxCode bounds a parameter of the provider's answer, in bytes.
	maxCode = 4096
	// maxBack bounds the address of the page that a sign-in leads back to, in bytes: it is kept
	// for others.
	maxBack = 2048
	// cookie ties a sign-in to the browser that has begun it.
	cookie = "godwit-sign-in"
)

// Why a sign-in failed, as the page shows it: words of its own, so that nobody else writes
// on it.
const (
	refused     = "refused"     // by the provider
	over        = "over"        // it took too long, or was begun in another browser
	unreachable = "unreachable" // the provider does not answer, or not as it should
	nobody      = "nobody"      // no claim gives a role
)

// Options are what a SignOn is made of.
type Options struct {
	Settings config.OIDC
	Secret   string // of the client; empty: it is a public one
	// Roles are Settings.Roles, read.
	Roles []config.OIDCRole
	// URL is what the address of CallbackPath begins with; empty: the request's own host.
	URL string
	// Secure says that clients use TLS though this server does not see it.
	Secure bool
	// Clock is the machine's: tokens are of its time.
	Clock clock.Clock
	// Web asks the provider.
	Web *http.Client
	// Role gives who has a role of the server's account for a session of a name, by the
	// role's name; nil: there is no such role.
	Role func(role, session string) *caller.Caller
	// Open begins a session, as session.Sessions.OpenAs does.
	Open func(w http.ResponseWriter, r *http.Request, owner, arn string, again func() (*caller.Caller, error))
	// Note records who has signed in, or why not.
	Note   func(r *http.Request, who *caller.Caller, refusal error)
	Logger *slog.Logger
}

// SignOn answers Path and CallbackPath. It may be used from many goroutines.
type SignOn struct {
	Options

	asking chan struct{} // has one while the provider is asked what it says of itself

	mu       sync.Mutex
	provider *oidc.Provider // once it has answered
	pending  map[[sha256.Size]byte]*pending
}

// pending is a sign-in that waits for the provider's answer.
type pending struct {
	state, nonce, verifier string
	callback, back         string
	began                  time.Time
}

// New makes a SignOn. The provider is asked when somebody signs in: the server starts
// without it.
func New(o Options) *SignOn {
	return &SignOn{Options: o, asking: make(chan struct{}, 1), pending: map[[sha256.Size]byte]*pending{}}
}

// Name is what people know the provider by.
func (s *SignOn) Name() string {
	u, err := url.Parse(s.Settings.Issuer)
	if err != nil {
		return s.Settings.Issuer
	}
	return u.Host
}

// Handlers answers patterns of http.ServeMux.
func (s *SignOn) Handlers() map[string]http.Handler {
	return map[string]http.Handler{
		"GET " + Path:         http.HandlerFunc(s.begin),
		"GET " + CallbackPath: http.HandlerFunc(s.callback),
	}
}

func drawn() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it gives no error
	return base64.RawURLEncoding.EncodeToString(secret)
}

// known is what the provider has said of itself; nil: nothing yet.
func (s *SignOn) known() *oidc.Provider {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.provider
}

// discovered is what the provider says of itself. It is asked until it has answered, by one
// sign-in at a time: anybody may begin one.
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
	// The provider keeps the context for the keys that it fetches later.
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

// address is that of CallbackPath, as the browser reaches it.
func (s *SignOn) address(r *http.Request) string {
	if s.URL != "" {
		return strings.TrimRight(s.URL, "/") + CallbackPath
	}
	scheme := "http://"
	if s.secure(r) {
		scheme = "https://"
	}
	return scheme + r.Host + CallbackPath
}

// mark gives the browser what its answer is known by, or takes it back.
func (s *SignOn) mark(w http.ResponseWriter, r *http.Request, token string, maxAge int) {
	// Lax: the provider's answer comes by a link of another site.
	http.SetCookie(w, &http.Cookie{
		Name: cookie, Value: token, Path: home + "oidc/", MaxAge: maxAge, HttpOnly: true, Secure: s.secure(r), SameSite: http.SameSiteLaxMode,
	})
}

// begin sends the browser to the provider.
func (s *SignOn) begin(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), fetchTime)
	defer cancel()
	provider, err := s.discovered(ctx)
	if err != nil {
		s.Logger.Warn("the identity provider of the console does not answer", "issuer", s.Settings.Issuer, "error", err)
		s.back(w, r, home, unreachable)
		return
	}
	token := drawn()
	p := &pending{state: drawn(), nonce: drawn(), verifier: oauth2.GenerateVerifier(), callback: s.address(r), back: within(r.URL.Query().Get("to")), began: s.Clock.Now()}
	s.keep(token, p)
	s.mark(w, r, token, int(signInTimeout.Seconds()))
	at := s.client(provider, p.callback).AuthCodeURL(p.state, oidc.Nonce(p.nonce), oauth2.S256ChallengeOption(p.verifier))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, at, http.StatusSeeOther)
}

// within is the page of the console that an address names; any other leads to the first.
func within(to string) string {
	u, err := url.Parse(to)
	if err != nil || len(to) > maxBack || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, home) || strings.HasPrefix(u.Path, home+"oidc/") || strings.ContainsAny(to, "\\\r\n") {
		return home
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}

func (s *SignOn) keep(token string, p *pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest [sha256.Size]byte
	for digest, other := range s.pending {
		if p.began.Sub(other.began) > signInTimeout {
			delete(s.pending, digest)
		} else if first, ok := s.pending[oldest]; !ok || other.began.Before(first.began) {
			oldest = digest
		}
	}
	if len(s.pending) >= maxPending {
		delete(s.pending, oldest)
	}
	s.pending[sha256.Sum256([]byte(token))] = p
}

// take gives the sign-in that the browser has begun, once.
func (s *SignOn) take(r *http.Request) *pending {
	c, err := r.Cookie(cookie)
	if err != nil {
		return nil
	}
	digest := sha256.Sum256([]byte(c.Value))
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[digest]
	delete(s.pending, digest)
	if p == nil || s.Clock.Now().Sub(p.began) > signInTimeout {
		return nil
	}
	return p
}

// back shows the console again, with a word on why nobody was let in.
func (s *SignOn) back(w http.ResponseWriter, r *http.Request, to, why string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if why != "" {
		to = home + "?sign-in=" + why
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// failure is why somebody was not let in: a word for the page, the rest for the log.
type failure struct {
	word string
	err  error
}

func (f failure) Error() string { return f.err.Error() }

// callback takes the provider's answer.
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
	s.Open(w, r, owner, who.ARN, func() (*caller.Caller, error) {
		now := s.Role(role, session)
		if now == nil || now.RoleID != id { // also of one that was created again
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

// vouched finds out for whom the provider vouches, and as whose sessions theirs count.
func (s *SignOn) vouched(r *http.Request, p *pending, query url.Values) (who *caller.Caller, owner string, err error) {
	if word := query.Get("error"); word != "" {
		return nil, "", failure{refused, fmt.Errorf("the provider says %s", strconv.QuoteToASCII(word[:min(len(word), 100)]))}
	}
	// RFC 9207: an answer that names another issuer is somebody else's.
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
		if said, ok := errors.AsType[*oauth2.RetrieveError](err); ok { // its text may hold what was sent
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
	// Of a token for several parties the one that it was issued to has to be this one.
	if party, ok := claims["azp"].(string); len(token.Audience) > 1 && (!ok || party != s.Settings.Client) {
		return nil, "", failure{refused, errors.New("the ID token was issued to another client")}
	}
	s.complete(ctx, provider, tokens, token.Subject, claims)
	who, err = s.having(token, claims)
	return who, token.Issuer + " " + token.Subject, err
}

// complete asks the provider for the claims that rules are about and the token has not: many
// keep them for that.
func (s *SignOn) complete(ctx context.Context, provider *oidc.Provider, tokens *oauth2.Token, subject string, claims map[string]any) {
	all := true
	for _, rule := range s.Roles {
		all = all && claims[rule.Claim] != nil
	}
	if all || provider.UserInfoEndpoint() == "" {
		return
	}
	info, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil || info.Subject != subject { // of somebody else
		s.Logger.Debug("the identity provider tells no more of somebody", "error", err)
		return
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return
	}
	for name, value := range more {
		if _, ok := claims[name]; !ok { // what is signed goes before
			claims[name] = value
		}
	}
}

// having gives whom the first rule that is true gives a role.
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

// holds reports whether a claim has a value, or is a list with it.
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

// sessionName is what the session is called: the mail address, if the provider has verified
// it, or else the subject. What names of sessions cannot have is replaced, and a digest of
// the subject keeps such names apart.
func sessionName(subject string, claims map[string]any) string {
	name := subject
	if address, ok := claims["email"].(string); ok && address != "" && claims["email_verified"] == true {
		name = address
	}
	fit := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_+=,.@-", r) {
			return r
		}
		return '-'
	}, name)
	if fit == name && len(fit) >= 2 && len(fit) <= maxName {
		return fit
	}
	digest := sha256.Sum256([]byte(subject))
	mark := "-" + hex.EncodeToString(digest[:5])
	return fit[:min(len(fit), maxName-len(mark))] + mark
}

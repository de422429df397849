package signon

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
)

// moved is a clock that a test moves.
type moved struct {
	clock.Clock
	now time.Time
}

func (m *moved) Now() time.Time { return m.now }

// provider is an OpenID Connect provider with one client and one user, who is always
// signed in. It is as strict as it may be.
type provider struct {
	t      *testing.T
	server *httptest.Server
	key    *rsa.PrivateKey
	clock  *moved
	// token changes the claims of the next ID token, and info those that it tells besides.
	token func(claims map[string]any)
	info  map[string]any
	// asked is the request that the code is for, taken once.
	asked url.Values
	bad   bool // it signs with a key that is not its own
}

const (
	clientID = "godwit-console"
	secret   = "the client's secret"
)

func startProvider(t *testing.T, c *moved) *provider {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key, clock: c, token: func(map[string]any) {}}
	mux := http.NewServeMux()
	p.server = httptest.NewServer(mux)
	t.Cleanup(p.server.Close)
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{
			"issuer": p.server.URL, "authorization_endpoint": p.server.URL + "/authorize", "token_endpoint": p.server.URL + "/token",
			"jwks_uri": p.server.URL + "/keys", "userinfo_endpoint": p.server.URL + "/info", "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "one", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, r *http.Request) {
		if p.info == nil || r.Header.Get("Authorization") != "Bearer access" {
			answer(w, 401, nil)
			return
		}
		answer(w, 200, p.info)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		id, password, _ := r.BasicAuth()
		challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		asked := p.asked
		p.asked = nil
		if asked == nil || id != clientID || password != url.QueryEscape(secret) || r.PostFormValue("code") != "the code" || r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") ||
			base64.RawURLEncoding.EncodeToString(challenge[:]) != asked.Get("code_challenge") {
			answer(w, 400, map[string]string{"error": "invalid_grant"})
			return
		}
		answer(w, 200, map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 60, "id_token": p.sign(asked.Get("nonce"))})
	})
	return p
}

func (p *provider) sign(nonce string) string {
	key := p.key
	if p.bad {
		var err error
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			p.t.Error(err)
		}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "one"}}, nil)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	claims := map[string]any{
		"iss": p.server.URL, "sub": "u-1", "aud": clientID, "nonce": nonce, "iat": p.clock.now.Unix(), "exp": p.clock.now.Add(time.Minute).Unix(),
		"email": "ann@example.com", "email_verified": true, "groups": []string{"staff", "sre"},
	}
	p.token(claims)
	text, _ := json.Marshal(claims)
	signed, err := signer.Sign(text)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	token, _ := signed.CompactSerialize()
	return token
}

// console is a console whose people sign in at a provider.
type console struct {
	t      *testing.T
	p      *provider
	on     *SignOn
	mux    *http.ServeMux
	clock  *moved
	roles  map[string]string // ids by name
	noted  []error
	owner  string
	opened *caller.Caller
	again  func() (*caller.Caller, error)
}

func newConsole(t *testing.T) *console {
	c := &console{t: t, clock: &moved{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, roles: map[string]string{"operators": "AROA1", "watchers": "AROA2"}}
	c.p = startProvider(t, c.clock)
	c.on = New(Options{
		Settings: config.OIDC{Issuer: c.p.server.URL, Client: clientID, Scopes: []string{"openid", "email"}}, Secret: secret,
		Roles: []config.OIDCRole{{Claim: "groups", Value: "sre", Role: "operators"}, {Claim: "department", Value: "*", Role: "watchers"}},
		URL:   "https://godwit.example.com", Secure: true, Clock: c.clock, Web: c.p.server.Client(), Logger: slog.New(slog.DiscardHandler),
		Role: func(role, session string) *caller.Caller {
			if c.roles[role] == "" {
				return nil
			}
			return &caller.Caller{Kind: caller.Session, Account: "000000000000", ARN: "arn:aws:sts::000000000000:assumed-role/" + role + "/" + session, Name: session, Role: "arn:aws:iam::000000000000:role/team/" + role, RoleID: c.roles[role]}
		},
		Open: func(_ http.ResponseWriter, _ *http.Request, owner string, again func() (*caller.Caller, error)) {
			c.owner, c.again = owner, again
			who, err := again()
			if err != nil {
				t.Errorf("a session of nobody: %v", err)
			}
			c.opened = who
		},
		Note: func(_ *http.Request, _ *caller.Caller, refusal error) { c.noted = append(c.noted, refusal) },
	})
	c.mux = http.NewServeMux()
	for pattern, h := range c.on.Handlers() {
		c.mux.Handle(pattern, h)
	}
	return c
}

func (c *console) get(path string, cookies ...*http.Cookie) *http.Response {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for _, one := range cookies {
		r.AddCookie(one)
	}
	w := httptest.NewRecorder()
	c.mux.ServeHTTP(w, r)
	return w.Result()
}

// begin has the browser sent to the provider, and gives what it is to bring back.
func (c *console) begin(to string) (back url.Values, mark *http.Cookie) {
	c.t.Helper()
	resp := c.get(Path + "?to=" + url.QueryEscape(to))
	at, err := resp.Location()
	if err != nil || !strings.HasPrefix(at.String(), c.p.server.URL+"/authorize?") {
		c.t.Fatalf("the browser is sent to %v, %v", at, err)
	}
	c.p.asked = at.Query()
	for name, want := range map[string]string{"client_id": clientID, "response_type": "code", "code_challenge_method": "S256", "scope": "openid email", "redirect_uri": "https://godwit.example.com" + callbackPath} {
		if got := at.Query().Get(name); got != want {
			c.t.Errorf("%s is %q", name, got)
		}
	}
	return url.Values{"code": {"the code"}, "state": {at.Query().Get("state")}}, resp.Cookies()[0]
}

// answered is where the browser is sent with the provider's answer.
func (c *console) answered(back url.Values, mark ...*http.Cookie) string {
	c.t.Helper()
	return c.get(callbackPath+"?"+back.Encode(), mark...).Header.Get("Location")
}

func TestSignOn(t *testing.T) {
	c := newConsole(t)
	back, mark := c.begin("/_godwit/ui/queues?search=a%26b")
	if !mark.HttpOnly || !mark.Secure || mark.SameSite != http.SameSiteLaxMode {
		t.Errorf("the cookie is %v", mark)
	}
	if to := c.answered(back, mark); to != "/_godwit/ui/queues?search=a%26b" {
		t.Errorf("sent to %s", to)
	}
	if c.opened == nil || c.opened.ARN != "arn:aws:sts::000000000000:assumed-role/operators/ann@example.com" || c.owner != c.p.server.URL+" u-1" {
		t.Fatalf("a session of %+v, owned by %s", c.opened, c.owner)
	}
	host := strings.TrimPrefix(c.p.server.URL, "http://")
	if c.opened.Claims[host+":sub"][0] != "u-1" || c.opened.Provider != "arn:aws:iam::000000000000:oidc-provider/"+host {
		t.Errorf("it says %v of %s", c.opened.Claims, c.opened.Provider)
	}
	if len(c.noted) != 1 || c.noted[0] != nil {
		t.Errorf("recorded: %v", c.noted)
	}

	// The session ends with its role, also if another one has its name then.
	c.roles["operators"] = "AROA3"
	if _, err := c.again(); err == nil {
		t.Error("the session goes on with another role")
	}
	c.roles["operators"] = ""
	if _, err := c.again(); err == nil {
		t.Error("the session goes on without a role")
	}
}

// Whatever is not as it has to be lets nobody in, and says why in a word of its own.
func TestRefused(t *testing.T) {
	claims := func(change func(map[string]any)) func(*console, url.Values) {
		return func(c *console, _ url.Values) { c.p.token = change }
	}
	set := func(name string, value any) func(*console, url.Values) {
		return claims(func(of map[string]any) { of[name] = value })
	}
	for name, test := range map[string]struct {
		change func(c *console, back url.Values)
		word   string
	}{
		"another state":            {func(_ *console, back url.Values) { back.Set("state", "x") }, over},
		"no state":                 {func(_ *console, back url.Values) { back.Del("state") }, over},
		"too late":                 {func(c *console, _ url.Values) { c.clock.now = c.clock.now.Add(signInTimeout + time.Second) }, over},
		"the provider's refusal":   {func(_ *console, back url.Values) { back.Set("error", "access_denied<script>") }, refused},
		"another issuer's answer":  {func(_ *console, back url.Values) { back.Set("iss", "https://other.example.com") }, refused},
		"no code":                  {func(_ *console, back url.Values) { back.Del("code") }, refused},
		"a long code":              {func(_ *console, back url.Values) { back.Set("code", strings.Repeat("x", maxCode+1)) }, refused},
		"another code":             {func(_ *console, back url.Values) { back.Set("code", "x") }, refused},
		"another's challenge":      {func(c *console, _ url.Values) { c.p.asked.Set("code_challenge", "x") }, refused},
		"another nonce":            {set("nonce", "x"), refused},
		"no nonce":                 {claims(func(of map[string]any) { delete(of, "nonce") }), refused},
		"another client":           {set("aud", "other"), refused},
		"several clients":          {set("aud", []string{clientID, "other"}), refused},
		"issued to another client": {claims(func(of map[string]any) { of["aud"], of["azp"] = []string{clientID, "other"}, "other" }), refused},
		"another issuer":           {set("iss", "https://other.example.com"), refused},
		"an old token":             {claims(func(of map[string]any) { of["exp"] = of["iat"].(int64) - 3600 }), refused},
		"nobody":                   {set("sub", ""), refused},
		"a wrong signature":        {func(c *console, _ url.Values) { c.p.bad = true }, refused},
		"no group":                 {claims(func(of map[string]any) { delete(of, "groups") }), nobody},
		"another group":            {set("groups", []string{"staff", "*"}), nobody},
		"a group in another claim": {set("groups", map[string]any{"sre": true}), nobody},
		"no such role":             {func(c *console, _ url.Values) { delete(c.roles, "operators") }, nobody},
		"the provider has gone":    {func(c *console, _ url.Values) { c.p.server.CloseClientConnections(); c.p.server.Close() }, unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			c := newConsole(t)
			back, mark := c.begin("")
			test.change(c, back)
			if to := c.answered(back, mark); to != "/_godwit/ui/?sign-in="+test.word {
				t.Errorf("sent to %s", to)
			}
			if c.opened != nil {
				t.Errorf("a session of %s", c.opened.ARN)
			}
			if test.word != over && (len(c.noted) != 1 || c.noted[0] == nil) {
				t.Errorf("recorded: %v", c.noted)
			}
		})
	}
}

// An answer is of the browser that has asked, and taken once.
func TestOneBrowserOnce(t *testing.T) {
	c := newConsole(t)
	back, mark := c.begin("")
	if to := c.answered(back); to != "/_godwit/ui/?sign-in=over" {
		t.Errorf("without the cookie: sent to %s", to)
	}
	other, _ := c.begin("")
	if to := c.answered(other, mark); to != "/_godwit/ui/?sign-in=over" {
		t.Errorf("with another sign-in's cookie: sent to %s", to)
	}
	if to := c.answered(back, mark); to != "/_godwit/ui/?sign-in=over" {
		t.Errorf("after a wrong answer: sent to %s", to)
	}
	back, mark = c.begin("")
	if to := c.answered(back, mark); to != home {
		t.Errorf("sent to %s", to)
	}
	if to := c.answered(back, mark); to != "/_godwit/ui/?sign-in=over" {
		t.Errorf("a second time: sent to %s", to)
	}
}

// The claims of a rule may come from the provider's other answer, if that is of the same
// person; what is signed goes before it.
func TestMoreClaims(t *testing.T) {
	for name, test := range map[string]struct {
		info map[string]any
		role string
	}{
		"more":             {map[string]any{"sub": "u-1", "department": "support"}, "watchers"},
		"another person's": {map[string]any{"sub": "u-2", "department": "support"}, ""},
		"signed otherwise": {map[string]any{"sub": "u-1", "groups": "sre"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newConsole(t)
			c.p.info = test.info
			c.p.token = func(of map[string]any) { of["groups"] = []string{"staff"} }
			back, mark := c.begin("")
			c.answered(back, mark)
			if test.role == "" {
				if c.opened != nil {
					t.Errorf("a session of %s", c.opened.ARN)
				}
			} else if c.opened == nil || !strings.Contains(c.opened.ARN, "/"+test.role+"/") {
				t.Errorf("a session of %v", c.opened)
			}
		})
	}
}

// Only the console's own pages are led to.
func TestWithin(t *testing.T) {
	for to, want := range map[string]string{
		"": home, "/_godwit/ui/topic?arn=a": "/_godwit/ui/topic?arn=a", "https://evil.example.com/_godwit/ui/": home, "//evil.example.com/_godwit/ui/": home,
		"/\\evil.example.com": home, "/_godwit/ui/\r\nSet-Cookie: a=b": home, "/_godwit/clock": home, "javascript:alert(1)": home, callbackPath: home, "/_godwit/ui/#x": home,
		"/_godwit/ui/?" + strings.Repeat("x", maxBack): home,
	} {
		if got := within(to); got != want {
			t.Errorf("%q leads to %q", to, got)
		}
	}
}

// What a name cannot have is replaced, and does not make two people one.
func TestSessionName(t *testing.T) {
	verified := map[string]any{"email": "ann@example.com", "email_verified": true}
	if got := sessionName("u-1", verified); got != "ann@example.com" {
		t.Error(got)
	}
	if got := sessionName("u-1", map[string]any{"email": "root@example.com"}); got != "u-1" {
		t.Errorf("an address that nobody has verified is the name: %s", got)
	}
	for _, c := range []map[string]any{nil, {"email": "ann@example.com"}, {"email": "ann@example.com", "email_verified": false}} {
		if got := sessionName("ann@example.com", c); got == "ann@example.com" || !strings.HasPrefix(got, "ann@example.com-") {
			t.Errorf("a subject that nobody has verified is called %s", got)
		}
	}
	if name := sessionName("a|b", nil); sessionName(name, nil) == name {
		t.Errorf("two people are called %s", name)
	}
	seen := map[string]bool{}
	for _, subject := range []string{"a|b", "a/b", "a-b", "x", "", strings.Repeat("y", 70), strings.Repeat("y", 71), "пользователь"} {
		name := sessionName(subject, nil)
		if seen[name] || len(name) < 2 || len(name) > maxName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("%q is called %q", subject, name)
		}
		seen[name] = true
	}
}

// However many begin, nobody has to begin again, and memory is bounded.
func TestManyBegin(t *testing.T) {
	c := newConsole(t)
	first, mark := c.begin("")
	asked := c.p.asked
	c.clock.now = c.clock.now.Add(time.Second)
	for range 1100 {
		c.begin("")
	}
	c.p.asked = asked
	if to := c.answered(first, mark); to != home {
		t.Errorf("sent to %s", to)
	}
	for range maxTaken + 1 {
		c.on.sealed.take(c.on.sealed.seal(&pending{nonce: drawn(), began: c.clock.now}))
	}
	if n := len(c.on.sealed.taken); n > maxTaken {
		t.Errorf("%d are kept", n)
	}
}

// Only what the server has sealed is a sign-in.
func TestForgedCookie(t *testing.T) {
	c := newConsole(t)
	back, mark := c.begin("")
	other := newConsole(t)
	_, strange := other.begin("")
	for name, value := range map[string]string{"none": "", "no base64": "%", "another server's": strange.Value, "changed": "A" + mark.Value[1:] + "A", "short": mark.Value[:20]} {
		if to := c.answered(back, &http.Cookie{Name: cookie, Value: value}); to != "/_godwit/ui/?sign-in=over" {
			t.Errorf("%s: sent to %s", name, to)
		}
	}
	if to := c.answered(back, mark); to != home {
		t.Errorf("sent to %s", to)
	}
	long, mark := c.begin("/_godwit/ui/?" + strings.Repeat("x", maxBack-20))
	if n := len(mark.String()); n > 4096 {
		t.Errorf("no browser keeps a cookie of %d bytes", n)
	}
	if to := c.answered(long, mark); len(to) < maxBack-20 {
		t.Errorf("sent to %s", to)
	}
}

// A provider that does not answer when somebody begins is asked again the next time.
func TestProviderComesLater(t *testing.T) {
	c := newConsole(t)
	web := c.on.Web
	c.on.Web = &http.Client{Transport: failing{}}
	if to := c.get(Path).Header.Get("Location"); to != "/_godwit/ui/?sign-in=unreachable" {
		t.Errorf("sent to %s", to)
	}
	c.on.Web = web
	back, mark := c.begin("")
	if to := c.answered(back, mark); to != home {
		t.Errorf("sent to %s", to)
	}
}

// However many begin, the provider is asked once at a time until it has answered, and then no more.
func TestProviderIsAskedOnce(t *testing.T) {
	c := newConsole(t)
	gate := &gated{next: c.on.Web.Transport, leave: make(chan struct{}), came: make(chan struct{}, 100)}
	c.on.Web = &http.Client{Transport: gate}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if to := c.get(Path).Header.Get("Location"); !strings.HasPrefix(to, c.p.server.URL+"/authorize?") {
				t.Errorf("sent to %s", to)
			}
		})
	}
	<-gate.came
	close(gate.leave)
	all.Wait()
	if n := len(gate.came); n != 0 {
		t.Errorf("it was asked %d times more", n)
	}
}

// gated holds requests up.
type gated struct {
	next        http.RoundTripper
	came, leave chan struct{}
}

func (g *gated) RoundTrip(r *http.Request) (*http.Response, error) {
	g.came <- struct{}{}
	<-g.leave
	return g.next.RoundTrip(r)
}

type failing struct{}

func (failing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("out of reach")
}

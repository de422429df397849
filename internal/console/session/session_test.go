package session

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
)

// moved is a clock that a test moves.
type moved struct {
	clock.Clock
	now time.Time
}

func (m *moved) Now() time.Time { return m.now }

// world is a console with two users, whose keys can be taken away.
type world struct {
	t        *testing.T
	clock    *moved
	sessions *Sessions
	keys     map[string]*caller.Caller
	mux      *http.ServeMux
	signed   string // the access key of the next request that is signed; empty: it is not
}

func newWorld(t *testing.T, secure bool) *world {
	w := &world{t: t, clock: &moved{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, keys: map[string]*caller.Caller{
		"AKIAANN": {Kind: caller.User, Account: "000000000000", ID: "AIDAANN", ARN: "arn:aws:iam::000000000000:user/ann", AccessKey: "AKIAANN"},
		"AKIABOB": {Kind: caller.User, Account: "000000000000", ID: "AIDABOB", ARN: "arn:aws:iam::000000000000:user/bob", AccessKey: "AKIABOB"},
	}}
	w.sessions = New(Options{Clock: w.clock, Secure: secure, Key: func(accessKey string) (*caller.Caller, error) {
		if who := w.keys[accessKey]; who != nil {
			return who, nil
		}
		return nil, errors.New("no such key")
	}})
	w.mux = http.NewServeMux()
	for pattern, h := range w.sessions.Handlers(SignIn{Region: "eu-west-1", Signed: func(http.ResponseWriter, *http.Request) (*caller.Caller, error) {
		if who := w.keys[w.signed]; who != nil {
			return who, nil
		}
		return nil, errors.New("the signature is wrong")
	}}) {
		w.mux.Handle(pattern, h)
	}
	return w
}

// browser keeps a cookie and what the page knows.
type browser struct {
	w      *world
	cookie *http.Cookie
	csrf   string
}

func (b *browser) ask(method, path, body string, header ...string) (int, standing, *http.Cookie) {
	b.w.t.Helper()
	r := b.request(method, path, body, header...)
	rec := httptest.NewRecorder()
	b.w.mux.ServeHTTP(rec, r)
	var st standing
	if err := json.Unmarshal(rec.Body.Bytes(), &st); err != nil {
		b.w.t.Fatalf("%s %s: %s", method, path, rec.Body)
	}
	set := rec.Result().Cookies()
	if len(set) == 0 {
		return rec.Code, st, nil
	}
	if b.cookie = set[0]; b.cookie.MaxAge < 0 {
		b.cookie = nil
	}
	return rec.Code, st, set[0]
}

func (b *browser) request(method, path, body string, header ...string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func (w *world) signIn(key string) *browser {
	w.t.Helper()
	b := &browser{w: w}
	w.signed = key
	defer func() { w.signed = "" }()
	if status, st, c := b.ask("POST", Path, "{}"); status != 200 || c == nil || st.User != w.keys[key].ARN {
		w.t.Fatalf("%d %+v %v", status, st, c)
	}
	_, st, _ := b.ask("GET", Path, "")
	if b.csrf = st.CSRF; b.csrf == "" || st.User != w.keys[key].ARN || !st.Required {
		w.t.Fatalf("%+v", st)
	}
	return b
}

// of is who the sessions take a request of the browser for.
func (b *browser) of(method string, header ...string) (string, error) {
	who, err := b.w.sessions.Of(b.request(method, "/_godwit/v1/queues", "", header...))
	if err != nil {
		return "", err
	}
	return who.AccessKey, nil
}

func (b *browser) wants(want error, method string, header ...string) {
	b.w.t.Helper()
	if key, err := b.of(method, header...); !errors.Is(err, want) {
		b.w.t.Errorf("%s: %q, %v; want %v", method, key, err, want)
	}
}

func TestSignIn(t *testing.T) {
	w := newWorld(t, false)
	stranger := &browser{w: w}
	if status, st, c := stranger.ask("GET", Path, ""); status != 200 || !st.Required || st.User != "" || st.Region != "eu-west-1" || st.Now == nil || c != nil {
		t.Errorf("%d %+v %v", status, st, c)
	}
	if status, _, c := stranger.ask("POST", Path, "{}"); status != http.StatusForbidden || c != nil {
		t.Errorf("without a signature: %d, %v", status, c)
	}
	stranger.wants(ErrNone, "GET")

	ann := w.signIn("AKIAANN")
	if c := ann.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/_godwit/" || len(c.Value) < 40 {
		t.Errorf("%+v", c)
	}
	if key, err := ann.of("GET"); key != "AKIAANN" || err != nil {
		t.Errorf("%q, %v", key, err)
	}
	if strings.Contains(ann.cookie.Value, ann.csrf) {
		t.Error("the cookie tells what only the page may know")
	}
	forged := &browser{w: w, cookie: &http.Cookie{Name: ann.cookie.Name, Value: ann.csrf}}
	forged.wants(ErrOver, "GET")
}

// Only the console's page can change something with the cookie that a browser sends along.
func TestCSRF(t *testing.T) {
	w := newWorld(t, false)
	ann, bob := w.signIn("AKIAANN"), w.signIn("AKIABOB")
	ann.wants(nil, "POST", csrfHeader, ann.csrf)
	ann.wants(ErrCSRF, "POST")
	ann.wants(ErrCSRF, "POST", csrfHeader, bob.csrf)
	ann.wants(ErrCSRF, "DELETE", csrfHeader, "")
	if status, _, _ := ann.ask("POST", EndPath, "{}"); status != http.StatusForbidden {
		t.Errorf("signed out by another site: %d", status)
	}
	ann.wants(nil, "GET")
}

func TestOverTLS(t *testing.T) {
	w := newWorld(t, true)
	c := w.signIn("AKIAANN").cookie
	if !c.Secure || c.Name != "__Host-godwit-session" || c.Path != "/" || c.Domain != "" {
		t.Errorf("%+v", c)
	}
	w = newWorld(t, false)
	r := httptest.NewRequest("POST", Path, nil)
	r.TLS = &tls.ConnectionState{}
	rec := httptest.NewRecorder()
	w.sessions.Open(rec, r, w.keys["AKIABOB"])
	if c := rec.Result().Cookies()[0]; !c.Secure {
		t.Errorf("%+v", c)
	}
}

// A session ends unused after half an hour, and used after twelve.
func TestEndsWithTime(t *testing.T) {
	w := newWorld(t, false)
	ann := w.signIn("AKIAANN")
	for i := range 24 {
		w.clock.now = w.clock.now.Add(Idle - time.Second)
		if i%2 == 0 { // a command, or a hand at the page
			ann.wants(nil, "POST", csrfHeader, ann.csrf)
		} else if status, st, _ := ann.ask("POST", usePath, "{}", csrfHeader, ann.csrf); status != http.StatusOK || st.ExpiresAt == nil || st.ExpiresAt.Before(w.clock.now) {
			t.Fatalf("%d %+v", status, st)
		}
	}
	_, st, _ := ann.ask("GET", Path, "")
	if st.ExpiresAt == nil || st.ExpiresAt.Sub(w.clock.now) >= Idle {
		t.Errorf("%+v at %v", st, w.clock.now)
	}
	w.clock.now = w.clock.now.Add(Idle - time.Second)
	ann.wants(ErrOver, "GET")
	if _, st, _ := ann.ask("GET", Path, ""); st.User != "" {
		t.Errorf("%+v", st)
	}

	bob := w.signIn("AKIABOB")
	w.clock.now = w.clock.now.Add(Idle / 2)
	_, before, _ := bob.ask("GET", Path, "")
	_, after, _ := bob.ask("GET", Path, "")
	if !before.ExpiresAt.Equal(*after.ExpiresAt) {
		t.Error("to ask how the session stands counts as use")
	}
	w.clock.now = w.clock.now.Add(Idle/2 + time.Second)
	bob.wants(ErrOver, "GET")
	if status, _, _ := bob.ask("POST", usePath, "{}", csrfHeader, bob.csrf); status != http.StatusUnauthorized {
		t.Errorf("a session that is over is used: %d", status)
	}
}

// A page that renews itself, by asking or by a stream, keeps nobody signed in: not even
// another site can.
func TestLookingIsNoUse(t *testing.T) {
	w := newWorld(t, false)
	ann := w.signIn("AKIAANN")
	watch := ann.request(http.MethodGet, "/_godwit/v1/events", "")
	for range 30 {
		ann.wants(nil, "GET")
		ann.wants(nil, "HEAD")
		if err := w.sessions.Still(watch); err != nil {
			t.Fatal(err)
		}
		if status, _, _ := ann.ask("POST", usePath, "{}"); status != http.StatusForbidden {
			t.Errorf("used without the page's secret: %d", status)
		}
		w.clock.now = w.clock.now.Add(Idle / 30)
	}
	w.clock.now = w.clock.now.Add(time.Second)
	if err := w.sessions.Still(watch); !errors.Is(err, ErrOver) {
		t.Errorf("the stream: %v", err)
	}
	ann.wants(ErrOver, "GET")
}

// Who watches by a key that is taken away does not continue.
func TestStillByItsKey(t *testing.T) {
	w := newWorld(t, false)
	ann := w.signIn("AKIAANN")
	watch := ann.request(http.MethodGet, "/_godwit/v1/events", "")
	delete(w.keys, "AKIAANN")
	if err := w.sessions.Still(watch); err == nil {
		t.Error("it goes on")
	}
}

// A key that is taken away ends the sessions that it opened, for good.
func TestEndsWithItsKey(t *testing.T) {
	w := newWorld(t, false)
	ann := w.signIn("AKIAANN")
	kept := w.keys["AKIAANN"]
	delete(w.keys, "AKIAANN")
	ann.wants(ErrOver, "GET")
	w.keys["AKIAANN"] = kept
	ann.wants(ErrOver, "GET")
}

func TestSignOut(t *testing.T) {
	w := newWorld(t, false)
	here, there, bob := w.signIn("AKIAANN"), w.signIn("AKIAANN"), w.signIn("AKIABOB")
	cookie := here.cookie
	if status, st, c := here.ask("POST", EndPath, "{}", csrfHeader, here.csrf); status != 200 || st.User != "" || c == nil || c.MaxAge >= 0 {
		t.Errorf("%d %+v %v", status, st, c)
	}
	here.cookie = cookie // as one who had copied it
	here.wants(ErrOver, "GET")
	there.wants(nil, "GET")

	again := w.signIn("AKIAANN")
	if status, _, _ := again.ask("POST", EndPath, `{"everywhere":true}`, csrfHeader, again.csrf); status != 200 {
		t.Error(status)
	}
	there.wants(ErrOver, "GET")
	bob.wants(nil, "GET")
	if status, _, _ := there.ask("POST", EndPath, `{"everywhere":`, csrfHeader, "x"); status != http.StatusBadRequest {
		t.Error(status)
	}
}

// A renamed user is the same one, and whoever has the name then is another.
func TestSignOutAfterARename(t *testing.T) {
	w := newWorld(t, false)
	before := w.signIn("AKIAANN")
	renamed := *w.keys["AKIAANN"]
	renamed.ARN = "arn:aws:iam::000000000000:user/anna"
	w.keys["AKIAANN"] = &renamed
	if _, st, _ := before.ask("GET", Path, ""); st.User != renamed.ARN {
		t.Errorf("the session is said to be of %s", st.User)
	}
	w.keys["AKIANEW"] = &caller.Caller{Kind: caller.User, Account: "000000000000", ID: "AIDANEW", ARN: "arn:aws:iam::000000000000:user/ann", AccessKey: "AKIANEW"}
	other, after := w.signIn("AKIANEW"), w.signIn("AKIAANN")
	if status, _, _ := other.ask("POST", EndPath, `{"everywhere":true}`, csrfHeader, other.csrf); status != 200 {
		t.Error(status)
	}
	before.wants(nil, "GET")
	if status, _, _ := after.ask("POST", EndPath, `{"everywhere":true}`, csrfHeader, after.csrf); status != 200 {
		t.Error(status)
	}
	before.wants(ErrOver, "GET")
}

// There is a bound of sessions, and nobody's fill up those of others.
func TestBound(t *testing.T) {
	w := newWorld(t, false)
	bob := w.signIn("AKIABOB")
	first := w.signIn("AKIAANN")
	for range maxOfOne {
		w.clock.now = w.clock.now.Add(time.Second)
		w.signIn("AKIAANN")
	}
	first.wants(ErrOver, "GET")
	bob.wants(nil, "GET")
	if n := len(w.sessions.open); n != maxOfOne+1 {
		t.Errorf("%d sessions", n)
	}
}

func TestRefuse(t *testing.T) {
	for err, want := range map[error]int{ErrNone: 401, ErrOver: 401, ErrCSRF: 403} {
		rec := httptest.NewRecorder()
		Refuse(rec, err)
		if rec.Code != want || !strings.Contains(rec.Body.String(), err.Error()) {
			t.Errorf("%v: %d %s", err, rec.Code, rec.Body)
		}
	}
}

// What is looked at for long ends with the session: a stream continues for minutes.
func TestStreamEndsWithItsSession(t *testing.T) {
	w := newWorld(t, false)
	ann, other := w.signIn("AKIAANN"), w.signIn("AKIAANN")
	watch := ann.request(http.MethodGet, "/_godwit/v1/events", "")
	if _, err := w.sessions.Of(watch); err != nil {
		t.Fatal(err)
	}
	if watch.Context().Err() != nil {
		t.Fatal("it is over already")
	}
	if code, _, _ := other.ask(http.MethodPost, EndPath, `{"everywhere":true}`, csrfHeader, other.csrf); code != http.StatusOK {
		t.Fatal(code)
	}
	<-watch.Context().Done()
}

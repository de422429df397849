// Package session has the sessions of the console. A session is opened by a request signed
// with an access key, or by an identity provider, and is identified by a cookie. Sessions are
// in memory, so that a restart ends them; they also end after a time without activity, some
// hours after they began, with their access key or role, and by signing out. Requests that a
// page makes by itself are not activity: only changes are, and input that the page reports.
package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"sync"
	"time"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
)

// The lifetime of sessions, and their number: in all, and of one caller. Beyond, the least
// recently used one ends.
const (
	Idle       = 30 * time.Minute
	Total      = 12 * time.Hour
	maxAll     = 10_000
	maxOfOne   = 20
	secretSize = 32
)

// csrfHeader is the header in which a changing request repeats a token that only the
// console's page has received.
const csrfHeader = "X-Godwit-CSRF"

// The names of the cookie. With TLS it has a prefix by which browsers guarantee that it is of
// this host, and was never sent in plain text.
const (
	cookie       = "godwit-session"
	secureCookie = "__Host-godwit-session"
)

// The errors of a request without a valid session.
var (
	ErrNone = errors.New("nobody is signed in")
	ErrOver = errors.New("the session is over: sign in again")
	ErrCSRF = errors.New("the request does not come from the console's page: load it again")
)

// Options are the dependencies and settings of Sessions.
type Options struct {
	// Clock is the machine's clock, also with a virtual one: sessions are in real time.
	Clock clock.Clock
	// Key returns the current owner of an access key; an error if the key is no longer valid.
	Key func(accessKey string) (*caller.Caller, error)
	// Secure says that clients use TLS although this server does not see it.
	Secure bool
}

// Sessions are the open sessions. They are safe for concurrent use.
type Sessions struct {
	o Options

	mu   sync.Mutex
	open map[[sha256.Size]byte]*entry // by the digest of the cookie
}

type entry struct {
	owner       string // all sessions of an owner can be ended together
	again       func() (*caller.Caller, error)
	csrf        string
	began, used time.Time
	ctx         context.Context // cancelled by end
	end         context.CancelFunc
}

// New makes Sessions, with none open.
func New(o Options) *Sessions {
	return &Sessions{o: o, open: map[[sha256.Size]byte]*entry{}}
}

func secret() string {
	drawn := make([]byte, secretSize)
	_, _ = rand.Read(drawn) // it returns no error
	return base64.RawURLEncoding.EncodeToString(drawn)
}

// Open begins a session of the caller that has signed the request, and sets the cookie.
func (s *Sessions) Open(w http.ResponseWriter, r *http.Request, who *caller.Caller) {
	accessKey := who.AccessKey
	// The ARN would be another one after a rename, and then that of whoever takes the name.
	s.OpenAs(w, r, who.Account+" "+who.ID, func() (*caller.Caller, error) { return s.o.Key(accessKey) })
}

// OpenAs begins a session, and sets the cookie. All sessions of an owner can be ended together.
// again returns the caller for each request, and an error once there is none any more.
func (s *Sessions) OpenAs(w http.ResponseWriter, r *http.Request, owner string, again func() (*caller.Caller, error)) {
	now := s.o.Clock.Now()
	token := secret()
	ctx, end := context.WithCancel(context.Background())
	s.mu.Lock()
	s.makeRoom(owner, now)
	s.open[sha256.Sum256([]byte(token))] = &entry{owner: owner, again: again, csrf: secret(), began: now, used: now, ctx: ctx, end: end}
	s.mu.Unlock()
	http.SetCookie(w, s.cookie(r, token, int(Total.Seconds())))
}

// end deletes a session. The caller has the lock.
func (s *Sessions) end(digest [sha256.Size]byte) {
	if e := s.open[digest]; e != nil {
		e.end()
		delete(s.open, digest)
	}
}

// makeRoom deletes expired sessions, and the least recently used ones above the limits.
func (s *Sessions) makeRoom(owner string, now time.Time) {
	var all, own [sha256.Size]byte // the least recently used
	n := 0
	for digest, e := range s.open {
		if e.spent(now) {
			s.end(digest)
			continue
		}
		if oldest, ok := s.open[all]; !ok || e.used.Before(oldest.used) {
			all = digest
		}
		if e.owner == owner {
			n++
			if oldest, ok := s.open[own]; !ok || e.used.Before(oldest.used) {
				own = digest
			}
		}
	}
	switch {
	case n >= maxOfOne:
		s.end(own)
	case len(s.open) >= maxAll:
		s.end(all)
	}
}

func (e *entry) spent(now time.Time) bool {
	return now.Sub(e.used) > Idle || now.Sub(e.began) > Total
}

func (s *Sessions) secure(r *http.Request) bool { return s.o.Secure || r.TLS != nil }

func (s *Sessions) cookie(r *http.Request, token string, maxAge int) *http.Cookie {
	c := &http.Cookie{Name: cookie, Value: token, Path: "/_godwit/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if s.secure(r) {
		c.Name, c.Path, c.Secure = secureCookie, "/", true
	}
	return c
}

// find returns the open session of the request's cookie.
func (s *Sessions) find(r *http.Request) (digest [sha256.Size]byte, e *entry, err error) {
	name := cookie
	if s.secure(r) {
		name = secureCookie
	}
	c, err := r.Cookie(name)
	if err != nil {
		return digest, nil, ErrNone
	}
	digest = sha256.Sum256([]byte(c.Value))
	if e = s.open[digest]; e == nil {
		return digest, nil, ErrOver
	}
	if e.spent(s.o.Clock.Now()) {
		s.end(digest)
		return digest, nil, ErrOver
	}
	return digest, e, nil
}

// Of returns the caller of a request with a cookie. Errors: ErrNone without a cookie, ErrOver
// if the session has ended, ErrCSRF if the request may change something and is not from the
// console's page. The caller has the current state of its access key or role. A read does not
// count as activity, because pages make reads by themselves. The context of a read, such as a
// stream of events, is cancelled when the session ends.
func (s *Sessions) Of(r *http.Request) (*caller.Caller, error) {
	s.mu.Lock()
	digest, e, err := s.find(r)
	looks := r.Method == http.MethodGet || r.Method == http.MethodHead
	if err == nil && !looks && !e.page(r) {
		err = ErrCSRF
	}
	var again func() (*caller.Caller, error)
	var open context.Context
	if err == nil {
		again, open = e.again, e.ctx
		if !looks {
			e.used = s.o.Clock.Now()
		}
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	who, err := again()
	if err != nil {
		s.mu.Lock()
		s.end(digest)
		s.mu.Unlock()
		return nil, ErrOver
	}
	if r.Method == http.MethodGet { // a change is not interrupted
		*r = *r.WithContext(until(r.Context(), open))
	}
	return who, nil
}

// until is the context of a request that is also cancelled with a session.
func until(ctx, session context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(session, cancel)
	context.AfterFunc(ctx, func() { stop() })
	return ctx
}

// page reports whether a request has the secret that only the console's page has received.
func (e *entry) page(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(e.csrf)) == 1
}

// Still refuses, as Of does, a request whose session has ended since, such as that of a
// stream of events: by inactivity, or with its access key or role.
func (s *Sessions) Still(r *http.Request) error {
	s.mu.Lock()
	_, e, err := s.find(r)
	s.mu.Unlock()
	if err == nil {
		_, err = e.again()
	}
	return err
}

// Use reports activity in the session of a request from the console's page. It fails as Of
// does.
func (s *Sessions) Use(r *http.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, e, err := s.find(r)
	if err == nil && !e.page(r) {
		err = ErrCSRF
	}
	if err == nil {
		e.used = s.o.Clock.Now()
	}
	return err
}

// Standing is the state of a session, for its browser.
type Standing struct {
	User      string // its ARN at present
	CSRF      string
	ExpiresAt time.Time // without further activity
}

// Standing returns the state of the request's session, which is not activity; ok is false if
// there is none, or if it would be over with the next request.
func (s *Sessions) Standing(r *http.Request) (st Standing, ok bool) {
	s.mu.Lock()
	_, e, err := s.find(r)
	var expires time.Time
	if err == nil {
		expires = e.used.Add(Idle)
		if last := e.began.Add(Total); last.Before(expires) {
			expires = last
		}
	}
	s.mu.Unlock()
	if err != nil {
		return Standing{}, false
	}
	who, err := e.again()
	if err != nil {
		return Standing{}, false
	}
	return Standing{User: who.ARN, CSRF: e.csrf, ExpiresAt: expires}, true
}

// End ends the request's session, or all of its caller, and deletes the cookie. It fails as
// Of does.
func (s *Sessions) End(w http.ResponseWriter, r *http.Request, everywhere bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	digest, e, err := s.find(r)
	if err != nil {
		return err
	}
	if !e.page(r) {
		return ErrCSRF
	}
	s.end(digest)
	if everywhere {
		for other, of := range s.open {
			if of.owner == e.owner {
				s.end(other)
			}
		}
	}
	http.SetCookie(w, s.cookie(r, "", -1))
	return nil
}

// Package session keeps who is signed in to the console: whoever opens a session has
// signed that request with an access key, or was vouched for by an identity provider, and is
// known by a cookie from then on. A session lives in memory, so that a restart ends it; it
// ends as well when its user does nothing for some time, some hours after it began, when its
// access key or its role does, and when its user says so. A page that renews itself is nobody
// doing something: only what changes something is, and what the page reports of hands at it.
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

// How long a session lasts, and how many there can be: of all, and of one caller. Beyond
// that the one that was used least of late ends.
const (
	Idle       = 30 * time.Minute
	Total      = 12 * time.Hour
	maxAll     = 10_000
	maxOfOne   = 20
	secretSize = 32
)

// CSRFHeader is where a request that changes something repeats a token that only the
// console's own page has got.
const CSRFHeader = "X-Godwit-CSRF"

// The names of the cookie. Over TLS it has a prefix that browsers take for a promise: it is
// of this host, and was never sent in the clear.
const (
	cookie       = "godwit-session"
	secureCookie = "__Host-godwit-session"
)

// Why a request is not of a session.
var (
	ErrNone = errors.New("nobody is signed in")
	ErrOver = errors.New("the session is over: sign in again")
	ErrCSRF = errors.New("the request does not come from the console's page: load it again")
)

// Options are what Sessions are made of.
type Options struct {
	// Clock is the machine's clock: nobody waits for a virtual one.
	Clock clock.Clock
	// Key gives who an access key is of, now; an error if it is not valid any more.
	Key func(accessKey string) (*caller.Caller, error)
	// Secure says that clients use TLS though this server does not see it.
	Secure bool
}

// Sessions are the open sessions. They may be used from many goroutines.
type Sessions struct {
	o Options

	mu   sync.Mutex
	open map[[sha256.Size]byte]*entry // by the digest of the cookie
}

type entry struct {
	owner       string // whose sessions end together
	arn         string
	again       func() (*caller.Caller, error)
	csrf        string
	began, used time.Time
	ctx         context.Context // cancelled by end, before its time
	end         context.CancelFunc
}

// New makes Sessions, of which none is open.
func New(o Options) *Sessions {
	return &Sessions{o: o, open: map[[sha256.Size]byte]*entry{}}
}

func secret() string {
	drawn := make([]byte, secretSize)
	_, _ = rand.Read(drawn) // it gives no error
	return base64.RawURLEncoding.EncodeToString(drawn)
}

// Open begins a session of whoever has signed with an access key, and gives the browser its
// cookie.
func (s *Sessions) Open(w http.ResponseWriter, r *http.Request, who *caller.Caller) {
	accessKey := who.AccessKey
	s.OpenAs(w, r, who.ARN, who.ARN, func() (*caller.Caller, error) { return s.o.Key(accessKey) })
}

// OpenAs begins a session of whoever is known by an ARN, and gives the browser its cookie. All
// sessions of one owner end together, where that is asked for. Again gives who it is at each
// request, and an error once nobody is any more.
func (s *Sessions) OpenAs(w http.ResponseWriter, r *http.Request, owner, arn string, again func() (*caller.Caller, error)) {
	now := s.o.Clock.Now()
	token := secret()
	ctx, end := context.WithCancel(context.Background())
	s.mu.Lock()
	s.makeRoom(owner, now)
	s.open[sha256.Sum256([]byte(token))] = &entry{owner: owner, arn: arn, again: again, csrf: secret(), began: now, used: now, ctx: ctx, end: end}
	s.mu.Unlock()
	http.SetCookie(w, s.cookie(r, token, int(Total.Seconds())))
}

// end forgets a session. It is called with the lock held.
func (s *Sessions) end(digest [sha256.Size]byte) {
	if e := s.open[digest]; e != nil {
		e.end()
		delete(s.open, digest)
	}
}

// makeRoom drops what is over, and of what is too much the one that was used least of late.
func (s *Sessions) makeRoom(owner string, now time.Time) {
	var all, own [sha256.Size]byte // used least of late
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

// find gives the open session that the request has the cookie of.
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

// Of gives who makes a request by its cookie: ErrNone without one, ErrOver if its session is
// over, ErrCSRF if it may change something and does not come from the console's page. The
// caller is as the access key or the role has it now. To look is no use of the session: pages
// do so by themselves. What is only looked at, as a stream of events, ends with the session:
// the context of r is cancelled then.
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
	if r.Method == http.MethodGet { // what is changed is not left half done
		*r = *r.WithContext(until(r.Context(), open))
	}
	return who, nil
}

// until is the context of a request, which ends with a session, too.
func until(ctx, session context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(session, cancel)
	context.AfterFunc(ctx, func() { stop() })
	return ctx
}

// page reports whether a request has the secret that only the console's own page was given.
func (e *entry) page(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get(CSRFHeader)), []byte(e.csrf)) == 1
}

// Still refuses, as Of does, a request whose session is over since, such as that for a stream
// of events: nobody has used it, or its access key or role is gone.
func (s *Sessions) Still(r *http.Request) error {
	s.mu.Lock()
	_, e, err := s.find(r)
	s.mu.Unlock()
	if err == nil {
		_, err = e.again()
	}
	return err
}

// Use keeps the session of a request that the console's page sends when somebody is at it. It
// refuses as Of does.
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

// Standing is the state of a session, as its browser sees it.
type Standing struct {
	User      string // its ARN
	CSRF      string
	ExpiresAt time.Time // if it is not used before
}

// Standing tells the browser that has a session how it stands, which does not count as
// use; ok is false where there is none.
func (s *Sessions) Standing(r *http.Request) (st Standing, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, e, err := s.find(r)
	if err != nil {
		return Standing{}, false
	}
	expires := e.used.Add(Idle)
	if last := e.began.Add(Total); last.Before(expires) {
		expires = last
	}
	return Standing{User: e.arn, CSRF: e.csrf, ExpiresAt: expires}, true
}

// End ends the request's session, or all of its caller, and takes the cookie back. It
// refuses as Of does.
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

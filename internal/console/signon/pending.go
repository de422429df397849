package signon

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// maxTaken bounds the sign-ins that are known to have been taken.
const maxTaken = 10_000

// pending is a sign-in in progress.
type pending struct {
	state, nonce, verifier string
	callback, back         string
	began                  time.Time
}

// fields are what of a sign-in is sealed; none has a line end.
const fields = 6

// sealed are the sign-ins in progress. Each is in its browser's cookie, sealed, and not in memory:
// anybody may begin one, and so could have those of others dropped.
type sealed struct {
	clock clock.Clock
	box   cipher.AEAD // by a key of this process: a restart ends sign-ins

	mu    sync.Mutex
	taken map[[sha256.Size]byte]time.Time // when each began. The provider, too, takes a code once.
}

func newSealed(c clock.Clock) *sealed {
	var key [32]byte
	_, _ = rand.Read(key[:]) // it returns no error
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key has the right length
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // the block has the right length
	}
	return &sealed{clock: c, box: box, taken: map[[sha256.Size]byte]time.Time{}}
}

// seal is a cookie with a sign-in.
func (s *sealed) seal(p *pending) string {
	text := strings.Join([]string{p.state, p.nonce, p.verifier, p.callback, p.back, strconv.FormatInt(p.began.UnixNano(), 10)}, "\n")
	return base64.RawURLEncoding.EncodeToString(s.box.Seal(nil, nil, []byte(text), []byte(cookie)))
}

// take is the sign-in in a cookie, unless it was taken or is too old; then nil.
func (s *sealed) take(value string) *pending {
	box, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return nil
	}
	text, err := s.box.Open(nil, nil, box, []byte(cookie))
	if err != nil {
		return nil
	}
	of := strings.Split(string(text), "\n")
	if len(of) != fields {
		return nil
	}
	began, err := strconv.ParseInt(of[5], 10, 64)
	if err != nil {
		return nil
	}
	p := &pending{state: of[0], nonce: of[1], verifier: of[2], callback: of[3], back: of[4], began: time.Unix(0, began)}
	if now := s.clock.Now(); now.Sub(p.began) > signInTimeout || !s.first(p, now) {
		return nil
	}
	return p
}

// first reports whether a sign-in was not taken before.
func (s *sealed) first(p *pending, now time.Time) bool {
	digest := sha256.Sum256([]byte(p.nonce)) // not of the cookie: base64 has several forms of one
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.taken[digest]; ok {
		return false
	}
	if len(s.taken) >= maxTaken {
		s.makeRoom(now)
	}
	s.taken[digest] = p.began
	return true
}

// makeRoom forgets what is too old to be taken, or else any: the provider refuses its code. The
// caller has the lock.
func (s *sealed) makeRoom(now time.Time) {
	for digest, began := range s.taken {
		if now.Sub(began) > signInTimeout {
			delete(s.taken, digest)
		}
	}
	for digest := range s.taken {
		if len(s.taken) < maxTaken/2 {
			return
		}
		delete(s.taken, digest)
	}
}

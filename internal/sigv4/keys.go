package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"
	"sync"
)

// maxSigningKeys bounds the cache of derived keys.
const maxSigningKeys = 4096

// cache caches signing keys by their inputs. A key is added only when it has verified a
// request, so that clients without one of our secrets cannot fill it.
type cache struct {
	mu   sync.RWMutex
	keys map[cacheKey]*signingKey
}

type cacheKey struct {
	Scope
	revision uint64
}

// signingKey is derived from a secret for one day, region and service.
type signingKey struct {
	secret string
	macs   sync.Pool // of *mac
}

// mac has the buffers of a verification.
type mac struct {
	keyed   hash.Hash
	scratch []byte
}

// matches reports that the request has the signature by the credential's secret.
func (v *Verifier) matches(r *Request, c *claims, credential *Credential) bool {
	if !r.payloadMatches() || len(c.signature) != 2*sha256.Size {
		return false
	}
	id := cacheKey{c.scope, credential.Revision}
	key, known := v.signing.find(id, credential.Secret)
	m := key.get()
	defer key.macs.Put(m)
	for f := range c.forms(r) {
		if !m.verify(r, c, f) {
			continue
		}
		if !known {
			v.signing.add(id, key)
		}
		return true
	}
	return false
}

// find returns a signing key, and whether it was in the cache.
func (s *cache) find(id cacheKey, secret string) (key *signingKey, known bool) {
	s.mu.RLock()
	key = s.keys[id]
	s.mu.RUnlock()
	// The secret is compared, too: if only the revision were, a wrong revision would be a
	// security hole.
	if key != nil && key.secret == secret {
		return key, true
	}
	key = &signingKey{secret: secret}
	derived := derive(secret, id.Scope)
	key.macs.New = func() any { return &mac{keyed: hmac.New(sha256.New, derived)} }
	return key, false
}

// add adds a signing key. If there are too many, it evicts one, preferably of another day.
func (s *cache) add(id cacheKey, key *signingKey) {
	// The key's texts belong to a request's head, and must be copied.
	id.Scope = Scope{
		AccessKey: strings.Clone(id.AccessKey), Date: strings.Clone(id.Date),
		Region: strings.Clone(id.Region), Service: strings.Clone(id.Service),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = make(map[cacheKey]*signingKey)
	}
	if len(s.keys) >= maxSigningKeys {
		s.evict(id.Date)
	}
	s.keys[id] = key
}

// evict removes a key: of the first few, preferably one that is not of today.
func (s *cache) evict(today string) {
	var victim cacheKey
	looked := 0
	for id := range s.keys {
		victim = id
		if looked++; id.Date != today || looked == 8 {
			break
		}
	}
	delete(s.keys, victim)
}

// derive derives a signing key.
func derive(secret string, scope Scope) []byte {
	key := []byte("AWS4" + secret)
	for _, part := range [...]string{scope.Date, scope.Region, scope.Service, terminator} {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	return key
}

func (k *signingKey) get() *mac { return k.macs.Get().(*mac) }

// verify computes the signature of a form of the request and compares it, in constant time.
func (m *mac) verify(r *Request, c *claims, f form) bool {
	text := c.appendCanonical(m.scratch[:0], r, f)
	sum := sha256.Sum256(text)
	text = append(append(text[:0], Algorithm...), '\n')
	text = append(text, c.basic...)
	text = append(append(text, '\n'), c.credential[len(c.scope.AccessKey)+1:]...)
	text = hex.AppendEncode(append(text, '\n'), sum[:])
	m.keyed.Reset()
	m.keyed.Write(text)
	m.scratch = text[:0]
	mine := hex.AppendEncode(text[len(text):], m.keyed.Sum(sum[:0]))
	return hmac.Equal(mine, []byte(c.signature))
}

package identity

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"time"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/sigv4"
)

// The token of a session contains the whole session, sealed: the store has no sessions, and yet
// they survive a restart. The user or role of a session is looked up when a token is used, as
// it may have been deleted.

// tokenKey seals tokens.
type tokenKey struct {
	raw   []byte
	clear bool // it is in clear in the store
	aead  cipher.AEAD
}

const (
	tokenKeySize = 32
	tokenVersion = 1
	tokenKeyName = "session tokens"
	// maxSessions bounds the cache of opened tokens.
	maxSessions = 8192
	// maxToken is the longest token that is accepted, in bytes.
	maxToken = 32 << 10
)

func newTokenKey() *tokenKey {
	raw := make([]byte, tokenKeySize)
	_, _ = rand.Read(raw) // it never fails
	return makeTokenKey(raw)
}

func makeTokenKey(raw []byte) *tokenKey {
	block, err := aes.NewCipher(raw)
	if err != nil {
		panic(err) // the size is right
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return &tokenKey{raw: raw, aead: aead}
}

func (m *Module) openTokenKey(value []byte) (*tokenKey, error) {
	raw, err := m.open(tokenKeyName, value)
	if err != nil {
		return nil, err
	}
	if len(raw) != tokenKeySize {
		return nil, errRecord
	}
	k := makeTokenKey(append([]byte(nil), raw...))
	k.clear = isClear(value)
	return k, nil
}

func (m *Module) writeTokenKey() {
	kept, err := m.seal(tokenKeyName, m.tokens.raw)
	if err != nil {
		m.shard.Logger.Error("the key of session tokens cannot be sealed", "error", err)
		return
	}
	m.tokens.clear = isClear(kept)
	m.shard.Batch.Set(key(keyspace.IdentityTokens), kept)
}

// Session is the content of a session's token.
type Session struct {
	AccessKey string    `json:"k"`
	Secret    Secret    `json:"s"`
	Issued    time.Time `json:"i"`
	Expires   time.Time `json:"e"`

	Kind    caller.Kind `json:"p"`
	Account string      `json:"a"`
	// Of is the unique id of the session's role or user; empty: the account's root.
	Of   string `json:"o,omitempty"`
	Name string `json:"n,omitempty"` // of a role's or a federated user's session

	Tags       map[string]string `json:"t,omitempty"` // of the session, in addition to the role's
	Transitive []string          `json:"x,omitempty"` // keys of the tags that a further role inherits
	Policies   []string          `json:"d,omitempty"` // documents of session policies
	Managed    []string          `json:"m,omitempty"` // ARNs of managed session policies
	Provider   string            `json:"w,omitempty"` // of a web identity session
	Source     string            `json:"c,omitempty"` // aws:SourceIdentity
	// Claims are the condition keys of the provider's claims.
	Claims map[string][]string `json:"l,omitempty"`
	MFA    bool                `json:"f,omitempty"`
}

// session is an opened token with the values derived from it.
type session struct {
	Session
	caller   *caller.Caller
	revision uint64
}

// NewSession gives a session its access key, its secret and a token.
func (m *Module) NewSession(s *Session) (token string, err error) {
	s.AccessKey = iam.NewID(iam.PrefixTemporaryKey, s.Account, NewRandom())
	s.Secret = NewSecret()
	text, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	m.mu.RLock()
	aead := m.tokens.aead
	m.mu.RUnlock()
	sealed := aead.Seal(nil, nil, text, []byte{tokenVersion})
	return base64.StdEncoding.EncodeToString(append([]byte{tokenVersion}, sealed...)), nil
}

// openToken opens a token that belongs to the access key. It does not check its expiry.
func (m *Module) openToken(accessKey, token string) (*session, error) {
	s, ok := m.sessions.Get(token)
	if !ok {
		if len(token) > maxToken {
			return nil, sigv4.ErrToken
		}
		raw, err := base64.StdEncoding.DecodeString(token)
		if err != nil || len(raw) < 1 || raw[0] != tokenVersion {
			return nil, sigv4.ErrToken
		}
		m.mu.RLock()
		aead := m.tokens.aead
		m.mu.RUnlock()
		text, err := aead.Open(nil, nil, raw[1:], raw[:1])
		if err != nil {
			return nil, sigv4.ErrToken
		}
		s = &session{}
		if json.Unmarshal(text, &s.Session) != nil {
			return nil, sigv4.ErrToken
		}
	}
	if subtle.ConstantTimeCompare([]byte(s.AccessKey), []byte(accessKey)) == 0 {
		return nil, sigv4.ErrToken
	}
	if revision := m.revision.Load(); !ok || s.revision != revision {
		c, err := m.callerOf(&s.Session)
		if err != nil {
			return nil, err
		}
		s = &session{Session: s.Session, caller: c, revision: revision}
		m.sessions.Add(token, s)
	}
	return s, nil
}

// SessionOf is the session of a caller's token; nil if there is none.
func (m *Module) SessionOf(accessKey, token string) *Session {
	s, err := m.openToken(accessKey, token)
	if err != nil {
		return nil
	}
	return &s.Session
}

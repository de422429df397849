package pushsender

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/shard"
)

// Provider tokens of APNs are valid for an hour, and must not be refreshed more often than
// every 20 minutes. Source: establishing a token-based connection to APNs, in Apple's
// documentation.
const (
	tokenRenewed = 40 * time.Minute
	tokenLeast   = 20 * time.Minute
)

// APNs sends to Apple's service. Each application has its own connections, because a
// connection belongs to one team, or one certificate. It implements Gateway.
type APNs struct {
	url     string // without a final slash
	clients *clients
}

// NewAPNs makes a gateway with a URL, such as https://api.push.apple.com.
func NewAPNs(url string, o Connections) *APNs {
	return &APNs{url: strings.TrimRight(url, "/"), clients: newClients(o)}
}

// Close closes the idle connections.
func (a *APNs) Close() { a.clients.close() }

var errCredentials = errors.New("push: the credentials cannot be read")

// newAPNsIdentity reads an application's credentials: a token's signing key, with its id as
// the principal, or a certificate, which is the principal, and its key.
func newAPNsIdentity(t *shard.PushTarget, o Connections) (*client, error) {
	c := t.Credentials
	if strings.Contains(c.Principal, "-----BEGIN") {
		certificate, err := tls.X509KeyPair([]byte(c.Principal), []byte(c.Credential))
		if err != nil {
			return nil, errCredentials
		}
		return &client{http: o.client(&certificate)}, nil
	}
	key, err := readECKey(c.Credential)
	if err != nil || c.Principal == "" {
		return nil, errCredentials
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: c.Principal}}, nil)
	if err != nil {
		return nil, errCredentials
	}
	return &client{http: o.client(nil), signer: &providerToken{signer: signer, team: t.Team}}, nil
}

// readECKey parses the key of Apple's .p8 files, or the text between its first and last line.
func readECKey(text string) (*ecdsa.PrivateKey, error) {
	if !strings.Contains(text, "-----BEGIN") {
		text = "-----BEGIN PRIVATE KEY-----\n" + strings.TrimSpace(text) + "\n-----END PRIVATE KEY-----\n"
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errCredentials
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errCredentials
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errCredentials
	}
	return ec, nil
}

// providerToken is the token in an application's requests to APNs.
type providerToken struct {
	signer jose.Signer
	team   string

	mu   sync.Mutex
	text string
	made time.Time
}

// get returns the token, which it refreshes when it is old. refused is a token that APNs has
// called expired; empty: none.
func (p *providerToken) get(refused string) (text string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := clock.System.Now()
	age := now.Sub(p.made)
	if p.text != "" && age >= 0 && age < tokenRenewed && (refused != p.text || age < tokenLeast) {
		return p.text, nil
	}
	text, err = jwt.Signed(p.signer).Claims(map[string]any{"iss": p.team, "iat": now.Unix()}).Serialize()
	if err == nil {
		p.text, p.made = text, now
	}
	return text, err
}

// Push implements Gateway.
func (a *APNs) Push(ctx context.Context, n *Notification) (deliver.Outcome, bool) {
	c, err := a.clients.of(n.PushTarget, newAPNsIdentity)
	if err != nil {
		return deliver.Outcome{Detail: "the application's credentials cannot be used with APNs"}, false
	}
	refused := ""
	for {
		authorization := ""
		if c.signer != nil {
			if authorization, err = c.signer.get(refused); err != nil {
				return deliver.Outcome{Detail: "the application's credentials cannot be used with APNs"}, false
			}
		}
		out, dead, reason := a.post(ctx, c, n, authorization)
		if reason != "ExpiredProviderToken" || refused != "" || c.signer == nil {
			return out, dead
		}
		refused = authorization
		if renewed, err := c.signer.get(refused); err != nil || renewed == refused {
			return out, dead // the token is too new to be refreshed
		}
	}
}

func (a *APNs) post(ctx context.Context, c *client, n *Notification, authorization string) (out deliver.Outcome, dead bool, reason string) {
	header := http.Header{"Content-Type": {"application/json"}}
	for name, value := range n.Header {
		header.Set(name, value)
	}
	if authorization != "" {
		header.Set("Authorization", "bearer "+authorization)
	}
	answer, err := c.post(ctx, a.url+"/3/device/"+url.PathEscape(n.Token), header, n.Payload)
	if err != nil {
		return deliver.NoAnswer(ctx, err), false, ""
	}
	if answer.status == http.StatusOK {
		return deliver.Outcome{Class: deliver.Success, Status: answer.status, Provider: deliver.Provider{Message: answer.header.Get(headerID)}}, false, ""
	}
	var said struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(answer.body, &said) // without a reason, only the status counts
	reason = word(said.Reason)
	out, dead = classifyAPNs(answer.status, reason)
	if out.Class == deliver.ServerError {
		out.RetryAfter = clock.RetryAfter(answer.header, clock.System.Now())
	}
	return out, dead, reason
}

// classifyAPNs is the outcome of an error answer of APNs.
func classifyAPNs(status int, reason string) (out deliver.Outcome, dead bool) {
	out = deliver.Outcome{Class: deliver.ServerError, Status: status, Detail: "APNs: " + said(status, reason), Provider: deliver.Provider{Code: reason}}
	switch status {
	case http.StatusGone:
		out.Class, dead = deliver.ClientError, true
	case http.StatusBadRequest:
		out.Class, dead = deliver.ClientError, reason == "BadDeviceToken" || reason == "DeviceTokenNotForTopic"
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge:
		out.Class = deliver.ClientError
	}
	return out, dead
}

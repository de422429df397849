package pushsender

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/oauth2"

	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/outgoing"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/shard"
)

// Connections are the settings of connections to gateways.
type Connections struct {
	// AllowPrivate allows connections to loopback and private addresses.
	AllowPrivate bool
	// Own are the ports of this server, which are refused on its machine.
	Own publicnet.Ports
	// TLS has the authorities for a gateway's certificate; nil: the system's.
	TLS *tls.Config
	// Slots bounds the open connections; nil: no bound.
	Slots *limit.Slots
	// Dial opens connections; nil: over the network, to allowed addresses.
	Dial limit.Dial
}

const (
	// maxClients bounds the applications with open connections.
	maxClients  = 1024
	idleTime    = 5 * time.Minute
	pingAfter   = 5 * time.Second
	pingTimeout = 3 * time.Second
	// All pushes to a platform wait for its one connection.
	handshakeTime = 10 * time.Second
	headerLimit   = 64 << 10
	bodyLimit     = 64 << 10
)

// client has an application's credentials for its platform, and its connections.
type client struct {
	http    *http.Client
	signer  *providerToken // APNs: nil with a certificate
	project string         // FCM
	access  *accessToken   // FCM
}

// client makes an HTTP/2 client that does not follow redirects.
func (o Connections) client(certificate *tls.Certificate) *http.Client {
	dial := outgoing.Dialer(publicnet.Guard{AllowPrivate: o.AllowPrivate, Own: o.Own}.Control).DialContext
	if o.Dial != nil {
		dial = o.Dial
	}
	secured := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		secured = o.TLS.Clone()
	}
	if certificate != nil {
		secured.Certificates = []tls.Certificate{*certificate}
	}
	return &http.Client{
		Transport: outgoing.New(&http.Transport{
			DialContext: o.Slots.Dial(dial), TLSClientConfig: secured, DisableCompression: true,
			MaxConnsPerHost: 1, TLSHandshakeTimeout: handshakeTime, IdleConnTimeout: idleTime, MaxResponseHeaderBytes: headerLimit,
			ForceAttemptHTTP2: true, // a custom dialer would disable it
			HTTP2:             &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// clients caches the clients of recently used applications.
type clients struct {
	options Connections
	mu      sync.Mutex
	known   *lru.Cache[string, *known]
}

// known is the client of an application with its credentials.
type known struct {
	of     *shard.PushCredentials // compared by pointer
	team   string
	client *client
}

func newClients(o Connections) *clients {
	c := &clients{options: o}
	c.known, _ = lru.NewWithEvict(maxClients, func(_ string, k *known) { k.client.http.CloseIdleConnections() }) // only fails for size 0
	return c
}

// of returns the client of an application, and makes it if necessary.
func (c *clients) of(t *shard.PushTarget, identity func(*shard.PushTarget, Connections) (*client, error)) (*client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := t.Application.String()
	if k, ok := c.known.Get(name); ok {
		if k.of == t.Credentials && k.team == t.Team {
			return k.client, nil
		}
		c.known.Remove(name)
	}
	made, err := identity(t, c.options)
	if err != nil {
		return nil, err
	}
	c.known.Add(name, &known{t.Credentials, t.Team, made})
	return made, nil
}

func (c *clients) close() { c.known.Purge() }

type answer struct {
	status int
	header http.Header
	body   []byte
}

// post makes one request.
func (c *client) post(ctx context.Context, to string, header http.Header, body []byte) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header = header
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, bodyLimit))
	if err != nil && response.StatusCode != http.StatusOK {
		return answer{}, err
	}
	return answer{response.StatusCode, response.Header, text}, nil
}

// asRetrieval is the status of a token endpoint's error.
func asRetrieval(err error) (status int, ok bool) {
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && e.Response != nil {
		return e.Response.StatusCode, true
	}
	return 0, false
}

// word is a platform's reason if it is a single word, else empty: it may be anything.
func word(reason string) string {
	const most = 64
	if len(reason) > most || strings.Trim(reason, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") != "" || strings.ContainsAny(reason, " \t\r\n{}<>\"'") {
		return ""
	}
	return reason
}

// said summarizes a platform's answer.
func said(status int, reason string) string {
	if reason == "" {
		return deliver.StatusDetail(status)
	}
	return reason + " (" + deliver.StatusDetail(status) + ")"
}

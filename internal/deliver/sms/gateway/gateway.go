package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"text/template"
	"time"

	"godwit.dev/godwit/internal/deliver"
	smssender "godwit.dev/godwit/internal/deliver/sms"
	"godwit.dev/godwit/internal/outgoing"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/sms"
)

// Options are the dependencies and settings of a Gateway.
type Options struct {
	Template *Template
	Guard    publicnet.Guard // of the allowed addresses
	TLS      *tls.Config     // nil: the system's roots
	// PublicURL is the prefix of the callback's URL.
	PublicURL string
	// Received is called for messages from phones, and returns when the result is durable;
	// Receipt for receipts, with SMPP's states. Both may be nil.
	Received func(from, text string)
	Receipt  func(r smssender.Receipt, state string)
}

// answerLimit bounds the answer, in bytes.
const answerLimit = 64 << 10

// Gateway implements smssender.Carrier.
type Gateway struct {
	template      *Template
	address, body *template.Template
	host          string
	client        *http.Client
	callback      string // the callback's URL
	received      func(from, text string)
	receipt       func(r smssender.Receipt, state string)
}

var _ smssender.Carrier = (*Gateway)(nil)

// New makes a gateway for a template that ReadTemplate has returned.
func New(o Options) (*Gateway, error) {
	address, body, err := o.Template.compile()
	if err != nil {
		return nil, err
	}
	g := &Gateway{template: o.Template, address: address, body: body, received: o.Received, receipt: o.Receipt, client: &http.Client{
		Transport: outgoing.New(&http.Transport{
			DialContext: outgoing.Dialer(o.Guard.Control).DialContext, TLSClientConfig: o.TLS.Clone(), ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 50, IdleConnTimeout: 4 * time.Second, MaxResponseHeaderBytes: answerLimit,
		}),
		// A redirect would send credentials to a host that the operator did not configure.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if g.Path() != "" {
		g.callback = strings.TrimRight(o.PublicURL, "/") + g.Path()
	}
	var b bytes.Buffer
	_ = address.Execute(&b, &message{To: "+1", Digits: "1"}) // compile has executed it before
	if u, err := url.Parse(b.String()); err == nil {
		g.host = u.Host
	}
	return g, nil
}

// Host names the provider.
func (g *Gateway) Host() string { return g.host }

// Close closes idle connections.
func (g *Gateway) Close() { g.client.CloseIdleConnections() }

// Deliver makes one attempt: the provider splits a text into parts itself.
func (g *Gateway) Deliver(ctx context.Context, t *smssender.Text) smssender.Result {
	var connected atomic.Bool // from then on the request may have been sent
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	request, err := g.request(ctx, t)
	if err != nil {
		return smssender.Result{Outcome: deliver.Outcome{Class: deliver.ClientError, Detail: "no request can be made of the message"}}
	}
	fails := func(detail string, unknown bool) smssender.Result {
		r := smssender.Result{Outcome: deliver.Outcome{Detail: detail}}
		if unknown {
			r.Unknown = len(t.Parts)
			r.Detail += ", and may have taken the message"
		}
		return r
	}
	answer, err := g.client.Do(request)
	switch {
	case errors.Is(err, publicnet.ErrForbidden) || errors.Is(err, publicnet.ErrOwn):
		return fails("the provider's address is not allowed (--allow-private-endpoints)", false)
	case err != nil && connected.Load():
		return fails("the provider did not answer", true)
	case err != nil:
		return fails("the provider cannot be reached", false)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerLimit))
	if err != nil && answer.StatusCode < 300 {
		return fails("the provider's answer broke off", true)
	}
	return g.judge(answer, body, t)
}

func (g *Gateway) request(ctx context.Context, t *smssender.Text) (*http.Request, error) {
	m := &message{
		To: t.To, Digits: strings.TrimPrefix(t.To, "+"), From: t.From, Text: t.Body, ID: hex.EncodeToString(t.ID[:]), Type: t.Type,
		Unicode: t.Alphabet == sms.UCS2, Callback: g.callback,
	}
	var address, body bytes.Buffer
	if err := errors.Join(g.address.Execute(&address, m), g.body.Execute(&body, m)); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, g.template.Method, address.String(), &body)
	if err != nil {
		return nil, err
	}
	for name, value := range g.template.Headers {
		r.Header.Set(name, value)
	}
	if g.template.ContentType != "" {
		r.Header.Set("Content-Type", g.template.ContentType)
	}
	if g.template.User != "" {
		r.SetBasicAuth(g.template.User, g.template.Password)
	}
	return r, nil
}

// judge is the result of an answer.
func (g *Gateway) judge(answer *http.Response, body []byte, t *smssender.Text) smssender.Result {
	status := answer.StatusCode
	r := smssender.Result{Outcome: deliver.Outcome{Status: status, Detail: "the provider answered " + deliver.StatusDetail(status)}}
	v, code, ids := g.template.read(body)
	if code != "" && len(code) <= 8 && strings.Trim(code, "0123456789") == "" {
		r.Detail += fmt.Sprintf(", code %s", code)
	}
	switch {
	case v == optedOut:
		r.Class, r.OptedOut, r.Response = deliver.ClientError, true, string(sms.OptedOutRefusal)
	case v == forGood:
		r.Class = deliver.ClientError
	case v == later:
	case status >= 200 && status < 300 && v == silent && len(g.template.Taken) > 0:
		// The result of the message is unknown.
		r.Unknown, r.Detail = len(t.Parts), r.Detail+" without a code, and may have taken the message"
	case status >= 200 && status < 300:
		r.Outcome, r.IDs = deliver.Outcome{Class: deliver.Success, Status: status}, ids
	case g.template.Status == "" && status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests:
		r.Class = deliver.ClientError
	}
	return r
}

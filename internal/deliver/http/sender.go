// Package httpsender delivers to HTTP and HTTPS endpoints.
//
// It does not follow redirects or use proxies of the environment. The dialer refuses
// addresses that are not public, unless they are allowed. Such a refusal is a client-side
// error: it results from the configuration of the endpoint and the server, which no retry
// changes.
//
// Over TLS the endpoint chooses between HTTP/2 and HTTP/1.1.
package httpsender

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/outgoing"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic/retry"
)

// userAgent is SNS's User-Agent header.
const userAgent = "Amazon Simple Notification Service Agent"

// Options are the dependencies and settings of a Sender.
type Options struct {
	// AllowPrivate allows deliveries to loopback and private addresses.
	AllowPrivate bool
	// Own are the ports of this server, which are refused on its machine.
	Own publicnet.Ports
	// Retry429 makes status 429 a server-side error, as AWS's documentation says today, not a
	// client-side one.
	Retry429 bool
	// RetryAfter evaluates the Retry-After header of statuses 429 and 503, which AWS ignores.
	RetryAfter bool
	// HostLimit bounds the idle connections to one host; the default is 50, as for concurrent
	// attempts.
	HostLimit int
	// Connections bounds the open connections; nil: no bound.
	Connections *limit.Slots
	// TLS is the configuration for endpoints with private certificates; nil: the system's
	// roots.
	TLS *tls.Config
	// Dial opens connections; nil: over the network, to allowed addresses.
	Dial limit.Dial

	resolver *net.Resolver // nil: the system's
}

const (
	// idleTime is how long an idle connection is kept: less than the 5 s of common servers,
	// so that a request rarely uses a connection that is being closed.
	idleTime = 4 * time.Second
	// An answer's body is only read so that its connection can be reused.
	bodyLimit   = 64 << 10
	bodyTime    = time.Second
	headerLimit = 64 << 10
	// An HTTP/2 connection has many concurrent attempts. A silent one is pinged, so that they
	// do not all wait for their timeouts.
	pingAfter   = 5 * time.Second
	pingTimeout = 3 * time.Second
)

// Sender makes attempts over HTTP. It implements deliver.Sender.
type Sender struct {
	transport  *outgoing.Transport
	retry429   bool
	retryAfter bool
}

var _ deliver.Sender = (*Sender)(nil)

// New makes a sender.
func New(o Options) *Sender {
	dialer := outgoing.Dialer(publicnet.Guard{AllowPrivate: o.AllowPrivate, Own: o.Own}.Control)
	dialer.Resolver = o.resolver
	dial := dialer.DialContext
	if o.Dial != nil {
		dial = o.Dial
	}
	idle := o.HostLimit
	if idle == 0 {
		idle = 50
	}
	return &Sender{
		retry429: o.Retry429, retryAfter: o.RetryAfter,
		transport: outgoing.New(&http.Transport{
			DialContext: o.Connections.Dial(dial), TLSClientConfig: o.TLS.Clone(), DisableCompression: true,
			MaxIdleConns: maxIdle(o.Connections), MaxIdleConnsPerHost: idle, IdleConnTimeout: idleTime,
			MaxResponseHeaderBytes: headerLimit,
			ForceAttemptHTTP2:      true, // a custom dialer would disable it
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		}),
	}
}

// maxIdle bounds the idle connections, so that file descriptors remain for other use.
func maxIdle(connections *limit.Slots) int {
	const most = 1000
	if n := connections.Len(); n > 0 {
		return min(most, max(n/2, 1))
	}
	return most
}

// Roots are the root certificates for endpoints: the system's, and those in pem.
func Roots(pem []byte) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // the machine has no roots
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("there is no certificate in PEM form in it")
	}
	return pool, nil
}

// Close closes the idle connections.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

// Host is the endpoint's host and port.
func (s *Sender) Host(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	if u.Port() != "" {
		return strings.ToLower(u.Host)
	}
	port := "80"
	if u.Scheme == "https" {
		port = "443"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// Local is false: endpoints are outside of this process.
func (s *Sender) Local() bool { return false }

// Send posts the message. If an https endpoint with credentials answers 401, they are sent by
// Digest or Basic authentication in the same attempt; they are never sent before, nor in
// plain text.
func (s *Sender) Send(ctx context.Context, r *deliver.Request) deliver.Outcome {
	began := clock.System.Now()
	out := s.send(ctx, r)
	out.Latency = clock.System.Now().Sub(began)
	return out
}

func (s *Sender) send(ctx context.Context, r *deliver.Request) deliver.Outcome {
	u, err := url.Parse(r.Subscription.Endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return deliver.Outcome{Class: deliver.ClientError, Detail: "the endpoint is no URL"}
	}
	user := u.User
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	header, body := headerOf(r), r.Body()

	answer, err := s.post(ctx, u, header, body)
	if err == nil && answer.status == http.StatusUnauthorized && user != nil && u.Scheme == "https" {
		if authorization, ok := authorize(answer.header, user, u.RequestURI(), body); ok {
			header = header.Clone()
			header.Set("Authorization", authorization)
			answer, err = s.post(ctx, u, header, body)
		}
	}
	if err != nil {
		return deliver.NoAnswer(ctx, err)
	}
	out := s.classify(answer.status)
	if s.retryAfter && (out.Status == http.StatusTooManyRequests || out.Status == http.StatusServiceUnavailable) {
		out.RetryAfter = clock.RetryAfter(answer.header, clock.System.Now())
	}
	return out
}

// headerOf are the headers of a request. Source: HTTP/HTTPS headers in the SNS developer
// guide.
func headerOf(r *deliver.Request) http.Header {
	n := r.Message.Notice
	contentType := retry.DefaultContentType
	if n.Kind == message.Notification && r.ContentType != "" {
		contentType = r.ContentType
	}
	const most = 9
	h, values := make(http.Header, most), new([most]string) // one allocation for all
	add := func(name, value string) {
		i := len(h)
		values[i] = value
		h[name] = values[i : i+1 : i+1]
	}
	add("Content-Type", contentType)
	add("User-Agent", userAgent)
	add("Accept-Encoding", "gzip,deflate")
	add("Connection", "Keep-Alive") // the transport omits it with HTTP/2
	// The spelling is AWS's, as HTTP/1.1 receivers may be case-sensitive.
	add("x-amz-sns-message-type", r.Type())
	add("x-amz-sns-message-id", uuid.UUID(r.Message.ID).String())
	add("x-amz-sns-topic-arn", n.Topic)
	if n.Kind != message.SubscriptionConfirmation {
		add("x-amz-sns-subscription-arn", n.Subscription)
	}
	if r.Raw() {
		add("x-amz-sns-rawdelivery", "true")
	}
	r.TellTrace(h)
	return h
}

type answer struct {
	status int
	header http.Header
}

// post makes one request. It uses the transport, because a http.Client would follow
// redirects.
func (s *Sender) post(ctx context.Context, u *url.URL, header http.Header, body []byte) (answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Like http.NewRequest, which would parse the URL again.
	request := (&http.Request{
		Method: http.MethodPost, URL: u, Host: strings.TrimSuffix(u.Host, ":"), Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: http.NoBody, GetBody: func() (io.ReadCloser, error) { return http.NoBody, nil },
	}).WithContext(ctx)
	if len(body) > 0 {
		request.ContentLength = int64(len(body))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		request.Body, _ = request.GetBody()
	}
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return answer{}, err
	}
	if response.Body == http.NoBody {
		return answer{response.StatusCode, response.Header}, nil
	}
	// The status decides the outcome; the rest of the body has a short timeout.
	timer := clock.System.AfterFunc(bodyTime, cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, response.Body, bodyLimit)
	_ = response.Body.Close()
	return answer{response.StatusCode, response.Header}, nil
}

// classify is the outcome of a status. Source: message delivery retries in the SNS developer
// guide, which does not mention redirects.
func (s *Sender) classify(status int) deliver.Outcome {
	out := deliver.Outcome{Status: status, Class: deliver.ServerError}
	switch {
	case status >= 200 && status <= 299:
		out.Class = deliver.Success
		return out
	case status == http.StatusTooManyRequests && s.retry429:
	case status >= 300 && status <= 499:
		out.Class = deliver.ClientError
	}
	out.Detail = deliver.StatusDetail(status)
	if status >= 300 && status <= 399 {
		out.Detail += ", and redirects are not followed"
	}
	return out
}

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/outgoing"
	"godwit.dev/godwit/internal/publicnet"
)

// identityWeb fetches the keys of identity providers, whose addresses clients choose: only
// public addresses are allowed, as for endpoints of topics. private is for the provider of the
// settings, which may be in a private network.
func identityWeb(deps Deps, trust *tls.Config, private bool) *http.Client {
	const (
		most     = 10 * time.Second
		redirect = 3
	)
	dialer := &net.Dialer{Timeout: most, Control: publicnet.Guard{AllowPrivate: private || deps.Config.AllowPrivateEndpoints, Own: deps.ownPorts()}.Control}
	dial := dialer.DialContext
	if deps.World.Dial != nil {
		dial = deps.World.Dial
	}
	transport := outgoing.New(&http.Transport{
		DialContext: dial, TLSClientConfig: trust.Clone(), TLSHandshakeTimeout: most, MaxIdleConns: 4, IdleConnTimeout: most, ResponseHeaderTimeout: most,
		MaxResponseHeaderBytes: 64 << 10,
	})
	deps.OnStop("identity providers' connections", func(context.Context) error {
		transport.CloseIdleConnections()
		return nil
	})
	return &http.Client{Transport: bounded{transport}, Timeout: most, CheckRedirect: func(_ *http.Request, before []*http.Request) error {
		if len(before) > redirect {
			return errors.New("too many redirects")
		}
		return nil
	}}
}

// bounded truncates answers that are longer than an identity provider's can be.
type bounded struct{ next http.RoundTripper }

const maxAnswer = 1 << 20 // bytes

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}

// orphaned warns of an account that only its root can administer any more; nil if IAM is not
// enforced.
func orphaned(deps Deps) func(account string) {
	if !deps.Config.Enforce {
		return nil
	}
	return func(account string) {
		deps.Log.Warn("a change has taken the last administrator: nobody but the root user can give permissions in this account any more",
			"account", account, "wayBack", "the root user's access key, or godwit keys reset-root if it was lost")
	}
}

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/publicnet"
)

// identityWeb asks identity providers, whose addresses clients choose, for their keys: it
// goes where endpoints of topics may be, and no further. Private is for the provider that
// the settings name, wherever in a private network that is.
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
	transport := &http.Transport{
		DialContext: dial, TLSClientConfig: trust.Clone(), MaxIdleConns: 4, IdleConnTimeout: most, ResponseHeaderTimeout: most,
		MaxResponseHeaderBytes: 64 << 10,
	}
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

// bounded cuts off answers that are longer than an identity provider's can be.
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

// orphaned warns of an account that only its root can administer any more; nil where
// nobody is asked for permissions.
func orphaned(deps Deps) func(account string) {
	if !deps.Config.Enforce {
		return nil
	}
	return func(account string) {
		deps.Log.Warn("a change has taken the last administrator: nobody but the root user can give permissions in this account any more",
			"account", account, "wayBack", "the root user's access key, or godwit keys reset-root if it was lost")
	}
}

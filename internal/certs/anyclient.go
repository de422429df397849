package certs

import (
	"crypto/tls"
	"sync/atomic"
)

// ForAnyClient is a configuration that asks no client for a certificate, and is otherwise as c,
// now and after a change.
func ForAnyClient(c *tls.Config) *tls.Config {
	type pair struct{ from, to *tls.Config }
	var last atomic.Pointer[pair] // a configuration has the keys by which sessions are resumed
	open, choose := anonymous(c), c.GetConfigForClient
	if choose == nil {
		return open
	}
	open.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		chosen, err := choose(hello)
		if err != nil || chosen == nil || chosen.ClientAuth == tls.NoClientCert {
			return chosen, err
		}
		p := last.Load()
		if p == nil || p.from != chosen {
			p = &pair{chosen, anonymous(chosen)}
			last.Store(p)
		}
		return p.to, nil
	}
	return open
}

func anonymous(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.ClientAuth, c.ClientCAs = tls.NoClientCert, nil
	return c
}

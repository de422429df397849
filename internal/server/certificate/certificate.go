// Package certificate opens the certificates for TLS that the settings name.
package certificate

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"path/filepath"

	"godwit.dev/godwit/internal/certs"
	"godwit.dev/godwit/internal/certs/acme"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/seal"
)

// Source are certificates for TLS.
type Source interface {
	Config() *tls.Config
	// Failing reports their problem; nil if there is none.
	Failing() error
	// Watch keeps them up to date until it is stopped.
	Watch() (stop func())
}

// Open reads the certificates, or prepares to request them; nil without TLS.
func Open(c *config.Config, root *seal.Root, log *slog.Logger) (Source, error) {
	switch {
	case c.TLSCert != "":
		files, err := certs.Open(certs.Options{Cert: c.TLSCert, Key: c.TLSKey, ClientCA: c.TLSClientCA, Logger: log})
		if err != nil {
			return nil, err
		}
		c.Live.OnReload(files.Reload)
		return files, nil
	case len(c.ACMEDomains) > 0:
		cache := c.ACMECache
		if cache == "" {
			cache = filepath.Join(c.Data, "acme")
		}
		if root == nil {
			return nil, errors.New("--acme-domains: certificates are kept sealed with the root key, which there is none of here")
		}
		manager, err := acme.Open(acme.Options{
			Domains: c.ACMEDomains, Directory: c.ACMEDirectory, Email: c.ACMEEmail, CA: c.ACMECA, ClientCA: c.TLSClientCA,
			Cache: cache, Sealer: root.Sealer("certificates"), Logger: log,
		})
		if err != nil {
			return nil, err
		}
		return manager, nil
	}
	return nil, nil
}

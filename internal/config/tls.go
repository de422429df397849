package config

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// TLS reports whether the server serves TLS.
func (c *Config) TLS() bool { return c.TLSCert != "" || len(c.ACMEDomains) > 0 }

// checkTLS refuses inconsistent settings of TLS.
func (c *Config) checkTLS(check checkFunc) {
	check(c.TLSKey != "" || c.TLSCert == "", "tls-key", "want the file of the key of --tls-cert")
	check(c.TLSCert != "" || c.TLSKey == "", "tls-cert", "want the file of the certificate of --tls-key")
	check(c.TLSCert == "" || len(c.ACMEDomains) == 0, "acme-domains", "want either this or --tls-cert")
	check(c.TLS() || c.TLSClientCA == "", "tls-client-ca", "want --tls-cert and --tls-key too, or --acme-domains")
	for _, name := range c.ACMEDomains {
		check(isHostPattern(name) && !strings.HasPrefix(name, "*") && strings.Contains(name, ".") && net.ParseIP(name) == nil,
			"acme-domains", "want names such as godwit.example.com, have %q", name)
	}
	if len(c.ACMEDomains) == 0 {
		return
	}
	u, err := url.Parse(c.ACMEDirectory)
	check(err == nil && u.Scheme == "https" && u.Host != "", "acme-directory", "want https://…, have %q", c.ACMEDirectory)
	check(c.ACMECache != "" || c.Data != "" && c.Store != MemoryStore, "acme-cache", "want a directory")
}

// IsLocal reports whether an address HOST:PORT can only be reached from this machine.
func IsLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.IsLoopback()
	}
	return host == "localhost"
}

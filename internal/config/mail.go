package config

import (
	"cmp"
	"errors"
	"net"
	"net/mail"
	"net/url"
	"strings"
)

// MailServer is a parsed --mail-relay.
type MailServer struct {
	Address string // HOST:PORT
	User    string
	// TLS says that the connection begins with TLS; Local that it is to this machine.
	TLS, Local bool
}

var errMailRelay = errors.New("want smtp://[USER@]HOST[:PORT] or smtps://[USER@]HOST[:PORT]")

// ParseMailRelay parses the URL of a relay. The default port is 587, with TLS 465.
func ParseMailRelay(s string) (m MailServer, err error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return m, errMailRelay
	}
	if _, has := u.User.Password(); has {
		return m, errors.New("the password belongs into --mail-password-file: others on the machine can read flags")
	}
	m.TLS, m.User = u.Scheme == "smtps", u.User.Username()
	port := "587"
	if m.TLS {
		port = "465"
	}
	m.Address = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
	m.Local = IsLocal(m.Address)
	return m, nil
}

func (c *Config) checkMail(check checkFunc) {
	relay, err := ParseMailRelay(c.MailRelay)
	check(c.MailRelay == "" || err == nil, "mail-relay", "%v", err)
	check(c.MailRelay == "" || err != nil || (relay.User == "") == (c.MailPasswordFile == ""), "mail-password-file", "a user in --mail-relay and this go together")
	check(c.MailRelay != "" || c.MailPasswordFile == "", "mail-password-file", "want --mail-relay too")
	if c.MailFrom != "" {
		a, err := mail.ParseAddress(c.MailFrom)
		check(err == nil && a.Name == "" && a.Address == c.MailFrom && !strings.ContainsAny(c.MailFrom, "\"\r\n <>"), "mail-from", "want an address such as no-reply@example.com, have %q", c.MailFrom)
	}
	check((c.MailDKIMKey == "") == (c.MailDKIMSelector == ""), "mail-dkim-key", "this and --mail-dkim-selector go together")
	check(c.MailDKIMSelector == "" || isHostPattern(c.MailDKIMSelector) && !strings.HasPrefix(c.MailDKIMSelector, "*"), "mail-dkim-selector", "want a name, have %q", c.MailDKIMSelector)
}

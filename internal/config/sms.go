package config

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"strings"

	"godwit.dev/godwit/internal/sms"
)

// SMS are the settings of text messages.
type SMS struct {
	SMSC         string `name:"sms-smsc" placeholder:"URL" help:"The SMSC that takes text messages, by SMPP 3.4: smpps://SYSTEM_ID@HOST[:PORT], or smpp:// without TLS. Without it and --sms-http godwit dev keeps them in an outbox, and godwit serve takes none."`
	PasswordFile string `name:"sms-password-file" placeholder:"FILE" help:"The password of the system id in --sms-smsc, readable by its owner only."`
	Window       int    `name:"sms-window" default:"100" placeholder:"N" help:"Text messages that the SMSC may have unanswered, 1–1000 (${default})."`
	HTTP         string `name:"sms-http" placeholder:"FILE" help:"The HTTP API of a provider that takes text messages: a file of JSON, readable by its owner only (docs/sms.md)."`
	From         string `name:"sms-from" placeholder:"NAME" help:"Whom text messages are from that name nobody: a number, or a name of 3–11 letters and digits."`
	Price        string `name:"sms-price" default:"0.00645" placeholder:"USD" help:"What a part of a text message counts for against MonthlySpendLimit (${default})."`
	Sandbox      bool   `name:"sms-sandbox" help:"Send text messages to verified numbers only, as AWS does for new accounts."`
}

// SMSCServer is a parsed --sms-smsc.
type SMSCServer struct {
	Address  string // HOST:PORT
	SystemID string
	TLS      bool
}

var errSMSC = errors.New("want smpp://SYSTEM_ID@HOST[:PORT] or smpps://SYSTEM_ID@HOST[:PORT]")

// maxSystemID bounds a system id, in bytes. Source: SMPP 3.4, 5.2.1.
const maxSystemID = 15

// ParseSMSC parses the URL of an SMSC. The default port is 2775, with TLS 3550.
func ParseSMSC(s string) (m SMSCServer, err error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "smpp" && u.Scheme != "smpps" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return m, errSMSC
	}
	if _, has := u.User.Password(); has {
		return m, errors.New("the password belongs into --sms-password-file: others on the machine can read flags")
	}
	m.TLS, m.SystemID = u.Scheme == "smpps", u.User.Username()
	if m.SystemID == "" || len(m.SystemID) > maxSystemID {
		return m, errSMSC
	}
	port := "2775"
	if m.TLS {
		port = "3550"
	}
	m.Address = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
	return m, nil
}

func (s *SMS) check(check checkFunc) {
	_, err := ParseSMSC(s.SMSC)
	check(s.SMSC == "" || err == nil, "sms-smsc", "%v", err)
	check(s.SMSC == "" || s.HTTP == "", "sms-http", "this and --sms-smsc exclude each other")
	check((s.SMSC == "") == (s.PasswordFile == ""), "sms-password-file", "this and --sms-smsc go together")
	check(s.Window >= 0 && s.Window <= 1000, "sms-window", "want 1 to 1000, have %d", s.Window)
	check(s.From == "" || sms.ValidOrigination(s.From) || sms.ValidSenderID(s.From), "sms-from", "want a number, or a name of 3 to 11 letters and digits, have %q", s.From)
	_, ok := sms.ParseUSD(s.Price)
	check(ok || s.Price == "", "sms-price", "want an amount in US dollars, have %q", s.Price)
}

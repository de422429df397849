package endpoint

import (
	"net/netip"
	"strings"
)

// The maximum lengths of an address and its parts, in bytes. Source: RFC 5321, 4.5.3.1.
const (
	maxAddress = 254
	maxLocal   = 64
	maxLabel   = 63
)

// checkMail accepts addresses that any mail server accepts: a dot-atom, and a domain in ASCII
// with a dot. There are no quoted strings, comments, routes or address literals, so that no
// character has a meaning in a header or a command of SMTP.
func checkMail(address string) error {
	local, domain, ok := strings.Cut(address, "@")
	if !ok || len(address) > maxAddress || len(local) > maxLocal || !strings.Contains(domain, ".") {
		return ErrAddress
	}
	if _, err := netip.ParseAddr(domain); err == nil {
		return ErrAddress
	}
	for atom := range strings.SplitSeq(local, ".") {
		if atom == "" || strings.TrimLeft(atom, alphanumeric+"!#$%&'*+-/=?^_`{|}~") != "" {
			return ErrAddress
		}
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || len(label) > maxLabel || strings.TrimLeft(label, alphanumeric+"-") != "" || label[0] == '-' || label[len(label)-1] == '-' {
			return ErrAddress
		}
	}
	return nil
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

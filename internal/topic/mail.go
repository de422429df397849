package topic

import (
	"net/netip"
	"strings"
	"time"
)

// MailConfirmationGap is the least time between two mails that ask the same address to
// confirm: whoever asks for them need not be its owner.
const MailConfirmationGap = time.Hour

// mailsPerSecond is how many mails a subscription gets in a second. Source: quotas in the
// SNS developer guide.
const mailsPerSecond = 10

// mailedOfLate reports that a pending subscription's address was asked to confirm it so
// recently that it is not asked again: the token that it has stays good.
func (sub *Subscription) mailedOfLate(now time.Time) bool {
	return sub.Protocol.Mail() && sub.confirmation != nil &&
		now.Before(sub.confirmation.Expires.Add(MailConfirmationGap-TokenLife))
}

// The greatest lengths of an address and its parts, in bytes. Source: RFC 5321, 4.5.3.1.
const (
	maxAddress = 254
	maxLocal   = 64
	maxLabel   = 63
)

// checkAddress takes the addresses that any mail server takes: a dot-atom, and a domain
// in ASCII with a dot. No quoted strings, comments, routes or addresses of machines; so
// nothing in one means anything in a header or a command of SMTP.
func checkAddress(address string) error {
	local, domain, ok := strings.Cut(address, "@")
	if !ok || len(address) > maxAddress || len(local) > maxLocal || !strings.Contains(domain, ".") {
		return ErrEndpointAddress
	}
	if _, err := netip.ParseAddr(domain); err == nil {
		return ErrEndpointAddress
	}
	for atom := range strings.SplitSeq(local, ".") {
		if atom == "" || strings.TrimLeft(atom, alphanumeric+"!#$%&'*+-/=?^_`{|}~") != "" {
			return ErrEndpointAddress
		}
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || len(label) > maxLabel || strings.TrimLeft(label, alphanumeric+"-") != "" || label[0] == '-' || label[len(label)-1] == '-' {
			return ErrEndpointAddress
		}
	}
	return nil
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Package publicnet tells public addresses from those that lead into the machine
// or its network, where what users name must not lead.
package publicnet

import (
	"errors"
	"net/netip"
	"syscall"
)

// ErrForbidden reports an endpoint whose address Control refuses.
var ErrForbidden = errors.New("the endpoint's address is not public")

// notPublic are the networks that no endpoint may be in, beside those that
// netip names itself. Source: the IANA special-purpose address registries, and
// for the last ones the RFCs that embed IPv4 addresses.
var notPublic = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10",
)

// nat64 and sixToFour lead to the IPv4 address that they hold.
var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// public reports that an address may be an endpoint's: it is none of loopback,
// link-local (where the clouds keep their credentials), private, unspecified,
// multicast or reserved, nor leads to such a one by translation.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	bytes := a.As16()
	switch {
	case nat64.Contains(a):
		return public(netip.AddrFrom4([4]byte(bytes[12:])))
	case sixToFour.Contains(a):
		return public(netip.AddrFrom4([4]byte(bytes[2:6])))
	}
	return true
}

// Control refuses to connect to an address that is not public. As a net.Dialer's
// Control it sees the address itself, after resolution, so that no name and no
// change of a name gets around it.
func Control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !public(ap.Addr()) {
		return ErrForbidden
	}
	return nil
}

//go:build !linux

package publicnet

import (
	"net"
	"net/netip"
)

// Local reports whether an address is one of this machine's: of loopback, or of an interface.
// If these cannot be listed, the result is true.
func Local(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, i := range all {
		if p, err := netip.ParsePrefix(i.String()); err == nil && p.Addr() == a {
			return true
		}
	}
	return false
}

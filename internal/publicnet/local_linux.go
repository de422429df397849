package publicnet

import (
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Local reports whether the kernel would deliver packets for an address, or for a whole
// network, to this machine: it decides by its routes, which may have more local addresses than
// the interfaces. If the kernel cannot be asked, the result is true.
func Local(a netip.Addr) bool {
	routes, err := netlink.RouteGet(a.AsSlice())
	if err != nil {
		return !errors.Is(err, unix.ENETUNREACH) && !errors.Is(err, unix.EHOSTUNREACH) && !errors.Is(err, unix.EOPNOTSUPP) // there is no route
	}
	for _, r := range routes {
		if r.Type != unix.RTN_UNICAST {
			return true
		}
	}
	return len(routes) == 0
}

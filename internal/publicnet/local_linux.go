package publicnet

import (
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Local reports whether the kernel would deliver to this machine what is sent to an
// address, or to a whole network: it decides by its routes, which may make more
// addresses its own than its interfaces have. If it cannot be asked, it is.
func Local(a netip.Addr) bool {
	routes, err := netlink.RouteGet(a.AsSlice())
	if err != nil {
		return !errors.Is(err, unix.ENETUNREACH) && !errors.Is(err, unix.EHOSTUNREACH) && !errors.Is(err, unix.EOPNOTSUPP) // nobody is there
	}
	for _, r := range routes {
		if r.Type != unix.RTN_UNICAST {
			return true
		}
	}
	return len(routes) == 0
}

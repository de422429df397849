// Package publicnet distinguishes public addresses from those of the machine or its network, to
// which users' requests must not be directed.
package publicnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// The errors of Control. ErrOwn is an ErrForbidden.
var (
	ErrForbidden = errors.New("the endpoint's address is not public")
	ErrOwn       = fmt.Errorf("%w: it is this server's own", ErrForbidden)
)

// Class is the kind of network of an address.
type Class uint8

// The classes.
const (
	// LinkLocal are link-local addresses, including the metadata services of most clouds, which
	// give credentials to machines.
	LinkLocal Class = iota
	// Reserved are addresses without services: loopback, multicast, and those reserved by the
	// registries for other uses.
	Reserved
	// Private is the network of an organisation: RFC 1918, RFC 4193, RFC 6598.
	Private
	// Public is the Internet.
	Public
)

// Of returns the class of an address. If the address contains another one, to which a network
// translates it, the result is the more restricted class of the two.
func Of(a netip.Addr) Class {
	a = a.Unmap().WithZone("")
	if !a.IsValid() || contains(linkLocal, a) || contains(metadata, a) {
		return LinkLocal
	}
	if contains(private, a) {
		return Private
	}
	if contains(reserved, a) {
		return Reserved
	}
	if a.Is4() {
		return Public
	}
	inner, ok := Embedded(a)
	switch {
	case ok:
		return Of(inner)
	case unicast.Contains(a):
		return Public
	default:
		return Reserved
	}
}

// metadata are the addresses of clouds' metadata services that are not link-local. They are
// never allowed, whatever network they are in. Sources: the providers' documentation, and
// cloud-init's data sources.
var metadata = prefixes(
	"168.63.129.16/32",      // Azure: WireServer, DNS, DHCP
	"100.100.100.200/32",    // Alibaba Cloud
	"fd00:100::100:200/128", // Alibaba Cloud
	"192.0.0.192/32",        // Oracle Cloud Classic
	"fd00:c1::a9fe:a9fe/128",
	"fd00:ec2::/32",         // AWS: instance metadata ::254, EKS Pod Identity ::23, DNS ::253, time ::123
	"fd20:ce::254/128",      // Google Cloud
	"fd00:42::42/128",       // Scaleway
	"fd00:a9fe:a9fe::1/128", // Akamai (Linode)
	"100.96.0.96/32",        // Volcano Engine, BytePlus
	"100.80.80.80/32",       // UCloud
	"100.88.222.5/32",       // Tencent Cloud, beside 169.254.0.23
	"192.80.8.124/32",       // Equinix Metal (Packet)
)

var linkLocal = prefixes("169.254.0.0/16", "fe80::/10")

var private = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")

// unicast is the allocated part of IPv6.
var unicast = netip.MustParsePrefix("2000::/3")

// reserved are the IANA IPv4 and IPv6 special-purpose address registries, as far as
// they are not globally reachable or lie within such a network, and multicast.
var reserved = prefixes(
	"0.0.0.0/8",       // this network
	"127.0.0.0/8",     // loopback
	"192.0.0.0/24",    // IETF protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // relays of 6to4, withdrawn
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, broadcast
	"::/96",           // unspecified, loopback, IPv4-compatible
	"::ffff:0:0:0/96", // IPv4-translated (RFC 2765)
	"64:ff9b:1::/48",  // local translation
	"100::/64",        // discard
	"100:0:0:1::/64",  // dummy prefix
	"2001::/23",       // IETF protocol assignments, Teredo among them
	"2001:db8::/32",   // documentation
	"3fff::/20",       // documentation
	"5f00::/16",       // segment routing
	"fec0::/10",       // site-local, withdrawn
	"ff00::/8",        // multicast
)

// Networks whose addresses are translated to the IPv4 address that they contain.
var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// Embedded is the IPv4 address in a by one of the conventions whose addresses are routed:
// NAT64's common prefix, 6to4, ISATAP.
func Embedded(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP, in anybody's network
		return netip.AddrFrom4([4]byte(b[12:])), true
	}
	return netip.Addr{}, false
}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

func contains(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// Guard decides whether requests that the server makes for users may go to an address.
type Guard struct {
	// AllowPrivate also allows addresses that are not public, except LinkLocal ones.
	AllowPrivate bool
	// Own are not connected to, whatever is allowed.
	Own Ports
}

// Ports are those that a server listens at. Who connects to them from where the server runs is trusted
// more than users' requests, so that none of these may lead there.
type Ports struct {
	Machine []uint16 // at the addresses of this machine
	// Network are those at which each node of a cluster trusts who connects, at all addresses that are
	// not public.
	Network []uint16
}

// PortsOf are the ports of addresses, which may be names of services, as for net.Listen; empty ones have none.
func PortsOf(addresses ...string) (ports []uint16) {
	for _, address := range addresses {
		if _, text, err := net.SplitHostPort(address); err == nil {
			if port, err := net.LookupPort("tcp", text); err == nil {
				ports = append(ports, uint16(port))
			}
		}
	}
	return ports
}

// Control refuses to connect to an address that is not allowed. As a net.Dialer's Control it
// gets the resolved address, so that no name and no change of a name circumvents it. Errors:
// ErrForbidden, ErrOwn.
func (g Guard) Control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return ErrForbidden
	}
	class := Of(to.Addr())
	switch {
	case class == LinkLocal || class != Public && !g.AllowPrivate:
		return ErrForbidden
	case class != Public && slices.Contains(g.Own.Network, to.Port()):
		return ErrOwn
	case !slices.Contains(g.Own.Machine, to.Port()):
		return nil
	}
	inner, embedded := Embedded(to.Addr())
	if to.Addr().IsUnspecified() || Local(to.Addr().Unmap()) || embedded && Local(inner) {
		return ErrOwn
	}
	return nil
}

package network

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"godwit.dev/godwit/internal/publicnet"
)

var errForbidden = errors.New("functions do not reach this address")

// lookupTime bounds how long an allowed name may take to be resolved.
const lookupTime = 2 * time.Second

// judge decides where a connection to an address leads: to AWS's API, to the address, or
// nowhere, with errForbidden.
func (n *Network) judge(ctx context.Context, to netip.AddrPort) (api bool, err error) {
	address := to.Addr().Unmap().WithZone("")
	own := n.own(address)
	if own && slices.Contains(n.ports, to.Port()) {
		return true, nil
	}
	class := n.classOf(address)
	switch {
	case class == publicnet.LinkLocal || class != publicnet.Public && slices.Contains(n.Closed, to.Port()): // also if Allow has it
	case n.allowed(ctx, netip.AddrPortFrom(address, to.Port())):
		return false, nil
	case own:
	case class == publicnet.Public && n.Mode != None, class == publicnet.Private && n.Mode == Private:
		return false, nil
	}
	n.refused[Forbidden].Add(1)
	return false, errForbidden
}

// own reports whether an address leads back to this machine.
func (n *Network) own(a netip.Addr) bool {
	if inner, ok := publicnet.Embedded(a); ok && n.isOwn(inner) {
		return true
	}
	return n.isOwn(a)
}

// allowed reports whether an entry of Options.Allow has the address. Names are resolved with
// each call, because the operator may change them.
func (n *Network) allowed(ctx context.Context, to netip.AddrPort) bool {
	for _, entry := range n.allow {
		if entry.port != to.Port() {
			continue
		}
		if a, err := netip.ParseAddr(entry.host); err == nil {
			if a.Unmap() == to.Addr() {
				return true
			}
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, lookupTime)
		addresses, err := n.resolver.LookupNetIP(ctx, "ip", entry.host)
		cancel()
		if err == nil && slices.ContainsFunc(addresses, func(a netip.Addr) bool { return a.Unmap() == to.Addr() }) {
			return true
		}
	}
	return false
}

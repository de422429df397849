package guard

import (
	"net/netip"
	"strings"
)

// maxName is the most that a name of DNS has, in bytes.
const maxName = 253

// private are the names below which nobody but the operator of a network can own
// one: of the machine itself, of private networks, of a Kubernetes cluster.
var private = []string{"localhost", "internal", "svc", "cluster.local"}

// knows reports that the name that the request was sent to cannot be another site's.
func (r *Rules) knows(f *Facts) bool {
	if f.Verified && f.Surface == AWS {
		return true
	}
	if f.Host == "" { // no browser leaves it out
		return f.Surface == Probe
	}
	if known := r.known.Load(); known != nil && *known == f.Host {
		return true
	}
	host, _, ok := splitHost(f.Host)
	if !ok || !isAddress(host) && !r.allows(host) {
		return false
	}
	known := strings.Clone(f.Host)
	r.known.Store(&known)
	return true
}

// splitHost takes the value of Host, or what an origin has in its place, apart.
// The brackets stay around an address of IPv6. ok is false if it is malformed; the
// name itself is not looked at.
func splitHost(s string) (host, port string, ok bool) {
	end := strings.IndexByte(s, ':')
	if strings.HasPrefix(s, "[") {
		if end = strings.IndexByte(s, ']') + 1; end == 0 {
			return "", "", false
		}
	}
	switch {
	case end < 0 || end == len(s):
		return s, "", s != ""
	case end == 0 || s[end] != ':' || len(s) > end+6:
		return "", "", false
	}
	port = s[end+1:]
	for i := range len(port) {
		if port[i]-'0' > 9 {
			return "", "", false
		}
	}
	return s[:end], port, true
}

// isAddress reports whether host is an address and no name.
func isAddress(host string) bool {
	_, ok := parseAddress(host)
	return ok
}

func parseAddress(host string) (netip.Addr, bool) {
	if strings.HasPrefix(host, "[") {
		ip, err := netip.ParseAddr(host[1 : len(host)-1])
		return ip, err == nil && ip.Is6() && ip.Zone() == ""
	}
	for i := range len(host) {
		if c := host[i]; c != '.' && c-'0' > 9 {
			return netip.Addr{}, false
		}
	}
	ip, err := netip.ParseAddr(host)
	return ip, err == nil
}

// isLoopback reports whether browsers hold a host for the machine that they run on.
func isLoopback(host string) bool {
	if ip, ok := parseAddress(host); ok {
		return ip.IsLoopback() && !ip.Is4In6()
	}
	return isName(host) && (strings.EqualFold(host, "localhost") || isBelow(host, "localhost"))
}

// allows reports whether a name may be in Host. A dot at its end says that it is a
// whole one, and is no part of it.
func (r *Rules) allows(name string) bool {
	absolute := strings.HasSuffix(name, ".")
	if absolute {
		name = name[:len(name)-1]
	}
	if !isName(name) {
		return false
	}
	// A name without a dot is completed by the network's own suffixes. With one at
	// its end it is a top-level domain.
	if !absolute && strings.IndexByte(name, '.') < 0 || strings.EqualFold(name, "localhost") {
		return true
	}
	for _, domain := range private {
		if isBelow(name, domain) {
			return true
		}
	}
	for _, host := range r.hosts {
		if strings.EqualFold(name, host) {
			return true
		}
	}
	for _, domain := range r.domains {
		if strings.EqualFold(name, domain) || isBelow(name, domain) {
			return true
		}
	}
	return false
}

// isBelow reports whether name is that of a host in domain, whatever the case. A
// domain may begin with a dot.
func isBelow(name, domain string) bool {
	domain = strings.TrimPrefix(domain, ".")
	rest := len(name) - len(domain)
	return rest > 0 && name[rest-1] == '.' && strings.EqualFold(name[rest:], domain)
}

// isName reports whether s consists of labels of letters, digits, hyphens and, as in
// the names of containers, underscores.
func isName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	label := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.' && label == 0:
			return false
		case c == '.':
			label = 0
		case c|0x20-'a' < 26 || c-'0' < 10 || c == '-' || c == '_':
			label++
		default:
			return false
		}
	}
	return label > 0
}

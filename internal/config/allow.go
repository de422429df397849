package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"godwit.dev/godwit/internal/publicnet"
)

// ParseAllow parses a HOST:PORT of FunctionAllow. HOST is a name or an address.
func ParseAllow(s string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(s)
	number, err2 := strconv.ParseUint(text, 10, 16)
	if err != nil || err2 != nil || host == "" || number == 0 {
		return "", 0, fmt.Errorf("want HOST:PORT, such as localhost:5432, have %q", s)
	}
	if a, err := netip.ParseAddr(host); err == nil && (publicnet.Of(a) == publicnet.LinkLocal || a.IsUnspecified() || a.IsMulticast()) {
		return "", 0, fmt.Errorf("%s is never reached by functions: it is link-local, a metadata service's, or no single address", host)
	}
	return host, uint16(number), nil
}

package publicnet

import (
	"net/netip"
	"testing"
)

func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "100.63.255.255": true, "100.128.0.0": true, "172.32.0.1": true, "223.255.255.255": true,
		"2606:4700::1111": true, "64:ff9b::808:808": true, "2002:808:808::1": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "127.255.255.255": false, "0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false,
		"172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "100.127.255.255": false, "192.0.0.8": false, "192.0.2.1": false, "198.18.0.1": false,
		"198.19.255.255": false, "198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::7f00:1": false, "fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "fc00::1": false, "fd00:ec2::254": false,
		"ff02::1": false, "2001:db8::1": false, "2001::1": false, "100::1": false,
		"::ffff:127.0.0.1": false, "::ffff:100.64.0.1": false, "fec0::1%eth0": false, "::ffff:169.254.169.254": false, "64:ff9b::7f00:1": false, "64:ff9b::a00:1": false,
		"64:ff9b:1::808:808": false, "2002:7f00:1::": false, "2002:c0a8:101::": false,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
	for _, bad := range []string{"", "8.8.8.8", "name:80"} {
		if Control("tcp", bad, nil) == nil {
			t.Errorf("Control lets %q through", bad)
		}
	}
}

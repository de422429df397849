package publicnet

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestClasses(t *testing.T) {
	for class, addresses := range map[Class]string{
		Public: `8.8.8.8 1.1.1.1 100.63.255.255 100.128.0.0 172.32.0.1 223.255.255.255 9.255.255.255 11.0.0.0
			169.253.255.255 169.255.0.0 168.63.129.15 168.63.129.17 192.0.1.0 198.17.255.255 198.20.0.0
			2606:4700::1111 2001:4860:4860::8888 2001:200:: 64:ff9b::808:808 2002:808:808::1 ::ffff:8.8.8.8 2606:4700::5efe:808:808
			3ffe::1 3fff:1000::`,
		Private: `10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 100.127.255.255
			fc00::1 fd12:3456::1 ::ffff:10.0.0.1 ::ffff:100.64.0.1 64:ff9b::a00:1 2002:c0a8:101:: 2002:a00:1::1
			2606:4700::5efe:a00:1 2606:4700::200:5efe:c0a8:1`,
		Reserved: `127.0.0.1 127.255.255.255 0.0.0.0 0.1.2.3 192.0.0.8 192.0.2.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1
			192.88.99.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
			:: ::1 ::7f00:1 ::a00:1 ::808:808 fec0::1 fec0::1%eth0 ff02::1 ff0e::1
			2001:db8::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:10::1 2001:20::1 100::1 100:0:0:1::1 3fff::1 3fff:fff:: 5f00::1 4000::1 1::1
			::ffff:127.0.0.1 ::ffff:0:10.0.0.1 ::ffff:0:8.8.8.8 64:ff9b::7f00:1 64:ff9b:1::808:808 64:ff9b:1::a00:1 64:ff9a::1
			2002:7f00:1:: 2606:4700::5efe:7f00:1`,
		LinkLocal: `169.254.0.0 169.254.255.255 fe80::1 fe80::1%eth0 febf::1 ::ffff:169.254.1.1 64:ff9b::a9fe:101 2002:a9fe:a9fe:: 2606:4700::5efe:a9fe:a9fe`,
	} {
		for address := range strings.FieldsSeq(addresses) {
			if got := Of(netip.MustParseAddr(address)); got != class {
				t.Errorf("%s: %v, want %v", address, got, class)
			}
		}
	}
	if Of(netip.Addr{}) != LinkLocal {
		t.Error("no address at all may be reached")
	}
}

// No way of writing a metadata service's address is another class.
func TestMetadata(t *testing.T) {
	services := strings.Fields(`169.254.169.254 169.254.169.253 169.254.169.123 169.254.170.2 169.254.170.23 fd00:ec2::254 fd00:ec2::23 fd00:ec2::253 fd00:ec2::123
		168.63.129.16 fd20:ce::254 192.0.0.192 fd00:c1::a9fe:a9fe 100.100.100.200 fd00:100::100:200 169.254.0.23 100.88.222.5
		fe80::a9fe:a9fe 169.254.42.42 fd00:42::42 fd00:a9fe:a9fe::1 100.96.0.96 100.80.80.80 192.80.8.124 169.254.169.250`)
	for _, s := range slices.Clone(services) {
		a := netip.MustParseAddr(s)
		if !a.Is4() {
			continue
		}
		b := a.As4()
		for _, form := range []string{"::ffff:", "64:ff9b::", "2606:4700::5efe:", "2606:4700::200:5efe:"} {
			services = append(services, form+s)
		}
		services = append(services, netip.AddrFrom16([16]byte{0x20, 0x02, b[0], b[1], b[2], b[3], 15: 1}).String())
	}
	for _, s := range services {
		if got := Of(netip.MustParseAddr(s)); got != LinkLocal {
			t.Errorf("%s: %v", s, got)
		}
	}
}

func TestControl(t *testing.T) {
	for _, good := range []string{"8.8.8.8:443", "[2606:4700::1111]:443"} {
		if err := (Guard{}).Control("tcp", good, nil); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "8.8.8.8", "name:80", "10.0.0.1:80", "168.63.129.16:80", "[fd00::1]:80", "[fe80::1%lo]:80", "[64:ff9b::a00:1]:80"} {
		if (Guard{}).Control("tcp", bad, nil) == nil {
			t.Errorf("Control lets %q through", bad)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("64:ff9b::a00:1")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return
		}
		if Of(a) != Of(a.WithZone("")) || Of(a) != Of(a.Unmap()) {
			t.Error("the spelling makes a difference")
		}
		if Of(a) == Public && (!a.Unmap().IsGlobalUnicast() || a.Unmap().IsPrivate()) {
			t.Error("not public by Go's own measure")
		}
	})
}

// The server's own ports on its own machine are refused, whatever is allowed.
func TestOwnPorts(t *testing.T) {
	g := Guard{AllowPrivate: true, Own: Ports{Machine: []uint16{4566, 6060}}}
	for _, bad := range []string{
		"127.0.0.1:4566", "127.9.9.9:6060", "[::1]:4566", "[::ffff:127.0.0.1]:4566", "0.0.0.0:4566", "[::]:4566", "[64:ff9b::7f00:1]:4566",
	} {
		if err := g.Control("tcp", bad, nil); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, good := range []string{"127.0.0.1:9000", "192.0.2.7:4566"} {
		if err := g.Control("tcp", good, nil); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

// The ports at which the nodes of a cluster trust who connects are refused on each machine that is
// not a stranger's.
func TestPortsOfNodes(t *testing.T) {
	g := Guard{AllowPrivate: true, Own: Ports{Machine: PortsOf("127.0.0.1:4566", "", "x"), Network: PortsOf(":4567", "[::1]:6060", "10.0.0.1:https")}} // as listeners take them
	for _, bad := range []string{"10.0.0.2:443", "127.0.0.1:4566", "127.0.0.1:4567", "10.0.0.2:4567", "192.168.1.9:6060", "[fd00::1]:4567", "[::ffff:10.0.0.2]:4567", "[64:ff9b::a00:2]:6060"} {
		if err := g.Control("tcp", bad, nil); !errors.Is(err, ErrOwn) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, good := range []string{"10.0.0.2:4566", "10.0.0.2:9000", "8.8.8.8:4567"} {
		if err := g.Control("tcp", good, nil); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

// Where a machine is given credentials is refused, whatever is allowed: functions, whose
// own network does not lead there, can have the server make requests.
func TestMetadataIsNeverAllowed(t *testing.T) {
	g := Guard{AllowPrivate: true}
	for _, bad := range []string{
		"169.254.169.254:80", "168.63.129.16:80", "100.100.100.200:80", "[fd00:ec2::254]:80", "[fe80::a9fe:a9fe%1]:80",
		"[::ffff:169.254.169.254]:80", "[64:ff9b::a9fe:a9fe]:80",
	} {
		if err := g.Control("tcp", bad, nil); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, good := range []string{"127.0.0.1:80", "10.0.0.1:80", "[fd00::1]:80", "198.51.100.1:80"} {
		if err := g.Control("tcp", good, nil); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

func TestLocal(t *testing.T) {
	for _, s := range []string{"127.0.0.1", "::1"} {
		if !Local(netip.MustParseAddr(s)) {
			t.Errorf("%s is not this machine's", s)
		}
	}
	if Local(netip.MustParseAddr("192.0.2.7")) {
		t.Error("an address of documentation is this machine's")
	}
}

package network

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// testNetwork is a network on a machine whose addresses are own.
func testNetwork(t *testing.T, o Options, own ...string) *Network {
	t.Helper()
	o.Port, o.Logger = 4566, slog.New(slog.NewTextHandler(t.Output(), nil))
	n, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	n.isOwn = func(a netip.Addr) bool { return a.IsLoopback() || slices.Contains(own, a.String()) }
	return n
}

func TestPolicy(t *testing.T) {
	const own, own6, shown = "192.168.1.7", "fd12::7", "8.8.4.4"
	for _, test := range []struct {
		mode                 Mode
		allow                string
		api, through, refuse string
	}{
		{
			mode: Private,
			api:  "192.168.1.7:4566 [fd12::7]:4566 8.8.4.4:4566 [::ffff:192.168.1.7]:4566 [64:ff9b::c0a8:107]:4566 [2002:c0a8:107::1]:4566 127.0.0.1:4566 [64:ff9b::7f00:1]:4566",
			through: "8.8.8.8:443 [2606:4700::1111]:443 8.8.8.8:4566 192.168.1.8:4566 10.0.0.1:22 172.16.0.1:80 100.64.0.1:80 [fd12::8]:80 [fc00::1]:80 " +
				"[::ffff:10.0.0.1]:80 [64:ff9b::a00:1]:80 [64:ff9b::808:808]:80",
			refuse: "192.168.1.7:80 [fd12::7]:6060 8.8.4.4:443 127.0.0.1:80 [::1]:80 [64:ff9b::c0a8:107]:80 [64:ff9b::7f00:1]:80 [2002:7f00:1::]:80 " +
				"169.254.169.254:80 [fe80::a9fe:a9fe%25tun]:80 [fe80::1]:80 168.63.129.16:80 100.100.100.200:80 192.0.0.192:80 [fd00:ec2::254]:80 [fd20:ce::254]:80 " +
				"[64:ff9b::a9fe:a9fe]:80 [::ffff:169.254.169.254]:80 0.0.0.0:80 [::]:80 224.0.0.1:80 255.255.255.255:80 240.0.0.1:80 192.0.0.1:53 192.0.2.1:80 [ff02::1]:80 [2001:db8::1]:80",
		},
		{
			mode: Public, allow: "10.1.2.3:5432,192.168.1.7:6379",
			api:     "192.168.1.7:4566 8.8.4.4:4566",
			through: "8.8.8.8:443 [2606:4700::1111]:443 10.1.2.3:5432 [::ffff:10.1.2.3]:5432 192.168.1.7:6379",
			refuse:  "10.1.2.3:5433 10.1.2.4:5432 192.168.1.7:80 192.168.1.8:80 172.16.0.1:80 100.64.0.1:80 [fd12::8]:80 [64:ff9b::a00:1]:80 127.0.0.1:80 169.254.169.254:80",
		},
		{
			mode: None, allow: "10.1.2.3:5432",
			api:     "192.168.1.7:4566",
			through: "10.1.2.3:5432",
			refuse:  "8.8.8.8:443 [2606:4700::1111]:443 10.0.0.1:80 10.1.2.3:80 169.254.169.254:80 192.168.1.7:80",
		},
		{
			refuse: "8.8.8.8:443 10.0.0.1:80", // no mode is none
		},
	} {
		o := Options{Mode: test.mode}
		if test.allow != "" {
			o.Allow = strings.Split(test.allow, ",")
		}
		n := testNetwork(t, o, own, own6, shown)
		for what, list := range map[string]string{"api": test.api, "through": test.through, "refused": test.refuse} {
			for s := range strings.FieldsSeq(list) {
				to := netip.MustParseAddrPort(strings.ReplaceAll(s, "%25", "%"))
				api, err := n.judge(t.Context(), to)
				got := "through"
				switch {
				case err != nil:
					got = "refused"
				case api:
					got = "api"
				}
				if got != what {
					t.Errorf("%q: %s: %s, want %s", test.mode, s, got, what)
				}
			}
		}
	}
}

// Who reaches the operators' port of another node is taken for an operator: no function is let through, in no mode.
func TestClosedPorts(t *testing.T) {
	n := testNetwork(t, Options{Mode: Private, Allow: []string{"10.0.0.2:4567"}, Closed: []uint16{4567, 6060}}, "10.0.0.1")
	for address, open := range map[string]bool{
		"10.0.0.2:4567": false, "10.0.0.3:6060": false, "[fd12::8]:4567": false, "[::ffff:10.0.0.3]:4567": false, "[64:ff9b::a00:3]:4567": false,
		"10.0.0.2:4566": true, "8.8.8.8:4567": true,
	} {
		if _, err := n.judge(t.Context(), netip.MustParseAddrPort(address)); (err == nil) != open {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAllow(t *testing.T) {
	for _, bad := range []string{"", "host", ":80", "host:0", "host:http", "host:70000", "169.254.169.254:80", "[fe80::1]:80", "168.63.129.16:80", "0.0.0.0:80", "224.0.0.1:1"} {
		if _, err := New(Options{Allow: []string{bad}}); err == nil {
			t.Errorf("%q is allowed", bad)
		}
	}
	n := testNetwork(t, Options{Allow: []string{"localhost:5432", "127.0.0.1:9001", "127.0.0.2:81", "[::1]:82", "localhost:4566", "db:83"}})
	var ports []uint16
	for _, p := range n.Plan().Listen {
		ports = append(ports, p.Number)
	}
	if want := []uint16{9002, 4566, 81, 82, 5432, 9001}; !slices.Equal(ports, want) {
		t.Errorf("ports: %v, want %v", ports, want)
	}
	if n.forward[81] != "127.0.0.2:81" || n.forward[82] != "[::1]:82" || n.RuntimeAPI() != "127.0.0.1:9002" {
		t.Errorf("%v %s", n.forward, n.RuntimeAPI())
	}
	if !n.Plan().Tunnel {
		t.Error("no tunnel to an allowed name")
	}
	if n.WithoutTunnel(); n.Plan().Tunnel || strings.Contains(n.ResolvConf(""), "nameserver") {
		t.Error("a tunnel where there is none")
	}
	if testNetwork(t, Options{Mode: None}).Plan().Tunnel {
		t.Error("a tunnel to nowhere")
	}
}

func TestNames(t *testing.T) {
	n := testNetwork(t, Options{Mode: Private, PublicURL: "http://godwit.example:8080"})
	if hosts := n.Hosts(); !strings.HasPrefix(hosts, "127.0.0.1 localhost ") || !strings.Contains(hosts, " godwit.example\n::1 localhost ") {
		t.Errorf("%q", hosts)
	}
	if !slices.Equal(n.ports, []uint16{4566, 8080}) || n.Endpoint() != "http://127.0.0.1:4566" {
		t.Error(n.ports, n.Endpoint())
	}
	if n := testNetwork(t, Options{PublicURL: "https://godwit.example"}); strings.Contains(n.Hosts(), "godwit.example") {
		t.Error("who expects TLS gets none")
	}
	const machine = "# made by hand\nnameserver 10.0.0.2\nsearch a.example b.example\noptions edns0 ndots:5 rotate\n"
	if got, want := n.ResolvConf(machine), "nameserver 192.0.0.1\nsearch a.example b.example\noptions ndots:5\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// An environment has its share, and all have no more than there is.
func TestSlots(t *testing.T) {
	n := testNetwork(t, Options{Connections: 16})
	attach := func() *Attachment { return &Attachment{network: n, ctx: context.Background()} }
	first := attach()
	var slots []*slot
	for range 2 {
		slots = append(slots, first.reserve())
	}
	if first.reserve() != nil {
		t.Error("more than its share")
	}
	for range 7 {
		a := attach()
		slots = append(slots, a.reserve(), a.reserve())
	}
	if slices.Contains(slots, nil) || attach().reserve() != nil {
		t.Error("another number than there is")
	}
	for _, s := range slots {
		s.release()
		s.release()
	}
	if u := n.Usage(); u.Connections != 0 || u.Refused["limit"] != 2 || first.reserve() == nil {
		t.Errorf("%+v", u)
	}
}

func mustAddrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

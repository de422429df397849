package netns_test

import (
	"net"
	"os"
	"testing"

	"godwit.dev/godwit/internal/invoke/process/netns"
	"godwit.dev/godwit/internal/invoke/process/sandbox"
)

// start runs a shell in a namespace, and skips the test where there are none.
func start(t *testing.T, script string, plan netns.Plan) (*netns.Sockets, *sandbox.Process, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{
		Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, Dir: "/", Isolate: true, Root: t.TempDir(),
		Network: &plan,
	}
	if os.Geteuid() == 0 {
		spec.User = 0x7000_0000
	}
	p, err := sandbox.Start(spec, w)
	_ = w.Close()
	if err != nil {
		t.Skip("this machine has no namespaces for us: ", err)
	}
	t.Cleanup(func() {
		p.Kill()
		<-p.Done()
		_ = r.Close()
	})
	s, err := p.Network()
	if err != nil {
		<-p.Done()
		t.Fatal(err, p.Exit())
	}
	t.Cleanup(s.Close)
	return s, p, r
}

func TestListeners(t *testing.T) {
	s, p, _ := start(t, "sleep 60", netns.Plan{Listen: []netns.Port{{Number: 9001, Loopback: true}, {Number: 80}}})
	if a := s.Listeners[0].Addr().String(); a != "127.0.0.1:9001" {
		t.Error(a)
	}
	if a := s.Listeners[1].Addr().(*net.TCPAddr); a.Port != 80 || !a.IP.IsUnspecified() {
		t.Error(a)
	}
	if s.Tunnel != nil || s.Problem != "" {
		t.Error("a tunnel that nobody asked for", s.Problem)
	}
	// Nobody hears of them outside.
	for _, address := range []string{"127.0.0.1:9001", "127.0.0.1:80"} {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			t.Errorf("%s is the machine's", address)
		}
	}
	p.Kill()
	<-p.Done()
}

func TestTunnel(t *testing.T) {
	s, _, _ := start(t, "while :; do :; done", netns.Plan{Tunnel: true})
	if s.Tunnel == nil {
		t.Skip("this machine has no tunnels for us: ", s.Problem)
	}
	packet := make([]byte, netns.MTU)
	if n, err := s.Tunnel.Read(packet); err != nil || n < 20 { // the kernel asks for routers
		t.Error(n, err)
	}
	s.Close()
	if _, err := s.Tunnel.Read(packet); err == nil {
		t.Error("a closed tunnel gives packets")
	}
}

// A sandbox that ends before it has a network leaves nobody waiting.
func TestEndsBefore(t *testing.T) {
	inside, outside, err := netns.Pair()
	if err != nil {
		t.Fatal(err)
	}
	inside.Close()
	if _, err := netns.Receive(outside, netns.Plan{}); err == nil {
		t.Error("sockets of nobody")
	}
}

package jetstream_test

import (
	"net"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// addresses are free ones on loopback, which nobody else is given until the test ends: a socket
// that is bound, and does not listen, keeps its port for who asks for just that.
func addresses(t *testing.T, n int) (out []string) {
	t.Helper()
	for range n {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(s) })
		// Listeners have this set, too, and so may share the port.
		if err := unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			t.Fatal(err)
		}
		if err := unix.Bind(s, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
		at, err := unix.Getsockname(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, net.JoinHostPort("127.0.0.1", strconv.Itoa(at.(*unix.SockaddrInet4).Port)))
	}
	return out
}

// TestAddressesAreNotGivenAway: of all who let the kernel choose a port, none gets one that a node is to
// listen on later.
func TestAddressesAreNotGivenAway(t *testing.T) {
	const many = 300
	own := addresses(t, many)
	listen := func(at string) string {
		t.Helper()
		var lc net.ListenConfig
		l, err := lc.Listen(t.Context(), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l.Addr().String()
	}
	for range many {
		if at := listen("127.0.0.1:0"); slices.Contains(own, at) {
			t.Fatalf("%s is given to another", at)
		}
	}
	listen(own[0])
}

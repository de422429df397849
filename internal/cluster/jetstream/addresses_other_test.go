//go:build !linux

package jetstream_test

import (
	"net"
	"testing"
)

// addresses are free ones on loopback, though others may be given them until somebody listens.
func addresses(t *testing.T, n int) (out []string) {
	t.Helper()
	for range n {
		var lc net.ListenConfig
		l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		out = append(out, l.Addr().String())
	}
	return out
}

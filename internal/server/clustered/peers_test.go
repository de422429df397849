package clustered

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/wire/http1"
)

// TestStoppedPeer: an answer that another node does not read any more, as it is stopped, ends with
// the transfer window, and with it what holds its memory.
func TestStoppedPeer(t *testing.T) {
	limits := server.NewLimits(config.Config{MaxConnections: 100, MinTransferRate: 4 << 10, TransferWindow: time.Second}, slog.New(slog.DiscardHandler))
	l, err := peer.Loopback("secret").Listen(t.Context(), "127.0.0.1:0", limits.OfPeers)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		piece := make([]byte, 1<<20)
		for {
			if _, err := w.Write(piece); err != nil {
				ended <- err
				return
			}
		}
	})
	defer serve(http1.New(h, &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}), l)()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
		t.Fatal("the answer goes on")
	}
}

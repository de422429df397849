package clustered

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
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
	defer serve(forPeers(h), l)()
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

// TestPeerForwardsMuch: what another node forwards over one connection has no bound in all.
func TestPeerForwardsMuch(t *testing.T) {
	limits := server.NewLimits(config.Config{MaxConnections: 100, MaxBytesInFlight: 8 << 20}, slog.New(slog.DiscardHandler))
	l, err := peer.Loopback("secret").Listen(t.Context(), "127.0.0.1:0", limits.OfPeers)
	if err != nil {
		t.Fatal(err)
	}
	defer serve(forPeers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})), l)()
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	body := strings.Repeat("x", 1<<20)
	for sent := range 64 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String(), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatalf("after %d MiB: %v", sent, err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK || err != nil {
			t.Fatalf("after %d MiB: %s, %s, %v", sent, answer.Status, text, err)
		}
	}
}

package outgoing_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/outgoing"
)

// served is a transport whose connections a function serves, and the number of those open.
func served(t *testing.T, serve func(net.Conn)) (*outgoing.Transport, *atomic.Int64) {
	open := &atomic.Int64{}
	transport := outgoing.New(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		open.Add(1)
		go func() {
			serve(server)
			_, _ = io.Copy(io.Discard, server) // until the client closes it
			open.Add(-1)
		}()
		return client, nil
	}})
	t.Cleanup(transport.CloseIdleConnections)
	return transport, open
}

func get(t *testing.T, transport http.RoundTripper, url string, within time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(r)
	if err == nil {
		_, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
	}
	return answer, err
}

func TestSilentHandshakeIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport, open := served(t, func(net.Conn) {})
		for range 3 {
			if _, err := get(t, transport, "https://silent.example/", time.Second); err == nil {
				t.Fatal("a handshake without an answer succeeded")
			}
		}
		over, _ := clock.After(clock.System, outgoing.HandshakeTime)
		<-over
		synctest.Wait()
		if n := open.Load(); n != 0 {
			t.Errorf("%d connections are open after their attempts", n)
		}
	})
}

func TestOtherProtocolIsNoBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport, open := served(t, func(c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			}
		})
		answer, err := get(t, transport, "http://other.example/", time.Minute)
		if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("answered %v, %v, want status 101", answer, err)
		}
		synctest.Wait()
		if n := open.Load(); n != 0 {
			t.Errorf("%d connections are open after the answer", n)
		}
	})
}

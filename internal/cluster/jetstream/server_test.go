package jetstream

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// The engine sorts the routes in force when its settings are reloaded, which is a write that
// its connections would race with, unless there is nothing to sort.
func TestRoutesAreSorted(t *testing.T) {
	urls := routeURLs([]string{"n9:1", "n10:1", "a:2", "a:10"}, url.UserPassword("user", "p"))
	if len(urls) != 4 || !slices.IsSortedFunc(urls, func(a, b *url.URL) int { return cmp.Compare(a.String(), b.String()) }) {
		t.Errorf("the routes are %v", urls)
	}
}

// A node whose part of the logs has stopped, as on a full disk, says so, and one that is closed
// does not.
func TestStopped(t *testing.T) {
	s, err := Start(t.Context(), Options{Node: "a", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Stopped() {
		t.Error("it has stopped from the start")
	}
	s.server.ShutdownJetStream() // what the engine does where a write fails for want of space
	if !s.Stopped() {
		t.Error("it has not stopped")
	}
	s.Close()
	if s.Stopped() {
		t.Error("a closed one has stopped")
	}
}

// A node whose part of the logs cannot be opened, such as a damaged one, says why, and what it has
// begun by then ends in order.
func TestLogsCannotBeOpened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{
		{Node: "a", Dir: file},
		{Node: "a", Dir: file, Cluster: "c", Listen: "127.0.0.1:0", Routes: []string{"127.0.0.1:1"}, Secret: "s"},
	} {
		s, err := Start(t.Context(), o)
		if err == nil {
			s.Close()
			t.Fatal("it has started")
		}
		if !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), "not a directory") {
			t.Errorf("with %d routes: %v", len(o.Routes), err)
		}
	}
}

// slow is a server that is long in greeting who connects to it.
type slow struct{ within time.Duration }

func (s slow) InProcessConn() (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		_ = clock.Wait(context.Background(), clock.System, s.within)
		_, _ = io.WriteString(server, "INFO {\"server_id\":\"a\",\"max_payload\":1024,\"proto\":1}\r\n")
		for lines := bufio.NewScanner(server); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "PING") {
				_, _ = io.WriteString(server, "PONG\r\n")
			}
		}
	}()
	return client, nil
}

// A node starts on a machine that has much else to do: its own process waits for the engine's greeting, as
// the engine waits for who says who it is.
func TestSlowGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := dial(slow{startTime / 2}, "secret")
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	})
	s, err := Start(t.Context(), Options{Node: "a", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.options.AuthTimeout; got != startTime.Seconds() {
		t.Errorf("the engine waits for %v seconds", got)
	}
}

// A node whose port for routes another process has says so.
func TestPortIsTaken(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := l.Addr().String()
	s, err := Start(t.Context(), Options{Cluster: "c", Node: "a", Dir: t.TempDir(), Listen: at, Routes: []string{at}, Secret: "s"})
	if err == nil {
		s.Close()
		t.Fatal("it has started")
	}
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), at) {
		t.Errorf("it says %v", err)
	}
}

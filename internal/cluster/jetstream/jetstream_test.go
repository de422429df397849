package jetstream_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/cluster/jetstream"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/cluster/replog/logtest"
)

// addresses are free ones on loopback.
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

// start starts a cluster of n nodes.
func start(t *testing.T, n int) []*jetstream.Server {
	t.Helper()
	var routes []string
	if n > 1 {
		routes = addresses(t, n)
	}
	servers := make([]*jetstream.Server, n)
	dir := t.TempDir()
	var starting sync.WaitGroup
	for i := range servers {
		starting.Go(func() {
			o := jetstream.Options{Cluster: "test", Node: fmt.Sprint("n", i), Dir: filepath.Join(dir, fmt.Sprint(i)), Secret: "secret", Routes: routes}
			if n > 1 {
				o.Listen = routes[i]
			}
			s, err := jetstream.Start(t.Context(), o)
			if err != nil {
				t.Error(err)
				return
			}
			servers[i] = s
		})
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for _, s := range servers {
			s.Close()
		}
	})
	return servers
}

func TestLogOfOneNode(t *testing.T) {
	s := start(t, 1)[0]
	var cell atomic.Uint32
	logtest.Run(t, func(t *testing.T) replog.Log { return open(t, s, uint16(cell.Add(1))) })
}

func TestLogOfThreeNodes(t *testing.T) {
	all := start(t, 3)
	var cell atomic.Uint32
	logtest.Run(t, func(t *testing.T) replog.Log {
		n := cell.Add(1)
		return open(t, all[n%3], uint16(n))
	})
}

func open(t *testing.T, s *jetstream.Server, cell uint16) *jetstream.Log {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := s.Log(ctx, cell)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

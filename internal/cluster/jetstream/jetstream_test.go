package jetstream_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/jetstream"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/cluster/replog/logtest"
)

// start starts a cluster of n nodes.
func start(t *testing.T, n int) []*jetstream.Server {
	t.Helper()
	servers, _ := startSecured(t, n, func(int) *tls.Config { return nil })
	return servers
}

// startSecured starts a cluster of n nodes whose routes are secured, and returns where they
// are, too.
func startSecured(t *testing.T, n int, secure func(i int) *tls.Config) ([]*jetstream.Server, []string) {
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
			o := jetstream.Options{Cluster: "test", Node: fmt.Sprint("n", i), Dir: filepath.Join(dir, fmt.Sprint(i)), Secret: "secret", Routes: routes, TLS: secure(i)}
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
	t.Cleanup(func() {
		for _, s := range servers {
			if s != nil {
				s.Close()
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return servers, routes
}

// TestTransferLeadership: the log's leader is another node after it has left, and takes what comes.
func TestTransferLeadership(t *testing.T) {
	t.Parallel() // all of this package wait for elections more than they work
	all := start(t, 3)
	var logs []*jetstream.Log
	for _, s := range all {
		logs = append(logs, open(t, s, 1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for round := range 2 {
		for i, l := range logs {
			if err := l.TransferLeadership(ctx); err != nil {
				t.Fatalf("node %d: %v", i, err)
			}
			eventually(t, "another node leads", func(ctx context.Context) error {
				log, err := l.Extent(ctx)
				if err == nil && (log.Leader == "" || log.Leader == fmt.Sprint("n", i)) {
					err = fmt.Errorf("node %d has left, and %q leads", i, log.Leader)
				}
				return err
			})
			if _, err := logtest.Append(logs[(i+round)%3], []byte("x")); err != nil {
				t.Errorf("behind node %d: %v", i, err)
			}
		}
	}
	one := open(t, start(t, 1)[0], 1)
	if err := one.TransferLeadership(ctx); err != nil {
		t.Errorf("of one node: %v", err)
	}
	if log, err := one.Extent(ctx); err != nil || log.Leader != "n0" {
		t.Errorf("of one node: %q leads, %v", log.Leader, err)
	}
}

// TestReaderIsLocal: what a node reads comes from its own part of the log, though the log chooses
// at random; a busy machine may leave some elsewhere.
func TestReaderIsLocal(t *testing.T) {
	const readers = 4 // of each node
	servers := start(t, 3)
	local := 0
	for i, s := range servers {
		l := open(t, s, 1)
		for range readers {
			eventually(t, "a reader", func(ctx context.Context) error {
				r, err := l.Read(ctx, 1)
				if err != nil {
					return err
				}
				defer r.Close()
				node, err := jetstream.Host(ctx, r)
				if err == nil && node == fmt.Sprint("n", i) {
					local++
				}
				return err
			})
		}
	}
	if all := 3 * readers; local < all-2 {
		t.Errorf("%d of %d readers are on their nodes", local, all)
	}
}

// TestTransferMeta: another node is the meta leader once this one has given that up.
func TestTransferMeta(t *testing.T) {
	t.Parallel()
	all := start(t, 3)
	open(t, all[0], 1)
	leader := func() int {
		t.Helper()
		at := -1
		eventually(t, "there is a meta leader", func(context.Context) error {
			at = slices.IndexFunc(all, (*jetstream.Server).LeadsMeta)
			if at < 0 {
				return errors.New("none leads")
			}
			return nil
		})
		return at
	}
	for range 2 {
		was := leader()
		eventually(t, "another node leads", func(ctx context.Context) error {
			if !all[was].LeadsMeta() {
				return nil
			}
			return errors.Join(all[was].TransferMeta(ctx), errors.New("it leads still"))
		})
	}
}

// TestSecuredRoutes: routes carry the log by TLS, between nodes of the cluster alone.
func TestSecuredRoutes(t *testing.T) {
	t.Parallel()
	authority := func() (*ca.Authority, string) {
		t.Helper()
		dir := t.TempDir()
		if err := ca.Init(dir, "n0", clock.System.Now()); err != nil {
			t.Fatal(err)
		}
		a, err := ca.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return a, dir
	}
	secured := func(a *ca.Authority, dir, node string) *tls.Config {
		t.Helper()
		if err := a.Renew(node, clock.System.Now()); err != nil {
			t.Fatal(err)
		}
		id, err := ca.Load(dir, node, []string{"n0", "n1", "n2"}, clock.System.Now)
		if err != nil {
			t.Fatal(err)
		}
		return id.Config(false)
	}
	a, dir := authority()
	var configs []*tls.Config
	for i := range 3 {
		configs = append(configs, secured(a, dir, fmt.Sprint("n", i)))
	}
	all, routes := startSecured(t, 3, func(i int) *tls.Config { return configs[i] })
	l := open(t, all[1], 1)
	if p, err := logtest.Append(l, []byte("secured")); err != nil || p != 1 {
		t.Errorf("appended at %d, %v", p, err)
	}

	b, otherDir := authority()
	foreign := secured(b, otherDir, "n1")
	foreign.InsecureSkipVerify, foreign.VerifyConnection = true, nil
	for name, speak := range map[string]func(c net.Conn) net.Conn{
		"without TLS":           func(c net.Conn) net.Conn { return c },
		"without a certificate": func(c net.Conn) net.Conn { return tls.Client(c, &tls.Config{InsecureSkipVerify: true}) },
		"of another cluster":    func(c net.Conn) net.Conn { return tls.Client(c, foreign) },
	} {
		var dialer net.Dialer
		c, err := dialer.DialContext(t.Context(), "tcp", routes[0])
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if err := c.SetDeadline(clock.System.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		said := speak(c)
		_, _ = io.WriteString(said, "CONNECT {\"verbose\":false,\"user\":\"godwit\",\"pass\":\"secret\"}\r\nPING\r\n")
		if text, err := io.ReadAll(said); strings.Contains(string(text), "INFO") || strings.Contains(string(text), "PONG") {
			t.Errorf("%s: answered %q, %v", name, text, err)
		}
	}
}

func TestLogOfOneNode(t *testing.T) {
	t.Parallel()
	s := start(t, 1)[0]
	var cell atomic.Uint32
	logtest.Run(t, func(t *testing.T) replog.Log { return open(t, s, uint16(cell.Add(1))) })
}

func TestLogOfThreeNodes(t *testing.T) {
	t.Parallel()
	all := start(t, 3)
	var cell atomic.Uint32
	logtest.Run(t, func(t *testing.T) replog.Log {
		n := cell.Add(1)
		return open(t, all[n%3], uint16(n))
	})
}

func open(t *testing.T, s *jetstream.Server, cell uint16) *jetstream.Log {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	l, err := s.Log(ctx, cell)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

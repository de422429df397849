package jetstream_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/jetstream"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/cluster/replog/logtest"
	"godwit.dev/godwit/internal/durable"
)

// membersOf are the identities of nodes, by one authority.
func membersOf(t *testing.T, nodes, members []string) map[string]*ca.Identity {
	t.Helper()
	dir := t.TempDir()
	if err := ca.Init(dir, nodes[0], clock.System.Now()); err != nil {
		t.Fatal(err)
	}
	a, err := ca.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*ca.Identity{}
	for _, node := range nodes {
		if err := a.Renew(node, clock.System.Now()); err != nil {
			t.Fatal(err)
		}
		id, err := ca.Load(dir, node, append(slices.Clone(members), node), clock.System.Now)
		if err != nil {
			t.Fatal(err)
		}
		all[node] = id
	}
	return all
}

// eventually tries until f succeeds.
func eventually(t *testing.T, what string, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		if clock.Wait(ctx, clock.System, 50*time.Millisecond) != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// refused tries to append for a second, as one refusal may be due to an election.
func refused(t *testing.T, l *jetstream.Log, text string) {
	t.Helper()
	for began := clock.System.Now(); clock.System.Now().Sub(began) < time.Second; {
		if p, err := logtest.AppendOnce(l, []byte(text)); err == nil {
			t.Errorf("what is %s is at %d", text, p)
		}
		if err := clock.Wait(t.Context(), clock.System, 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// extent is how far a log goes. It is asked until it says: a busy machine may be late to.
func extent(t *testing.T, l *jetstream.Log) (e replog.Extent) {
	t.Helper()
	eventually(t, "the log's extent", func(ctx context.Context) (err error) {
		e, err = l.Extent(ctx)
		return err
	})
	return e
}

// TestNodesChange: a fourth node comes to keep the log, while it takes what comes, and one of
// the first three is removed for good, dead or alive: what it appends then is in no log, and
// the others are a majority without it.
func TestNodesChange(t *testing.T) {
	t.Parallel()
	nodes := []string{"n0", "n1", "n2", "n3"}
	ids := membersOf(t, nodes, nodes[:3])
	first, routes := startSecured(t, 3, func(i int) *tls.Config { return ids[nodes[i]].Config(false) })
	l := open(t, first[0], 1)
	add := func() {
		t.Helper()
		eventually(t, "an append", func(context.Context) error {
			_, err := logtest.Append(l, []byte("x"))
			return err
		})
	}
	add()

	routes = append(routes, addresses(t, 1)...)
	for i, s := range first {
		ids[nodes[i]].SetMembers(nodes)
		if err := s.SetRoutes(routes); err != nil {
			t.Fatal(err)
		}
	}
	ids["n3"].SetMembers(nodes)
	dir := filepath.Join(t.TempDir(), "n3")
	fourth, err := jetstream.Start(t.Context(), jetstream.Options{
		Cluster: "test", Node: "n3", Dir: dir, Listen: routes[3], Routes: routes, TLS: ids["n3"].Config(false),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fourth.Close)
	eventually(t, "four nodes keep the log", func(ctx context.Context) error { return l.SetNodes(ctx, "four", 4) })
	whole := func(want ...string) {
		t.Helper()
		eventually(t, fmt.Sprint("all is at ", want), func(ctx context.Context) error {
			all, has, err := l.Replicas(ctx)
			slices.Sort(all)
			slices.Sort(has)
			if err == nil && (!slices.Equal(all, want) || !slices.Equal(has, want)) {
				err = fmt.Errorf("%v keep it, %v have all", all, has)
			}
			return err
		})
	}
	whole(nodes...)
	add()
	var text string
	added := open(t, fourth, 1)
	eventually(t, "the new node is asked", func(ctx context.Context) (err error) {
		text, err = added.Nodes(ctx)
		return err
	})
	if text != "four" {
		t.Errorf("the new node reads %q", text)
	}

	// n2 is alive, and does not know that it is removed.
	stranger := open(t, first[2], 1)
	left := []string{"n0", "n1", "n3"}
	for _, node := range left {
		ids[node].SetMembers(left)
	}
	rest := []string{routes[0], routes[1], routes[3]}
	for _, s := range []*jetstream.Server{first[0], first[1], fourth} {
		if err := s.SetRoutes(rest); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "n2 is forgotten", func(ctx context.Context) error { return first[0].Forget(ctx, "n2") })
	eventually(t, "three nodes keep the log", func(ctx context.Context) error { return l.SetNodes(ctx, "three", 3) })
	whole(left...)
	add()
	before := extent(t, l)
	refused(t, stranger, "of a node that was removed")
	if after := extent(t, l); after.Last != before.Last {
		t.Errorf("the log went on from %d to %d", before.Last, after.Last)
	}
	eventually(t, "once more", func(ctx context.Context) error { return first[0].Forget(ctx, "n2") })

	first[1].Close() // two of the three that are left are a majority
	add()
}

// TestAuthorityIsReplaced: the logs of three nodes go on while their authority is replaced;
// the connections between them are of the next one then, and a node that shows what the one
// before has signed is not spoken with any more.
func TestAuthorityIsReplaced(t *testing.T) {
	t.Parallel()
	nodes := []string{"n0", "n1", "n2"}
	ids, dirs := map[string]*ca.Identity{}, map[string]string{}
	authority := t.TempDir()
	load := func(node string) *ca.Identity {
		t.Helper()
		id, err := ca.Load(dirs[node], node, nodes, clock.System.Now)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	// sign lets a node have a certificate of the authority of the moment, with what it trusts.
	sign := func(node string) {
		t.Helper()
		a, err := ca.Open(authority)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ca.NewRequest()
		if err != nil {
			t.Fatal(err)
		}
		signed, err := a.Sign(r.DER, node, clock.System.Now())
		if err == nil && dirs[node] != authority {
			err = r.Keep(dirs[node], signed)
		} else if err == nil {
			err = a.Renew(node, clock.System.Now())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := ca.Init(authority, "n0", clock.System.Now()); err != nil {
		t.Fatal(err)
	}
	roots, err := ca.ReadRoots(authority)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		dirs[node] = authority
		if node != "n0" {
			dirs[node] = t.TempDir()
			if err := durable.Replace(filepath.Join(dirs[node], "ca.crt"), roots.PEM()); err != nil {
				t.Fatal(err)
			}
			sign(node)
		}
		ids[node] = load(node)
	}
	servers, routes := startSecured(t, 3, func(i int) *tls.Config { return ids[nodes[i]].Config(false) })
	l := open(t, servers[0], 1)
	add := func() {
		t.Helper()
		eventually(t, "an append", func(context.Context) error {
			_, err := logtest.Append(l, []byte("x"))
			return err
		})
	}
	add()

	r, err := ca.BeginRotation(authority, clock.System.Now())
	if err != nil {
		t.Fatal(err)
	}
	both, turned, alone, err := r.Steps()
	if err != nil {
		t.Fatal(err)
	}
	old := t.TempDir() // what somebody has got hold of
	for _, name := range []string{"ca.crt", "node.pem"} {
		text, err := os.ReadFile(filepath.Join(dirs["n2"], name))
		if err == nil {
			err = durable.Replace(filepath.Join(old, name), text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	step := func(roots []byte, renew bool) {
		t.Helper()
		for i, node := range nodes {
			_, dropped, err := ids[node].Trust(roots, r.Voucher())
			switch {
			case err != nil:
			case dropped:
				err = servers[i].Reconnect(t.Context(), ids[node].Config(false))
			default:
				err = servers[i].SetTLS(ids[node].Config(false))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, node := range nodes {
			if renew {
				sign(node)
			}
			if err := ids[node].Reload(); err != nil {
				t.Fatal(err)
			}
		}
		add()
	}
	step(both, false)
	step(turned, true)
	step(alone, false)
	eventually(t, "all nodes have all", func(ctx context.Context) error {
		_, has, err := l.Replicas(ctx)
		if err == nil && len(has) != 3 {
			err = fmt.Errorf("%v have all", has)
		}
		return err
	})

	servers[2].Close()
	dirs["n2"] = old
	stranger, err := jetstream.Start(t.Context(), jetstream.Options{
		Cluster: "test", Node: "n2", Dir: filepath.Join(t.TempDir(), "n2"), Listen: routes[2], Routes: routes, TLS: load("n2").Config(false),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	add()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := stranger.Log(ctx, 1); err == nil {
		t.Error("a node with a certificate of the authority of before reads the log")
	}
	var has []string
	eventually(t, "who has all", func(ctx context.Context) (err error) {
		_, has, err = l.Replicas(ctx)
		return err
	})
	if slices.Contains(has, "n2") {
		t.Errorf("%v have all", has)
	}
}

// TestExpired: connections between logs end with the certificates that they were made with,
// and who has not got another one does not come back.
func TestExpired(t *testing.T) {
	t.Parallel()
	nodes := []string{"n0", "n1", "n2"}
	ids := map[string]*ca.Identity{}
	var expired atomic.Bool
	dir := t.TempDir()
	if err := ca.Init(dir, "n0", clock.System.Now()); err != nil {
		t.Fatal(err)
	}
	a, err := ca.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	// n2's clock stands still: it believes itself to be in time.
	for _, node := range nodes {
		at := clock.System.Now()
		if node == "n2" {
			at = at.Add(-ca.NodeLife / 2)
		}
		if err := a.Renew(node, at); err != nil {
			t.Fatal(err)
		}
		now := clock.System.Now
		if node != "n2" {
			now = func() time.Time {
				if expired.Load() {
					return clock.System.Now().Add(ca.NodeLife * 3 / 4)
				}
				return clock.System.Now()
			}
		}
		if ids[node], err = ca.Load(dir, node, nodes, now); err != nil {
			t.Fatal(err)
		}
	}
	servers, _ := startSecured(t, 3, func(i int) *tls.Config { return ids[nodes[i]].Config(false) })
	l, late := open(t, servers[0], 1), open(t, servers[2], 1)
	eventually(t, "all nodes have all", func(ctx context.Context) error {
		_, has, err := l.Replicas(ctx)
		if err == nil && len(has) != 3 {
			err = fmt.Errorf("%v have all", has)
		}
		return err
	})
	expired.Store(true)
	for i, node := range nodes[:2] {
		if !ids[node].Stale() || ids[node].Stale() {
			t.Errorf("%s does not find once that n2 has expired", node)
		}
		ids[node].CloseUntrusted()
		if err := servers[i].Reconnect(t.Context(), ids[node].Config(false)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "an append", func(context.Context) error {
		_, err := logtest.Append(l, []byte("x"))
		return err
	})
	before := extent(t, l)
	refused(t, late, "of a node that has expired")
	if after := extent(t, l); after.Last != before.Last {
		t.Errorf("the log went on from %d to %d", before.Last, after.Last)
	}
}

package jetstream_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/jetstream"
	"godwit.dev/godwit/internal/cluster/replog/logtest"
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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

// TestNodesChange: a fourth node comes to keep the log, while it takes what comes, and one of
// the first three is removed for good, dead or alive: what it appends then is in no log, and
// the others are a majority without it.
func TestNodesChange(t *testing.T) {
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
			all, has, err := l.Keepers(ctx)
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
	if text, err := open(t, fourth, 1).Nodes(t.Context()); text != "four" || err != nil {
		t.Errorf("the new node reads %q, %v", text, err)
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
	_, before, err := l.Ends(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p, err := logtest.Append(stranger, []byte("of a stranger")); err == nil {
		t.Errorf("a removed node appends at %d", p)
	}
	if _, after, err := l.Ends(t.Context()); err != nil || after != before {
		t.Errorf("the log went on from %d to %d, %v", before, after, err)
	}
	eventually(t, "once more", func(ctx context.Context) error { return first[0].Forget(ctx, "n2") })

	first[1].Close() // two of the three that are left are a majority
	add()
}

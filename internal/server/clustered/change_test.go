package clustered

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
)

// electing is a log that has no leader when it is asked the first times.
type electing struct {
	replog.Membership
	left int
}

func (e *electing) Replicas(context.Context) (all, caughtUp []string, err error) {
	if e.left--; e.left >= 0 {
		return nil, nil, replog.ErrUnavailable
	}
	return []string{"a", "b"}, []string{"a"}, nil
}

// TestReplicasAfterLeader: a change of the nodes waits for a leader of the log, as the node that
// the change has ended may have been it.
func TestReplicasAfterLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &changing{membership: &electing{left: 3}}
		if all, err := g.replicas(t.Context()); err != nil || !slices.Equal(all, []string{"a", "b"}) {
			t.Errorf("the log is kept by %q, %v", all, err)
		}
		g.membership = &electing{left: 1 << 30}
		if _, err := g.replicas(t.Context()); !errors.Is(err, replog.ErrUnavailable) {
			t.Errorf("without a leader: %v", err)
		}
	})
}

// stuck is a log whose list of nodes is asked for and not told, until it is cut.
type stuck struct {
	replog.Log
	replog.Membership
	asked chan struct{}
	cut   chan error
}

func (s *stuck) Nodes(ctx context.Context) (string, error) {
	s.asked <- struct{}{}
	select {
	case err := <-s.cut:
		return "", err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// changes has a node own the state, whose change of nodes gets stuck.
func changes(t *testing.T) (*owning, *stuck) {
	o := startOwning(t)
	dir, now := t.TempDir(), clock.System.Now
	if err := ca.Init(dir, "a", now()); err != nil {
		t.Fatal(err)
	}
	id, err := ca.Load(dir, "a", []string{"a"}, now)
	if err != nil {
		t.Fatal(err)
	}
	s := &stuck{Log: o.log, asked: make(chan struct{}), cut: make(chan error)}
	o.part.net, o.part.record = peer.Secured(id), s
	o.part.members.known.Store(&roster.List{})
	o.take()
	return o, s
}

// asks has the node change its nodes, as a peer does.
func (o *owning) asks(ctx context.Context, change string) *httptest.ResponseRecorder {
	out := httptest.NewRecorder()
	o.part.front.ofPeer(out, httptest.NewRequestWithContext(ctx, http.MethodPost, nodeapi.NodesPath, strings.NewReader(change)))
	return out
}

// TestChangeUnderWay: who asks for a change while another one is under way is told of that, and
// that it ends; the change ends with the command that has asked for it.
func TestChangeUnderWay(t *testing.T) {
	o, s := changes(t)
	ctx, cancel := context.WithCancel(t.Context())
	var first sync.WaitGroup
	before := clock.System.Now().Truncate(time.Second)
	first.Go(func() { o.asks(ctx, `{"add":"d=host-d:4570"}`) })
	<-s.asked
	out := o.asks(t.Context(), `{"remove":"b"}`)
	text := strings.TrimSpace(out.Body.String())
	what, at, _ := strings.Cut(text, ", since ")
	since, err := time.Parse(time.RFC3339, at)
	if out.Code != http.StatusConflict || out.Header().Get("Retry-After") == "" || !strings.HasSuffix(what, "node d is being added") || err != nil || since.Before(before) {
		t.Errorf("status %d: %s: %v", out.Code, text, err)
	}
	cancel()
	first.Wait()
	var next sync.WaitGroup
	next.Go(func() { out = o.asks(t.Context(), `{"remove":"b"}`) })
	<-s.asked
	s.cut <- errors.New("the log does not answer")
	next.Wait()
	if got := out.Body.String(); out.Code != http.StatusOK || got != "error: the log does not answer\n" {
		t.Errorf("status %d: %s", out.Code, got)
	}
}

// TestChangeOfFormerOwner: what fails at a node that does not own the state any more has not
// failed: whoever asked is left to ask the next owner.
func TestChangeOfFormerOwner(t *testing.T) {
	o, s := changes(t)
	var out *httptest.ResponseRecorder
	var asking sync.WaitGroup
	asking.Go(func() { out = o.asks(t.Context(), `{"remove":"b"}`) })
	<-s.asked
	o.leave()
	s.cut <- errors.New("this node has ended")
	asking.Wait()
	if got := out.Body.String(); out.Code != http.StatusOK || got != "" {
		t.Errorf("status %d: %s", out.Code, got)
	}
	if out := o.asks(t.Context(), `{"remove":"b"}`); out.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d: %s", out.Code, out.Body)
	}
}

// Of two nodes the owner is told that none is removed, and not to hand over first, after which it would
// be told.
func TestOwnerOfTwoIsNotRemoved(t *testing.T) {
	of := func(names ...string) *changing {
		g := &changing{part: &part{node: Node{Name: "a"}}, m: &roster.List{}}
		for _, name := range names {
			g.m.Nodes = append(g.m.Nodes, roster.Member{Name: name, Route: name + ":4570"})
		}
		return g
	}
	for want, g := range map[string]*changing{"of 2 nodes none is removed": of("a", "b"), "node a owns the state": of("a", "b", "c")} {
		if err := g.mayRemove(t.Context(), "a", false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A change that cannot be is refused before anything is done: nobody's name is used up by a slip, and a change
// that is under way is finished first.
func TestImpossibleChanges(t *testing.T) {
	list := func(change func(*roster.List)) *changing {
		g := &changing{part: &part{node: Node{Name: "a"}}, m: &roster.List{Removed: []string{"z"}}}
		for _, name := range []string{"a", "b", "c", "d"} {
			g.m.Nodes = append(g.m.Nodes, roster.Member{Name: name, Route: name + ":4570"})
		}
		change(g.m)
		return g
	}
	none := func(*roster.List) {}
	joining, leaving := func(m *roster.List) { m.Joining = "d" }, func(m *roster.List) { m.Leaving = "d" }
	full := func(m *roster.List) { m.Nodes = append(m.Nodes, roster.Member{Name: "e", Route: "e:4570"}) }
	for _, c := range []struct {
		change func(*roster.List)
		name   string
		route  string // of a node to add; empty: it is removed
		want   string
	}{
		{none, "x", "", "there is no node x"},
		{none, "z", "", "node z was removed before"},
		{none, "a", "", "node a owns the state"},
		{joining, "b", "", "node d is being added"},
		{leaving, "b", "", "node d is being removed"},
		{none, "z", "z:4570", "a node z was removed before"},
		{none, "b", "x:4570", "there is a node b already"},
		{none, "x", "b:4570", "there is a node at b:4570 already"},
		{joining, "x", "x:4570", "node d is being added"},
		{leaving, "x", "x:4570", "node d is being removed"},
		{full, "x", "x:4570", "a cluster has up to 5 nodes"},
	} {
		g := list(c.change)
		err := error(nil)
		if c.route == "" {
			err = g.remove(t.Context(), c.name)
		} else {
			err = g.add(t.Context(), c.name+"="+c.route)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.name, c.route, err, c.want)
		}
	}
}

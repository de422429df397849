package clustered

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
	"godwit.dev/godwit/internal/store"
)

// telling is a peer that tells of itself what the test says.
type telling struct {
	peer  roster.Peer
	says  atomic.Pointer[[]status.Node] // nil: it does not answer
	asked atomic.Int64
}

func newTelling(t *testing.T, name string) *telling {
	t.Helper()
	p := new(telling)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer p.asked.Add(1)
		nodes := p.says.Load()
		if nodes == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(status.Cluster{Nodes: *nodes, Cells: []status.Cell{{}}})
	}))
	t.Cleanup(s.Close)
	p.peer = roster.Peer{Name: name, Address: s.Listener.Addr().String()}
	return p
}

func (p *telling) tell(nodes ...status.Node) { p.says.Store(&nodes) }

// beginning is a node a that has not begun, beside others.
func beginning(data string, others ...*telling) *part {
	p := &part{
		cfg: config.Config{Data: data}, node: Node{Name: "a", Peers: []roster.Peer{{Name: "a"}}}, net: peer.Loopback("secret"),
		log: slog.New(slog.DiscardHandler), left: make(chan struct{}, 1),
	}
	for _, o := range others {
		p.node.Peers = append(p.node.Peers, o.peer)
	}
	p.members.known.Store(&roster.List{})
	return p
}

// An empty part of the log waits for the others, and so it does where the node was started again before
// the part had caught up: its files are there, and what they lack only one other node may have.
func TestEmptyLogWaits(t *testing.T) {
	b, c, data := newTelling(t, "b"), newTelling(t, "c"), t.TempDir()
	b.tell(status.Node{Name: "b", State: status.Serving, Number: 5})
	whole := status.Node{Name: "c", State: status.Following, Number: 5}
	marker := filepath.Join(data, freshFile)
	for _, start := range []string{"the first start", "another start"} {
		c.says.Store(nil)
		p, placed := beginning(data, b, c), make(chan error, 1)
		before := c.asked.Load()
		go func() { placed <- p.awaitPlace(t.Context()) }()
		o := &owning{t: t}
		o.soon("the other node is asked again", func() bool { return c.asked.Load() > before+4 })
		if len(placed) > 0 {
			t.Fatalf("%s: it begins without the other: %v", start, <-placed)
		}
		if _, err := os.Stat(marker); err != nil || !p.fresh.Load() {
			t.Errorf("%s: it is not noted that the log is empty: %v", start, err)
		}
		c.tell(whole)
		if err := <-placed; err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(data, logDir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c.says.Store(nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := beginning(data, b, c).awaitPlace(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a node that ends begins: %v", err)
	}
	// One that has never counted has acknowledged nothing, and one whose part had caught up has it all.
	joins := beginning(t.TempDir(), b, c)
	joins.members.joins = true
	if err := joins.awaitPlace(t.Context()); err != nil || !joins.fresh.Load() {
		t.Errorf("a node that joins: fresh %v, %v", joins.fresh.Load(), err)
	}
	if err := os.Remove(marker); err != nil {
		t.Fatal(err)
	}
	if p := beginning(data, b, c); p.awaitPlace(t.Context()) != nil || p.fresh.Load() {
		t.Error("a part of the log that had caught up is taken to be empty")
	}
}

// catching is a log whose part here catches up once told.
type catching struct {
	replog.Log
	has bool
	err error
}

func (c *catching) CaughtUp(context.Context) (bool, error) { return c.has, c.err }

// A part of the log is noted to be whole once it has caught up, and not where nobody can tell.
func TestNoteWhole(t *testing.T) {
	data := t.TempDir()
	marker := filepath.Join(data, freshFile)
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		log   *catching
		fresh bool
	}{
		{"nobody can tell", &catching{has: true, err: replog.ErrUnavailable}, true},
		{"it lacks some", &catching{}, true},
		{"it has all", &catching{has: true}, false},
		{"it has all, which was noted", &catching{has: true}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := beginning(data)
			p.record = c.log
			p.fresh.Store(true)
			ctx, cancel := context.WithTimeout(t.Context(), 10*freshTime)
			defer cancel()
			p.noteWhole(ctx)
			if _, err := os.Stat(marker); p.fresh.Load() != c.fresh || errors.Is(err, fs.ErrNotExist) == c.fresh {
				t.Errorf("%s: fresh %v, its file: %v", c.name, p.fresh.Load(), err)
			}
		})
	}
}

// A cluster begins only once all nodes are there, none of which has any state: one that has would be
// replaced by nothing.
func TestMayBootstrap(t *testing.T) {
	b, c := newTelling(t, "b"), newTelling(t, "c")
	p := beginning(t.TempDir(), b, c)
	empty := func(name string) status.Node { return status.Node{Name: name, Process: name + "/i"} }
	b.tell(empty("b"))
	for _, of := range []struct {
		name string
		says []status.Node
		may  bool
	}{
		{"empty", []status.Node{empty("c")}, true},
		{"with a state", []status.Node{{Name: "c", Process: "c/i", Number: 1}}, false},
		{"without a store yet", []status.Node{{Name: "c"}}, false},
		{"of another version", nil, false},
		{"that asks others", []status.Node{empty("c"), empty("b")}, false},
	} {
		c.tell(of.says...)
		if may := p.mayBootstrap(t.Context()); may != of.may {
			t.Errorf("beside a node %s: %v", of.name, may)
		}
	}
	c.says.Store(nil)
	if p.mayBootstrap(t.Context()) {
		t.Error("beside a node that does not answer it begins")
	}
	c.tell(empty("c"))
	b.tell(status.Node{Name: "b", Process: "b/i", Number: 7})
	if p.mayBootstrap(t.Context()) {
		t.Error("it begins beside a node with a state, which is not the last")
	}
}

// A store that was found damaged is not opened again.
func TestDamagedStoreStaysClosed(t *testing.T) {
	p := beginning(t.TempDir())
	st, guard, err := p.openStore()
	if err != nil {
		t.Fatal(err)
	}
	p.closeStore(t.Context(), st, guard)
	if st, guard, err = p.openStore(); err != nil { // it was closed
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	guard.Close()
	if err := snapshot.MarkDamaged(p.cfg.Data, errors.New("a block")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.openStore(); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a damaged store is opened: %v", err)
	}
}

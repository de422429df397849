package clustered

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
)

// A newer list of nodes is kept on the disk, and gone by: requests are forwarded to its nodes, and only
// they are answered. An older one changes nothing, and one that the disk does not take neither.
func TestAdopt(t *testing.T) {
	now, dir := clock.System.Now, t.TempDir()
	if err := ca.Init(dir, "a", now()); err != nil {
		t.Fatal(err)
	}
	id, err := ca.Load(dir, "a", []string{"a", "b", "c"}, now)
	if err != nil {
		t.Fatal(err)
	}
	p := &part{
		cfg: config.Config{Data: t.TempDir()}, net: peer.Secured(id), log: slog.New(slog.DiscardHandler),
		node: Node{Name: "a", Peers: []roster.Peer{{Name: "a"}, {Name: "b", Address: "b:4571"}, {Name: "c", Address: "c:4571"}}},
	}
	p.members.known.Store(&roster.List{})
	p.front = newFront(p)
	list := func(version uint64, names ...string) *roster.List {
		l := &roster.List{Version: version}
		for _, name := range names {
			l.Nodes = append(l.Nodes, roster.Member{Name: name, Route: name + ":4570"})
		}
		return l
	}
	certificates := map[string]string{}
	for _, name := range []string{"b", "c", "d"} {
		certificates[name] = t.TempDir()
		if err := ca.Take(dir, certificates[name], name, now()); err != nil {
			t.Fatal(err)
		}
	}
	l, err := p.net.Listen(t.Context(), "127.0.0.1:0", func(l net.Listener) net.Listener { return l })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(serve(forPeers(p.net.Only(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))), l))
	answers := func(name string) bool {
		t.Helper()
		other, err := ca.Load(certificates[name], name, []string{"a", name}, now)
		if err != nil {
			t.Fatal(err)
		}
		n := peer.Secured(other)
		defer n.Close()
		answer, err := n.Client().Get(n.URL(l.Addr().String()))
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}
	check := func(what string, version uint64, names ...string) {
		t.Helper()
		if got := p.members.known.Load(); got.Version != version {
			t.Errorf("%s: version %d, want %d", what, got.Version, version)
		}
		kept, err := roster.Load(p.cfg.Data)
		if err != nil || version > 0 && (kept == nil || kept.Version != version) {
			t.Errorf("%s: the disk has %+v: %v", what, kept, err)
		}
		for _, name := range []string{"b", "c", "d"} {
			in := slices.Contains(names, name)
			if got := (*p.front.proxies.Load())[name] != nil; got != in {
				t.Errorf("%s: requests are forwarded to %s: %v", what, name, got)
			}
			if got := answers(name); got != in {
				t.Errorf("%s: %s is answered: %v", what, name, got)
			}
		}
	}
	check("at first", 0, "b", "c")
	for _, m := range []*roster.List{list(2, "a", "b", "d"), list(1, "a", "b", "c"), list(2, "a", "c")} {
		if err := p.adopt(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		check("adopted", 2, "b", "d")
	}
	data := p.cfg.Data
	p.cfg.Data += "/none"
	if err := p.adopt(t.Context(), list(3, "a", "c")); err == nil {
		t.Error("the disk does not take it, and nobody hears of that")
	}
	if err := p.adopt(t.Context(), &roster.List{Version: 3, Nodes: []roster.Member{{Name: "c", Route: "none"}}}); err == nil {
		t.Error("an address that is none is taken")
	}
	p.cfg.Data = data
	check("refused", 2, "b", "d")
	// A node that is removed ends, and does not start again.
	ended := false
	p.members.end = func() { ended = true }
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		p.handleRemoval(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, "/", nil))
		_, err := roster.Load(data)
		if removed := method == http.MethodPost; ended != removed || errors.Is(err, roster.ErrRemoved) != removed {
			t.Errorf("%s: ended %v, %v", method, ended, err)
		}
	}
}

// A node that has lost its disk learns of the latest list that others have, also where one has none, or does
// not answer.
func TestLearn(t *testing.T) {
	p := beginning(t.TempDir())
	const silent = 99
	for _, version := range []uint64{0, 2, 4, 3, silent} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != nodeapi.NodesPath || version == silent {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_ = json.NewEncoder(w).Encode(roster.List{Version: version})
		}))
		defer s.Close()
		p.node.Peers = append(p.node.Peers, roster.Peer{Name: strconv.FormatUint(version, 10), Address: s.Listener.Addr().String()})
	}
	all := p.node.Peers
	for count, want := range map[int]uint64{1: 0, 2: 0, 3: 2, 4: 4, 5: 4, 6: 4} { // of the nodes, with this one
		p.node.Peers = all[:count]
		got := uint64(0)
		if m := p.learn(t.Context()); m != nil {
			got = m.Version
		}
		if got != want {
			t.Errorf("of %d nodes it learns version %d, want %d", count, got, want)
		}
	}
}

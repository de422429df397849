package clustered

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// slowNode answers the status of a cluster in which node b misses the first questions, and keeps
// what it is asked to change.
type slowNode struct {
	list   roster.List
	missed atomic.Int64
	// follows is how many requests to change the nodes find that another one owns the state
	follows atomic.Int64
	asked   []string
}

func (n *slowNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost && n.follows.Add(-1) >= 0:
		http.Error(w, "this node does not own the state", http.StatusServiceUnavailable)
	case r.Method == http.MethodPost:
		text, _ := io.ReadAll(r.Body)
		n.asked = append(n.asked, string(text))
		fmt.Fprintln(w, "done")
	case r.URL.Path == nodesPath:
		_ = json.NewEncoder(w).Encode(&n.list)
	default:
		missed := n.missed.Add(-1) >= 0
		if missed && r.URL.Query().Has("local") {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		b := status.Node{Name: "b", State: status.Following}
		if missed {
			b.State = status.Unreachable
		}
		_ = json.NewEncoder(w).Encode(status.Cluster{Nodes: []status.Node{{Name: "a", State: status.Serving}, b}, Cells: []status.Cell{{Owner: "a"}}})
	}
}

// start has the node answer as node a.
func (n *slowNode) start(t *testing.T) *Asking {
	t.Helper()
	s := httptest.NewServer(n)
	t.Cleanup(s.Close)
	host, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	at, _ := strconv.Atoi(port)
	n.list.Nodes = []roster.Member{{Name: "a", Route: net.JoinHostPort(host, strconv.Itoa(at-1))}, {Name: "b", Route: "127.0.0.1:1"}, {Name: "c", Route: "127.0.0.1:3"}}
	peers, err := n.list.Peers()
	if err != nil {
		t.Fatal(err)
	}
	return &Asking{Peers: peers[:1], network: peer.Loopback("x")}
}

// TestSlowNodeIsNotGone: a node that misses a question is asked again before it is taken to be
// gone, which would leave it running, or remove it before another one is there.
func TestSlowNodeIsNotGone(t *testing.T) {
	n := &slowNode{}
	asking := n.start(t)
	g := &changing{part: &part{net: asking.network}}
	n.missed.Store(2)
	if g.silent(t.Context(), asking.Peers[0]) {
		t.Error("a node that missed two questions is taken to be gone")
	}
	n.missed.Store(2)
	if err := asking.ReplaceNode(t.Context(), "b", "d=127.0.0.1:9", func(string) {}); err != nil {
		t.Fatal(err)
	}
	if len(n.asked) != 2 || !strings.Contains(n.asked[0], `"add"`) || !strings.Contains(n.asked[1], `"remove"`) {
		t.Errorf("a slow node is replaced by %q", n.asked)
	}
}

// TestReplaceGoesOn: a replacement that was broken off while the new node was being added adds
// it first, also if the old one has gone meanwhile: a removal is refused until then.
func TestReplaceGoesOn(t *testing.T) {
	n := &slowNode{list: roster.List{Joining: "d"}}
	asking := n.start(t)
	n.list.Nodes = append(n.list.Nodes, roster.Member{Name: "d", Route: "127.0.0.1:9"})
	n.missed.Store(1 << 30)
	if err := asking.ReplaceNode(t.Context(), "b", "d=127.0.0.1:9", func(string) {}); err != nil {
		t.Fatal(err)
	}
	if len(n.asked) != 2 || !strings.Contains(n.asked[0], `"add"`) {
		t.Errorf("it goes on with %q", n.asked)
	}
}

// TestOwnerChangesMeanwhile: a change goes to the next owner where the one that was found does not
// own the state any more.
func TestOwnerChangesMeanwhile(t *testing.T) {
	n := &slowNode{}
	asking := n.start(t)
	n.follows.Store(2)
	if err := asking.RemoveNode(t.Context(), "b", func(string) {}); err != nil || len(n.asked) != 1 {
		t.Errorf("asked %q: %v", n.asked, err)
	}
}

// TestReplaceOwner: an owner is asked again to hand over while no other node follows closely
// enough, and one that has handed over is not, if its answer is lost.
func TestReplaceOwner(t *testing.T) {
	for name, lost := range map[string]bool{"the first requests are refused": false, "the answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			var handedOver atomic.Bool
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					handedOver.Store(asked.Add(1) == 3 || lost)
					if lost || !handedOver.Load() {
						http.Error(w, errNoSuccessor.Error(), http.StatusServiceUnavailable)
						return
					}
					_ = json.NewEncoder(w).Encode(HandedOver{From: "a", To: "b"})
					return
				}
				a, b := status.Serving, status.Following
				if handedOver.Load() {
					a, b = b, a
				}
				_ = json.NewEncoder(w).Encode(status.Cluster{Nodes: []status.Node{{Name: "a", State: a}, {Name: "b", State: b}}})
			}))
			defer s.Close()
			next, err := (&Asking{URL: s.URL}).replaceOwner(t.Context(), "a")
			want := int64(3)
			if lost {
				want = 1
			}
			if next != "b" || err != nil || asked.Load() != want {
				t.Errorf("after %d requests %q owns the state, %v", asked.Load(), next, err)
			}
		})
	}
}

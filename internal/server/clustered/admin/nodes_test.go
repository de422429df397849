package admin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// unreachableAtFirst has a node seem to be away in some of the first answers.
func (b *bed) unreachableAtFirst(name string, times int) func() status.Cluster {
	return func() status.Cluster {
		s := b.stands()
		b.mu.Lock()
		defer b.mu.Unlock()
		if times--; times >= 0 {
			for i := range s.Nodes {
				if s.Nodes[i].Name == name {
					s.Nodes[i].State = status.Unreachable
				}
			}
		}
		return s
	}
}

// TestSlowNodeIsReplaced: a node that misses a question is asked again before it is taken to be
// gone, which would remove it before another one is there.
func TestSlowNodeIsReplaced(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		a := b.add("a")
		a.stand = b.unreachableAtFirst("b", 2)
		wants(t, b.client.ReplaceNode(t.Context(), "b", "d=host-d:4570", b.line))
		if got := a.did(); got != "add remove" {
			t.Errorf("a slow node is replaced by %s", got)
		}
	})
}

// TestGoneNodeIsReplaced: a node that does not answer is removed before another one is added.
func TestGoneNodeIsReplaced(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		a := b.add("a")
		b.is("b", status.Unreachable)
		wants(t, b.client.ReplaceNode(t.Context(), "b", "d=host-d:4570", b.line))
		if got := a.did(); got != "remove add" {
			t.Errorf("a node that is gone is replaced by %s", got)
		}
	})
}

// TestReplaceGoesOn: a replacement that was broken off while the new node was being added adds
// it first, also if the old one has gone meanwhile: a removal is refused until then.
func TestReplaceGoesOn(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		a := b.add("a")
		b.changes(func(l *roster.List) {
			l.Nodes, l.Joining = append(l.Nodes, roster.Member{Name: "d", Route: "host-d:4570"}), "d"
		})
		b.is("b", status.Unreachable)
		wants(t, b.client.ReplaceNode(t.Context(), "b", "d=host-d:4570", b.line))
		if got := a.did(); got != "add remove" {
			t.Errorf("it goes on with %s", got)
		}
	})
}

// TestReplaceByKnownNode: a replacement by the node itself, or by another one that is there, is
// refused, as it would only remove the old one; one that was broken off after the addition goes on.
func TestReplaceByKnownNode(t *testing.T) {
	for _, c := range []struct{ name, by, want string }{
		{"itself", "b=host-b:4570", "under another one"},
		{"itself at another address", "b=host-x:4570", "under another one"},
		{"another one", "c=host-c:4570", "node c is one of the 3 nodes already"},
		{"another one, elsewhere", "c=host-x:4570", "there is a node c already, at another address"},
		{"a new one at another's address", "d=host-c:4570", "there is a node at host-c:4570 already: c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			within(t, func(t *testing.T, b *bed) {
				a := b.add("a")
				if err := b.client.ReplaceNode(t.Context(), "b", c.by, b.line); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("it is not refused: %v", err)
				}
				if got := a.did(); got != "" {
					t.Errorf("the nodes were asked to %s", got)
				}
			})
		})
	}
	for name, begun := range map[string]func(*roster.List){
		"the removal was begun": func(l *roster.List) { l.Leaving = "b" },
		"it was removed":        func(l *roster.List) { l.Nodes, l.Removed = slices.Delete(l.Nodes, 1, 2), append(l.Removed, "b") },
	} {
		within(t, func(t *testing.T, b *bed) {
			a := b.add("a")
			b.changes(begun)
			for _, by := range []string{"c=host-c:4570", "c=host-x:4570"} {
				if err := b.client.ReplaceNode(t.Context(), "b", by, b.line); err == nil || !strings.Contains(err.Error(), "node c") {
					t.Errorf("%s, %s: it is not refused: %v", name, by, err)
				}
			}
			if got := a.did(); got != "" {
				t.Errorf("%s: the nodes were asked to %s", name, got)
			}
		})
	}
	within(t, func(t *testing.T, b *bed) {
		a := b.add("a")
		b.changes(func(l *roster.List) { l.Nodes = append(l.Nodes, roster.Member{Name: "d", Route: "host-d:4570"}) })
		wants(t, b.client.ReplaceNode(t.Context(), "b", "d=host-d:4570", b.line))
		if got := a.did(); got != "remove" {
			t.Errorf("it goes on with %q", got)
		}
	})
}

// TestOwnerChangesMeanwhile: a change goes to the next owner where the one that was found does not
// own the state any more.
func TestOwnerChangesMeanwhile(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		a := b.add("a")
		a.change = func(n int, _ nodeapi.Change, w http.ResponseWriter, _ *http.Request) {
			if n < 2 {
				http.Error(w, "this node does not own the state", http.StatusServiceUnavailable)
				return
			}
			nodeapi.TellEnd(w, nil)
		}
		wants(t, b.client.RemoveNode(t.Context(), "b", b.line))
		if got := a.did(); got != "remove remove remove" {
			t.Errorf("it was asked to %s", got)
		}
	})
}

// TestReplaceOwner: an owner is asked again to hand over while no other node follows closely
// enough, and one that has handed over is not, if its answer is lost.
func TestReplaceOwner(t *testing.T) {
	for name, lost := range map[string]bool{"the first requests are refused": false, "the answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, b *bed) {
				a := b.add("a")
				asked := 0
				a.post = func(w http.ResponseWriter, _ *http.Request) {
					if asked++; asked < 3 && !lost {
						http.Error(w, "no other node follows", http.StatusServiceUnavailable)
						return
					}
					b.owns("b")
					if lost {
						panic(http.ErrAbortHandler)
					}
					_ = json.NewEncoder(w).Encode(nodeapi.HandedOver{From: "a", To: "b"})
				}
				next, err := b.client.replaceOwner(t.Context(), "a")
				wants(t, err)
				want := 3
				if lost {
					want = 1
				}
				if next != "b" || asked != want {
					t.Errorf("after %d requests %q owns the state", asked, next)
				}
			})
		})
	}
}

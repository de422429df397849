package roster

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKept: what a node keeps of the list is what it reads at its next start, and a node that was
// removed does not start again.
func TestKept(t *testing.T) {
	data := t.TempDir()
	if l, err := Load(data); l != nil || err != nil {
		t.Fatalf("an empty directory has %v, %v", l, err)
	}
	kept := &List{
		Version: 3, Nodes: []Member{{"a", "a:4570"}, {"b", "b:4570"}, {"c", "c:4570"}}, Joining: "c", Leaving: "b", Removed: []string{"d"},
		Roots: "roots", Vouchers: "vouchers",
	}
	if err := kept.Keep(data); err != nil {
		t.Fatal(err)
	}
	l, err := Load(data)
	if d := cmp.Diff(kept, l); d != "" || err != nil {
		t.Errorf("%v (-kept +read):\n%s", err, d)
	}
	if err := MarkRemoved(data); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(data); !errors.Is(err, ErrRemoved) {
		t.Errorf("a removed node: %v", err)
	}
}

// TestCounted: a node that leaves does not count, and the next version does not change the one
// before.
func TestCounted(t *testing.T) {
	l := &List{Version: 3, Nodes: []Member{{"a", "a:4570"}, {"b", "b:4571"}}, Leaving: "b", Removed: []string{"d"}}
	peers, err := l.Peers()
	want := []Peer{{Name: "a", Route: "a:4570", Address: "a:4571"}}
	if d := cmp.Diff(want, peers); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if d := cmp.Diff([][]string{{"a"}, {"a:4570"}}, [][]string{l.Names(), l.Routes()}); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if !l.Has("b") || l.Has("d") || !l.HasRemoved("d") {
		t.Errorf("the list has b: %t, d: %t; removed d: %t", l.Has("b"), l.Has("d"), l.HasRemoved("d"))
	}
	next := l.Next()
	next.Nodes[0].Name, next.Removed[0] = "x", "x"
	if l.Nodes[0].Name != "a" || l.Removed[0] != "d" || next.Version != 4 {
		t.Errorf("the next version, %d, changed the one before: %v", next.Version, l)
	}
}

// TestParsePeers: the form of a node.
func TestParsePeers(t *testing.T) {
	for text, want := range map[string]Peer{
		"a=host:4570":  {Name: "a", Route: "host:4570", Address: "host:4571"},
		"host:4570":    {Name: "host", Route: "host:4570", Address: "host:4571"},
		"a=[::1]:4570": {Name: "a", Route: "[::1]:4570", Address: "[::1]:4571"},
	} {
		if peers, err := ParsePeers([]string{text}); err != nil || len(peers) != 1 || peers[0] != want {
			t.Errorf("%s: %v, %v", text, peers, err)
		}
	}
	for _, bad := range [][]string{{""}, {"a"}, {"a="}, {"a=host"}, {"a=:4570"}, {"a=host:0"}, {"a=host:65535"}, {"a=host:x"}, {"a=h:1", "a=i:1"}, {"a b=h:1"}} {
		if peers, err := ParsePeers(bad); err == nil {
			t.Errorf("%q are %v", bad, peers)
		}
	}
}

package admin

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// TestAskedAgain: a node that is asked while it is just started again, and a cluster that is
// electing an owner, are asked again.
func TestAskedAgain(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		a := b.add("a")
		b.set(address("a"), nil)
		b.owns("")
		go func() {
			pause(t.Context(), 5*time.Second)
			b.set(address("a"), a)
			pause(t.Context(), 5*time.Second)
			b.owns("a")
		}()
		wants(t, b.client.AddNode(t.Context(), "d=host-d:4570", b.line))
		if got := a.did(); got != "add" {
			t.Errorf("it was asked to %s", got)
		}
	})
}

// TestNobodyAnswers: how long nodes are asked again is bounded, and the last reason is told.
func TestNobodyAnswers(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		began := clock.System.Now()
		wants(t, b.client.AddNode(t.Context(), "d=host-d:4570", b.line), "no node answers", "connection refused")
		if took := clock.System.Now().Sub(began); took < knowTime || took > 2*knowTime {
			t.Errorf("it is waited for %v", took)
		}
		b.add("a")
		b.owns("")
		wants(t, b.client.AddNode(t.Context(), "d=host-d:4570", b.line), "no node owns the state")
	})
}

// TestRefusedAtOnce: where all nodes refuse a request, it is not repeated.
func TestRefusedAtOnce(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		b.set(address("a"), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "peers only", http.StatusForbidden) }))
		began := clock.System.Now()
		wants(t, b.client.AddNode(t.Context(), "d=host-d:4570", b.line), "peers only")
		_, _, err := b.client.StepDown(t.Context())
		wants(t, err, "peers only")
		wants(t, b.client.Copy(t.Context(), t.TempDir(), slog.New(slog.DiscardHandler), nil), "peers only")
		if took := clock.System.Now().Sub(began); took > 0 {
			t.Errorf("it is waited for %v", took)
		}
	})
}

// TestStepDown: the owner is waited for, and asked again until another node follows closely
// enough.
func TestStepDown(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		a := b.add("a")
		b.owns("")
		go func() {
			pause(t.Context(), 3*time.Second)
			b.owns("c")
		}()
		asked := 0
		a.post = func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked < 3 {
				http.Error(w, "no other node follows", http.StatusServiceUnavailable)
				return
			}
			b.owns("b")
			_ = json.NewEncoder(w).Encode(nodeapi.HandedOver{From: "c", To: "b"})
		}
		from, to, err := b.client.StepDown(t.Context())
		wants(t, err)
		if from != "c" || to != "b" || asked != 3 {
			t.Errorf("%s hands over to %s after %d requests", from, to, asked)
		}
	})
}

// TestStepDownOfOne: where the answer of the first node is lost, the second one is asked for the
// same owner's, and not to have the next one hand over, too.
func TestStepDownOfOne(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		peers, err := b.list.Peers()
		wants(t, err)
		b.client.peers = peers
		var mu sync.Mutex
		var asked []string
		for _, name := range []string{"a", "b", "c"} {
			b.add(name).post = func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked = append(asked, name+" for "+r.URL.Query().Get(nodeapi.OwnerParameter))
				mu.Unlock()
				if name == "a" {
					b.owns("b")
					<-r.Context().Done()
					return
				}
				http.Error(w, "node a does not own the state any more", http.StatusServiceUnavailable)
			}
		}
		from, to, err := b.client.StepDown(t.Context())
		wants(t, err)
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(asked, ", "); from != "a" || to != "b" || got != "a for a, b for a, c for a" {
			t.Errorf("%s hands over to %s; asked are %s", from, to, got)
		}
	})
}

// TestStepDownRefused: at a port for clients in production, the reason is told at once.
func TestStepDownRefused(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			http.Error(w, "by godwit cluster step-down", http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(status.Cluster{Nodes: []status.Node{{Name: "a", State: status.Serving}, {Name: "b"}}})
	}))
	defer s.Close()
	_, _, err := AtURL(s.URL, nil).StepDown(t.Context())
	wants(t, err, "by godwit cluster step-down")
	wants(t, AtURL(s.URL, nil).AddNode(t.Context(), "d=host-d:4570", func(string) {}), "--dir")
}

// TestSingleServer: a server that is no node answers for itself alone, and is not asked for what
// only a cluster can do.
func TestSingleServer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			t.Error(r.URL)
		}
		_ = json.NewEncoder(w).Encode(status.Cluster{
			Nodes: []status.Node{{Name: "local", State: status.Serving}}, Cells: []status.Cell{{Owner: "local"}},
		})
	}))
	defer s.Close()
	c, ctx, quiet := AtURL(s.URL, nil), t.Context(), func(string) {}
	_, _, err := c.StepDown(ctx)
	for name, err := range map[string]error{
		"step-down": err, "add": c.AddNode(ctx, "d=host-d:4570", quiet), "remove": c.RemoveNode(ctx, "c", quiet), "rotate-ca": c.RefuseAtURL(ctx),
		"replace": c.ReplaceNode(ctx, "c", "d=host-d:4570", quiet), "restart": c.Restart(ctx, quiet), "copy": c.Copy(ctx, t.TempDir(), nil, nil),
	} {
		t.Run(name, func(t *testing.T) { wants(t, err, s.URL+" is a single server", "godwit cluster convert") })
	}
	_, err = c.Status(ctx)
	wants(t, err)
	// Its port for clients is none for nodes.
	dir := t.TempDir()
	wants(t, ca.Init(dir, "a", clock.System.Now()))
	at := strings.TrimPrefix(s.URL, "http://")
	_, err = AsNode(dir, "a", []roster.Peer{{Name: "a", Address: at}}).membership(ctx)
	wants(t, err, "no node of a cluster")
}

// TestNoCluster: a server that is no node says so, in whichever form.
func TestNoCluster(t *testing.T) {
	for answer, want := range map[string]string{`{"error":"there is no such path"}`: "there is no such path", "nothing": "no node of a cluster"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, answer)
		}))
		_, err := AtURL(s.URL, nil).Status(t.Context())
		wants(t, err, "404 Not Found", want)
		s.Close()
	}
}

// TestCopiedNode: the owner is copied, whichever node is asked, also one that is elected later.
func TestCopiedNode(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		for _, name := range []string{"a", "b"} {
			b.add(name).stand = func() (s status.Cluster) {
				all := b.stands()
				n := all.Node(name)
				n.Needs, n.Number = 1, 1
				return status.Cluster{Nodes: []status.Node{n}}
			}
		}
		b.owns("")
		go func() {
			pause(t.Context(), 5*time.Second)
			b.owns("b")
		}()
		all, err := b.client.all(t.Context())
		wants(t, err)
		if p, err := all.serving(t.Context(), b.nodes); err != nil || p.Name != "b" {
			t.Errorf("node %s is copied: %v", p.Name, err)
		}
		b.owns("")
		_, err = all.serving(t.Context(), b.nodes)
		wants(t, err, "no node serves", "connection refused")
	})
}

package clustered

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/cluster/replog/simulated"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
	"godwit.dev/godwit/internal/store/memory"
)

// TestSlowNodeIsNotGone: a node that misses a question is asked again before it is taken to be
// gone, which would leave it running.
func TestSlowNodeIsNotGone(t *testing.T) {
	var missed atomic.Int64
	missed.Store(2)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if missed.Add(-1) >= 0 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(status.Cluster{Nodes: []status.Node{{Name: "b", State: status.Following}}})
	}))
	defer s.Close()
	g := &changing{part: &part{net: peer.Loopback("x")}}
	if g.silent(t.Context(), roster.Peer{Name: "b", Address: s.Listener.Addr().String()}) {
		t.Error("a node that missed two questions is taken to be gone")
	}
}

// A node that is cut off is ready for as long as requests wait for an owner, and then not until it hears of
// one: balancers send clients to nodes that are ready.
func TestCutOffNodeIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := simulated.New()
		run := func(name string, rank int, way *simulated.Node) *node.Node {
			n, err := node.Open(node.Options{
				Name: name, Instance: "i", Rank: rank, Log: way, Store: memory.New(), Logger: slog.New(slog.DiscardHandler),
				Own: func(context.Context, *replica.Owner) error { return nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			var running sync.WaitGroup
			running.Go(func() { _ = n.Run(ctx) })
			t.Cleanup(func() { cancel(); running.Wait() })
			return n
		}
		f, way := fronted(t, false), log.Node()
		run("b", 0, log.Node())
		f.part.replica.Store(run("a", 1, way))
		after := func(d time.Duration, want int) {
			t.Helper()
			over, _ := clock.After(clock.System, d)
			<-over
			synctest.Wait()
			out := httptest.NewRecorder()
			f.ready(out, nil)
			if s, _ := f.stateOf(); out.Code != want {
				t.Errorf("status %d, want %d: %+v", out.Code, want, s)
			}
			var answer map[string]any // as of a server without nodes
			if err := json.Unmarshal(out.Body.Bytes(), &answer); err != nil || answer["ready"] != (want == http.StatusOK) || out.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%v: %v, %v", out.Header(), answer, err)
			}
		}
		after(time.Minute, http.StatusOK)
		way.Cut(true)
		after(ownerTime/2, http.StatusOK)
		after(ownerTime, http.StatusServiceUnavailable)
		f.ahead.Store(&status.Cell{Owner: "c", Epoch: 2}) // as other nodes say, which it reaches
		after(0, http.StatusOK)
		f.ahead.Store(nil)
		way.Cut(false)
		after(time.Second, http.StatusOK)
	})
}

package clustered

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
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

package clustered

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/cluster/replog/simulated"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// untilEnd is a log that holds what is about to serve until its context ends.
type untilEnd struct {
	slog.Handler
	serving chan struct{}
}

func (h *untilEnd) Enabled(context.Context, slog.Level) bool { return true }

func (h *untilEnd) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "serving" {
		close(h.serving)
		<-ctx.Done()
	}
	return nil
}

// A node that ends just when its server has started stops it at once: it follows the log no more, and so
// learns nothing of a handover.
func TestEndsJustWhenItServes(t *testing.T) {
	log := &untilEnd{slog.DiscardHandler, make(chan struct{})}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(status.Cluster{Nodes: []status.Node{{Name: "b", State: status.Following, Process: "b/i"}}, Cells: []status.Cell{{}}})
	}))
	defer other.Close()
	o := startOwning(t) // for its settings; another log is followed
	peers := []roster.Peer{{Name: "a"}, {Name: "b", Address: other.Listener.Addr().String()}}
	p := &part{
		cfg: o.part.cfg, node: Node{Name: "a", Peers: peers}, self: o.part.self, root: seal.NewRoot(),
		net: peer.Loopback("secret"), log: slog.New(log), left: make(chan struct{}, 1), record: simulated.New().Node(),
	}
	p.cfg.Data = t.TempDir()
	p.front = newFront(p)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.follow(ctx) }()
	select {
	case <-log.serving:
	case err := <-ended:
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if in := p.inner.Load(); in != nil {
		t.Errorf("a server is left, closed: %t", in.owner.closed.Load())
	}
}

// A node ends in 28 s although what it waits for does not: who runs it kills it after 30 s.
func TestEndsThoughItHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		log := slog.New(slog.NewTextHandler(&logged, nil))
		for _, c := range []struct {
			stops, took time.Duration // after it is told to
			err         error
		}{
			{0, 0, io.EOF}, {27 * time.Second, 27 * time.Second, io.EOF}, {time.Hour, 28 * time.Second, nil},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan struct{})
			clock.System.AfterFunc(time.Hour, cancel)
			began := clock.System.Now()
			err := endsAfter(ctx, log, func() error {
				defer close(over)
				<-ctx.Done()
				_ = clock.Wait(context.Background(), clock.System, c.stops)
				return io.EOF
			})
			if took := clock.System.Now().Sub(began) - time.Hour; took != c.took || !errors.Is(err, c.err) {
				t.Errorf("it stops after %s: it ends after %s, %v", c.stops, took, err)
			}
			if late := c.err == nil; late != strings.Contains(logged.String(), "the node ends before it has stopped") {
				t.Errorf("it stops after %s: %s", c.stops, logged.String())
			}
			<-over
		}
		if err := endsAfter(t.Context(), log, func() error { return io.EOF }); !errors.Is(err, io.EOF) { // a start that fails
			t.Error(err)
		}
	})
}

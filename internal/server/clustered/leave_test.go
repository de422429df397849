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

	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// An owner that is short of disk space hands over where another node has more, and again only a while
// later; a single look that finds it short, as by nodes that share a disk, is not enough.
func TestWatchSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &part{log: slog.New(slog.DiscardHandler), left: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		type moment struct {
			says   string
			low    bool
			next   status.Node
			err    error
			within time.Duration
			left   int
		}
		var now atomic.Pointer[moment]
		now.Store(new(moment))
		var ended sync.WaitGroup
		ended.Go(func() {
			p.watchSpace(ctx, func() bool { return now.Load().low }, func(context.Context) (status.Node, error) {
				return now.Load().next, now.Load().err
			})
		})
		for _, c := range []moment{
			{"enough", false, status.Node{Name: "b"}, nil, time.Minute, 0},
			{"low at one look", true, status.Node{Name: "b"}, nil, lowPolls*spacePoll - spacePoll/2, 0},
			{"enough again", false, status.Node{Name: "b"}, nil, time.Minute, 0},
			{"no successor", true, status.Node{}, errNoSuccessor, time.Minute, 0},
			{"all low", true, status.Node{Name: "b", DiskLow: true}, nil, time.Minute, 0},
			{"another has more", true, status.Node{Name: "b"}, nil, spaceAgain + lowPolls*spacePoll, 1},
		} {
			now.Store(&c)
			pause(ctx, c.within)
			synctest.Wait()
			if len(p.left) != c.left {
				t.Errorf("%s: to hand over %d, want %d", c.says, len(p.left), c.left)
			}
		}
		cancel()
		ended.Wait()
	})
}

// A node with disk space is the next owner before one that is short of it, which is better than none.
func TestSuccessor(t *testing.T) {
	o := startOwning(t)
	o.take()
	peers := []roster.Peer{{Name: "a"}}
	var nodes [3]atomic.Pointer[status.Node]
	for i, name := range []string{"b", "c", "d"} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(status.Cluster{Nodes: []status.Node{*nodes[i].Load()}, Cells: []status.Cell{{}}})
		}))
		defer other.Close()
		peers = append(peers, roster.Peer{Name: name, Address: other.Listener.Addr().String()})
	}
	o.part.node.Peers = peers
	following := func(name string, number uint64, low, stopped bool) status.Node {
		return status.Node{Name: name, State: status.Following, Process: name + "/i", Number: number, DiskLow: low, LogStopped: stopped}
	}
	for _, c := range []struct {
		b, c, d status.Node
		want    string
	}{
		{following("b", 7, false, false), following("c", 9, false, false), following("d", 8, false, false), "c"},
		{following("b", 7, false, false), following("c", 9, true, false), following("d", 8, false, false), "d"},
		{following("b", 7, true, false), following("c", 9, true, false), following("d", 8, false, true), "c"},
		{following("b", 7, false, true), status.Node{Name: "c", State: status.CatchingUp, Process: "c/i"}, status.Node{Name: "d", State: status.Copying}, ""},
	} {
		for i, n := range []status.Node{c.b, c.c, c.d} {
			nodes[i].Store(&n)
		}
		if got, err := o.part.successor(t.Context()); got.Name != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v, %+v, %+v: the next owner is %q, %v", c.b, c.c, c.d, got.Name, err)
		}
	}
	o.leave()
}

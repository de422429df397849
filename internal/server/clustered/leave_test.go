package clustered

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
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
		{following("b", 9, true, false), following("c", 7, false, false), following("d", 8, true, false), "c"},
		{following("b", 7, false, false), following("c", 9, true, false), following("d", 6, false, false), "b"},
		{following("b", 5000-status.SuccessorLag, false, false), following("c", 9, false, false), status.Node{Name: "d", State: status.CatchingUp, Number: 5000}, "b"},
		{following("b", 4999-status.SuccessorLag, false, false), following("c", 9, false, false), status.Node{Name: "d", State: status.CatchingUp, Number: 5000}, ""},
		{status.Node{Name: "b", State: status.Following, Number: 9}, following("c", 8, false, false), status.Node{Name: "d"}, "c"},
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

// leading is a log that counts how often its lead is given up.
type leading struct {
	replog.Log
	given int
}

func (l *leading) TransferLeadership(context.Context) error { l.given++; return nil }

// Who only hands over goes on leading the log; who ends gives that up, too, before it hands over. A node
// without anything to hand over is left as it is.
func TestLeadIsGivenUp(t *testing.T) {
	o := startOwning(t)
	log := &leading{Log: o.log}
	o.part.record = log
	if err := o.part.handOver(t.Context(), true); err != nil || log.given != 0 || o.part.front.closing.Load() {
		t.Errorf("a follower hands over: %v", err)
	}
	to, _ := o.other.State()
	for _, ends := range []bool{false, true} {
		o.take()
		if err := o.part.giveTo(t.Context(), o.mine(), o.part.inner.Load(), to.Process, ends); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 1}[ends]; log.given != want {
			t.Errorf("a node that ends: %v; it gives up leading %d times, want %d", ends, log.given, want)
		}
		o.until(o.mine(), "the node follows", func(s node.State) bool { return !s.Own && !s.Leaving })
	}
}

// A request that is in progress when its owner hands over, and ends soon, is answered.
func TestHandOverWaitsForRequests(t *testing.T) {
	o := startOwning(t)
	o.part.front.quiet = time.Minute // a busy machine may take longer than the moment that there is
	o.take()
	o.ask("AmazonSQS.CreateQueue", map[string]any{"QueueName": "q"})
	finish := o.slowly("AmazonSQS.SendMessage", sendOne)
	var leaving sync.WaitGroup
	leaving.Go(o.leave)
	o.soon("it hands over", o.part.front.closing.Load)
	if code := finish().Code; code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	leaving.Wait()
}

// The owner is made to step down by a POST, once there is who takes over; another node asks the owner.
func TestStepDown(t *testing.T) {
	o := startOwning(t)
	var told atomic.Pointer[status.Node]
	told.Store(&status.Node{Name: "b", State: status.CatchingUp, Process: "b/i"})
	relayed := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == nodeapi.StepDownPath {
			if r.URL.Query().Get(nodeapi.OwnerParameter) == "c" {
				http.Error(w, "node c does not own the state any more", http.StatusServiceUnavailable)
				return
			}
			relayed <- r.Method + " " + r.URL.Query().Get(nodeapi.OwnerParameter)
			_ = json.NewEncoder(w).Encode(nodeapi.HandedOver{From: "b", To: "a"})
			return
		}
		_ = json.NewEncoder(w).Encode(status.Cluster{Nodes: []status.Node{*told.Load()}, Cells: []status.Cell{{}}})
	}))
	defer other.Close()
	o.part.node.Peers = []roster.Peer{{Name: "a"}, {Name: "b", Address: other.Listener.Addr().String()}}
	ask := func(method, query string, code int, says string, left int) {
		t.Helper()
		out := httptest.NewRecorder()
		o.part.front.asked(out, httptest.NewRequestWithContext(t.Context(), method, nodeapi.StepDownPath+query, nil))
		if out.Code != code || !strings.Contains(out.Body.String(), says) || len(o.part.left) != left {
			t.Errorf("%s %s: status %d: %s; to hand over %d, want %d", method, query, out.Code, out.Body, len(o.part.left), left)
		}
	}
	o.until(o.mine(), "it follows", func(s node.State) bool { return s.Owner == "b" })
	ask(http.MethodPost, "?owner=b", http.StatusOK, `"to":"a"`, 0)
	if got := <-relayed; got != "POST b" {
		t.Errorf("the owner is asked %q", got)
	}
	ask(http.MethodPost, "?owner=c", http.StatusServiceUnavailable, "node c does not own the state any more", 0)
	ask(http.MethodPost, "?relayed=true", http.StatusServiceUnavailable, "the owner is another one just now", 0)
	ask(http.MethodGet, "", http.StatusMethodNotAllowed, "POST only", 0)
	o.take()
	ask(http.MethodGet, "", http.StatusMethodNotAllowed, "POST only", 0)
	ask(http.MethodPost, "", http.StatusServiceUnavailable, errNoSuccessor.Error(), 0)
	told.Store(&status.Node{Name: "b", State: status.Following, Process: "b/i"})
	ask(http.MethodPost, "?owner=b", http.StatusServiceUnavailable, "does not own the state any more", 0)
	ask(http.MethodPost, "?owner=a", http.StatusOK, `"to":"b"`, 1)
	if len(relayed) > 0 {
		t.Errorf("another node is asked: %s", <-relayed)
	}
	o.leave()
}

// A node that cannot answer, or is about to stop, is not ready: balancers send clients to nodes that are.
func TestNotReady(t *testing.T) {
	o := startOwning(t)
	o.take()
	f := o.part.front
	for _, c := range []struct {
		name   string
		change func(bool)
	}{
		{"it hands over", f.closing.Store},
		{"its part of the log has stopped", o.part.logStopped.Store},
	} {
		for _, not := range []bool{true, false} {
			c.change(not)
			if f.isReady() == not {
				t.Errorf("%s: %v, and ready: %v", c.name, not, !not)
			}
		}
	}
	o.leave()
}

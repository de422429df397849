package clustered

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// besideB gives the node a peer b, which tells of the cell as the test has it, and answers all else
// that is forwarded to it.
func (o *owning) besideB() *atomic.Pointer[status.Cell] {
	o.t.Helper()
	cell := new(atomic.Pointer[status.Cell])
	cell.Store(&status.Cell{})
	at, err := o.part.net.Listen(o.t.Context(), "127.0.0.1:0", func(l net.Listener) net.Listener { return l })
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(serve(forPeers(o.part.net.Only(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == nodeapi.StatusPath {
			_ = json.NewEncoder(w).Encode(status.Cluster{Nodes: []status.Node{{Name: "b"}}, Cells: []status.Cell{*cell.Load()}})
			return
		}
		_, _ = io.WriteString(w, "of b")
	}))), at))
	o.part.node.Peers = []roster.Peer{{Name: "a"}, {Name: "b", Address: at.Addr().String()}}
	o.part.front.handOnTo(o.part.peers())
	return cell
}

// An owner whose full disk holds a write, so that it cannot read in the log that it was replaced, hears
// so from the others: it answers what waits with 503, stops what it served, and hands on to the next
// owner what comes, while the disk is full still.
func TestReplacedWhileBlocked(t *testing.T) {
	st := storetest.NewFull(memory.New())
	o := startOwningOn(t, st)
	t.Cleanup(st.Free)
	cell := o.besideB()
	look := o.part.lookAhead()
	ready := func() bool {
		out := httptest.NewRecorder()
		o.part.front.ready(out, nil)
		return out.Code == http.StatusOK
	}

	o.take()
	o.ask("AmazonSQS.CreateQueue", map[string]any{"QueueName": "q"})
	s, _ := o.mine().State()
	// A request that a peer has forwarded is given back, also by an owner that steps down.
	o.part.front.ahead.Store(&status.Cell{Owner: "b", Epoch: s.Epoch + 1})
	o.part.front.closing.Store(true)
	r, out := newRequest(t.Context(), "AmazonSQS.SendMessage", strings.NewReader(sendOne)), httptest.NewRecorder()
	r.Header.Set(forwardedHeader, "c")
	r.Header.Set(sourceHeader, r.RemoteAddr)
	o.part.front.ofPeer(out, r)
	if out.Code != http.StatusMisdirectedRequest {
		t.Errorf("what is forwarded to who knows another owner: status %d: %s", out.Code, out.Body)
	}
	o.part.front.closing.Store(false)
	o.part.front.ahead.Store(nil)

	st.Fill()
	sent := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		out := httptest.NewRecorder()
		o.part.front.ServeHTTP(out, newRequest(t.Context(), "AmazonSQS.SendMessage", strings.NewReader(sendOne)))
		sent <- out
	}()
	o.soon("the store waits", st.Waits)
	for range 3 {
		look(t.Context())
	}
	if s, _ := o.mine().State(); !s.Serving {
		t.Fatalf("nobody has replaced it: %+v", s)
	}
	o.takeOver(s.Epoch + 1)
	cell.Store(&status.Cell{Owner: "b", Epoch: s.Epoch + 1})
	in := o.part.inner.Load()
	look(t.Context())
	if err := in.owner.Failed(); !errors.Is(err, replica.ErrReplaced) {
		t.Errorf("another node owns the state, and the owner goes on: %v", err)
	}
	if out := <-sent; out.Code != http.StatusServiceUnavailable {
		t.Errorf("what waited: status %d: %s", out.Code, out.Body)
	}
	if got := o.ask("AmazonSQS.SendMessage", map[string]any{"QueueUrl": queueURL, "MessageBody": "x"}); got != "of b" {
		t.Errorf("another request: %s", got)
	}
	o.until(o.mine(), "nothing serves", func(node.State) bool { return o.mine().Owner() == nil })
	if got := o.ask("AmazonSQS.SendMessage", map[string]any{"QueueUrl": queueURL, "MessageBody": "x"}); got != "of b" {
		t.Errorf("one after the server has stopped: %s", got)
	}
	if s, _ := o.mine().State(); s.Owner != "a" || !ready() {
		t.Errorf("the disk is full still, and the next owner is known: %+v", s)
	}
	o.part.front.ahead.Store(nil)
	if ready() {
		t.Error("it is ready, and knows nobody who owns the state")
	}
	st.Free()
	o.until(o.mine(), "the node follows", func(s node.State) bool { return s.Owner == "b" })
	if !ready() {
		t.Error("it follows, and is not ready")
	}
}

// A node that is further behind, and the only one that answers just now, does not bring back an
// earlier owner.
func TestAheadStaysAhead(t *testing.T) {
	o := startOwning(t)
	cell := o.besideB()
	o.until(o.mine(), "it follows", func(s node.State) bool { return s.Epoch == 1 })
	look := o.part.lookAhead()
	look(t.Context())
	for _, c := range []struct {
		says status.Cell
		want string
	}{
		{status.Cell{Owner: "b", Epoch: 2}, "b"},
		{status.Cell{Owner: "c", Epoch: 4}, "c"},
		{status.Cell{Owner: "b", Epoch: 3}, "c"},
		{status.Cell{Owner: "a", Epoch: 5}, "a"},
	} {
		cell.Store(&c.says)
		look(t.Context())
		s, _ := o.mine().State()
		if got := o.part.front.whose(s); got != c.want {
			t.Errorf("%s is told to own it in epoch %d: it is %s, want %s", c.says.Owner, c.says.Epoch, got, c.want)
		}
	}
	// What the node has read itself since is later.
	for _, epoch := range []uint64{0, 1} {
		o.part.front.ahead.Store(&status.Cell{Owner: "c", Epoch: epoch})
		s, _ := o.mine().State()
		if got := o.part.front.whose(s); got != "b" {
			t.Errorf("in epoch %d c has owned it: now it is %q, want b", epoch, got)
		}
	}
	o.part.front.ahead.Store(&status.Cell{Owner: "a", Epoch: 5})
	// A node that owns the state, as the others say, and has not read so, relays nothing to itself.
	out := httptest.NewRecorder()
	o.part.front.stepDown(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, nodeapi.StepDownPath, http.NoBody))
	if got := out.Body.String(); out.Code != http.StatusServiceUnavailable || got != "no node owns the state now\n" {
		t.Errorf("to step down: status %d: %s", out.Code, got)
	}
	// Once nobody is ahead any more, as the log has lost what they had read, the log tells. Who does not
	// answer may be.
	cell.Store(&status.Cell{Owner: "b", Epoch: 1})
	all := o.part.node.Peers
	for _, c := range []struct {
		peers []roster.Peer
		want  string
	}{{append(slices.Clone(all), roster.Peer{Name: "c", Address: "127.0.0.1:1"}), "a"}, {all, "b"}} {
		o.part.node.Peers = c.peers
		look(t.Context())
		s, _ := o.mine().State()
		if got := o.part.front.whose(s); got != c.want {
			t.Errorf("of %d nodes none that answers is ahead: %q owns it, want %s", len(c.peers), got, c.want)
		}
	}
}

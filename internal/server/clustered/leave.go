package clustered

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// stepDownPath makes the owner hand the state over; any node accepts it.
const stepDownPath = clusterPath + "/step-down"

// operatorHeader is required where authentication is off: pages of other origins cannot send
// it.
const operatorHeader = "X-Godwit-Operator"

// Times of a handover: for requests in progress before it, and for itself.
const (
	quietTime    = 100 * time.Millisecond
	quietLook    = 2 * time.Millisecond
	leaveTime    = time.Second
	handOverTime = 5 * time.Second
	// successorLag is how many records a node may lag behind to take over at once.
	successorLag = 1000
)

var errNoSuccessor = errors.New("no other node follows closely enough to take over")

// successor is the node that is to own the state next.
func (p *part) successor(ctx context.Context) (best status.Node, err error) {
	for _, n := range p.front.status(ctx, true).Nodes {
		if n.State == status.Following && !n.LogStopped && n.Name != p.node.Name && n.Lag <= successorLag && n.Process != "" && (best.Name == "" || n.Number > best.Number) {
			best = n
		}
	}
	if best.Name == "" {
		return best, errNoSuccessor
	}
	return best, nil
}

// handOver makes another node own the state, and also lead the log if this process ends.
// Requests in progress get a moment to complete; new ones wait, and are forwarded to the next
// owner. The node's server is stopped afterwards (disown), whether it succeeds or not, except
// without a successor.
func (p *part) handOver(ctx context.Context, ends bool) error {
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	cells, in := p.cells.Load(), p.inner.Load()
	if cells == nil || in == nil {
		return nil
	}
	successor, err := p.successor(ctx)
	if err != nil {
		return err
	}
	began := clock.System.Now()
	p.front.closing.Store(true)
	defer p.front.closing.Store(false)
	in.server.Drain()
	p.front.await(ctx, quietTime)
	if ends {
		p.leaveLog(ctx)
	}
	if err := cells.HandOver(ctx, successor.Process); err != nil {
		in.owner.StepDown(err) // it has ended everything that waits
		return err
	}
	p.log.Info("the state was handed over", "to", successor.Name, "took", clock.System.Now().Sub(began))
	return nil
}

// leaveLog makes another node lead the log, so that it continues when this one ends. Losses by
// that would be the next owner's.
func (p *part) leaveLog(ctx context.Context) {
	l, ok := p.record.(replog.Elected)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	if err := l.TransferLeadership(ctx); err != nil {
		p.log.Warn("no other node leads the log yet", "reason", err)
	}
}

// await waits until no request is in progress in this process, for as long as most.
func (f *front) await(ctx context.Context, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for f.busy.Load() > 0 && pause(ctx, quietLook) {
	}
}

// stepDown makes the owner step down, this node or a peer.
func (f *front) stepDown(w http.ResponseWriter, r *http.Request) {
	p := f.part
	if r.Method != http.MethodPost {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	s, ok := f.stateOf()
	switch {
	case ok && s.Own && s.Serving:
		successor, err := p.successor(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		select {
		case p.left <- struct{}{}:
		default: // it is about to
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"from": p.node.Name, "to": successor.Name})
	case ok && s.Owner != "" && !s.Own:
		f.relay(w, r, s.Owner)
	default:
		http.Error(w, "no node owns the state now", http.StatusServiceUnavailable)
	}
}

// relay forwards a request for a peer's own answer.
func (f *front) relay(w http.ResponseWriter, r *http.Request, owner string) {
	if r.URL.Query().Has("relayed") {
		http.Error(w, "the owner is another one just now", http.StatusServiceUnavailable)
		return
	}
	p := f.part
	for _, peer := range p.peers() {
		if peer.Name != owner {
			continue
		}
		to, err := askStepDown(r.Context(), p.net.Client(), p.net.URL(peer.Address)+stepDownPath+"?relayed")
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(to)
		return
	}
	http.Error(w, "the owner is no node that is known here", http.StatusServiceUnavailable)
}

// HandedOver reports which node hands the state over to which.
type HandedOver struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func askStepDown(ctx context.Context, client *http.Client, url string) (h HandedOver, err error) {
	err = question(ctx, client, http.MethodPost, url, &h)
	return h, err
}

// question sends a request to a node, and decodes the answer into into unless that is nil.
func question(ctx context.Context, client *http.Client, method, url string, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	r.Header.Set(operatorHeader, "yes")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %w", url, answer.Status, refusal(answer.Body))
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(into)
}

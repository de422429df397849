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

// stepDownPath has the owner hand the state over, whichever node is asked.
const stepDownPath = clusterPath + "/step-down"

// operatorHeader is asked for where nobody is asked who they are: pages of other origins
// cannot send it.
const operatorHeader = "X-Godwit-Operator"

// Times of a handover: how long requests under way may take before it, and how long it may
// take itself.
const (
	quietTime    = 100 * time.Millisecond
	quietLook    = 2 * time.Millisecond
	leaveTime    = time.Second
	handOverTime = 5 * time.Second
	// successorLag is how many records another node may be behind to take over at once.
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

// handOver has another node own the state, and lead the log as well if this process ends.
// Requests under way are given a moment to be through; those that come wait, and are handed
// on to the next owner. What the node serves is stopped after it (disown), whether it
// succeeds or not, but where there is no successor.
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
	p.front.quiet(ctx)
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

// leaveLog has another node lead the log, so that it goes on when this one ends. What is
// lost by that would be the next owner's.
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

// quiet waits until no request is under way that this process answers, for a while.
func (f *front) quiet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	for f.busy.Load() > 0 && pause(ctx, quietLook) {
	}
}

// stepDown has the owner step down, this node or a peer.
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

// relay has a peer answer what it is asked itself.
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

// HandedOver says which node hands the state over to which.
type HandedOver struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func askStepDown(ctx context.Context, client *http.Client, url string) (h HandedOver, err error) {
	err = question(ctx, client, http.MethodPost, url, &h)
	return h, err
}

// question asks a node, and decodes what it answers where into is not nil.
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

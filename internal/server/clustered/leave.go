package clustered

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// Times of a handover: for requests in progress before it, and for itself.
const (
	quietTime = 100 * time.Millisecond
	quietLook = 2 * time.Millisecond
	leaveTime = time.Second
	saveTime  = time.Second
)

var errNoSuccessor = errors.New("no other node follows closely enough to take over")

// successor is the node that is to own the state next: where there is a choice, one whose disk
// has space.
func (p *part) successor(ctx context.Context) (best status.Node, err error) {
	for _, n := range p.front.status(ctx).Nodes {
		if n.State != status.Following || n.LogStopped || n.Name == p.node.Name || n.Lag > status.SuccessorLag || n.Process == "" {
			continue
		}
		if best.Name == "" || best.DiskLow && !n.DiskLow || best.DiskLow == n.DiskLow && n.Number > best.Number {
			best = n
		}
	}
	if best.Name == "" {
		return best, errNoSuccessor
	}
	return best, nil
}

// requestHandOver has the node hand over soon, if it owns the state.
func (p *part) requestHandOver() {
	select {
	case p.left <- struct{}{}:
	default: // it is about to
	}
}

// handOver makes another node own the state, and also lead the log if this process ends.
// Requests in progress get a moment to complete; new ones wait, and are forwarded to the next
// owner. The node's server is stopped afterwards (disown), whether it succeeds or not, except
// without a successor.
func (p *part) handOver(ctx context.Context, ends bool) error {
	ctx, cancel := context.WithTimeout(ctx, nodeapi.HandOverTime)
	defer cancel()
	replica, in := p.replica.Load(), p.inner.Load()
	if replica == nil || in == nil {
		return nil
	}
	successor, err := p.successor(ctx)
	if err != nil {
		return err
	}
	began := clock.System.Now()
	if err := p.giveTo(ctx, replica, in, successor.Process, ends); err != nil {
		in.owner.StepDown(err) // it has ended everything that waits
		return err
	}
	p.log.Info("the state was handed over", "to", successor.Name, "took", clock.System.Now().Sub(began))
	return nil
}

// giveTo makes a process own the state. What this one has only in memory is written before: first
// while clients are served, as it may be much, and what has come in meanwhile when none is.
func (p *part) giveTo(ctx context.Context, replica *node.Node, in *inner, process string, ends bool) error {
	p.save(ctx, in)
	p.front.closing.Store(true)
	defer p.front.closing.Store(false)
	in.server.Drain()
	p.front.await(ctx, p.front.quiet)
	p.save(ctx, in) // while the log's leader is the one that it was
	if ends {
		p.leaveLog(ctx)
	}
	return replica.HandOver(ctx, process)
}

// save writes what the node's server has only in memory, for the next owner.
func (p *part) save(ctx context.Context, in *inner) {
	ctx, cancel := context.WithTimeout(ctx, saveTime)
	defer cancel()
	if err := in.server.Save(ctx); err != nil {
		p.log.Warn("metrics of the last minute, and lines of functions' logs, may be lost", "reason", err)
	}
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

// await waits until no request is in progress in this process, for as long as timeout.
func (f *front) await(ctx context.Context, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for f.busy.Load() > 0 && pause(ctx, quietLook) {
	}
}

// ownsLow reports that the node serves what it owns, and is short of disk space.
func (p *part) ownsLow() bool {
	guard := p.full.Load()
	return guard != nil && guard.Low() && p.inner.Load() != nil
}

// watchSpace makes an owner that is short of disk space hand over to a node that is not, until ctx
// ends: it would refuse what writes, which the other takes.
func (p *part) watchSpace(ctx context.Context, ownsLow func() bool, successor func(context.Context) (status.Node, error)) {
	looks := 0 // in succession that found it so
	for pause(ctx, spacePoll) {
		if looks++; !ownsLow() {
			looks = 0
		}
		if looks < lowPolls {
			continue
		}
		if next, err := successor(ctx); err == nil && !next.DiskLow {
			p.log.Warn("disk space is low, so that another node is to own the state", "data", p.cfg.Data, "to", next.Name)
			p.requestHandOver()
		}
		if !pause(ctx, spaceAgain) {
			return
		}
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
	owner := f.whose(s)
	of := r.URL.Query().Get(nodeapi.OwnerParameter)
	switch {
	case ok && s.Own && of != "" && of != p.node.Name:
		http.Error(w, "node "+of+" does not own the state any more", http.StatusServiceUnavailable)
	case ok && s.Own && s.Serving:
		successor, err := p.successor(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		p.requestHandOver()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(nodeapi.HandedOver{From: p.node.Name, To: successor.Name})
	case ok && owner != "" && owner != p.node.Name:
		f.relay(w, r, owner)
	default:
		http.Error(w, "no node owns the state now", http.StatusServiceUnavailable)
	}
}

// relay forwards a request for a peer's own answer.
func (f *front) relay(w http.ResponseWriter, r *http.Request, owner string) {
	if r.URL.Query().Has(nodeapi.RelayedParameter) {
		http.Error(w, "the owner is another one just now", http.StatusServiceUnavailable)
		return
	}
	p := f.part
	for _, peer := range p.peers() {
		if peer.Name != owner {
			continue
		}
		to, err := p.at(peer).RelayStepDown(r.Context(), r.URL.Query().Get(nodeapi.OwnerParameter))
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

package clustered

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/jetstream"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// Bounds of the steps of a change of nodes. A repeated request continues an interrupted change.
const (
	changeLook  = 100 * time.Millisecond
	endTime     = 45 * time.Second // for a node that is removed to end
	silentTime  = 3 * time.Second  // without an answer, after which a node is taken to be gone
	catchUpTime = 10 * time.Second // for the others to catch up: under load they lag for a moment
	knowTime    = 20 * time.Second // for the others to learn of it
	stepTime    = 2 * time.Minute  // for the log's engine to carry out a request
)

// nodes serves the list of nodes, and changes of it, which the owner of the state carries out.
// The answer has a line for each part of its progress.
func (f *front) nodes(w http.ResponseWriter, r *http.Request) {
	p := f.part
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.members.known.Load())
		return
	}
	c, ok := nodeapi.ReadChange(w, r)
	if !ok {
		http.Error(w, "a change of nodes is POSTed", http.StatusBadRequest)
		return
	}
	membership, ok := p.record.(replog.Membership)
	if !ok || !p.net.Secured() {
		http.Error(w, "nodes without certificates (godwit dev --nodes) are three", http.StatusConflict)
		return
	}
	if s, ok := f.stateOf(); !ok || !s.Own || !s.Serving {
		http.Error(w, "this node does not own the state: ask the one that does", http.StatusServiceUnavailable)
		return
	}
	end, other := p.members.begin(&c)
	if other != nil {
		nodeapi.RefuseBusy(w, "the nodes are being changed already: "+other.String())
		return
	}
	defer end()
	tell := func(format string, a ...any) { nodeapi.Tell(w, fmt.Sprintf(format, a...)) }
	g := &changing{part: p, membership: membership, tell: tell}
	err := g.read(r.Context())
	switch {
	case err != nil:
	case c.Add != "":
		err = g.add(r.Context(), c.Add)
	case c.Roots != "":
		err = g.trustAll(r.Context(), c.Roots, c.Vouchers)
	default:
		err = g.remove(r.Context(), c.Remove)
	}
	if err != nil {
		p.log.Warn("nodes are not changed", "reason", err)
		if s, ok := f.stateOf(); !ok || !s.Own || p.stopping.Load() {
			return // without an end: whoever asked is to ask the next owner, where it may succeed
		}
	}
	nodeapi.TellEnd(w, err)
}

// underWay is the change of nodes that a node carries out.
type underWay struct {
	what  string
	since time.Time
}

func (u *underWay) String() string {
	return u.what + ", since " + u.since.UTC().Format(time.RFC3339)
}

// begin notes that a change begins, until end is called. other is the one that is under way, if
// there is one.
func (k *members) begin(c *nodeapi.Change) (end func(), other *underWay) {
	mine := &underWay{c.String(), clock.System.Now()}
	for !k.changing.CompareAndSwap(nil, mine) {
		if other = k.changing.Load(); other != nil {
			return nil, other
		}
	}
	return func() { k.changing.Store(nil) }, nil
}

// changing is a change of nodes in progress.
type changing struct {
	*part
	membership replog.Membership
	tell       func(format string, a ...any)
	m          *roster.List
}

func (g *changing) read(ctx context.Context) error {
	var m *roster.List
	var last error
	// After the leader of the log has ended, the next needs a moment.
	if err := g.within(ctx, knowTime, func(ctx context.Context) bool {
		m, last = roster.Read(ctx, g.membership)
		return !errors.Is(last, replog.ErrUnavailable)
	}); err != nil || last != nil {
		return errors.Join(last, err)
	}
	if m == nil {
		m = g.members.known.Load()
	}
	g.m = m
	return g.adopt(ctx, m)
}

// set stores another list of nodes in the log, and sets the number of replicas.
func (g *changing) set(ctx context.Context, m *roster.List, count int) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var last error
	err = g.within(ctx, stepTime, func(ctx context.Context) bool {
		if last = g.membership.SetNodes(ctx, string(text), count); last == nil {
			return true
		}
		now, err := roster.Read(ctx, g.membership)
		if err == nil && now != nil && now.Version > m.Version {
			last = errors.New("somebody else changes the nodes, too")
			return true
		}
		g.log.Info("the log has not taken the change of nodes yet", "version", m.Version, "reason", last)
		return false
	})
	if err = errors.Join(err, last); err != nil {
		return err
	}
	g.m = m
	return g.adopt(ctx, m)
}

// within retries f until it succeeds, within a time.
func (g *changing) within(ctx context.Context, limit time.Duration, f func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !f(ctx) {
		if !pause(ctx, changeLook) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// replicas are the nodes that keep the log. If the one that led it has just ended, another must
// be elected before anything tells.
func (g *changing) replicas(ctx context.Context) (all []string, err error) {
	failed := g.within(ctx, stepTime, func(ctx context.Context) bool {
		all, _, err = g.membership.Replicas(ctx)
		return !errors.Is(err, replog.ErrUnavailable)
	})
	return all, errors.Join(err, failed)
}

// reached are the named nodes that answer and whose part of the log runs.
func (g *changing) reached(ctx context.Context, names []string) (answer []string) {
	for _, n := range g.front.status(ctx).Nodes {
		if n.State != status.Unreachable && !n.LogStopped && slices.Contains(names, n.Name) {
			answer = append(answer, n.Name)
		}
	}
	return answer
}

// awaitLearned returns once all nodes that answer know the latest list: then none accepts
// requests of nodes outside of it.
func (g *changing) awaitLearned(ctx context.Context) error {
	var lacks string
	err := g.within(ctx, knowTime, func(ctx context.Context) bool {
		lacks = ""
		for _, peer := range g.others() {
			if _, err := g.ask(ctx, peer); err != nil {
				continue
			}
			if m, err := g.at(peer).Nodes(ctx); err != nil || m.Version < g.m.Version {
				lacks = peer.Name
			}
		}
		return lacks == ""
	})
	if err != nil {
		return fmt.Errorf("node %s does not learn who the nodes are: %w", lacks, err)
	}
	return nil
}

// add admits a node. It counts once it has caught up.
func (g *changing) add(ctx context.Context, text string) error {
	peers, err := roster.ParsePeers([]string{text})
	if err != nil {
		return err
	}
	node := roster.Member{Name: peers[0].Name, Route: peers[0].Route}
	goesOn := g.m.Joining == node.Name && slices.Contains(g.m.Nodes, node)
	if err := g.mayAdd(ctx, node, goesOn); err != nil {
		return err
	}
	if !goesOn {
		m := g.m.Next()
		m.Nodes, m.Joining = append(m.Nodes, node), node.Name
		if err := g.set(ctx, m, len(m.Nodes)-1); err != nil {
			return err
		}
	}
	if err := g.awaitLearned(ctx); err != nil {
		return err
	}
	g.tell("The nodes let %s in; it is waited for.", node.Name)
	err = g.within(ctx, stepTime, func(ctx context.Context) bool {
		s, err := g.ask(ctx, peers[0])
		return err == nil && len(s.Nodes) == 1 && g.membership.SetNodes(ctx, g.text(), len(g.m.Nodes)) == nil
	})
	if err != nil {
		return fmt.Errorf("node %s does not come (is it started there with --cluster-join? The log of it tells what it lacks): ask again once it does, or remove it: %w", node.Name, err)
	}
	g.tell("The log and the state are copied to %s.", node.Name)
	for reported := ""; ; {
		s, err := g.ask(ctx, peers[0])
		_, caughtUp, err2 := g.membership.Replicas(ctx)
		if err == nil && err2 == nil && len(s.Nodes) == 1 {
			n := s.Nodes[0]
			if n.State == status.Following && !n.Fresh && slices.Contains(caughtUp, node.Name) {
				break
			}
			if now := progress(n); now != reported {
				g.tell("Node %s: %s", node.Name, now)
				reported = now
			}
		}
		if !pause(ctx, changeLook) {
			return context.Cause(ctx)
		}
	}
	m := g.m.Next()
	m.Joining = ""
	if err := g.set(ctx, m, len(m.Nodes)); err != nil {
		return err
	}
	g.tell("Node %s is one of %d nodes.", node.Name, len(m.Nodes))
	return g.awaitLearned(ctx)
}

func (g *changing) text() string {
	text, _ := json.Marshal(g.m) // it was encoded before
	return string(text)
}

// progress is how far a node has come.
func progress(n status.Node) string {
	if n.ToCopy > 0 {
		return fmt.Sprintf("%s, %d of %d MiB", n.State, n.Copied>>20, n.ToCopy>>20)
	}
	return n.State
}

// mayAdd refuses an addition that would leave the cluster without a working majority.
func (g *changing) mayAdd(ctx context.Context, node roster.Member, goesOn bool) error {
	switch {
	case slices.Contains(g.m.Removed, node.Name):
		return fmt.Errorf("a node %s was removed before: let the machine in under another name", node.Name)
	case goesOn:
		return nil
	case g.m.Joining != "" || g.m.Leaving != "":
		return g.unfinished()
	case g.m.Has(node.Name):
		return fmt.Errorf("there is a node %s already", node.Name)
	case slices.Contains(g.m.Routes(), node.Route):
		return fmt.Errorf("there is a node at %s already", node.Route)
	case len(g.m.Nodes) >= jetstream.MaxNodes:
		return fmt.Errorf("a cluster has up to %d nodes", jetstream.MaxNodes)
	}
	var n int
	all := len(g.m.Nodes)
	if err := g.within(ctx, catchUpTime, func(ctx context.Context) bool {
		n = len(g.reached(ctx, g.m.Names()))
		return n+1 > (all+1)/2
	}); err != nil {
		return fmt.Errorf("%d of %d nodes are reached and keep the log, and with one more these were no majority: start the others, or remove one that does not come back first", n, all)
	}
	return ca.CheckName(node.Name)
}

func (g *changing) unfinished() error {
	if g.m.Joining != "" {
		return fmt.Errorf("node %s is being added: have that finished, or remove it", g.m.Joining)
	}
	return fmt.Errorf("node %s is being removed: have that finished", g.m.Leaving)
}

// remove removes a node permanently: a running one ends first.
func (g *changing) remove(ctx context.Context, name string) error {
	goesOn := g.m.Leaving == name
	if err := g.mayRemove(ctx, name, goesOn); err != nil {
		return err
	}
	if !goesOn {
		if err := g.endNode(ctx, name); err != nil {
			return err
		}
		m := g.m.Next()
		m.Leaving = name
		if m.Joining == name {
			m.Joining = ""
		}
		all, err := g.replicas(ctx)
		if err == nil {
			err = g.set(ctx, m, len(all))
		}
		if err != nil {
			return err
		}
	}
	if err := g.awaitLearned(ctx); err != nil {
		return err
	}
	g.tell("The nodes do not speak with %s any more.", name)
	var last error
	err := g.within(ctx, stepTime, func(ctx context.Context) bool {
		last = g.engine.Forget(ctx, name)
		return last == nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	g.tell("The log does not count %s any more.", name)
	m := g.m.Next()
	m.Leaving, m.Removed = "", append(m.Removed, name)
	m.Nodes = slices.DeleteFunc(m.Nodes, func(n roster.Member) bool { return n.Name == name })
	if err := g.set(ctx, m, len(m.Nodes)); err != nil {
		return err
	}
	err = g.within(ctx, stepTime, func(ctx context.Context) bool {
		all, _, err := g.membership.Replicas(ctx)
		return err == nil && len(all) == len(m.Nodes) && !slices.Contains(all, name)
	})
	if err != nil {
		return fmt.Errorf("node %s is removed, and the log is not at all others yet: %w", name, err)
	}
	g.tell("Node %s is removed; %d nodes are left.", name, len(m.Nodes))
	return g.awaitLearned(ctx)
}

// mayRemove refuses a removal that would leave the cluster without a working majority.
func (g *changing) mayRemove(ctx context.Context, name string, goesOn bool) error {
	switch {
	case slices.Contains(g.m.Removed, name):
		return fmt.Errorf("node %s was removed before", name)
	case !g.m.Has(name):
		return fmt.Errorf("there is no node %s: the nodes are %s", name, strings.Join(g.m.Names(), ", "))
	case !goesOn && g.m.Leaving == "" && g.m.Joining != name && len(g.m.Nodes) <= roster.Fewest:
		return fmt.Errorf("of %d nodes none is removed: add another one first; godwit cluster copy makes the data of a single node", len(g.m.Nodes))
	case name == g.node.Name:
		return fmt.Errorf("node %s owns the state: have it hand over first (godwit cluster step-down)", name)
	case goesOn:
		return nil
	case g.m.Leaving != "" || g.m.Joining != "" && g.m.Joining != name:
		return g.unfinished()
	}
	var have, all int
	err := g.within(ctx, catchUpTime, func(ctx context.Context) bool {
		replicas, caughtUp, err := g.membership.Replicas(ctx)
		if err != nil {
			return false
		}
		caughtUp = slices.DeleteFunc(caughtUp, func(n string) bool { return n == name })
		have, all = len(g.reached(ctx, caughtUp)), len(replicas)
		return have > all/2
	})
	if err != nil {
		return fmt.Errorf("without node %s %d of the %d nodes of the log are there with all of it, which is no majority: start the others first", name, have, all)
	}
	return nil
}

// endNode ends a node that answers. One that does not is assumed to be down.
func (g *changing) endNode(ctx context.Context, name string) error {
	i := slices.IndexFunc(g.peers(), func(p roster.Peer) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	node := g.peers()[i]
	if g.silent(ctx, node) {
		g.tell("Node %s does not answer, and is taken to be gone.", name)
		return ctx.Err()
	}
	g.tell("Node %s ends.", name)
	var last error
	err := g.within(ctx, endTime, func(ctx context.Context) bool {
		last = g.at(node).End(ctx) // whose answer may be cut off by the end that it is about
		return g.silent(ctx, node) && ctx.Err() == nil
	})
	if err != nil {
		return fmt.Errorf("node %s does not end: stop it, and ask again: %w", name, errors.Join(err, last))
	}
	return nil
}

// silent reports that a node answers nothing for some time: one that is slow may miss a question.
func (g *changing) silent(ctx context.Context, node roster.Peer) bool {
	return g.within(ctx, silentTime, func(ctx context.Context) bool {
		_, err := g.ask(ctx, node)
		return err == nil
	}) != nil
}

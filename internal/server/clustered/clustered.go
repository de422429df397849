// Package clustered runs a server as a node of a cluster: every node accepts any request; the
// one that owns the state answers it, and the others forward it, once.
package clustered

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/certs"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/jetstream"
	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/limit/conns"
	"godwit.dev/godwit/internal/poison"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/server/clustered/answer"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/heap"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/space"
	"godwit.dev/godwit/internal/wire/http1"
)

// ExitStatus is the exit code of a process that must be restarted: it cannot continue with its
// replica, or its server does not stop.
const ExitStatus = 75

// Bounds for stopping a node, its server, and for requests in progress at that time.
const (
	exitTime   = 28 * time.Second // of all: who runs the node kills it after 30 s
	stopTime   = 20 * time.Second
	closeTime  = 5 * time.Second // after it, of the replica and of its store
	finishTime = 2 * time.Second
	disownTime = time.Second // of attempts and invocations of an owner that was replaced
)

// heapGrowth is by how much the heap of a node may grow beyond what is alive until it is
// collected, in percent. The log's engine keeps the blocks of the last 10 s in memory, 200 MB
// and more under load. They have no pointers, so that collections cost little beside the page
// faults of memory that is new.
const heapGrowth = 50

// The intervals of polling whether the node's part of the log has stopped, whether its disk is
// low on space, and which node leads which stream.
const (
	logPoll      = time.Second
	stoppedPolls = 60 // after which a stopped part of the log is restarted, if the disk is not full
	spacePoll    = time.Second
	lowPolls     = 2 // after which an owner hands over: nodes on one disk do not find it low at once
	metaPoll     = 2 * time.Second
	metaAgain    = 30 * time.Second // after a try
)

// Node identifies a process as one of the nodes.
type Node struct {
	Name     string        `json:"name"`
	Peers    []roster.Peer `json:"peers"`  // all nodes, this one among them, in an order that is the same everywhere
	Secret   string        `json:"secret"` // authenticates the nodes to each other, on one machine
	Identity string        `json:"-"`      // directory of the certificate that is used instead
	RootKey  string        `json:"rootKey"`
	LogLimit uint64        `json:"logLimit"` // see node.Options
	Joins    bool          `json:"-"`        // it does not belong to the cluster until it is added
}

// network is the node's connection to the others.
func (n *Node) network() (*peer.Network, error) {
	if n.Identity == "" {
		return peer.Loopback(n.Secret), nil
	}
	var names []string
	for _, p := range n.Peers {
		names = append(names, p.Name)
	}
	id, err := ca.Load(n.Identity, n.Name, names, clock.System.Now)
	if err != nil {
		return nil, err
	}
	return peer.Secured(id), nil
}

// rank is the node's index among the peers; -1: it is none of them.
func (n *Node) rank() int {
	for i, p := range n.Peers {
		if p.Name == n.Name {
			return i
		}
	}
	return -1
}

// part is a running node.
type part struct {
	cfg    config.Config
	node   Node
	log    *slog.Logger
	root   *seal.Root
	self   roster.Peer
	rank   int
	net    *peer.Network
	front  *front
	record replog.Log
	engine *jetstream.Server

	members members
	ports   []uint16 // that the node listens at for clients and for peers

	full    atomic.Pointer[space.Guard]     // of the disk; nil: the store is not open
	replica atomic.Pointer[node.Node]       // of the cell; nil: the log cannot be read yet, or there is no store
	source  atomic.Pointer[snapshot.Source] // nil: as replica
	copied  atomic.Pointer[copied]          // nil: no copy of a store is in progress
	inner   atomic.Pointer[inner]           // nil: this node serves nothing

	conditions
	left     chan struct{} // another node is to own the state; capacity 1
	outdated chan struct{} // the authority of the node's certificate may have been replaced; capacity 1
}

// conditions are what a node reports about itself, in addition to its state in the log.
type conditions struct {
	fresh      atomic.Bool // its part of the log is still catching up
	stopping   atomic.Bool // the process is ending
	logStopped atomic.Bool // its part of the log has stopped
}

// inner is the server of the node that owns the state.
type inner struct {
	server   *server.Server
	handlers server.Handlers
	owner    *ownedStore
}

// ownedStore is the store of an owner's server.
type ownedStore struct {
	*replica.Owner
	closed atomic.Bool
}

// Close implements store.Store. A server stops it last.
func (s *ownedStore) Close() error {
	s.closed.Store(true)
	return s.Owner.Close()
}

// Run runs a node until ctx ends, and then for exitTime at most: what does not stop by then ends with
// the process. It ends the process with ExitStatus if the node must be restarted.
func Run(ctx context.Context, cfg config.Config, n Node, log *slog.Logger, since time.Time) error {
	defer heap.Pace(heapGrowth)()
	log = log.With("node", n.Name)
	ctx, end := context.WithCancel(ctx)
	defer end()
	return endsAfter(ctx, log, func() error { return run(ctx, end, cfg, n, log, since) })
}

func run(ctx context.Context, end context.CancelFunc, cfg config.Config, n Node, log *slog.Logger, since time.Time) error {
	p, err := newPart(cfg, n, log, end)
	if err != nil {
		return err
	}
	l, stop, err := p.answer(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return fmt.Errorf("the data directory cannot be made: %w", err)
	}
	defer p.renew(ctx)()
	context.AfterFunc(ctx, func() { p.stopping.Store(true) })

	leave, err := p.join(ctx)
	defer leave()
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	log.Info("the node follows the log", "listen", l.Addr().String(), "data", cfg.Data, "took", clock.System.Now().Sub(since))
	return p.stayInStep(ctx)
}

// newPart makes a node's part of the cluster of what is configured; it does nothing yet.
func newPart(cfg config.Config, n Node, log *slog.Logger, end context.CancelFunc) (*part, error) {
	known, err := n.knownNodes(cfg.Data)
	if err != nil {
		return nil, err
	}
	rank := n.rank()
	if rank < 0 {
		return nil, fmt.Errorf("the node %q is not in the list of nodes", n.Name)
	}
	p := &part{cfg: cfg, node: n, log: log, self: n.Peers[rank], rank: rank, left: make(chan struct{}, 1), outdated: make(chan struct{}, 1)}
	p.members.end = end
	p.members.known.Store(known)
	if p.net, err = n.network(); err != nil {
		return nil, err
	}
	if p.root, err = bootstrap.ReadRootKey(n.RootKey); err != nil {
		return nil, fmt.Errorf("the root key cannot be read: %w", err)
	}
	return p, nil
}

// answer serves clients and peers, which learn what state the node is in, until it is stopped.
func (p *part) answer(ctx context.Context) (l net.Listener, stop func(), err error) {
	l, secure, err := p.listen(ctx)
	if err != nil {
		return nil, nil, err
	}
	if p.self.URL == "" {
		p.self.URL = p.reachable(l.Addr())
	}
	p.ports = publicnet.PortsOf(l.Addr().String(), p.self.Address, p.self.Route)
	p.front = newFront(p)
	peers, err := p.net.Listen(ctx, p.listensAt(p.self.Address), p.front.limits.OfPeers)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot listen for other nodes on %s: %w", p.self.Address, err), l.Close())
	}
	stopOthers, err := p.answerOthers(ctx, secure)
	if err != nil {
		return nil, nil, errors.Join(err, peers.Close(), l.Close())
	}
	stopClients := serve(server.ForClients(p.cfg, p.log, p.front.limits, l, secure, p.front))
	stopPeers := serve(forPeers(p.net.Only(http.HandlerFunc(p.front.ofPeer))), peers)
	return l, func() { stopPeers(); stopOthers(); stopClients() }, nil
}

// join takes the node's place among those that keep the log, once it has one, and watches the log
// and the other nodes until ctx ends. leave ends what was begun, also of a failure.
func (p *part) join(ctx context.Context) (leave func(), err error) {
	leave = func() {}
	if err := p.awaitAdded(ctx); err != nil {
		return leave, err
	}
	if err := p.awaitPlace(ctx); err != nil {
		return leave, err
	}
	js, err := jetstream.Start(ctx, jetstream.Options{
		Cluster: "godwit", Node: p.node.Name, Dir: filepath.Join(p.cfg.Data, logDir), Listen: p.listensAt(p.self.Route),
		Routes: p.members.known.Load().Routes(), TLS: p.net.Routes(), Secret: p.node.Secret, Logger: p.log,
	})
	if errors.Is(err, jetstream.ErrUnusable) {
		err = fmt.Errorf("%w: if its files are damaged, keep %s elsewhere, and start the node with an empty one, as if its disk was lost", err, p.cfg.Data)
	}
	if err != nil {
		return leave, err
	}
	leave = js.Close
	p.engine = js
	go func() {
		if p.watchLog(ctx, js.Stopped) {
			p.failed(errors.New("this node's part of the log had stopped"))
		}
	}()
	go spreadLeaders(ctx, p.log, js, p.owns, func(ctx context.Context) error {
		_, err := p.successor(ctx)
		return err
	})
	if p.record, err = js.Log(ctx, nodeapi.Cell); err != nil {
		return leave, err
	}
	go p.noteWhole(ctx)
	go p.watchReplica(ctx)
	go p.watchSpace(ctx, p.ownsLow, p.successor)
	go p.watchNodes(ctx)
	return leave, nil
}

// stayInStep follows the log until ctx ends. A store that cannot go on by it is replaced by a copy
// of another node's.
func (p *part) stayInStep(ctx context.Context) error {
	for ctx.Err() == nil {
		err := p.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, replog.ErrTrimmed) || errors.Is(err, replica.ErrIncomplete) || errors.Is(err, store.ErrDamaged):
			p.log.Warn("the store is replaced by a copy of another node's", "reason", err)
			p.reseed(ctx, err)
		default:
			p.failed(err)
		}
	}
	return nil
}

// forPeers makes the server of h for peers, whose listener is of server.Limits: it has to know which
// connections serve a request. What peers ask for, such as a copy of the store, may take any time, as
// long as they read.
func forPeers(h http.Handler) *http1.Server {
	return http1.New(h, &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, ConnState: conns.State})
}

// listen listens for clients; secure is nil unless TLS is configured.
func (p *part) listen(ctx context.Context) (l net.Listener, secure *tls.Config, err error) {
	l, err = server.Listen(ctx, p.cfg.Listen)
	if err != nil {
		return nil, nil, err
	}
	if p.cfg.TLSCert == "" {
		return l, nil, nil
	}
	files, err := certs.Open(certs.Options{Cert: p.cfg.TLSCert, Key: p.cfg.TLSKey, ClientCA: p.cfg.TLSClientCA, Logger: p.log})
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	context.AfterFunc(ctx, files.Watch())
	p.cfg.Live.OnReload(files.Reload)
	return l, files.Config(), nil
}

// reachable is the address of a listening node for clients, as far as it knows.
func (p *part) reachable(at net.Addr) string {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host, _, _ = net.SplitHostPort(p.self.Address)
	}
	if p.cfg.TLS() {
		return "https://" + net.JoinHostPort(host, port)
	}
	return "http://" + net.JoinHostPort(host, port)
}

// listensAt is the address to listen at for peers that know this node by an address: that may
// be a name, or not the machine's own address.
func (p *part) listensAt(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || p.node.Identity == "" {
		return address
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return address
	}
	return net.JoinHostPort("", port)
}

// httpServer is an *http.Server or an *http1.Server.
type httpServer interface {
	Serve(l net.Listener) error
	Shutdown(ctx context.Context) error
	Close() error
}

// serve answers at a listener until it is stopped.
func serve[S httpServer](s S, l net.Listener) (stop func()) {
	go func() { _ = s.Serve(l) }() // it ends when it is closed
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), finishTime)
		defer cancel()
		_ = s.Shutdown(ctx) // unfinished requests are cut off
		_ = s.Close()
	}
}

// follow makes the node's replica follow the log until ctx ends, and the node serve while it
// owns the state, or until the store is unusable.
func (p *part) follow(ctx context.Context) error {
	st, guard, err := p.openStore()
	if err != nil {
		return err
	}
	held := false // the store is still read, or does not take a write; the process ends
	defer func() {
		if !held {
			p.closeStore(ctx, st, guard)
		}
	}()
	replica, err := node.Open(node.Options{
		Name: p.node.Name, Instance: uuid.NewString(), Rank: p.rank, Cell: nodeapi.Cell, Log: p.record, Store: st, Logger: p.log,
		Own: p.own, Disown: p.disown, MayBootstrap: p.mayBootstrap, Members: p.front.members, LogLimit: p.node.LogLimit,
		Reluctant: func() bool { return guard.Low() || p.logStopped.Load() },
	})
	if err != nil {
		return err
	}
	source, err := snapshot.NewSource(filepath.Join(p.cfg.Data, snapshot.ForNodes), replica.Checkpoint, clock.System)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // the next start removes the rest
	p.full.Store(guard)
	p.replica.Store(replica)
	p.source.Store(source)
	defer p.source.Store(nil)
	defer p.replica.Store(nil)

	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- replica.Run(running) }()
	for {
		select {
		case <-p.left:
			if reason := p.handOver(ctx, false); reason != nil {
				p.log.Warn("the state is not handed over", "reason", reason)
			}
		case <-ctx.Done():
			p.log.Info("stopping", "reason", context.Cause(ctx))
			held, err = p.end(context.WithoutCancel(ctx), cancel, over)
			return err
		case err := <-over:
			if err != nil {
				return p.fellOut(replica, err)
			}
		}
	}
}

// own starts the server of the state that the node now owns.
func (p *part) own(ctx context.Context, owner *replica.Owner) error {
	began := clock.System.Now()
	st := &ownedStore{Owner: owner}
	cfg := p.cfg
	// The root key of a former single node is not the cluster's.
	if err := bootstrap.ForgetRootKey(cfg.Data); err != nil {
		return err
	}
	if cfg.PublicURL == "" {
		cfg.PublicURL = p.self.URL
	}
	s := server.New(cfg, p.log, func(ctx context.Context, deps server.Deps) (server.Parts, error) {
		deps.World.Store = func() (store.Store, func() bool, error) { return st, p.full.Load().Low, nil }
		deps.World.Ports = p.ports
		deps.World.Root, deps.World.Replicated, deps.World.Exit = p.root, true, poison.Until(st.closed.Load, p.failed)
		deps.World.Owned = func() bool { return owner.Failed() == nil }
		deps.World.Closed = func() { // what is still under way finds out next
			if p.inner.Load() != nil { // else it has not started, which is what counts
				owner.StepDown(errEnds)
			}
		}
		deps.World.Confirmed = func(h http.Handler) http.Handler { return answer.Confirmed(owner, h) }
		return server.Assemble(ctx, deps)
	})
	s.Within(p.front.limits)
	if err := s.Start(ctx); err != nil {
		return err
	}
	p.log.InfoContext(ctx, "serving", "epoch", owner.Epoch(), "took", clock.System.Now().Sub(began))
	handlers := s.Handlers()
	for _, h := range [...]*http.Handler{&handlers.Clients, &handlers.Operators, &handlers.Posts} {
		if *h != nil {
			*h = answer.Confirmed(owner, *h)
		}
	}
	p.inner.Store(&inner{server: s, handlers: handlers, owner: st})
	return nil
}

// errEnds is why a node that ends does not own the state any more.
var errEnds = errors.New("the node ends")

// errHeld reports that an owner's server does not stop.
var errHeld = errors.New("what the node served does not end")

// disown stops the server of a state that another node owns, or may own, now. Nothing that it
// has in progress is valid or answered.
func (p *part) disown(owner *replica.Owner, reason error) error {
	began := clock.System.Now()
	p.log.Info("the node does not own the state any more", "epoch", owner.Epoch(), "reason", reason)
	in := p.inner.Load()
	if in == nil { // the node ends, and has stopped it
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), disownTime)
	defer cancel()
	in.server.Drain()
	p.front.await(ctx, p.front.quiet)
	if err := in.server.Stop(ctx); err != nil {
		p.log.Debug("what was under way was cut off", "reason", err)
	}
	if !in.owner.closed.Load() {
		return errHeld
	}
	p.inner.CompareAndSwap(in, nil)
	debug.FreeOSMemory() // of the server
	p.log.Info("following", "took", clock.System.Now().Sub(began))
	return nil
}

// metaLeader is this node as it may lead the log's meta group.
type metaLeader interface {
	LeadsMeta() bool
	TransferMeta(ctx context.Context) error
}

// owns reports that this node owns the state, and serves it.
func (p *part) owns() bool {
	replica := p.replica.Load()
	return replica != nil && replica.Serves()
}

// spreadLeaders keeps the log's meta leader off the node that owns the state. When an owner is
// killed, its readers of the log end, too, and making new ones needs the meta leader, which
// must still run then. successor fails while no other node can lead it.
func spreadLeaders(ctx context.Context, log *slog.Logger, own metaLeader, owns func() bool, successor func(ctx context.Context) error) {
	for pause(ctx, metaPoll) {
		if !owns() || !own.LeadsMeta() || successor(ctx) != nil {
			continue
		}
		if err := own.TransferMeta(ctx); err != nil {
			log.Debug("the log's meta leader stays with the owner", "reason", err)
		}
		if !pause(ctx, metaAgain) {
			return
		}
	}
}

// watchLog detects that this node's part of the log has stopped, as it does after a failed
// write to the disk, and makes an owner hand over then. It returns true when the process must
// end, to be restarted: disk space is free again, or was not the cause.
func (p *part) watchLog(ctx context.Context, stopped func() bool) (ends bool) {
	full, polls := false, 0
	for pause(ctx, logPoll) {
		if !stopped() {
			p.logStopped.Store(false)
			full, polls = false, 0
			continue
		}
		if !p.logStopped.Swap(true) {
			p.log.Error("this node's part of the log has stopped, as a write to its disk failed", "data", p.cfg.Data)
			p.requestHandOver()
		}
		polls++
		lacks := space.RequireFree(p.cfg.Data, 0) != nil
		if full = full || lacks; !lacks && (full || polls > stoppedPolls) {
			return true
		}
	}
	return false
}

// failed ends the process: its memory is not valid any more, and its disk is a replica.
func (p *part) failed(err error) {
	p.log.Error("the node cannot go on; the process ends, to be started again", "reason", err)
	os.Exit(ExitStatus)
}

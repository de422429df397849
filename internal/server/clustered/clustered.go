// Package clustered runs a server as one of the nodes of a cluster: every node takes any
// request; the one that owns the state answers it, and the others hand it on, once.
package clustered

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/jetstream"
	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/server/heap"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/space"
	"godwit.dev/godwit/internal/wire/http1"
)

// ExitStatus is that of a process that has to be started again: it is no owner any more,
// or cannot go on with its replica.
const ExitStatus = 75

// cell is the only one so far: it has all shards.
const cell = 0

// stopTime bounds how long a node takes to stop.
const stopTime = 20 * time.Second

// Peer is a node as the others know it.
type Peer struct {
	Name  string `json:"name"`
	URL   string `json:"url"`   // where it answers clients and peers
	Route string `json:"route"` // where its log speaks to the others': an address on loopback
}

// Node says which of the nodes a process is.
type Node struct {
	Name    string `json:"name"`
	Peers   []Peer `json:"peers"`  // all nodes, this one among them, in an order that is the same everywhere
	Secret  string `json:"secret"` // that the nodes know each other by
	RootKey string `json:"rootKey"`
}

// rank is the node's place among the peers; -1: it is none of them.
func (n *Node) rank() int {
	for i, p := range n.Peers {
		if p.Name == n.Name {
			return i
		}
	}
	return -1
}

// part is a node that runs.
type part struct {
	cfg   config.Config
	node  Node
	log   *slog.Logger
	root  *seal.Root
	full  func() bool
	self  Peer
	cells atomic.Pointer[node.Node] // nil: the log cannot be read yet
	inner atomic.Pointer[inner]     // nil: this node serves nothing
	front *front
}

// inner is the server of the node that owns the state.
type inner struct {
	server  *server.Server
	handler http.Handler
	owner   *replica.Owner
}

// Run runs a node until ctx ends. It ends the process with ExitStatus if the node has to
// be started again.
func Run(ctx context.Context, cfg config.Config, n Node, log *slog.Logger, since time.Time) error {
	defer heap.Pace()()
	rank := n.rank()
	if rank < 0 {
		return fmt.Errorf("the node %q is not in the list of nodes", n.Name)
	}
	log = log.With("node", n.Name)
	p := &part{cfg: cfg, node: n, log: log, self: n.Peers[rank]}
	var err error
	if p.root, err = bootstrap.ReadRootKey(n.RootKey); err != nil {
		return fmt.Errorf("the root key cannot be read: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", cfg.Listen, err)
	}
	p.front = newFront(p)
	serving := http1.New(&http.Server{Handler: p.front, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10})
	go func() { _ = serving.Serve(l) }() // it ends with the process, or below
	defer func() { _ = serving.Close() }()

	st, guard, err := p.openStore()
	if err != nil {
		return err
	}
	defer guard.Close()
	defer func() { _ = st.Close() }() // what it lacks, the log has
	p.full = guard.Low

	var routes []string
	for _, peer := range n.Peers {
		routes = append(routes, peer.Route)
	}
	js, err := jetstream.Start(ctx, jetstream.Options{
		Cluster: "godwit", Node: n.Name, Dir: filepath.Join(cfg.Data, "log"), Listen: p.self.Route, Routes: routes, Secret: n.Secret, Logger: log,
	})
	if err != nil {
		return err
	}
	defer js.Close()
	journal, err := js.Log(ctx, cell)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	cells, err := node.Open(node.Options{
		Name: n.Name, Instance: uuid.NewString(), Rank: rank, Cell: cell, Log: journal, Store: st, Logger: log,
		Own: p.own, Failed: p.failed, Trim: p.front.trimmable,
	})
	if err != nil {
		return err
	}
	p.cells.Store(cells)
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	over := make(chan struct{})
	go func() {
		cells.Run(running)
		close(over)
	}()
	log.Info("the node follows the log", "listen", l.Addr().String(), "data", cfg.Data, "took", clock.System.Now().Sub(since))

	<-ctx.Done()
	log.Info("stopping", "reason", context.Cause(ctx))
	err = p.stop(context.WithoutCancel(ctx))
	cancel()
	<-over
	return err
}

// stop ends what the node serves.
func (p *part) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	in := p.inner.Load()
	if in == nil {
		return nil
	}
	p.front.closing.Store(true)
	return in.server.Stop(ctx)
}

// openStore opens the replica's store.
func (p *part) openStore() (st *pebble.Store, guard *space.Guard, err error) {
	if err := os.MkdirAll(p.cfg.Data, 0o700); err != nil {
		return nil, nil, fmt.Errorf("the data directory cannot be made: %w", err)
	}
	guard, err = space.Open(p.cfg.Data, space.Options{Logger: p.log})
	if err != nil {
		return nil, nil, err
	}
	st, err = pebble.Open(filepath.Join(p.cfg.Data, "store"), pebble.Options{Logger: p.log, OnDiskFull: guard.Release})
	if err != nil {
		guard.Close()
		return nil, nil, err
	}
	return st, guard, nil
}

// own starts the server of the state that the node has come to own.
func (p *part) own(ctx context.Context, owner *replica.Owner) error {
	began := clock.System.Now()
	cfg := p.cfg
	cfg.Listen = "127.0.0.1:0" // nobody is told: requests come through the front
	if cfg.PublicURL == "" {
		cfg.PublicURL = p.self.URL
	}
	s := server.New(cfg, p.log, func(ctx context.Context, deps server.Deps) (server.Parts, error) {
		deps.World.Store = func() (store.Store, func() bool, error) { return owner, p.full, nil }
		deps.World.Root, deps.World.Replicated, deps.World.Exit = p.root, true, p.failed
		return server.Assemble(ctx, deps)
	})
	if err := s.Start(ctx); err != nil {
		return err
	}
	p.inner.Store(&inner{server: s, handler: s.Handler(), owner: owner})
	p.log.Info("serving", "epoch", owner.Epoch(), "took", clock.System.Now().Sub(began))
	return nil
}

// failed ends the process: what it has in memory counts for nothing any more, and what it
// has on its disk is a replica's.
func (p *part) failed(err error) {
	if errors.Is(err, replica.ErrReplaced) {
		p.log.Warn("another node owns the state now; the process ends, to be started again", "reason", err)
	} else {
		p.log.Error("the node cannot go on; the process ends, to be started again", "reason", err)
	}
	os.Exit(ExitStatus)
}

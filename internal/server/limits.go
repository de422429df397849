package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/limit/accounts"
	"godwit.dev/godwit/internal/limit/conns"
	"godwit.dev/godwit/internal/monitor/prom"
	"godwit.dev/godwit/internal/wire"
)

// perFunction is how many file descriptors of the server a function's process uses: its
// listener and connections, its output, its lifeline.
const perFunction = 8

// Times bound how long the reading of a request's body, and the writing of an answer, may take.
type Times struct{ Read, Write time.Duration }

// Limits bound the resources of the machine that requests and connections use.
type Limits struct {
	// Times bound requests and answers; those of NewLimits may be replaced before clients are served.
	Times Times

	shares            limit.Shares
	bytes             int64 // of memory for requests and answers
	requests, answers *limit.Budget
	functions         *limit.Budget // answers of functions, until they are read
	outgoing          *limit.Slots
	pace              wire.Pace                          // but for the whole body, which has Times.Read
	options           conns.Options                      // but for the numbers of connections
	storage           atomic.Pointer[func() limit.Stats] // of functions' /tmp; nil until they can run
	warning           string                             // to the operator; empty: none

	settings    config.Config
	descriptors int // of the process; 0: no limit

	dividing       sync.Mutex // guards what follows, as nodes come and go
	division       division
	clients, posts *conns.Listener // nil until listen and ofPosts
}

// division is how the connections are divided.
type division struct{ clients, perAddress, posts int }

// divide divides connections among clients, and posts to sources, if those come elsewhere.
func divide(c *config.Config, connections int) division {
	d := division{clients: connections}
	if c.IngestListen != "" {
		d.posts = max(connections/4, 1)
		d.clients = max(connections-d.posts, 1)
	}
	d.perAddress = cmp.Or(c.MaxConnectionsPerAddress, max(d.clients/4, 1))
	return d
}

// SetNodes divides the connections anew, for another number of nodes.
func (l *Limits) SetNodes(nodes int) {
	l.dividing.Lock()
	defer l.dividing.Unlock()
	l.division = divide(&l.settings, l.shares.Clients(l.descriptors, l.settings.MaxConnections, nodes))
	l.bound()
}

// Pace is how fast the body of a request must come, at whichever node reads it.
func (l *Limits) Pace() wire.Pace {
	p := l.pace
	p.Whole = l.Times.Read
	return p
}

// Connections is how many connections clients may have, without posts.
func (l *Limits) Connections() int {
	l.dividing.Lock()
	defer l.dividing.Unlock()
	return l.division.clients
}

// bound has the listeners keep to the division. The caller holds dividing.
func (l *Limits) bound() {
	d := l.division
	if l.clients != nil {
		l.clients.SetBounds(d.clients, d.perAddress)
	}
	if l.posts != nil {
		l.posts.SetBounds(d.posts, min(d.perAddress, d.posts))
	}
}

// NewLimits divides the machine's resources.
func NewLimits(c config.Config, log *slog.Logger) *Limits { return NewLimitsOfNode(c, log, 1) }

// NewLimitsOfNode divides the resources of the machine of one of several nodes.
func NewLimitsOfNode(c config.Config, log *slog.Logger, nodes int) *Limits {
	descriptors := limit.Descriptors()
	bytes := cmp.Or(c.MaxBytesInFlight, limit.DefaultBytes(limit.Memory()))
	l := &Limits{
		Times:    Times{readTimeout, writeTimeout},
		settings: c, descriptors: descriptors,
		shares:    limit.Share(descriptors, c.MaxConnections, nodes),
		bytes:     bytes,
		requests:  limit.NewBudget("request_bytes", bytes/2, 0),
		answers:   limit.NewBudget("answer_bytes", bytes/2, 0),
		functions: limit.NewBudget("function_answer_bytes", bytes/2, 0),
		pace:      wire.Pace{Window: cmp.Or(c.TransferWindow, wire.DefaultPace.Window), Rate: c.MinTransferRate},
	}
	l.division = divide(&c, l.shares.Connections)
	l.outgoing = limit.NewSlots("outgoing_connections", l.shares.Outgoing)
	l.options = conns.Options{
		Window: l.pace.Window, Rate: c.MinTransferRate, HeadBytes: max(bytes/8, 1<<20),
	}
	for _, p := range c.TrustedProxies {
		if network, err := config.Network(p); err == nil { // Check has refused others
			l.options.Trusted = append(l.options.Trusted, network)
		}
	}
	if descriptors > 0 && descriptors < limit.Enough {
		l.warning = fmt.Sprintf("the limit of open files is %d, which leaves %d connections of clients, %d to endpoints and %d functions' processes: "+
			"raise it to %d or more, such as by ulimit -Hn or LimitNOFILE=", descriptors, l.shares.Connections, l.shares.Outgoing, l.environments(), limit.Enough)
	} else if c.MaxConnections > l.shares.Connections {
		l.warning = fmt.Sprintf("the limit of open files is %d, which allows %d connections of clients and not %d (--max-connections): raise it",
			descriptors, l.shares.Connections, c.MaxConnections)
	}
	if l.warning != "" {
		log.Warn("few file descriptors", "problem", l.warning)
	}
	return l
}

// Bytes is the memory for requests and answers, in bytes.
func (l *Limits) Bytes() int64 { return l.bytes }

// accountLimits are the current limits of an account.
func (d *Deps) accountLimits() accounts.Limits {
	of := d.Config.OfAccounts()
	return accounts.Limits{Requests: of.MaxRequests, Bytes: int(of.MaxBytes), Queues: of.MaxQueues, Topics: of.MaxTopics, Storage: of.MaxStorage}
}

// environments is the maximum number of functions' processes.
func (l *Limits) environments() int { return max(l.shares.Functions/perFunction, 1) }

// listen bounds the connections of inner.
func (l *Limits) listen(inner net.Listener) net.Listener {
	l.dividing.Lock()
	defer l.dividing.Unlock()
	l.clients = conns.Listen(inner, l.options)
	l.bound()
	return l.clients
}

// others bounds how slowly answers are read, as for clients, where connections are not counted: those
// of operators and of the process itself, and those of functions, which are bounded where they are made.
func (l *Limits) others(inner net.Listener) net.Listener {
	return conns.Listen(inner, conns.Options{Window: l.options.Window, Rate: l.options.Rate, HeadBytes: l.options.HeadBytes})
}

// OfPeers bounds how slowly the other nodes of a cluster read: one that is stopped would hold the
// memory of what it has asked for.
func (l *Limits) OfPeers(inner net.Listener) net.Listener { return l.others(inner) }

// ofPosts bounds the connections for posts to sources separately, so that a provider with many
// does not block clients.
func (l *Limits) ofPosts(inner net.Listener) net.Listener {
	l.dividing.Lock()
	defer l.dividing.Unlock()
	l.posts = conns.Listen(inner, l.options)
	l.bound()
	return l.posts
}

// watch makes a server report its idle connections, and bounds its HTTP/2 requests.
func (l *Limits) watch(s *http.Server) {
	s.ConnContext, s.ConnState, s.Handler = conns.Context, conns.State, conns.Streams(s.Handler)
}

// ProcessMetrics serves Prometheus what a node of a cluster knows of itself where it has no state; nil: the
// settings ask for no metrics.
func ProcessMetrics(cfg config.Config, limits *Limits) http.Handler {
	if !cfg.Prometheus {
		return nil
	}
	return prom.Process(config.Version, limits.stats)
}

// stats are what metrics show.
func (l *Limits) stats() []limit.Stats {
	all := []limit.Stats{l.requests.Stats(), l.answers.Stats(), l.functions.Stats(), l.outgoing.Stats()}
	if storage := l.storage.Load(); storage != nil {
		all = append(all, (*storage)())
	}
	if l.clients != nil {
		all = append(all, l.clients.Stats()...)
	}
	return all
}

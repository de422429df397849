package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/limit/accounts"
	"godwit.dev/godwit/internal/limit/conns"
	"godwit.dev/godwit/internal/wire"
)

// perFunction is how many file descriptors a function's process takes of the server:
// its listener and connections, its output, its lifeline.
const perFunction = 8

// Limits are what requests and connections may take of the machine.
type Limits struct {
	shares            limit.Shares
	requests, answers *limit.Budget
	functions         *limit.Budget // what functions answer, until it is read
	outgoing          *limit.Slots
	pace              wire.Pace
	options           conns.Options
	clients           *conns.Listener    // nil until listen
	posts             int                // connections of whoever posts to sources
	storage           func() limit.Stats // of functions' /tmp; nil until they can run
	warning           string             // to the operator; empty: none
}

// NewLimits divides what the machine has.
func NewLimits(c config.Config, log *slog.Logger) *Limits {
	descriptors := limit.Descriptors()
	bytes := cmp.Or(c.MaxBytesInFlight, limit.DefaultBytes(limit.Memory()))
	l := &Limits{
		shares:    limit.Share(descriptors, c.MaxConnections),
		requests:  limit.NewBudget("request_bytes", bytes/2, 0),
		answers:   limit.NewBudget("answer_bytes", bytes/2, 0),
		functions: limit.NewBudget("function_answer_bytes", bytes/2, 0),
		pace:      wire.Pace{Window: cmp.Or(c.TransferWindow, wire.DefaultPace.Window), Rate: c.MinTransferRate, Whole: readTimeout},
	}
	clients := l.shares.Connections
	if c.IngestListen != "" {
		l.posts = max(clients/4, 1)
		clients = max(clients-l.posts, 1)
	}
	l.outgoing = limit.NewSlots("outgoing_connections", l.shares.Outgoing)
	l.options = conns.Options{
		Max: clients, PerAddress: cmp.Or(c.MaxConnectionsPerAddress, max(clients/4, 1)),
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

// accountLimits are what an account may do and hold at the moment.
func (d *Deps) accountLimits() accounts.Limits {
	of := d.Config.OfAccounts()
	return accounts.Limits{Requests: of.MaxRequests, Bytes: int(of.MaxBytes), Queues: of.MaxQueues, Topics: of.MaxTopics, Storage: of.MaxStorage}
}

// environments is how many processes of functions there can be.
func (l *Limits) environments() int { return max(l.shares.Functions/perFunction, 1) }

// listen bounds the connections of inner.
func (l *Limits) listen(inner net.Listener) net.Listener {
	l.clients = conns.Listen(inner, l.options)
	return l.clients
}

// ofFunctions has functions take their answers as other clients do. How many connections
// they have is bounded where these are made.
func (l *Limits) ofFunctions(inner net.Listener) net.Listener {
	return conns.Listen(inner, conns.Options{Window: l.options.Window, Rate: l.options.Rate, HeadBytes: l.options.HeadBytes})
}

// ofPosts bounds the connections of whoever posts to sources: they have their own, so that a
// provider with many does not keep out clients.
func (l *Limits) ofPosts(inner net.Listener) net.Listener {
	o := l.options
	o.Max = l.posts
	o.PerAddress = min(o.PerAddress, o.Max)
	return conns.Listen(inner, o)
}

// watch has a server tell which of its connections are idle, and bounds its requests of
// HTTP/2.
func (l *Limits) watch(s *http.Server) {
	s.ConnContext, s.ConnState, s.Handler = conns.Context, conns.State, conns.Streams(s.Handler)
}

// stats are what metrics show.
func (l *Limits) stats() []limit.Stats {
	all := []limit.Stats{l.requests.Stats(), l.answers.Stats(), l.functions.Stats(), l.outgoing.Stats()}
	if l.storage != nil {
		all = append(all, l.storage())
	}
	if l.clients != nil {
		all = append(all, l.clients.Stats()...)
	}
	return all
}

package server

import (
	"context"
	"crypto/rsa"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	mailsender "godwit.dev/godwit/internal/deliver/mail"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server/hold"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/sigv4"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/tracing"
	"godwit.dev/godwit/internal/tracing/otlp"
)

// Deps are the dependencies that every part may use.
type Deps struct {
	Config config.Config
	Log    *slog.Logger
	Clock  clock.Clock
	// Virtual is Clock if it is virtual, nil otherwise.
	Virtual *clock.Virtual
	Jitter  *clock.Jitter
	// Limits bound the resources of the machine that requests and connections use.
	Limits *Limits
	// URL is the address of this server for a client on the same machine.
	URL string
	// Port is the port that this server listens at.
	Port uint16
	// Draining is closed when the server begins to stop: long polls and other waiting requests
	// are answered then.
	Draining <-chan struct{}
	// Keys finds access keys other than the server's own; nil: there are none. It fails with
	// sigv4.ErrUnknownKey.
	Keys func(accessKey, sessionToken string) (sigv4.Credential, error)
	// Committed gets every change of the store, sealed, in order and before it is applied; may
	// be nil.
	Committed func(sealed []byte)
	// World has the server's surroundings: the disk, the network, the end of the process.
	World World
	// OnStop registers a function that stops a part that was just started. They are called once
	// each, in reverse order, also if a later part fails to start, and stop waiting when their
	// context ends.
	OnStop func(name string, stop func(context.Context) error)

	tracer *tracing.Tracer // nil: tracing is off; set by Assemble
	spans  *otlp.Exporter  // of tracer; nil without it
	hold   *hold.Hold      // keeps a restored server from delivering; set by Assemble
}

// ownPorts are the ports that the process listens at.
func (d *Deps) ownPorts() publicnet.Ports {
	c := &d.Config
	own := publicnet.Ports{Machine: append([]uint16{d.Port}, d.World.Ports...)}
	own.Machine = append(own.Machine, publicnet.PortsOf(c.Pprof, c.AdminListen, c.ACMEHTTP, c.IngestListen)...)
	if d.World.Replicated { // the other nodes have them, too
		own.Network = publicnet.PortsOf(c.Pprof, c.AdminListen)
	}
	return own
}

// World replaces the server's surroundings in a test or a cluster; nil fields are the real
// thing.
type World struct {
	// Store opens the store; full reports that disk space is low.
	Store func() (st store.Store, full func() bool, err error)
	// Dial makes the connections to HTTP endpoints and to external functions.
	Dial limit.Dial
	// Mails sends mails, whatever the settings name.
	Mails mailsender.Transport
	// Exit ends the process, after a failure that it cannot continue from.
	Exit func(error)
	// Root is the root key of the store that Store opens; nil: a new one is generated.
	Root *seal.Root
	// SigningPair makes the key pairs that sign messages: one of 2,048 bits takes a tenth of a
	// second of CPU.
	SigningPair func() (*rsa.PrivateKey, error)
	// Ports are those that the process listens at for clients and for other nodes, while the server
	// itself has a listener of its own.
	Ports []uint16
	// Replicated says that another node may take the store over: nothing is acknowledged before
	// it is durable.
	Replicated bool
	// Owned reports whether this process still owns the state; nil: always. It is called before
	// any state leaves the process.
	Owned func() bool
	// Closed is journal.Options.Closed of the state; may be nil.
	Closed func()
	// Confirmed wraps the handler of functions' requests, so that no answer is stale because
	// another node owns the state; nil: it is not wrapped.
	Confirmed func(http.Handler) http.Handler
	// TwoStep makes all transfers between shards in two steps, as without a shared commit.
	TwoStep bool
	// Deploying wraps the worker that deploys stacks; nil: it is not wrapped.
	Deploying func(stacks.Worker) stacks.Worker
}

// Parts are the externally visible parts of a server.
type Parts struct {
	// Wire serves the AWS protocols, and pages: every path outside /_godwit/.
	Wire http.Handler
	// AWS serves "/" in place of Wire, as nearly all requests go there, and no page does; nil:
	// Wire does.
	AWS http.Handler
	// Forbid answers a refused request to Wire with status 403, in its protocol; nil: as under
	// /_godwit/.
	Forbid func(w http.ResponseWriter, r *http.Request, text string)
	// Vouched reports that a request has a signature that covers Host and that Wire verifies;
	// nil: none has.
	Vouched func(r *http.Request) bool
	// Refused is called for each request that the guard refuses; may be nil.
	Refused func(reason string)
	// Admin serves patterns of http.ServeMux under /_godwit/.
	Admin map[string]http.Handler
	// Developer serves the requests of tools for LocalStack; nil: nothing does.
	Developer http.Handler
	// Operator refuses a caller without permission for a request under /_godwit/, or for
	// metrics; nil: if signatures are verified, all callers are refused. It reads the body, and
	// replaces it.
	Operator func(w http.ResponseWriter, r *http.Request) error
	// Console serves patterns of http.ServeMux with the web console, to anybody: its data come
	// from Admin.
	Console map[string]http.Handler
	// Operated is called for requests that are served without authentication; may be nil.
	Operated func(r *http.Request)
	// Missed is called for requests under /_godwit/ that nothing serves; may be nil.
	Missed func(r *http.Request)
	// Metrics serves GET /metrics; nil: nothing does.
	Metrics http.Handler
	// Functions accepts the connections of functions, which are served by Wire alone; nil:
	// there are none.
	Functions net.Listener
	// OfFunctions is the Wire for functions; nil: Wire.
	OfFunctions http.Handler
	// URLs serves requests to function URLs; nil: nothing does.
	URLs http.Handler
	// Ingest serves posts to sources; nil: nothing does.
	Ingest http.Handler
	// Checks are the checks of /_godwit/health.
	Checks []admin.Check
	// Save makes durable what would be lost with the process, though nobody was promised it, as Stop
	// does: metrics of the last minute, and lines of functions' logs. What comes in meanwhile may be
	// left out. It returns when ctx ends at the latest; what it still writes then ends before what it
	// writes to is stopped. nil: there is nothing.
	Save func(ctx context.Context) error
	// Notices are lines for the banner; nil: there are none.
	Notices func() []string
}

// maxAhead bounds how far the state may be ahead of the machine's clock. Time in a shard never
// goes back: it stands still until the clock has caught up.
const maxAhead = time.Minute

// Build makes the parts, lowest ring first, and starts them.
type Build func(ctx context.Context, deps Deps) (Parts, error)

// Assemble builds the real server: the state, then the parts that run on it, then the handlers
// of requests. Each step gets the results of the one before.
func Assemble(ctx context.Context, deps Deps) (Parts, error) {
	if err := deps.openHold(); err != nil {
		return Parts{}, err
	}
	if err := deps.openTracing(); err != nil {
		return Parts{}, err
	}
	s, err := openState(ctx, deps)
	if err != nil {
		return Parts{}, err
	}
	r, err := startBackground(deps, s)
	if err != nil {
		return Parts{}, err
	}
	return newParts(deps, s, r)
}

// exit ends the process after a failure of the store: memory may be ahead of the disk, and only
// a restart makes them consistent.
func (d Deps) exit(err error) {
	if d.World.Exit != nil {
		d.World.Exit(err)
		return
	}
	d.Log.Error("the process ends, to be started again", "reason", err)
	os.Exit(pebble.ExitCode)
}

// storeFailed reports a failure of the store, and ends the process.
func (d Deps) storeFailed(err error) {
	d.Log.Error("the store failed; ending the process, a restart recovers everything acknowledged", "error", err)
	d.exit(err)
}

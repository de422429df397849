package server

import (
	"context"
	"crypto/rsa"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	mailsender "godwit.dev/godwit/internal/deliver/mail"
	"godwit.dev/godwit/internal/limit"
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
	// Virtual is Clock if that is a virtual one, nil otherwise.
	Virtual *clock.Virtual
	Jitter  *clock.Jitter
	// Limits are what requests and connections may take of the machine.
	Limits *Limits
	// URL is the address of this server as a client on the same machine writes it.
	URL string
	// Port is where this server listens.
	Port uint16
	// Draining is closed when the server begins to stop: what waits for
	// something to happen, as a long poll does, answers now.
	Draining <-chan struct{}
	// Keys gives access keys beside those of the server itself; nil: there are no others.
	// It refuses with sigv4.ErrUnknownKey.
	Keys func(accessKey, sessionToken string) (sigv4.Credential, error)
	// Committed sees every change of the store, sealed, in order and before it is
	// applied; may be nil.
	Committed func(sealed []byte)
	// World is the outside world: the disk, the network, the end of the process.
	World World
	// OnStop registers a function that stops what was just started. They are called once
	// each, in reverse order, also if a later part fails to start, and give up waiting when
	// their context ends.
	OnStop func(name string, stop func(context.Context) error)

	tracer *tracing.Tracer // nil: nothing is traced; set by Assemble
	spans  *otlp.Exporter  // of it; nil with it
	hold   *hold.Hold      // keeps a restored server from delivering; set by Assemble
}

// ownPorts are the ports that the server listens at.
func (d *Deps) ownPorts() []uint16 {
	ports := []uint16{d.Port}
	for _, address := range [...]string{d.Config.Pprof, d.Config.AdminListen, d.Config.ACMEHTTP, d.Config.IngestListen} {
		if _, text, err := net.SplitHostPort(address); err == nil {
			if port, err := strconv.ParseUint(text, 10, 16); err == nil {
				ports = append(ports, uint16(port))
			}
		}
	}
	return ports
}

// World is what a test or a cluster replaces of the server's surroundings; nil: the real thing.
type World struct {
	// Store opens the store; full reports that disk space is low.
	Store func() (st store.Store, full func() bool, err error)
	// Dial makes the connections to HTTP endpoints and to functions elsewhere.
	Dial limit.Dial
	// Mails takes mails further, whatever the settings name.
	Mails mailsender.Transport
	// Exit ends the process, after a failure that it cannot continue from.
	Exit func(error)
	// Root is the root key of what Store opens; nil: one is drawn.
	Root *seal.Root
	// SigningPair makes the keys that messages are signed with: a pair of 2,048 bits takes
	// a tenth of a second of CPU.
	SigningPair func() (*rsa.PrivateKey, error)
	// Replicated says that another node may take the store over: nothing is acknowledged
	// that is not durable.
	Replicated bool
	// Owned reports whether this process still owns the state; nil: always. It is called
	// before anything of the state leaves the process.
	Owned func() bool
	// Confirmed wraps the handler of functions' requests, so that no answer is stale because
	// another node owns the state; nil: it is not wrapped.
	Confirmed func(http.Handler) http.Handler
	// TwoStep makes transfers between shards as where they do not share a commit.
	TwoStep bool
	// Deploying wraps the worker that deploys stacks; nil: it is not wrapped.
	Deploying func(stacks.Worker) stacks.Worker
}

// Parts is what a server shows to the outside.
type Parts struct {
	// Wire answers the AWS protocols: every path outside /_godwit/.
	Wire http.Handler
	// Forbid answers such a request with status 403, in its protocol; nil: as under
	// /_godwit/.
	Forbid func(w http.ResponseWriter, r *http.Request, text string)
	// Vouched reports that a request has a signature over Host that Wire will not serve
	// it without; nil: none has.
	Vouched func(r *http.Request) bool
	// Refused is called for each request that the guard refuses; may be nil.
	Refused func(reason string)
	// Admin answers patterns of http.ServeMux under /_godwit/.
	Admin map[string]http.Handler
	// Developer answers what tools ask of LocalStack; nil: nobody does.
	Developer http.Handler
	// Operator refuses a caller who may not ask for what is under /_godwit/, or for metrics; nil:
	// where signatures are verified, everybody. It has read the body, and puts another
	// one in its place.
	Operator func(w http.ResponseWriter, r *http.Request) error
	// Console answers patterns of http.ServeMux with the web console, to anybody: what it
	// shows it asks Admin for.
	Console map[string]http.Handler
	// Operated is called for requests that are answered without asking who makes them; may
	// be nil.
	Operated func(r *http.Request)
	// Metrics answers GET /metrics; nil: nothing does.
	Metrics http.Handler
	// Functions gives the connections of functions, which are answered by Wire alone;
	// nil: there are none.
	Functions net.Listener
	// OfFunctions is Wire as functions are answered; nil: Wire.
	OfFunctions http.Handler
	// Ingest answers posts to sources; nil: nobody does.
	Ingest http.Handler
	// Checks are what /_godwit/health looks at.
	Checks []admin.Check
	// Notices are lines for the banner; nil: there are none.
	Notices func() []string
}

// maxAhead is how far the state may be ahead of the machine's clock. Time in a
// shard never goes back: it stands still until the clock has caught up.
const maxAhead = time.Minute

// Build makes the parts, lowest ring first, and starts what runs.
type Build func(ctx context.Context, deps Deps) (Parts, error)

// Assemble builds the real server: the state, then what runs on it, then what answers. Each step
// is given what the one before has completed.
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
	r, err := run(deps, s)
	if err != nil {
		return Parts{}, err
	}
	return respond(deps, s, r)
}

// exit ends the process after the store has failed: what is in memory may be
// ahead of the disk, and only a restart brings them together.
func (d Deps) exit(err error) {
	if d.World.Exit != nil {
		d.World.Exit(err)
		return
	}
	os.Exit(pebble.ExitCode)
}

// storeFailed reports a failure of the store, and ends the process.
func (d Deps) storeFailed(err error) {
	d.Log.Error("the store failed; ending the process, a restart recovers everything acknowledged", "error", err)
	d.exit(err)
}

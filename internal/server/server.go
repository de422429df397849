// Package server is the composition root: it builds the parts of a server, starts them in order
// and stops them in reverse order.
//
// A Server is started once and stopped once. Additional calls of Stop are harmless: if it was
// not started yet, it never starts; during a start, the start is undone; a second call waits
// for the first.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server/banner"
	"godwit.dev/godwit/internal/server/certificate"
	"godwit.dev/godwit/internal/server/heap"
	"godwit.dev/godwit/internal/server/rootkey"
	"godwit.dev/godwit/internal/server/shutdown"
)

// drainTime is how long a stopping server waits for requests and attempts in progress: an
// attempt at an endpoint lasts up to 15 s. With what package shutdown adds it is 20 s in all.
const drainTime = 16 * time.Second

// ErrNotNew reports a Start of a server that was started or stopped before.
var ErrNotNew = errors.New("server: started or stopped already")

// Server is one Godwit in one process.
type Server struct {
	cfg   config.Config
	log   *slog.Logger
	build Build

	draining context.Context // done when the server begins to stop
	drain    context.CancelFunc
	failed   context.Context // done, with the cause, when a part cannot continue
	fail     context.CancelCauseFunc

	lifecycle    chan struct{} // holds one token, which Start and Stop take: one at a time
	used         bool          // guarded by lifecycle
	stack        shutdown.Stack
	listener     net.Listener // guarded by lifecycle
	ingest       net.Addr     // guarded by lifecycle; nil: no posts are taken
	limits       *Limits      // guarded by lifecycle
	limitsShared bool         // limits are those of a process that listens itself
	notices      func() []string
	save         func(context.Context) error // nil: there is nothing to save
	handlers     Handlers                    // nil ones until Start has completed
	certificates certificate.Source          // nil: there is no TLS
}

// New makes a server whose parts are made by build; nil: Assemble.
func New(cfg config.Config, log *slog.Logger, build Build) *Server {
	if build == nil {
		build = Assemble
	}
	s := &Server{cfg: cfg, log: log, build: build, lifecycle: make(chan struct{}, 1)}
	s.draining, s.drain = context.WithCancel(context.Background())
	s.failed, s.fail = context.WithCancelCause(context.Background())
	s.lifecycle <- struct{}{}
	return s
}

// Within has a server that is not started yet share the limits of its process, which listens for
// clients, operators and posts itself, and passes their requests to Handlers.
func (s *Server) Within(limits *Limits) { s.limits, s.limitsShared = limits, true }

// Run runs a server until ctx ends or a part fails, and stops it. The banner goes to stdout;
// since is when the process began.
func Run(ctx context.Context, cfg config.Config, log *slog.Logger, stdout io.Writer, since time.Time) error {
	defer heap.Pace(heap.DefaultGrowth)()
	s := New(cfg, log, nil)
	if err := s.Start(ctx); err != nil {
		return err
	}
	if err := s.applyResources(ctx); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		return errors.Join(err, s.Stop(undo))
	}
	took := clock.System.Now().Sub(since)
	log.Info("ready", "listen", s.Addr().String(), "data", cfg.Data, "took", took)
	facts := banner.Facts{Config: s.cfg, Address: s.Addr().String(), Took: took, Warning: s.limits.warning}
	if s.notices != nil {
		facts.Notices = s.notices()
	}
	banner.Write(stdout, facts)

	failure := s.wait(ctx)
	if failure != nil {
		log.Error("a part failed, stopping", "error", failure)
	} else {
		log.Info("stopping", "reason", context.Cause(ctx))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	err := errors.Join(failure, s.Stop(ctx))
	log.Info("stopped")
	return err
}

// wait returns nil when ctx ends, or why a part cannot continue.
func (s *Server) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.failed.Done():
		return context.Cause(s.failed)
	}
}

// Start builds and starts all parts, and returns once requests are served. If it fails, or ctx
// ends before it has completed, it has undone everything. Later, the end of ctx has no effect.
func (s *Server) Start(ctx context.Context) error {
	select {
	case <-s.lifecycle:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { s.lifecycle <- struct{}{} }()
	if s.used || s.draining.Err() != nil {
		return ErrNotNew
	}
	s.used = true

	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)()
	err := s.start(starting)
	if err == nil && starting.Err() != nil {
		err = fmt.Errorf("server: stopped while it was starting: %w", context.Cause(starting))
	}
	if err != nil {
		s.drain()
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		return errors.Join(err, s.stack.Unwind(undo))
	}
	return nil
}

func (s *Server) start(ctx context.Context) error {
	if err := s.cfg.Check(); err != nil {
		return err
	}
	if err := checkData(&s.cfg); err != nil {
		return err
	}
	root, err := s.readRootKey()
	if err != nil {
		return err
	}
	if err := rootkey.Check(s.cfg); err != nil {
		return err
	}
	if s.certificates, err = certificate.Open(&s.cfg, root, s.log); err != nil {
		return err
	}
	// First the port: starting a second server by mistake should report the port, not a locked
	// store. No request is served yet.
	if err := s.listen(ctx); err != nil {
		return err
	}
	if !s.limitsShared {
		s.limits = NewLimits(s.cfg, s.log)
	}
	parts, err := s.build(ctx, s.deps())
	if err != nil {
		return err
	}
	if !s.limitsShared {
		if err := s.serveProfiles(ctx); err != nil {
			return err
		}
	}
	s.notices, s.save = parts.Notices, parts.Save
	if err := s.serveOperators(ctx, parts); err != nil {
		return err
	}
	if err := s.serveIngest(ctx, parts); err != nil {
		return err
	}
	s.serveFunctions(parts)
	s.serve(parts)
	return s.watchCertificates(ctx)
}

func (s *Server) deps() Deps {
	deps := Deps{
		Config:   s.cfg,
		Log:      s.log,
		Clock:    clock.System,
		Draining: s.draining.Done(),
		OnStop:   s.stack.Push,
		Limits:   s.limits,
		URL:      banner.Reachable(s.cfg.TLS(), s.listener.Addr().String()),
		Port:     portOf(s.listener.Addr()),
	}
	if s.cfg.Clock == config.VirtualClock {
		deps.Virtual = clock.NewVirtual(clock.System.Now())
		deps.Clock = deps.Virtual
	}
	seed := s.cfg.JitterSeed
	if seed == 0 {
		seed = clock.RandomSeed()
	}
	s.log.Debug("jitter", "seed", seed)
	deps.Jitter = clock.NewJitter(seed)
	return deps
}

// Stop drains the server: readiness fails, no connection is accepted, requests and attempts in
// progress complete, everything is stopped in reverse order. When ctx ends, the rest is cut
// off, and reported as shutdown.ErrAbandoned.
func (s *Server) Stop(ctx context.Context) error {
	s.drain()
	select {
	case <-s.lifecycle:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { s.lifecycle <- struct{}{} }()
	return s.stack.Unwind(ctx)
}

// Drain ends long polls and other waiting requests now. It must be followed by a Stop, or the
// end of the process.
func (s *Server) Drain() { s.drain() }

// Save has a started server write what it has only in memory, as Stop does, for the process that
// takes its state over before that. It returns when ctx ends at the latest; Stop waits for what is still being written.
func (s *Server) Save(ctx context.Context) error {
	if s.save == nil {
		return nil
	}
	return s.save(ctx)
}

// Handlers answer the requests of a started server, by the listener that they come to.
type Handlers struct {
	Clients   http.Handler
	Operators http.Handler // at --admin-listen; nil: there is none, and Clients answers what it would
	Posts     http.Handler // at --ingest-listen; nil: no posts are taken
}

// Handlers serve requests like a started server, without its listeners: within the process.
func (s *Server) Handlers() Handlers { return s.handlers }

// Addr is the address that a started server listens at.
func (s *Server) Addr() net.Addr {
	<-s.lifecycle
	defer func() { s.lifecycle <- struct{}{} }()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/api/lambda/link"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/limit/accounts"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/logs/forward"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server/heap"
	"godwit.dev/godwit/internal/server/ids"
	"godwit.dev/godwit/internal/server/monitoring"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/server/roles"
	"godwit.dev/godwit/internal/server/rootkey"
	"godwit.dev/godwit/internal/server/stored"
	"godwit.dev/godwit/internal/server/streaming"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/jobs"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/keys"
	"godwit.dev/godwit/internal/shard/sources"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/space"
	"godwit.dev/godwit/internal/topic"
)

// state has the parts that openState has opened: the persisted state, and its access control.
type state struct {
	modules

	url       string // prefix of links to this server
	store     store.Store
	space     freeSpace
	journal   *journal.Journal
	engine    *shard.Engine
	envelopes *envelopes
	limits    shard.FunctionLimits

	accounts *accounts.Accounts

	prometheus *monitoring.Prometheus // nil: Prometheus is off
	monitoring *monitoring.Monitoring
	events     deliveryEvents
	functions  functionEvents
	listeners  *laterEvents // of events, for listeners that are made later

	credentials credentials // all except the root's
	principals  identity.Principals
	sessions    *roles.Sessions
	authorizer  *authorize.Authorizer
}

// modules are the kernel's modules beside the engine.
type modules struct {
	kms             *keys.Module
	identities      *identity.Module
	texts           *texts.Module
	jobs            *jobs.Module
	sources         *sources.Module
	stacks          *stacks.Module
	logs            *logs.Logs
	forwarder       *forward.Forwarder
	deliveryStreams *streaming.Streaming

	links link.Tokens
}

// openState opens the store and loads the state.
func openState(ctx context.Context, deps Deps) (*state, error) {
	st, guard, err := openStore(deps)
	if err != nil {
		return nil, err
	}
	s := &state{
		url: strings.TrimRight(cmp.Or(deps.Config.PublicURL, deps.URL), "/"), store: st, space: guard, limits: functionLimits(deps.Config),
		prometheus: monitoring.NewPrometheus(monitoring.PrometheusOptions{Config: deps.Config, Store: st, Low: guard.full, Limits: deps.Limits.stats, Spans: deps.countSpans()}),
		listeners:  &laterEvents{},
	}
	var ended atomic.Bool // a request that is still carried out had its connection closed before
	s.journal = journal.Open(journal.Options{
		Store: st, Observe: deps.Committed, Logger: deps.Log, Fatal: deps.storeFailed, Replicated: deps.World.Replicated, Synced: s.prometheus.Syncs(),
		Closed: func() {
			if deps.World.Closed != nil {
				deps.World.Closed()
			}
			ended.Store(true)
		},
		Abandoned: func() bool { return ended.Load() || !deps.owned() },
	})
	deps.OnStop("journal", func(context.Context) error {
		s.journal.Close()
		return nil
	})
	sealing, err := rootKeyOf(deps).Open(s.journal)
	if err != nil {
		return nil, err
	}
	err = stored.Keep(ctx, stored.Options{Production: deps.Config.Production, Data: deps.Config.Data, Store: st, Journal: s.journal, Sealing: sealing, Clock: deps.Clock, Logger: deps.Log})
	if err != nil {
		return nil, err
	}
	k := kernel.New(kernel.Options{Journal: s.journal, Clock: deps.Clock, Logger: deps.Log, Full: guard.full, Fatal: deps.exit})
	s.modules = newModules(deps, k, sealing, func(data ...metrics.Datapoint) error { return s.monitoring.Reader.Put(data...) })
	s.monitoring = monitoring.New(monitoring.Options{
		Config: deps.Config, Kernel: k, Clock: deps.Clock, Logger: deps.Log, Fatal: deps.exit, Series: s.prometheus.Series(), NewID: ids.New, Held: deps.hold.Held,
	})
	s.credentials = chain(s.identities.Credential, deps.Keys)
	s.principals = identity.Principals{Module: s.identities, Enforced: deps.Config.Enforce}
	s.sessions = &roles.Sessions{
		Identities: s.identities, Clock: deps.Clock, Strict: deps.Config.Enforce, Environments: keys.NewEnvironments(s.kms, s.principals.BindPrincipal),
	}
	eventLog := deliver.NewEventLog(deps.Log, clock.NewJitter(clock.RandomSeed()), s.logs, s.sessions.DeliveryStatus())
	s.events = deliveryEvents{eventLog, s.listeners}
	if deps.Config.Metrics {
		s.events = append(s.events, s.monitoring)
	}
	if record := s.monitoring.FunctionEvents(); record != nil {
		s.functions = append(s.functions, record)
	}
	if s.prometheus != nil {
		s.events = append(s.events, s.prometheus)
		s.functions = append(s.functions, s.prometheus.FunctionEvent)
	}
	if err := s.openEngine(deps, k, sealing, eventLog); err != nil {
		return nil, err
	}
	return s, nil
}

// save is Parts.Save.
func (s *state) save(ctx context.Context) error {
	return saveWithin(ctx, s.engine.Kernel, func() error {
		s.logs.Save()
		return s.monitoring.Save()
	})
}

var errSavedAtClose = errors.New("the state is being closed, which saves the rest")

// saveWithin waits for save until ctx ends. What goes on after that is under way in the kernel, whose
// Close waits for it before the journal is closed.
func saveWithin(ctx context.Context, k *kernel.Kernel, save func() error) error {
	saved := make(chan error, 1)
	k.GoBackground(func() { saved <- save() })
	select {
	case err := <-saved:
		return err
	case <-k.Stopping:
		return errSavedAtClose
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newModules makes them, in the order in which they are loaded. record takes the values that log events make.
func newModules(deps Deps, k *kernel.Kernel, sealing *seal.Keys, record func(data ...metrics.Datapoint) error) modules {
	m := modules{
		kms:             keys.New(k, sealing),
		identities:      identity.New(k, identity.Options{Sealer: sealing.Sealer("identity"), Clock: deps.Clock, Orphaned: orphaned(deps)}),
		texts:           texts.New(k, texts.Options{Sandbox: deps.Config.SMS.Sandbox, Sealer: sealing.Sealer(texts.Purpose)}),
		jobs:            jobs.New(k, sealing.Sealer(jobs.Purpose)),
		sources:         sources.New(k, sealing.Sealer(sources.Purpose)),
		stacks:          stacks.New(k, sealing.Sealer(stacks.Purpose), refusal.Text),
		logs:            logs.New(k, logs.Options{MaxBytes: deps.Config.LogsMaxBytes, Record: record}),
		deliveryStreams: streaming.New(k, sealing, deps.Config),
		links:           link.New(sealing.Sealer(link.Purpose)),
	}
	counted := record
	if !deps.Config.Metrics {
		counted = nil
	}
	m.forwarder = forward.New(forward.Options{Logs: m.logs, Kernel: k, Clock: deps.Clock, Logger: deps.Log, Record: counted})
	deps.OnStop("delivery streams", func(context.Context) error { // after the engine, which may still deliver to them
		m.deliveryStreams.Close()
		return nil
	})
	return m
}

// openEngine loads the state into the engine, and refuses a clock that is behind it.
func (s *state) openEngine(deps Deps, k *kernel.Kernel, sealing *seal.Keys, eventLog *deliver.EventLog) (err error) {
	s.envelopes = &envelopes{url: s.url}
	s.accounts = accounts.New(deps.accountLimits, clock.System.Now)
	moves := roles.NewMoves(deps.Clock, deps.Config.Enforce)
	s.engine, err = shard.Open(shard.Options{
		MayMove: moves.May, Begin: deps.hold.Begin,
		Published: s.events.Published, Audited: eventLog.Audited,
		Sealing: sealing, Encryption: keys.NewMessages(s.kms, deps.Clock, deps.Config.Production),
		Kernel: k, Cooldowns: deps.Config.SQSCooldowns, Strict: deps.Config.Production,
		MaxTopics: deps.Config.MaxTopics, Accounts: s.accounts,
		TopicLimits: topic.Limits{
			Subscriptions: deps.Config.MaxSubscriptions, FilterPolicies: deps.Config.MaxFilterPolicies, Replays: deps.Config.MaxReplays,
		},
		FunctionLimits: s.limits, FunctionUpdates: deps.Config.LambdaUpdateTime, Draw: deps.Jitter.Float64,
		History: deps.Config.DeliveryHistory, TwoStep: deps.World.TwoStep, Events: s.monitoring.Queues.Add, Accepted: s.functions.accepted,
		NewID: ids.New, Render: s.envelopes.render, Sign: s.envelopes.sign,
	})
	s.authorizer = &authorize.Authorizer{Identities: s.identities, Resources: resources{s.engine, s.identities, s.tagged()}, Current: s.identities.Current}
	moves.Open(s.authorizer, err)
	if err != nil {
		return err
	}
	deps.OnStop("engine", func(context.Context) error { return s.engine.Close() })
	if deps.World.Store == nil { // a simulated server shares the process with others
		if deps.Config.Store != config.MemoryStore {
			debug.FreeOSMemory() // the garbage of loading the state
		}
		deps.OnStop("memory", heap.Release())
	}
	go func() {
		<-deps.Draining
		s.engine.Drain()
	}()
	if deps.Virtual != nil {
		deps.Virtual.SetAtLeast(s.engine.Latest())
		deps.Virtual.SetAtLeast(s.monitoring.Latest())
	} else if ahead := s.engine.Latest().Sub(deps.Clock.Now()); ahead > maxAhead {
		return fmt.Errorf("the data in %s is from a clock %s ahead of this machine's, and would stand still until then: "+
			"set the clock, go on with godwit dev --clock virtual, or choose another directory (--data)",
			deps.Config.Data, ahead.Round(time.Second))
	}
	return s.envelopes.open(deps, s.engine)
}

// freeSpace monitors the disk, if the state is on one.
type freeSpace struct {
	guard  *space.Guard
	low    func() bool  // of a simulated disk
	damage func() error // describes unreadable parts of the store
}

func (f freeSpace) full() bool {
	return f.guard != nil && f.guard.Low() || f.low != nil && f.low()
}

func (f freeSpace) checks() []admin.Check {
	if f.guard == nil {
		return nil
	}
	return []admin.Check{{Name: "disk", Failing: func() error {
		if ok, why := f.guard.Health(); !ok {
			return errors.New(why)
		}
		return nil
	}}, {Name: "store", Failing: f.damage}}
}

func openStore(deps Deps) (store.Store, freeSpace, error) {
	if open := deps.World.Store; open != nil {
		st, low, err := open()
		if err != nil {
			return nil, freeSpace{}, err
		}
		deps.OnStop("store", func(context.Context) error { return st.Close() })
		return st, freeSpace{low: low}, nil
	}
	if deps.Config.Store == config.MemoryStore {
		return memory.New(), freeSpace{}, nil
	}
	if err := os.MkdirAll(deps.Config.Data, 0o700); err != nil {
		return nil, freeSpace{}, fmt.Errorf("the data directory cannot be made (--data): %w", err)
	}
	guard, err := space.Open(deps.Config.Data, space.Options{Logger: deps.Log})
	if err != nil {
		return nil, freeSpace{}, err
	}
	deps.OnStop("space guard", func(context.Context) error {
		guard.Close()
		return nil
	})
	st, err := pebble.Open(filepath.Join(deps.Config.Data, recovery.StoreName), pebble.Options{
		Logger: deps.Log, OnDiskFull: guard.Release, MaxOpenFiles: deps.Limits.shares.Store,
		AcceptLoss: deps.Config.AcceptDataLoss, Describe: recovery.Describe,
	})
	if err != nil {
		return nil, freeSpace{}, err
	}
	deps.OnStop("store", func(context.Context) error { return st.Close() })
	if err := recovery.RefuseMember(st); err != nil {
		return nil, freeSpace{}, fmt.Errorf("%s cannot be served by one machine alone: %w: start the node (godwit serve --cluster-peers, godwit dev --nodes 3 with the directory above), "+
			"or make a copy for a single machine (godwit cluster copy --to DIR)", deps.Config.Data, err)
	}
	guard.WhileLow(func() {
		if err := st.Reclaim(); err != nil {
			deps.Log.Error("the space of deleted messages cannot be given back", "error", err)
		}
	})
	return st, freeSpace{guard: guard, damage: st.Damage}, nil
}

// onDisk reports that the state is in Config.Data.
func onDisk(deps Deps) bool {
	return deps.World.Store == nil && deps.Config.Store != config.MemoryStore
}

// rootKeyOf says where the root key is that the state is sealed with.
func rootKeyOf(deps Deps) rootkey.Source {
	return rootkey.Source{
		Config: deps.Config, OnDisk: onDisk(deps), Replicated: deps.World.Replicated, Root: deps.World.Root, Clock: deps.Clock, Log: deps.Log,
	}
}

// newToken makes a secret of the length and alphabet of AWS's.
func newToken() string {
	secret := make([]byte, 144)
	_, _ = rand.Read(secret) // it never fails
	return hex.EncodeToString(secret)
}

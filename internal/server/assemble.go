package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/api/cloudwatch"
	"godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/api/kms"
	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/api/lambda/access"
	logsapi "godwit.dev/godwit/internal/api/logs"
	"godwit.dev/godwit/internal/api/mailpages"
	"godwit.dev/godwit/internal/api/sns"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/api/sts"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/deliver"
	firehosesender "godwit.dev/godwit/internal/deliver/firehose"
	mailsender "godwit.dev/godwit/internal/deliver/mail"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server/heap"
	"godwit.dev/godwit/internal/server/monitoring"
	"godwit.dev/godwit/internal/server/operating"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/server/roles"
	"godwit.dev/godwit/internal/server/senders"
	"godwit.dev/godwit/internal/server/stored"
	"godwit.dev/godwit/internal/server/streaming"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/keys"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/sigv4"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/space"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/wire"
)

// Deps is what every part may use.
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
	// Fail ends the server: a part cannot go on. The first call counts.
	Fail func(error)
	// Keys gives access keys beside those of the server itself; nil: there are no others.
	// It refuses with sigv4.ErrUnknownKey.
	Keys func(accessKey, sessionToken string) (sigv4.Credential, error)
	// Committed sees every change of the store, sealed, in order and before it is
	// applied; may be nil.
	Committed func(sealed []byte)
	// World is what the server meets outside of the process.
	World World
	// OnStop registers how to stop what was just started. The calls are made
	// in reverse order, each once, also when a later part fails to start.
	// They give up waiting when their context ends.
	OnStop func(name string, stop func(context.Context) error)
}

// ownPorts are the ports that the server listens at.
func (d *Deps) ownPorts() []uint16 {
	ports := []uint16{d.Port}
	for _, address := range [...]string{d.Config.Pprof, d.Config.AdminListen, d.Config.ACMEHTTP} {
		if _, text, err := net.SplitHostPort(address); err == nil {
			if port, err := strconv.ParseUint(text, 10, 16); err == nil {
				ports = append(ports, uint16(port))
			}
		}
	}
	return ports
}

// World stands in for the machine where a test simulates it. What is nil is the real
// thing.
type World struct {
	// Store opens the store; full reports that there is little room for it.
	Store func() (st store.Store, full func() bool, err error)
	// Dial makes the connections to HTTP endpoints and to functions elsewhere.
	Dial limit.Dial
	// Mails takes mails further, whatever the settings name.
	Mails mailsender.Transport
	// Exit ends the process, after a failure that it cannot go on from.
	Exit func(error)
	// Root is the root key of what Store opens; nil: one is drawn.
	Root *seal.Root
	// Replicated says that other nodes may take the store over: what is not durable in it
	// is not answered for.
	Replicated bool
	// TwoStep makes transfers between shards as where they do not share a commit.
	TwoStep bool
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
	// Refused is told of each request that the guard refuses; may be nil.
	Refused func(reason string)
	// Admin answers patterns of http.ServeMux under /_godwit/.
	Admin map[string]http.Handler
	// Operator refuses who may not ask for what is under /_godwit/, or for metrics; nil:
	// where signatures are verified, everybody. It has read the body, and puts another
	// one in its place.
	Operator func(w http.ResponseWriter, r *http.Request) error
	// Console answers patterns of http.ServeMux with the web console, to anybody: what it
	// shows it asks Admin for.
	Console map[string]http.Handler
	// Operated is told of requests that are answered without asking who makes them; may
	// be nil.
	Operated func(r *http.Request)
	// Metrics answers GET /metrics; nil: nothing does.
	Metrics http.Handler
	// Functions gives the connections of functions, which are answered by Wire alone;
	// nil: there are none.
	Functions net.Listener
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

// Assemble builds the real server.
func Assemble(ctx context.Context, deps Deps) (Parts, error) {
	st, guard, err := openStore(deps)
	if err != nil {
		return Parts{}, err
	}
	url := strings.TrimRight(cmp.Or(deps.Config.PublicURL, deps.URL), "/")
	signed := &envelopes{url: url}
	var syncs atomic.Pointer[monitoring.Prometheus] // set once metrics are on
	log := journal.Open(journal.Options{Store: st, Observe: deps.Committed, Logger: deps.Log, Fatal: deps.storeFailed, Awaited: deps.World.Replicated, Synced: func(took time.Duration) {
		if counting := syncs.Load(); counting != nil {
			counting.Synced(took)
		}
	}})
	deps.OnStop("journal", func(context.Context) error {
		log.Close()
		return nil
	})
	sealing, err := openSealing(deps, log)
	if err != nil {
		return Parts{}, err
	}
	err = stored.Keep(ctx, stored.Options{Production: deps.Config.Production, Store: st, Journal: log, Sealing: sealing, Clock: deps.Clock, Logger: deps.Log})
	if err != nil {
		return Parts{}, err
	}
	k := kernel.New(kernel.Options{Journal: log, Clock: deps.Clock, Logger: deps.Log, Full: guard.full, Fatal: deps.exit})
	kmsKeys := keys.New(k, sealing)
	identities := identity.New(k, identity.Options{Sealer: sealing.Sealer("identity"), Clock: deps.Clock, Orphaned: orphaned(deps)})
	ledger := texts.New(k, texts.Options{Sandbox: deps.Config.SMS.Sandbox})
	groups := logs.New(k, logs.Options{MaxBytes: deps.Config.LogsMaxBytes})
	hoses := streaming.New(k, sealing, deps.Config)
	deps.OnStop("delivery streams", func(context.Context) error { // behind the engine, which has them delivered
		hoses.Close()
		return nil
	})
	counting := monitoring.NewPrometheus(monitoring.PrometheusOptions{
		Config: deps.Config, Store: st, Low: guard.full, Groups: groups, Limits: deps.Limits.stats,
	})
	syncs.Store(counting)
	watching := monitoring.New(monitoring.Options{
		Config: deps.Config, Kernel: k, Clock: deps.Clock, Logger: deps.Log, Fatal: deps.exit, Series: counting.Series(), NewID: newID,
	})
	deps.Keys = inTurn(identities.Credential, deps.Keys)
	named := identity.Principals{Module: identities, Enforced: deps.Config.Enforce}
	sessions := &roles.Sessions{
		Identities: identities, Clock: deps.Clock, Strict: deps.Config.Enforce, Environments: keys.NewEnvironments(kmsKeys, named.BindPrincipal),
	}
	eventLog := deliver.NewEventLog(deps.Log, clock.NewJitter(clock.RandomSeed()), groups, sessions.DeliveryStatus())
	lately := &lateEvents{}
	events := deliveryEvents{eventLog, lately}
	if deps.Config.Metrics {
		events = append(events, watching)
	}
	if counting != nil {
		events = append(events, counting)
	}
	var ofFunctions functionEvents
	if record := watching.FunctionEvents(); record != nil {
		ofFunctions = append(ofFunctions, record)
	}
	if counting != nil {
		ofFunctions = append(ofFunctions, counting.FunctionEvent)
	}
	limits := functionLimits(deps.Config)
	moves := roles.NewMoves(deps.Clock, deps.Config.Enforce)
	engine, err := shard.Open(shard.Options{
		MayMove:   moves.May,
		Published: events.Published, Audited: eventLog.Audited,
		Sealing: sealing, Encryption: keys.NewMessages(kmsKeys, deps.Clock, deps.Config.Production),
		Kernel: k, Cooldowns: deps.Config.SQSCooldowns, Strict: deps.Config.Production,
		MaxTopics: deps.Config.MaxTopics,
		TopicLimits: topic.Limits{
			Subscriptions: deps.Config.MaxSubscriptions, FilterPolicies: deps.Config.MaxFilterPolicies, Replays: deps.Config.MaxReplays,
		},
		FunctionLimits: limits, FunctionUpdates: deps.Config.LambdaUpdateTime, Draw: deps.Jitter.Float64,
		History: deps.Config.DeliveryHistory, TwoStep: deps.World.TwoStep, Events: watching.Queues.Add, Accepted: ofFunctions.accepted,
		NewID: newID, Render: signed.render, Sign: signed.sign,
	})
	moves.Open(&authorize.Authorizer{Identities: identities, Resources: resources{engine, identities, hoses}}, err)
	if err != nil {
		return Parts{}, err
	}
	deps.OnStop("engine", func(context.Context) error { return engine.Close() })
	if deps.World.Store == nil { // what is simulated shares the process with much else
		if deps.Config.Store != config.MemoryStore {
			debug.FreeOSMemory() // what reading the state has left behind
		}
		deps.OnStop("memory", heap.Release())
	}
	go func() {
		<-deps.Draining
		engine.Drain()
	}()
	if deps.Virtual != nil {
		deps.Virtual.SetAtLeast(engine.Latest())
		deps.Virtual.SetAtLeast(watching.Latest())
	} else if ahead := engine.Latest().Sub(deps.Clock.Now()); ahead > maxAhead {
		return Parts{}, fmt.Errorf("the data in %s is from a clock %s ahead of this machine's, and would stand still until then: "+
			"set the clock, go on with godwit dev --clock virtual, or choose another directory (--data)",
			deps.Config.Data, ahead.Round(time.Second))
	}

	if err := signed.open(deps, engine); err != nil {
		return Parts{}, err
	}
	asked := &authorize.Authorizer{Identities: identities, Resources: resources{engine, identities, hoses}}
	acting := sessions.Acting(asked)
	sockets, err := newNetwork(deps)
	if err != nil {
		return Parts{}, err
	}
	pool, processes, err := newPool(deps, engine, limits, roles.FunctionLogs{Logs: groups, Sessions: sessions}, sockets, url, ofFunctions.add, sessions)
	if err != nil {
		return Parts{}, err
	}
	counting.Ask(engine, pool, sockets)
	runEvents(deps, engine, limits, pool, ofFunctions.add, acting)
	trust, err := senders.Trust(deps.Config.EndpointCA)
	if err != nil {
		return Parts{}, err
	}
	sending, err := senders.Open(senders.Options{
		Config: deps.Config, Clock: deps.Clock, Engine: engine, Ledger: ledger, Receipt: counting.TextReceipt,
		Ended: func(e *deliver.Event) { events.Delivery(e) }, PublicURL: url, Trust: trust, Own: deps.ownPorts(),
		Connections: deps.Limits.outgoing, Dial: deps.World.Dial, Mails: deps.World.Mails,
	})
	if err != nil {
		return Parts{}, err
	}
	events = append(events, sending.Texts.Book)
	deps.OnStop("endpoints' connections", func(context.Context) error {
		sending.Close()
		return nil
	})
	if err := startStreams(deps, hoses, trust, watching, groups, engine, &roles.Service{Sessions: sessions, Principal: "firehose.amazonaws.com", Session: "AWSFirehose"}); err != nil {
		return Parts{}, err
	}
	sending.ByProtocol[topic.Firehose] = firehosesender.New(hoses, &roles.Service{
		Sessions: sessions, Principal: "sns.amazonaws.com", Session: "SNS", Authorizer: asked,
	})
	scheduler := deliver.New(deliver.Options{
		Engine: engine, Clock: deps.Clock, Logger: deps.Log, Senders: sending.ByProtocol, Events: events,
		PublicURL: url, Signer: signed.keys.NewSigner(),
		Jitter: deps.Jitter, JitterShare: deps.Config.Jitter,
		HostLimit: deps.Config.EndpointConcurrency, Limit: deps.Config.DeliveryConcurrency,
	})
	deps.OnStop("deliveries", scheduler.Stop)
	engine.SetConsumer("sns", scheduler)
	operator := deliver.NewOperator(scheduler, engine)
	if err := watching.Start(engine, sessions.Alarms(asked)); err != nil {
		return Parts{}, err
	}

	pollers, err := startPollers(deps, engine, pool, acting)
	if err != nil {
		return Parts{}, err
	}
	functions := newLambda(&roles.Functions{Engine: engine, Sessions: sessions, Acting: acting, Failing: pollers.Failing}, pool, processes, limits, named)

	verifier := authentic(deps)
	trail, err := newTrail(deps, groups)
	if err != nil {
		return Parts{}, err
	}
	answers := wire.NewHandler(wire.Options{
		Services: []*wire.Service{
			wire.SQS(sqs.New(sqs.Options{Engine: engine, NewID: newID, FIFORate: deps.Config.SQSFIFORate, DefaultRegion: deps.Config.Region, URLHost: deps.Config.QueueURLHost, Principals: named}).Operations()...),
			wire.SNS(sns.New(sns.Options{Engine: engine, NewID: newID, NewToken: newToken, PublishQuota: deps.Config.MaxPublishes, NoMail: !sending.Mails.Sends(), Texting: sns.Texting{Texts: ledger, Publish: engine.Direct.PublishDirect, Origins: sending.Texts.Origins(), None: !sending.Texts.Sends()}, Principals: named}).Operations()...),
			wire.CloudWatch(cloudwatch.New(cloudwatch.Options{Metrics: watching.Reader, Alarms: watching.Alarms}).Operations()...),
			wire.Logs(logsapi.New(groups).Operations()...),
			wire.Lambda(access.Guarded(functions.Operations())...),
			wire.IAM(iam.New(iam.Options{Engine: identities}).Operations()...),
			wire.STS(sts.New(sts.Options{Engine: identities, Clock: deps.Clock, Web: identityWeb(deps, trust)}).Operations()...),
			wire.KMS(kms.New(kmsKeys, named).Operations()...),
			wire.Firehose(hoses.Operations()...),
		},
		Logger: deps.Log, Clock: deps.Clock, Observe: counting.Observe(),
		Admit: func(call *api.Call) error {
			identities.NoteUse(call.AccessKey, call.Service, call.Region)
			return engine.ServiceFault(call.Service, call.Region, call.Account)
		},
		Authentic: verifier, Known: identities.Known, Audit: audited(trail), Authorize: authorization(deps, identities, engine, kmsKeys, hoses),
		Pace: deps.Limits.pace, Requests: deps.Limits.requests, Answers: deps.Limits.answers,
		DefaultRegion: deps.Config.Region, DefaultAccount: deps.Config.Account,
	})

	signedIn := newSessions(deps)
	gate := operating.New(operating.Options{Config: deps.Config, Clock: deps.Clock, Verifier: verifier, Policies: asked, Trail: trail, Session: sessionOf(signedIn)})
	checks := append(guard.checks(), auditChecks(trail)...)
	own := operating.API(operating.Parts{
		Config: deps.Config, Clock: deps.Clock, Virtual: deps.Virtual, URL: url, Engine: engine, Totals: watching.Queues, Alarms: watching.Alarms, Checks: checks,
		Listen: lately.set, Gate: gate, Operator: operator,
	})
	maps.Copy(own, map[string]http.Handler{
		"GET " + adminPrefix + "clock":             admin.ReadClock(deps.Clock, deps.Virtual),
		"POST " + adminPrefix + "clock":            admin.Clock(deps.Virtual, log.Sync),
		"GET " + adminPrefix + "deliveries":        admin.Deprecated(admin.Deliveries(engine)),
		"GET " + lambda.DownloadPath:               admin.FunctionCode(functions, deps.Clock),
		"GET " + adminPrefix + "faults":            admin.ListFaults(engine),
		"POST " + adminPrefix + "keys/rotate-root": admin.RotateRoot(rotation(deps.Config, kmsKeys.Rewrap)),

		"POST " + adminPrefix + "faults": faults(deps.Config, engine),
		"GET " + adminPrefix + "queue":   admin.Deprecated(admin.Queue(engine, watching.Queues)),

		"GET " + adminPrefix + "outbox":                sending.Mails.Handler(),
		"GET " + adminPrefix + "outbox/push":           sending.Pushes.Handler(),
		"GET " + adminPrefix + "outbox/sms":            sending.Texts.Handler(),
		"POST " + adminPrefix + "sms/receive":          sending.Texts.Receiver(),
		"GET " + adminPrefix + "events":                admin.Deprecated(admin.Events(engine)),
		"GET " + adminPrefix + "backlog":               admin.Deprecated(admin.Backlog(engine)),
		"POST " + adminPrefix + "subscriptions/pause":  admin.Deprecated(admin.Pause(operator, engine)),
		"POST " + adminPrefix + "subscriptions/resume": admin.Deprecated(admin.Resume(operator, engine)),
		"POST " + adminPrefix + "deliveries/retry":     admin.Retry(engine),
		"POST " + adminPrefix + "deliveries/drop":      admin.Drop(operator),
	})
	pages, err := consolePages(deps, signedIn, gate)
	if err != nil {
		return Parts{}, err
	}
	return Parts{
		Wire: sending.Texts.Callbacks(mailpages.Serve(mailpages.Options{Engine: engine, NewToken: newToken, Logger: deps.Log}, signed.keys.Serve(answers))), Forbid: answers.Forbid, Vouched: answers.Vouched, Refused: counting.Refusals(),
		Operator:  gate.Operator(),
		Console:   pages,
		Operated:  operated(deps, trail),
		Admin:     own,
		Metrics:   counting.Handler(),
		Functions: sockets.API(),
		Checks:    checks,
		Notices:   func() []string { return functionNotices(deps.Config, processes) },
	}, nil
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

// storeFailed tells of a failure of the store, and ends the process.
func (d Deps) storeFailed(err error) {
	d.Log.Error("the store failed; ending the process, a restart recovers everything acknowledged", "error", err)
	d.exit(err)
}

// freeSpace watches the disk, if the state is on one.
type freeSpace struct {
	guard  *space.Guard
	low    func() bool  // of a simulated disk
	damage func() error // says what of the store is unreadable
}

func (f freeSpace) full() bool {
	return f.guard != nil && f.guard.Low() || f.low != nil && f.low()
}

func (f freeSpace) checks() []admin.Check {
	if f.guard == nil {
		return nil
	}
	return []admin.Check{{Name: "disk", Failing: func(context.Context) error {
		if ok, why := f.guard.Health(); !ok {
			return fmt.Errorf("%s", why)
		}
		return nil
	}}, {Name: "store", Failing: func(context.Context) error { return f.damage() }}}
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
	guard.WhileLow(func() {
		if err := st.Reclaim(); err != nil {
			deps.Log.Error("the space of deleted messages cannot be given back", "error", err)
		}
	})
	return st, freeSpace{guard: guard, damage: st.Damage}, nil
}

// newID makes a random UUID (version 4).
func newID() message.ID { return message.ID(uuid.New()) }

// newToken gives a secret of the length and alphabet of AWS's.
func newToken() string {
	secret := make([]byte, 144)
	_, _ = rand.Read(secret) // it gives no error
	return hex.EncodeToString(secret)
}

// A fan-out needs an id for each queue: the random numbers for 16 come at once.
func init() { uuid.EnableRandPool() }

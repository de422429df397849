// Command bench measures a built server over HTTP, beside two reference
// servers in the same run (test/bench/reference), and prints what each message
// costs. docs/performance.md says what the figures mean. Run it in the root of
// the repository:
//
//	go run ./test/bench [--server PATH] [--only send,cycle] [--quick]
//
// It loads only loopback addresses, and every loop in it is bounded. It reads
// the machine's clock directly: it is a load generator, not a part of the
// server.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

// sizes say how much a run does.
type sizes struct {
	rounds       int
	warm, window time.Duration

	size        int // bytes of a body
	escapes     bool
	connections []int
	batches     []int

	depth, depthSize, probe int           // messages, bytes of a body, messages
	settle                  time.Duration // at most, before memory is read
	purged                  time.Duration // after a purge until the disk is judged

	fifoDepth, groups, locked int // messages, groups that are free, messages of a locked one
	queues, busy              int

	subscriptions []int
	deliveries    int // messages that a fan-out delivers in all

	pollers, wakes int
	idle           time.Duration

	rates []int // messages/s, beside half the maximum

	posts     int // deliveries over HTTP
	publishes int // a second, to see what a delivery takes
	hanging   int // endpoints that never answer

	functions, cold int // that are idle; that start
	stacks          int // of few resources

	logEvents         int
	hoseRecords       int
	idleSubscriptions int

	quiet  int           // queues with a message that are left alone
	minute time.Duration // of the server's monitoring; less shows nothing
	space  int           // bytes that are sent and deleted
	freed  time.Duration // until the disk is judged
	backup time.Duration // from one backup in a bucket to the next
}

var fullSizes = sizes{
	rounds: 5, warm: time.Second, window: 3 * time.Second,
	size: 1024, connections: []int{16, 64}, batches: []int{1, maxBatch},
	depth: 10_000_000, depthSize: 256, probe: 50_000, settle: 2 * time.Minute, purged: 60 * time.Second,
	fifoDepth: 1_000_000, groups: 1000, locked: 216_000,
	queues: 100_000, busy: 1000,
	subscriptions: []int{1, 10, 100}, deliveries: 100_000,
	pollers: 2000, wakes: 500, idle: 10 * time.Second,
	rates: []int{2000},
	posts: 20_000, publishes: 1000, hanging: 1000,
	functions: 1000, cold: 50, stacks: 1000,
	logEvents: 10_000_000, hoseRecords: 800_000, idleSubscriptions: 100_000,
	quiet: 200_000, minute: time.Minute, space: 800 << 20, freed: 2 * time.Minute, backup: 20 * time.Second,
}

// quickSizes are enough to show that everything works, and nothing more.
var quickSizes = sizes{
	rounds: 1, warm: 20 * time.Millisecond, window: 120 * time.Millisecond,
	size: 1024, connections: []int{16}, batches: []int{1, maxBatch},
	depth: 5000, depthSize: 256, probe: 1000, settle: 100 * time.Millisecond, purged: 200 * time.Millisecond,
	fifoDepth: 3000, groups: 100, locked: 500,
	queues: 500, busy: 50,
	subscriptions: []int{1, 10}, deliveries: 2000,
	pollers: 100, wakes: 50, idle: 100 * time.Millisecond,
	rates: []int{500},
	posts: 500, publishes: 200, hanging: 20,
	functions: 20, cold: 3, stacks: 20,
	logEvents: 20_000, hoseRecords: 5_000, idleSubscriptions: 500,
	quiet: 500, minute: 200 * time.Millisecond, space: 4 << 20, freed: 200 * time.Millisecond, backup: time.Second,
}

type scenario struct {
	name, help string
	run        func(context.Context, *bench) error
}

var scenarios = []scenario{
	{"send", "SendMessage and SendMessageBatch on each number of connections", runSend},
	{"cycle", "send, receive and delete", runCycle},
	{"monitoring", "the cycle with metrics and without", runMonitoring},
	{"open", "sends by a schedule at half the maximum rate, latency from the time when each was due", runOpen},
	{"fanout", "publish to raw SQS subscriptions, until all is delivered", runFanout},
	{"poll", "idle long polls on a queue each, and the time to wake one", runPoll},
	{"fifo", "a FIFO queue beside a standard one at depth, and beside a locked group", runFIFO},
	{"queues", "many queues, of which few are busy: work and memory", runQueues},
	{"subscriptions", "the memory of many subscriptions without messages", runSubscriptions},
	{"http", "deliveries to a web endpoint, and how long after the publish", runHTTP},
	{"mail", "mails to a relay on the same machine", runMail},
	{"sms", "text messages to an SMSC over one bind", runSMS},
	{"isolation", "an endpoint that answers beside many that hang", runIsolation},
	{"push", "push messages to a stand-in of APNs, over one connection", runPush},
	{"functions", "functions that are warm, cold, idle, and fed from a queue", runFunctions},
	{"signatures", "what it costs to verify who has sent a body", runSignatures},
	{"decisions", "what it costs to decide by policies", runDecisions},
	{"cluster", "sends to three nodes beside one", runCluster},
	{"sealing", "sends to a queue with SSE-SQS and to one without, in production", runSealing},
	{"limits", "sends with limits of accounts and without", runLimits},
	{"backups", "sends while backups are kept in a bucket: their cost, and what a lost machine costs", runBackups},
	{"ingest", "posts to a source beside publishes", runIngest},
	{"stacks", "a stack of 200 resources, and many small ones", runStacks},
	{"policies", "filter policies that are made to be hard: to set, to publish past, to start with", runPolicies},
	{"quiet", "many queues with a message each that are left alone: their minutes, a stop, a start", runQuiet},
	{"space", "the disk space after much was received and deleted", runSpace},
	{"logs", "a log group with many events: memory, restarts, and what operations cost", runLogs},
	{"firehose", "records into a delivery stream, until they are in files", runFirehose},
	{"depth", "a queue with many messages: memory, restarts, and what operations cost", runDepth},
	{"operator", "pages, searches, previews and a redrive of a deep queue by the operator's API", runOperator},
	{"purge", "PurgeQueue with few and many messages: its cost, and the disk space afterwards", runPurge},
}

// bench is a run.
type bench struct {
	sizes
	specs    []spec
	dir      string // of the servers' data
	profiles string // directory; empty: none
	report   report
	progress io.Writer
	names    int // of queues and topics, made so far
}

func run(args []string, stdout, stderr io.Writer) error {
	b := &bench{progress: stderr, sizes: fullSizes}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	serverPath := flags.String("server", "", "`path` of the server's binary; built from ./cmd/godwit by default, \"none\" for the references alone")
	serverArgs := flags.String("server-args", "", "more `arguments` of the server, separated by blanks")
	referencePath := flags.String("reference", "", "`path` of the references' binary; built from ./test/bench/reference by default, \"none\" for the server alone")
	var peers []spec
	flags.Func("peer", "`URL[,PID]` of another running SQS-compatible server (also PEER_URL, PEER_PID)", func(s string) error {
		sp, err := parsePeer(s)
		peers = append(peers, sp)
		return err
	})
	only := flags.String("only", "", "`scenarios` to run, separated by commas: "+scenarioNames())
	quick := flags.Bool("quick", false, "small sizes, to see that everything works; the figures say nothing")
	before := flags.String("before", "", "`path` of another binary of the server, to be measured in turn with it: send, cycle, fanout, fifo, poll, http and functions")
	rounds := flags.Int("rounds", 0, "`times` that each figure is measured; the median is quoted (5)")
	window := flags.Duration("window", 0, "length of a measurement (3s)")
	size := flags.Int("size", 0, "`bytes` of a body, except at depth (1024)")
	escapes := flags.Bool("escapes", false, "bodies with quotes in them, as JSON in JSON has")
	depth := flags.Int("depth", 0, "`messages` of the deep queue (10000000)")
	fifoDepth := flags.Int("fifo-depth", 0, "`messages` of the deep FIFO queue (1000000)")
	locked := flags.Int("locked", 0, "`messages` of the locked group (216000)")
	logEvents := flags.Int("log-events", 0, "`events` of the log group (10000000)")
	queues := flags.Int("queues", 0, "`number` of queues of which few are busy (100000)")
	hanging := flags.Int("hanging", 0, "`number` of endpoints that never answer (1000)")
	pollers := flags.Int("pollers", 0, "`number` of idle long polls (2000)")
	rates := flags.String("rates", "", "`messages/s` of the open loop beside half the maximum, separated by commas (2000)")
	markdown := flags.Bool("markdown", false, "print Markdown")
	jsonPath := flags.String("json", "", "write every sample to this `file`")
	fillPath := flags.String("fill", "", "put the results into this `document`, between its markers")
	flags.StringVar(&b.profiles, "profile", "", "fetch profiles of the server's CPU and allocations into this `directory`, in extra rounds that are not counted")
	data := flags.String("data", "", "`directory` below which the servers keep their data; on a disk, or a sync costs nothing")
	limit := flags.Duration("max", 3*time.Hour, "give up after this time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *quick {
		b.sizes = quickSizes
	}
	b.rounds, b.window = cmp.Or(*rounds, b.rounds), cmp.Or(*window, b.window)
	b.size, b.escapes = cmp.Or(*size, b.size), *escapes
	b.depth, b.pollers = cmp.Or(*depth, b.depth), cmp.Or(*pollers, b.pollers)
	b.fifoDepth, b.locked = cmp.Or(*fifoDepth, b.fifoDepth), cmp.Or(*locked, b.locked)
	b.logEvents = cmp.Or(*logEvents, b.logEvents)
	b.queues, b.hanging = cmp.Or(*queues, b.queues), cmp.Or(*hanging, b.hanging)
	if b.rounds < 1 || b.window <= 0 || min(b.size, b.depth, b.pollers, b.fifoDepth, b.locked, b.queues, b.hanging, b.logEvents) < 1 {
		return errors.New("sizes must be greater than 0")
	}
	b.probe, b.wakes = min(b.probe, b.depth), min(b.wakes, b.pollers)
	b.busy = min(b.busy, b.queues)
	if *rates != "" {
		b.rates = nil
		for field := range strings.SplitSeq(*rates, ",") {
			rate, err := strconv.Atoi(field)
			if err != nil || rate < 1 {
				return fmt.Errorf("bad rate %q", field)
			}
			b.rates = append(b.rates, rate)
		}
	}
	chosen, err := chooseScenarios(*only)
	if err != nil {
		return err
	}
	if address := os.Getenv("PEER_URL"); address != "" && len(peers) == 0 {
		if pid := os.Getenv("PEER_PID"); pid != "" {
			address += "," + pid
		}
		sp, err := parsePeer(address)
		if err != nil {
			return err
		}
		peers = append(peers, sp)
	}

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	ctx, cancelLimit := context.WithTimeoutCause(ctx, *limit, fmt.Errorf("not finished after %s", *limit))
	defer cancelLimit()
	if b.dir, err = os.MkdirTemp(*data, "bench-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if b.specs, err = b.servers(ctx, *serverPath, strings.Fields(*serverArgs), *referencePath); err != nil {
		return err
	}
	if *before != "" {
		b.specs = append(b.specs, serverSpec(earlierName, earlier, *before, strings.Fields(*serverArgs), b.profiles))
	}
	b.specs = append(b.specs, peers...)
	if len(b.of(subject, durable, inMemory)) == 0 {
		return errors.New("with neither a server nor the references there is nothing to measure")
	}
	if b.report.Facts, err = facts(b.dir, b.sizes, *quick); err != nil {
		return err
	}

	for _, s := range chosen {
		began := time.Now()
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(stderr, "# %s: %s\n", s.name, time.Since(began).Round(100*time.Millisecond))
	}
	b.pairs()
	b.report.text(stdout, *markdown)
	if *fillPath != "" {
		var results strings.Builder
		b.report.text(&results, true)
		err = fill(*fillPath, results.String())
	}
	if *jsonPath != "" {
		err = errors.Join(err, writeJSON(*jsonPath, &b.report))
	}
	return err
}

// servers says how to start the server and the references, which it builds
// where no path is given.
func (b *bench) servers(ctx context.Context, path string, args []string, reference string) (specs []spec, err error) {
	switch path {
	case "none":
	case "":
		if path, err = goBuild(ctx, b.dir, "godwit", "./cmd/godwit"); err != nil {
			return nil, err
		}
		fallthrough
	default:
		specs = append(specs, serverSpec(string(subject), subject, path, args, b.profiles))
	}
	if reference == "none" {
		return specs, nil
	}
	if reference == "" {
		if reference, err = goBuild(ctx, b.dir, "reference", "./test/bench/reference"); err != nil {
			return nil, err
		}
	}
	return append(specs,
		spec{name: "r", role: durable, argv: []string{reference, "--kind", "durable"}},
		spec{name: "m", role: inMemory, argv: []string{reference, "--kind", "memory"}}), nil
}

// serverSpec says how to start a binary of the server.
func serverSpec(name string, is role, path string, args []string, profiles string) spec {
	return spec{name: name, role: is, argv: append([]string{path, "--log-level", "warn"}, args...), pprof: profiles != ""}
}

func scenarioNames() string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return strings.Join(names, ",")
}

func chooseScenarios(only string) ([]scenario, error) {
	if only == "" {
		return scenarios, nil
	}
	var chosen []scenario
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no scenario %q: there are %s", name, scenarioNames())
		}
		chosen = append(chosen, scenarios[i])
	}
	return chosen, nil
}

// facts are what a reader must know to compare the figures with others.
func facts(dir string, z sizes, quick bool) ([]string, error) {
	sync, err := syncTime(dir)
	if err != nil {
		return nil, err
	}
	all := []string{
		fmt.Sprintf("Measured %s: %d cores shared by server and load, %s, %s.",
			time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), machineFacts(), runtime.Version()),
		fmt.Sprintf("Appending 1 KiB to a file and syncing it, one after the other: %.2f ms (median).", milliseconds(sync)),
		fmt.Sprintf("Bodies of %d bytes, medians of %d windows of %s.", z.size, z.rounds, z.window),
	}
	if quick {
		all = append(all, "A quick run: it shows that everything works, its figures say nothing.")
	}
	return all, nil
}

// syncTime is the median time of an append and a sync on the disk below dir.
func syncTime(dir string) (time.Duration, error) {
	file, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	var times histogram
	block := make([]byte, 1024)
	for range 100 {
		began := time.Now()
		if _, err := file.Write(block); err != nil {
			return 0, errors.Join(err, file.Close())
		}
		if err := file.Sync(); err != nil {
			return 0, errors.Join(err, file.Close())
		}
		times.add(time.Since(began))
	}
	return times.quantile(0.5), file.Close()
}

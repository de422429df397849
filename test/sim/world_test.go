package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	mailsender "godwit.dev/godwit/internal/deliver/mail"
)

// history is what a seed led to.
type history struct {
	hash    string
	broken  []string // promises
	lines   []string
	actions int
	crashes int
	counts  map[string]int // of what happened
}

// world is a server, its clients, its disk and its network, of which one seed decides
// everything.
type world struct {
	t       *testing.T
	seed    uint64
	rand    *rand.Rand
	how     settings
	fault   *fault
	ledger  *ledger
	network *network
	disk    *disk
	machine *machine

	calls    []*call // under way, or finished behind one that is not
	receipts []*receipt
	tokens   int
	crashes  int
	over     bool               // there is no server any more
	recent   []*letter          // of FIFO queues, that may be sent again
	taken    map[string]*letter // by the id of the message

	registers       []*register
	keyID           string
	secrets         []secret
	logged          map[string]truth // lines of a log
	posts           map[string]*post // guarded by mu
	deliveryStreams *deliveryStreams

	mu    sync.Mutex // guards what follows
	hash  hash.Hash
	lines []string
	count map[string]int
}

// call is a request under way.
type call struct {
	what string
	done chan struct{}
	got  answer
	then func(a *answer)
}

// actions is how many things happen in a history.
const actions = 150

// simulate runs a history and checks it.
func simulate(t *testing.T, seed uint64, f *fault) (h history) {
	furnish(t)
	t.Run(fmt.Sprint(seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sameRandomness(t, seed)
			w := &world{
				t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), fault: f, ledger: newLedger(), hash: sha256.New(), count: map[string]int{},
				keyID: furnishedKey, logged: map[string]truth{}, deliveryStreams: newDeliveryStreams(), taken: map[string]*letter{}, posts: map[string]*post{},
			}
			w.run()
			h = history{
				hash: hex.EncodeToString(w.hash.Sum(nil)), broken: w.ledger.broken, lines: w.lines, actions: actions, crashes: w.crashes, counts: w.count,
			}
		})
	})
	return h
}

// log adds to the history.
func (w *world) log(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(w.hash, line)
	w.lines = append(w.lines, line)
}

func (w *world) now() time.Time { return w.machine.virtual.Now() }

// stamp is a moment of the clock, as a history tells it.
func stamp(t time.Time) string { return fmt.Sprintf("%.3f", t.Sub(began).Seconds()) }

func (w *world) run() {
	w.how = settings{twoStep: w.rand.IntN(3) == 0, metrics: w.rand.IntN(5) == 0, deliveries: 1 + w.rand.IntN(2)*7, memTable: pick(w, memTables), apart: w.rand.IntN(4) == 0}
	if w.fault != nil && w.fault.twoStep {
		w.how.twoStep = true
	}
	w.network = newNetwork(w.seed, w.attempted)
	for _, hook := range hooks {
		w.network.hosts[hook+".sim"] = hookAnswer
	}
	w.network.hosts["worker.sim"], w.network.hosts["mill.sim"] = functionAnswer, functionAnswer
	w.network.hosts["lake.sim"], w.network.hosts["bucket.sim"] = w.lakeAnswer, w.bucketAnswer
	w.registers = registers(w)
	w.rand.Shuffle(len(w.registers), func(i, j int) { w.registers[i], w.registers[j] = w.registers[j], w.registers[i] })
	w.registers = w.registers[:4] // few, that much happens to
	mem := furnished().CrashClone(vfs.CrashCloneCfg{})
	w.start(&death{left: mem}, began.Add(time.Hour))
	w.log("seed %d: %+v", w.seed, w.how)
	for n := 0; n < actions && len(w.ledger.broken) == 0; n++ {
		w.act()
		synctest.Wait()
		w.hear()
		if w.machine.dead.Load() {
			w.restart()
		}
	}
	if len(w.ledger.broken) == 0 {
		w.runOut()
	}
	if w.over {
		return
	}
	w.finish()
	if err := w.machine.stop(); err != nil && !w.machine.dead.Load() {
		w.ledger.fail("the server does not stop: %v", err)
	}
	synctest.Wait()
}

func hookAnswer(r *request) (int, http.Header, string) {
	switch r.fate {
	case fails:
		return http.StatusInternalServerError, nil, ""
	case forbids:
		return http.StatusForbidden, nil, ""
	default:
		return http.StatusOK, nil, ""
	}
}

func functionAnswer(r *request) (int, http.Header, string) {
	if r.fate == fails || r.fate == forbids {
		return http.StatusOK, http.Header{"X-Amz-Function-Error": {"Unhandled"}}, `{"errorMessage":"simulated"}`
	}
	return http.StatusOK, nil, `"done"`
}

// attempted hears of an attempt at an endpoint.
func (w *world) attempted(a attempt) {
	w.mu.Lock()
	if a.host == "lake.sim" || a.host == "bucket.sim" {
		w.poured(a)
	} else {
		w.ledger.sentTo(a, a.came, w.crashes)
	}
	w.count["attempt that "+a.fate.String()]++
	w.mu.Unlock()
	w.log("  %s %s is sent %s for the %d. time: %s", stamp(a.came), a.host, a.key, a.try, a.fate)
}

// start starts a server on what is on a disk.
func (w *world) start(on *death, now time.Time) {
	mem := on.left
	d := newDisk(mem, on.lost, rand.New(rand.NewPCG(w.seed, uint64(w.crashes)+2)))
	d.told = w.syncFailed
	if w.crashes > 0 && w.rand.IntN(6) == 0 { // one at the start
		d.fails = failing{pick(w, failingKinds), w.rand.IntN(3)}
	}
	var bug *storeBug
	if w.fault != nil && w.fault.store != nil {
		bug = w.fault.store(w)
	}
	m, err := machineOf(mem, d, now, w.how, w.network, func(dead func() bool) mailsender.Transport { return relay{w, dead} }, w.t.TempDir(), bug, slog.New(slog.NewTextHandler(logged{w}, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		w.ledger.fail("the server does not start: %v", err)
		w.over = true
		return
	}
	w.machine, w.disk = m, d
	synctest.Wait()
}

// logged takes an error in the log for a promise that is broken.
type logged struct{ w *world }

func (l logged) Write(p []byte) (int, error) {
	if m := l.w.machine; m == nil || !m.dead.Load() {
		l.w.mu.Lock()
		l.w.ledger.fail("logged: %s", strings.TrimSpace(string(p)))
		l.w.mu.Unlock()
	}
	return len(p), nil
}

// begin sends a request; then hears the answer, in the order in which requests were sent.
func (w *world) begin(what string, r *http.Request, then func(a *answer)) {
	w.log("%s %s", stamp(w.now()), what)
	w.count[strings.Fields(what)[0]]++
	if w.fault != nil && w.fault.request != nil {
		r = w.fault.request(w, r)
	}
	c := &call{what: what, done: make(chan struct{}), then: then}
	m := w.machine
	go func() {
		defer close(c.done)
		c.got = m.do(r)
	}()
	w.calls = append(w.calls, c)
	synctest.Wait()
}

// hear takes the answers that are there.
func (w *world) hear() {
	for len(w.calls) > 0 {
		c := w.calls[0]
		select {
		case <-c.done:
		default:
			return
		}
		w.calls = w.calls[1:]
		w.log("  %s: %d", c.what, c.got.status)
		w.mu.Lock()
		c.then(&c.got)
		w.mu.Unlock()
	}
}

// finish waits for all requests under way.
func (w *world) finish() {
	for _, c := range w.calls {
		<-c.done
	}
	synctest.Wait()
	w.hear()
}

// ask sends a request and waits for its answer.
func (w *world) ask(what string, r *http.Request, then func(a *answer)) {
	w.begin(what, r, then)
	w.finish()
}

// pass moves the clock.
func (w *world) pass(d time.Duration) {
	w.finish()
	if w.machine.dead.Load() {
		return
	}
	w.log("%s + %s", stamp(w.now()), d)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m := w.machine
	over := make(chan error, 1)
	go func() {
		_, err := m.virtual.Advance(ctx, d)
		over <- err
	}()
	for waited := 0; ; waited++ {
		select {
		case err := <-over:
			if err != nil && !m.dead.Load() {
				w.ledger.fail("the clock does not move: %v", err)
			}
			return
		case <-time.After(100 * time.Millisecond):
			if m.dead.Load() || waited > 10*60*20 {
				cancel()
			}
		}
	}
}

// restart starts over on what a crash has left.
func (w *world) restart() {
	w.finish()
	m := w.machine
	d := m.died.Load()
	now := m.virtual.Now()
	w.log("%s crash", stamp(now))
	if err := m.stop(); err != nil {
		w.log("  its end: %v", err)
	}
	synctest.Wait()
	w.mu.Lock()
	w.ledger.crashed(d.at, w.crashes)
	w.crashes++
	w.count["crash"]++
	w.mu.Unlock()
	w.receipts = nil
	w.start(d, now.Add(time.Duration(w.rand.IntN(5000))*time.Millisecond))
}

// reboot ends a server well, and starts over.
func (w *world) reboot() {
	w.finish()
	if w.machine.dead.Load() {
		return
	}
	w.log("%s reboot", stamp(w.now()))
	w.count["reboot"]++
	now := w.now()
	if err := w.machine.stop(); err != nil {
		w.ledger.fail("the server does not stop: %v", err)
	}
	synctest.Wait()
	w.mu.Lock()
	w.crashes++ // an attempt under way is cut off, and made again at once
	for _, f := range w.ledger.flights {
		if f.tries > 0 {
			f.crash = -1
		}
	}
	w.mu.Unlock()
	w.start(&death{left: w.disk.mem, lost: w.disk.lost}, now.Add(time.Duration(w.rand.IntN(3000))*time.Millisecond))
}

// parse reads an answer in JSON; what is not there is empty.
func parse[T any](a *answer) (out T) {
	if len(a.body) > 0 {
		_ = json.Unmarshal(a.body, &out)
	}
	return out
}

package sim

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	mailsender "godwit.dev/godwit/internal/deliver/mail"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/store"
)

const (
	region   = "us-east-1"
	account  = "000000000000"
	address  = "127.0.0.1:4566"
	storeDir = "data"
)

// rootKey is what all machines seal with: it outlives those that crash, as a file would.
var rootKey = seal.NewRoot()

// signingPair is the one that all machines sign with: making one costs more than a history.
var signingPair = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// machine is one process of the server, from its start to its end. One that has
// crashed continues without being seen: nobody hears its answers, nobody gets its
// requests, and its disk is another one's.
type machine struct {
	disk    *disk
	virtual *clock.Virtual
	parts   server.Parts
	dead    atomic.Bool
	died    atomic.Pointer[death]

	draining chan struct{}
	stops    []func(context.Context) error
}

// death is what a crash leaves.
type death struct {
	left *vfs.MemFS
	lost lostPages // of what is left
	at   time.Time // bubble's
}

// buried reports that the machine died before now. What happens at the very moment of
// its death comes before, so that the order of things at one moment does not matter.
func (m *machine) buried() bool {
	d := m.died.Load()
	return d != nil && d.at.Before(time.Now())
}

// settings are what of the server differs between histories.
type settings struct {
	twoStep    bool // transfers between shards do not share a commit
	metrics    bool
	deliveries int // attempts at once
	memTable   int64
	apart      bool // a commit is applied, then synced, as with a store that cannot do both at once
}

// machineOf starts a server on what is on a disk. data is for what is not in the store.
func machineOf(mem *vfs.MemFS, d *disk, now time.Time, how settings, n *network, mails func(dead func() bool) mailsender.Transport, data string, bug *storeBug, log *slog.Logger) (*machine, error) {
	m := &machine{disk: d, virtual: clock.NewVirtual(now), draining: make(chan struct{})}
	d.broken = func(how *death) {
		how.at = time.Now()
		m.died.Store(how)
		m.dead.Store(true)
	}
	cfg := config.Config{
		Listen: address, Data: data, FirehoseS3Endpoint: "http://bucket.sim", Region: region, Account: account, AllowPrivateEndpoints: true, JitterSeed: 1, Retry429: true,
		Clock: config.VirtualClock, Store: config.PebbleStore, Metrics: how.metrics, EndpointConcurrency: 8, DeliveryConcurrency: how.deliveries,
		FunctionNetwork: "none", FunctionIsolation: config.IsolationNone, LambdaCodeStorage: 1 << 30, LogsMaxBytes: 1 << 20,
		DeliveryHistory: time.Hour, FunctionStorage: 1 << 20, FunctionConnections: 8, MinTransferRate: 4096, MaxConnections: 100, MaxBytesInFlight: 64 << 20,
	}
	deps := server.Deps{
		Config: cfg, Log: log, Clock: m.virtual, Virtual: m.virtual, Jitter: clock.NewJitter(1), Limits: server.NewLimits(cfg, log),
		URL: "http://" + address, Port: 4566, Draining: m.draining,
		OnStop: func(_ string, stop func(context.Context) error) { m.stops = append(m.stops, stop) },
		World: server.World{
			Store: func() (store.Store, func() bool, error) {
				st, err := openStore(mem, d, how, bug, log)
				return st, d.isLow, err
			},
			Mails:   mails(m.buried),
			Dial:    n.dialer(m.buried, m.virtual.Now),
			Exit:    func(err error) { panic(fmt.Sprint("the server ended itself: ", err)) },
			TwoStep: how.twoStep,
			Root:    rootKey, SigningPair: signingPair,
		},
	}
	parts, err := server.Assemble(context.Background(), deps)
	if err != nil {
		return nil, errors.Join(err, m.stop())
	}
	m.parts = parts
	return m, nil
}

// stop ends a server: what is under way is cut off, as nobody waits for it.
func (m *machine) stop() (err error) {
	m.disk.set(func(d *disk) { d.calm() })
	close(m.draining)
	time.Sleep(time.Minute) // what is under way ends first
	m.disk.set(func(d *disk) { d.quick = true })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, stop := range slices.Backward(m.stops) {
		err = errors.Join(err, stop(ctx))
	}
	return err
}

// answer is what a client hears of its request.
type answer struct {
	status int // 0: nothing, as the machine died
	body   []byte
	at     time.Time // bubble's
}

func (a *answer) ok() bool { return a.status == http.StatusOK || a.status == http.StatusAccepted }

// refused reports that the server said no, so that nothing happened.
func (a *answer) refused() bool { return a.status != 0 && !a.ok() }

// do sends a request and returns when it is answered, or the machine is dead.
func (m *machine) do(r *http.Request) answer {
	w := httptest.NewRecorder()
	m.parts.Wire.ServeHTTP(w, r)
	a := answer{status: w.Code, body: w.Body.Bytes(), at: time.Now()}
	if m.dead.Load() {
		a = answer{at: time.Now()}
	}
	return a
}

func newRequest(method, path string, body []byte) *http.Request {
	r := httptest.NewRequest(method, "http://"+address+path, bytes.NewReader(body))
	r.RequestURI = ""
	return r
}

// queueRequest is one to SQS.
func queueRequest(operation string, in any) *http.Request {
	body, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	r := newRequest(http.MethodPost, "/", body)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS."+operation)
	return r
}

// topicRequest is one to SNS: pairs of names and values.
func topicRequest(operation string, pairs ...string) *http.Request {
	form := url.Values{"Action": {operation}, "Version": {"2010-03-31"}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	r := newRequest(http.MethodPost, "/", []byte(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// functionRequest is one to Lambda.
func functionRequest(method, path string, in any) *http.Request {
	body, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	r := newRequest(method, path, body)
	r.Header.Set("Content-Type", "application/json")
	return r
}

func queueURL(name string) string { return "http://" + address + "/" + account + "/" + name }
func queueARN(name string) string { return "arn:aws:sqs:" + region + ":" + account + ":" + name }
func topicARN(name string) string { return "arn:aws:sns:" + region + ":" + account + ":" + name }

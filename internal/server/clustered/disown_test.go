package clustered

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/cluster/replog/simulated"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/space"
)

const (
	queueURL = "http://127.0.0.1:4566/000000000000/q"
	sendOne  = `{"QueueUrl":"` + queueURL + `","MessageBody":"x"}`
)

// owning is a node that serves what it owns, and another one beside it.
type owning struct {
	t     *testing.T
	part  *part
	other *node.Node
	log   replog.Log
	ended chan error // why a node has ended too early
}

// startOwning starts both; the other one owns the state first.
func startOwning(t *testing.T) *owning { return startOwningOn(t, memory.New()) }

// startOwningOn is startOwning with a store for the node.
func startOwningOn(t *testing.T, st store.Store) *owning {
	t.Helper()
	data := t.TempDir()
	guard, err := space.Open(data, space.Options{Reserve: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(guard.Close)
	p := &part{
		cfg: config.Config{
			Listen: "127.0.0.1:0", Data: data, Region: "us-east-1", Account: "000000000000", AllowPrivateEndpoints: true, Metrics: true, Retry429: true,
			Clock: config.SystemClock, Store: config.PebbleStore, EndpointConcurrency: 8, DeliveryConcurrency: 8, FunctionNetwork: "none",
			FunctionIsolation: config.IsolationNone, LambdaCodeStorage: 1 << 30, LogsMaxBytes: 1 << 20, DeliveryHistory: time.Hour,
			FunctionStorage: 1 << 20, FunctionConnections: 8, MinTransferRate: 4096, MaxConnections: 100, MaxBytesInFlight: 64 << 20,
		},
		node: Node{Name: "a", Peers: []roster.Peer{{Name: "a"}}}, self: roster.Peer{Name: "a", URL: "http://127.0.0.1:4566"}, root: seal.NewRoot(),
		net: peer.Loopback("secret"), log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})), left: make(chan struct{}, 1),
	}
	p.front = newFront(p)
	p.full.Store(guard)
	log, ended := simulated.New(), make(chan error, 2)
	open := func(name string, rank int, st store.Store, own func(context.Context, *replica.Owner) error, disown func(*replica.Owner, error) error) *node.Node {
		n, err := node.Open(node.Options{
			Name: name, Instance: "i", Rank: rank, Log: log.Node(), Store: st, Logger: p.log, Lease: time.Minute, Own: own, Disown: disown,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() {
			if err := n.Run(ctx); err != nil {
				ended <- err
			}
		})
		t.Cleanup(func() {
			cancel()
			running.Wait()
			for len(ended) > 0 {
				t.Error(<-ended)
			}
		})
		return n
	}
	o := &owning{t: t, part: p, ended: ended}
	p.replica.Store(open("a", 0, st, p.own, p.disown))
	o.other = open("b", 1, memory.New(), func(context.Context, *replica.Owner) error { return nil }, func(*replica.Owner, error) error { return nil })
	o.log = log.Node()
	o.takeOver(1)
	return o
}

// takeOver has the other own the state, whoever owns it.
func (o *owning) takeOver(epoch uint64) {
	o.t.Helper()
	taken := record.Record{Kind: record.Takeover, Epoch: epoch, Owner: "b/i"}
	o.log.Append(taken.AppendTo(nil), func(uint64, error) {})
	o.until(o.other, "the other owns the state", func(s node.State) bool { return s.Own && s.Serving })
}

// until waits until a node stands as it should.
func (o *owning) until(n *node.Node, what string, stands func(node.State) bool) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	for {
		s, changed := n.State()
		if stands(s) {
			return
		}
		select {
		case <-changed:
		case err := <-o.ended:
			o.t.Fatalf("%s: a node has ended: %v", what, err)
		case <-ctx.Done():
			o.t.Fatalf("%s: not within a minute; %+v", what, s)
		}
	}
}

// soon lets others go on until something is so that nobody tells of.
func (o *owning) soon(what string, so func() bool) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	for !so() {
		if ctx.Err() != nil {
			o.t.Fatalf("%s: not within a minute", what)
		}
		runtime.Gosched()
	}
}

func (o *owning) mine() *node.Node { return o.part.replica.Load() }

// take has the node own the state, and serve.
func (o *owning) take() {
	o.t.Helper()
	s, _ := o.mine().State()
	if err := o.other.HandOver(o.t.Context(), s.Process); err != nil {
		o.t.Fatal(err)
	}
	o.until(o.mine(), "the node serves", func(s node.State) bool { return s.Own && s.Serving })
}

// leave has the other own the state, and waits until nothing serves here any more.
func (o *owning) leave() {
	o.t.Helper()
	s, _ := o.other.State()
	if err := o.part.giveTo(o.t.Context(), o.mine(), o.part.inner.Load(), s.Process, false); err != nil {
		o.t.Fatal(err)
	}
	o.until(o.mine(), "the node follows", func(s node.State) bool { return !s.Own && !s.Leaving })
}

// newRequest is a request with a body in JSON, or a form where target is empty.
func newRequest(ctx context.Context, target string, body io.Reader) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", body)
	r.Host, r.RemoteAddr = "127.0.0.1:4566", "127.0.0.1:1234"
	switch {
	case target == "":
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return r
	case strings.HasPrefix(target, "/"):
		r.URL.Path = target
	default:
		r.Header.Set("X-Amz-Target", target)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	return r
}

func (o *owning) request(ctx context.Context, target string, body any) *httptest.ResponseRecorder {
	var text string
	if form, ok := body.(url.Values); ok {
		text = form.Encode()
	} else {
		encoded, err := json.Marshal(body)
		if err != nil {
			o.t.Error(err)
		}
		text = string(encoded)
	}
	out := httptest.NewRecorder()
	o.part.front.ServeHTTP(out, newRequest(ctx, target, strings.NewReader(text)))
	return out
}

// ask wants success.
func (o *owning) ask(target string, body any) string {
	o.t.Helper()
	out := o.request(o.t.Context(), target, body)
	if out.Code/100 != 2 {
		o.t.Fatalf("%s %v: status %d: %s", target, body, out.Code, out.Body)
	}
	return out.Body.String()
}

// holds wants so many messages in the queue.
func (o *owning) holds(messages int) {
	o.t.Helper()
	got := o.ask("AmazonSQS.GetQueueAttributes", map[string]any{"QueueUrl": queueURL, "AttributeNames": []string{"ApproximateNumberOfMessages"}})
	if !strings.Contains(got, fmt.Sprintf(`"ApproximateNumberOfMessages":"%d"`, messages)) {
		o.t.Errorf("%s", got)
	}
}

// Of an owner that has handed over nothing runs any more: no attempt, poller, timer or long
// poll; and it serves again when the state comes back, with all that was acknowledged.
func TestNothingIsLeftOfAnOwner(t *testing.T) {
	sandboxes := goleak.IgnoreTopFunction("godwit.dev/godwit/internal/invoke/process/sandbox.runForks")
	hangs := make(chan struct{})
	attempted := make(chan struct{}, 100)
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		attempted <- struct{}{}
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
	}))
	defer endpoint.Close()
	defer close(hangs)
	function := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer function.Close()

	o := startOwning(t)
	o.take()
	const jobs = "arn:aws:sqs:us-east-1:000000000000:jobs"
	o.ask("AmazonSQS.CreateQueue", map[string]any{"QueueName": "q"})
	o.ask("AmazonSQS.CreateQueue", map[string]any{"QueueName": "empty"})
	o.ask("AmazonSQS.CreateQueue", map[string]any{"QueueName": "jobs"})
	o.ask("", url.Values{"Action": {"CreateTopic"}, "Version": {"2010-03-31"}, "Name": {"t"}})
	o.ask("/2015-03-31/functions", map[string]any{
		"FunctionName": "f", "Role": "arn:aws:iam::000000000000:role/f", "PackageType": "Image", "Code": map[string]any{"ImageUri": function.URL},
	})
	o.ask("/2015-03-31/event-source-mappings", map[string]any{"FunctionName": "f", "EventSourceArn": jobs})
	o.ask("", url.Values{
		"Action": {"PutMetricAlarm"}, "Version": {"2010-08-01"}, "AlarmName": {"a"}, "Namespace": {"AWS/SQS"}, "MetricName": {"NumberOfMessagesSent"},
		"Statistic": {"Sum"}, "Period": {"10"}, "EvaluationPeriods": {"1"}, "Threshold": {"1"}, "ComparisonOperator": {"GreaterThanThreshold"},
	})
	o.ask("", url.Values{ // the confirmation is an attempt, which hangs
		"Action": {"Subscribe"}, "Version": {"2010-03-31"}, "TopicArn": {"arn:aws:sns:us-east-1:000000000000:t"}, "Protocol": {"http"}, "Endpoint": {endpoint.URL},
	})
	<-attempted
	o.leave()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	before := goleak.IgnoreCurrent()

	for round := range 3 {
		o.take()
		<-attempted
		o.ask("AmazonSQS.SendMessage", map[string]any{"QueueUrl": queueURL, "MessageBody": fmt.Sprint(round)})
		var waiting sync.WaitGroup
		waiting.Go(func() { // until the end
			out := o.request(t.Context(), "AmazonSQS.ReceiveMessage", map[string]any{"QueueUrl": strings.Replace(queueURL, "/q", "/empty", 1), "WaitTimeSeconds": 20})
			if out.Code != http.StatusOK && out.Code != http.StatusServiceUnavailable {
				t.Errorf("a long poll: status %d: %s", out.Code, out.Body)
			}
		})
		o.soon("it waits", func() bool { return o.part.front.busy.Load() > 0 })
		o.leave()
		ended := make(chan struct{})
		go func() {
			waiting.Wait()
			close(ended)
		}()
		soon, cancel := context.WithTimeout(t.Context(), 10*time.Second) // well before the poll's own end
		select {
		case <-ended:
		case <-soon.Done():
			t.Error("a long poll outlives what it waits at")
		}
		cancel()
		if o.part.inner.Load() != nil {
			t.Error("a server is there")
		}
		if err := goleak.Find(before, sandboxes, goleak.IgnoreAnyFunction("godwit.dev/godwit/internal/cluster/node.(*Node).own")); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	o.take()
	o.holds(3)
	o.leave()
}

// slowly begins a request whose body comes when finish is called.
func (o *owning) slowly(target, body string) (finish func() *httptest.ResponseRecorder) {
	o.t.Helper()
	read, write := io.Pipe()
	out, before := httptest.NewRecorder(), o.part.front.busy.Load()
	var answered sync.WaitGroup
	answered.Go(func() {
		o.part.front.ServeHTTP(out, newRequest(o.t.Context(), target, read))
		_ = read.Close()
	})
	o.soon("it will read the body", func() bool { return o.part.front.busy.Load() != before })
	return func() *httptest.ResponseRecorder {
		if _, err := io.WriteString(write, body); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			o.t.Error(err)
		}
		_ = write.Close()
		answered.Wait()
		return out
	}
}

// Requests whose bodies come after another node took the state over, and after all that served
// here has ended, are refused like others, and the process goes on: those that write, and those
// that read what is no longer open.
func TestSlowRequestsOutliveOwner(t *testing.T) {
	const topic, app = "arn:aws:sns:us-east-1:000000000000:t.fifo", "arn:aws:sns:us-east-1:000000000000:app/GCM/p"
	o := startOwning(t)
	o.take()
	o.ask("AmazonSQS.CreateQueue", map[string]any{"QueueName": "q"})
	o.ask("AmazonSQS.CreateQueue", map[string]any{"QueueName": "q.fifo", "Attributes": map[string]string{"FifoQueue": "true"}})
	fifo := map[string]any{"QueueUrl": queueURL + ".fifo", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "1"}
	publish := url.Values{
		"Action": {"Publish"}, "Version": {"2010-03-31"}, "TopicArn": {topic}, "Message": {"x"}, "MessageGroupId": {"g"}, "MessageDeduplicationId": {"1"},
	}
	o.ask("", url.Values{
		"Action": {"CreateTopic"}, "Version": {"2010-03-31"}, "Name": {"t.fifo"},
		"Attributes.entry.1.key": {"FifoTopic"}, "Attributes.entry.1.value": {"true"},
	})
	o.ask("", url.Values{
		"Action": {"CreatePlatformApplication"}, "Version": {"2010-03-31"}, "Name": {"p"}, "Platform": {"GCM"},
		"Attributes.entry.1.key": {"PlatformCredential"}, "Attributes.entry.1.value": {"key"},
	})
	o.ask("AmazonSQS.SendMessage", map[string]any{"QueueUrl": queueURL, "MessageBody": "the first"})
	o.ask("AmazonSQS.SendMessage", fifo)
	o.ask("", publish)
	again, err := json.Marshal(fifo)
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]func() *httptest.ResponseRecorder{
		"a send":                         o.slowly("AmazonSQS.SendMessage", sendOne),
		"a receive":                      o.slowly("AmazonSQS.ReceiveMessage", `{"QueueUrl":"`+queueURL+`"}`),
		"a receive of a FIFO queue":      o.slowly("AmazonSQS.ReceiveMessage", `{"QueueUrl":"`+queueURL+`.fifo"}`),
		"a send that was made before":    o.slowly("AmazonSQS.SendMessage", string(again)),
		"a publish that was made before": o.slowly("", publish.Encode()),
		"a platform endpoint": o.slowly("", url.Values{
			"Action": {"CreatePlatformEndpoint"}, "Version": {"2010-03-31"}, "PlatformApplicationArn": {app}, "Token": {"token"},
		}.Encode()),
	}
	o.leave()
	for name, finish := range requests {
		if out := finish(); out.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: status %d: %s", name, out.Code, out.Body)
		}
	}
	o.take()
	o.holds(1)
	o.leave()
}

// A node that ends while no other can take over answers what is in progress, for a while; what
// comes later is refused, and changes nothing, also where the owner fails meanwhile.
func TestEndWithoutSuccessor(t *testing.T) {
	o := startOwning(t)
	o.take()
	o.ask("AmazonSQS.CreateQueue", map[string]any{"QueueName": "q"})
	in := o.part.inner.Load()
	soon, late := o.slowly("AmazonSQS.SendMessage", sendOne), o.slowly("AmazonSQS.SendMessage", sendOne)
	var stopped sync.WaitGroup
	stopped.Go(func() {
		if _, err := o.part.stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	o.soon("it ends", o.part.front.closing.Load)
	if out := soon(); out.Code != http.StatusOK {
		t.Errorf("what was in progress: status %d: %s", out.Code, out.Body)
	}
	stopped.Wait()
	if out := late(); out.Code != http.StatusServiceUnavailable {
		t.Errorf("what comes too late: status %d: %s", out.Code, out.Body)
	}
	if err := o.part.disown(in.owner.Owner, errors.New("the owner fails late")); err != nil {
		t.Error(err)
	}
	o.until(o.mine(), "nothing serves", func(s node.State) bool { return !s.Serving && o.mine().Owner() == nil })
	o.part.front.closing.Store(false)
	s, _ := o.mine().State()
	o.takeOver(s.Epoch + 1)
	o.take()
	o.holds(1)
	o.leave()
}

// A node whose server cannot be started ends, and says why.
func TestOwnerThatCannotServe(t *testing.T) {
	o := startOwning(t)
	o.take()
	o.leave()
	o.part.root = seal.NewRoot() // does not open what the first one has sealed
	s, _ := o.mine().State()
	if err := o.other.HandOver(t.Context(), s.Process); err != nil {
		t.Fatal(err)
	}
	if err := <-o.ended; !strings.Contains(err.Error(), "the cell cannot be served") {
		t.Errorf("it ended by %v", err)
	}
}

// What was under way when another node took the state over is answered by nobody, also a
// send, and has no effect.
func TestNothingIsAnsweredByAnOldOwner(t *testing.T) {
	o := startOwning(t)
	o.take()
	o.ask("AmazonSQS.CreateQueue", map[string]any{"QueueName": "q"})
	in := o.part.inner.Load()
	in.owner.StepDown(errors.New("a test says so"))
	for _, target := range []string{"AmazonSQS.SendMessage", "AmazonSQS.ReceiveMessage"} {
		out := httptest.NewRecorder()
		o.part.front.local(out, newRequest(t.Context(), target, strings.NewReader(sendOne)), forClients, in, false) // it was let in before
		if out.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: status %d: %s", target, out.Code, out.Body)
		}
	}
	o.until(o.mine(), "nothing serves", func(s node.State) bool { return !s.Serving && o.mine().Owner() == nil })
}

// A server that does not stop keeps the node from following: it ends, to be started again.
func TestServerThatDoesNotStop(t *testing.T) {
	o := startOwning(t)
	o.take()
	in := o.part.inner.Load()
	held := &inner{server: in.server, handlers: in.handlers, owner: &ownedStore{Owner: in.owner.Owner}} // nothing closes its store
	o.part.inner.Store(held)
	in.owner.StepDown(errors.New("a test says so"))
	if err := <-o.ended; !errors.Is(err, errHeld) {
		t.Errorf("it ends by %v", err)
	}
	if o.part.inner.Load() != held {
		t.Error("the server is taken for stopped")
	}
}

// A request that waits for an owner is answered by this node once it is the one.
func TestWaitsUntilItOwns(t *testing.T) {
	o := startOwning(t)
	o.take()
	o.ask("AmazonSQS.CreateQueue", map[string]any{"QueueName": "q"})
	o.leave()
	before := o.part.front.answered.Load()
	sent := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		sent <- o.request(t.Context(), "AmazonSQS.SendMessage", map[string]any{"QueueUrl": queueURL, "MessageBody": "x"})
	}()
	o.soon("it waits", func() bool { return o.part.front.kept.Load() > 0 })
	o.take()
	if out := <-sent; out.Code != http.StatusOK || o.part.front.answered.Load() != before+1 {
		t.Errorf("status %d: %s", out.Code, out.Body)
	}
	o.soon("nothing is in progress", func() bool { return o.part.front.busy.Load() == 0 })
	o.holds(1)
	o.leave()
}

package sim

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	mailsender "godwit.dev/godwit/internal/deliver/mail"
)

// queue is one of those that there are from the beginning.
type queue struct {
	name       string
	fifo       bool
	dead       string // its dead-letter queue
	max        int    // receives, then it goes there
	visibility time.Duration
	delay      time.Duration
	retention  time.Duration
	internal   bool // clients do not send to it
}

const maxReceives = 3

var queues = []queue{
	{name: "std", dead: "std-dead", max: maxReceives, visibility: 30 * time.Second},
	{name: "std-dead", visibility: 20 * time.Second, internal: true},
	{name: "delayed", delay: 5 * time.Second, visibility: 10 * time.Second},
	{name: "brief", retention: time.Minute, visibility: 15 * time.Second},
	{name: "fifo.fifo", fifo: true, dead: "dead.fifo", max: maxReceives, visibility: 30 * time.Second},
	{name: "dead.fifo", fifo: true, visibility: 20 * time.Second, internal: true},
	{name: "plain.fifo", fifo: true, visibility: 20 * time.Second},
	{name: "jobs", dead: "jobs-dead", max: maxReceives, visibility: 30 * time.Second},
	{name: "jobs-dead", visibility: 20 * time.Second, internal: true},
	{name: "news-a", visibility: 25 * time.Second, internal: true},
	{name: "news-b", visibility: 25 * time.Second, internal: true},
	{name: "order-a.fifo", fifo: true, visibility: 25 * time.Second, internal: true},
	{name: "order-b", visibility: 25 * time.Second, internal: true},
	{name: "hook-a-dead", visibility: 20 * time.Second, internal: true},
	{name: "hook-b-dead", visibility: 20 * time.Second, internal: true},
	{name: "mill-dead", visibility: 20 * time.Second, internal: true},
	{name: "wide-0", visibility: 25 * time.Second, internal: true},
	{name: "wide-1", visibility: 25 * time.Second, internal: true},
	{name: "wide-2", visibility: 25 * time.Second, internal: true},
	{name: "wide-3", visibility: 25 * time.Second, internal: true},
	{name: "wide-4", visibility: 25 * time.Second, internal: true},
	{name: "wide-5", visibility: 25 * time.Second, internal: true},
	{name: "wide-6", visibility: 25 * time.Second, internal: true},
	{name: "wide-7", visibility: 25 * time.Second, internal: true},
}

func queueOf(name string) *queue {
	for i := range queues {
		if queues[i].name == name {
			return &queues[i]
		}
	}
	return nil
}

// Subscribers of each topic.
var (
	topicQueues = map[string][]string{
		"news":       {"news-a", "news-b"},
		"order.fifo": {"order-a.fifo", "order-b"},
		"wide":       {"wide-0", "wide-1", "wide-2", "wide-3", "wide-4", "wide-5", "wide-6", "wide-7"},
	}
	hooks = []string{"hook-a", "hook-b"} // of news
)

// Attempts at a web hook: the first, and retries of a delay each.
const (
	hookRetries = 3
	hookDelay   = 20 * time.Second
)

// Attempts at an event of a function: the first, and retries.
const eventRetries = 2

// began is when the world's clock begins.
var began = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// furnished is a disk with all queues, topics and functions, as a server that ended
// well has left it. It is made once: a signing key takes longer than a history.
var furnished = sync.OnceValue(func() *vfs.MemFS { panic("furnish first") })

var (
	furnishOnce  sync.Once
	furnishedKey string // the id of its key of KMS
)

// furnish makes what furnished gives.
func furnish(t *testing.T) {
	t.Helper()
	furnishOnce.Do(func() {
		t.Run("furnish", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sameRandomness(t, 1)
				mem := vfs.NewCrashableMem()
				made := build(t, mem)
				furnished = func() *vfs.MemFS { return made }
			})
		})
	})
}

// sameRandomness has ids, tokens and keys be the same each time.
func sameRandomness(t *testing.T, seed uint64) {
	cryptotest.SetGlobalRandom(t, seed)
	uuid.DisableRandPool()
	uuid.SetRand(nil)
	uuid.EnableRandPool()
	t.Cleanup(func() { uuid.SetRand(nil) })
}

func build(t *testing.T, mem *vfs.MemFS) *vfs.MemFS {
	confirmations := map[string]string{}
	var mu sync.Mutex
	n := newNetwork(0, func(attempt) {})
	n.well = true
	for _, hook := range hooks {
		n.hosts[hook+".sim"] = func(r *request) (int, http.Header, string) {
			var c struct{ Type, Token string }
			if json.Unmarshal(r.body, &c) == nil && c.Type == "SubscriptionConfirmation" {
				mu.Lock()
				defer mu.Unlock()
				confirmations[r.host] = c.Token
			}
			return http.StatusOK, nil, ""
		}
	}
	mails := confirming{make(chan string, 1)}
	d := newDisk(mem, nil, rand.New(rand.NewPCG(1, 1)))
	m, err := machineOf(mem, d, began, settings{deliveries: 1, memTable: largeMemTable}, n, func(func() bool) mailsender.Transport { return mails }, t.TempDir(), nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	must := func(r *http.Request) []byte {
		t.Helper()
		a := m.do(r)
		if a.status/100 != 2 {
			t.Errorf("%s %s: %d %s", r.Method, r.URL.Path, a.status, a.body)
		}
		return a.body
	}
	for _, dead := range []bool{true, false} { // what others name comes first
		for i := range queues {
			if q := &queues[i]; dead == (q.dead == "") {
				must(queueRequest("CreateQueue", map[string]any{"QueueName": q.name, "Attributes": q.attributes()}))
			}
		}
	}
	for _, topic := range []string{"news", "wide", "post", "order.fifo"} {
		pairs := []string{"Name", topic}
		if strings.HasSuffix(topic, ".fifo") {
			pairs = append(pairs, "Attributes.entry.1.key", "FifoTopic", "Attributes.entry.1.value", "true")
		}
		must(topicRequest("CreateTopic", pairs...))
		for _, q := range topicQueues[topic] {
			must(topicRequest("Subscribe", "TopicArn", topicARN(topic), "Protocol", "sqs", "Endpoint", queueARN(q),
				"Attributes.entry.1.key", "RawMessageDelivery", "Attributes.entry.1.value", "true"))
		}
	}
	for i, hook := range hooks {
		policy := fmt.Sprintf(`{"healthyRetryPolicy":{"numRetries":%d,"minDelayTarget":%d,"maxDelayTarget":%[2]d}}`, hookRetries, int(hookDelay/time.Second))
		must(topicRequest("Subscribe", "TopicArn", topicARN("news"), "Protocol", "http", "Endpoint", "http://"+hook+".sim/in",
			"Attributes.entry.1.key", "DeliveryPolicy", "Attributes.entry.1.value", policy,
			"Attributes.entry.2.key", "RedrivePolicy", "Attributes.entry.2.value", fmt.Sprintf(`{"deadLetterTargetArn":%q}`, queueARN(hook+"-dead")),
			"Attributes.entry.3.key", "RawMessageDelivery", "Attributes.entry.3.value", fmt.Sprint(i == 0)))
		if _, err := m.virtual.Advance(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		token := confirmations[hook+".sim"]
		mu.Unlock()
		must(topicRequest("ConfirmSubscription", "TopicArn", topicARN("news"), "Token", token))
	}
	must(topicRequest("Subscribe", "TopicArn", topicARN("post"), "Protocol", "email", "Endpoint", reader))
	if _, err := m.virtual.Advance(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	must(topicRequest("ConfirmSubscription", "TopicArn", topicARN("post"), "Token", <-mails.token))
	for _, fn := range []string{"worker", "mill"} {
		must(functionRequest(http.MethodPost, "/2015-03-31/functions", map[string]any{
			"FunctionName": fn, "Role": "arn:aws:iam::" + account + ":role/function", "PackageType": "Image", "Timeout": 5,
			"Code": map[string]any{"ImageUri": "http://" + fn + ".sim"},
		}))
	}
	must(functionRequest(http.MethodPut, "/2019-09-25/functions/mill/event-invoke-config", map[string]any{
		"MaximumRetryAttempts": eventRetries, "DestinationConfig": map[string]any{"OnFailure": map[string]any{"Destination": queueARN("mill-dead")}},
	}))
	must(functionRequest(http.MethodPost, "/2015-03-31/event-source-mappings", map[string]any{
		"FunctionName": "worker", "EventSourceArn": queueARN("jobs"), "BatchSize": 3,
	}))
	furnishedKey = buildServices(must)
	synctest.Wait() // until there is a key to sign with
	if err := m.stop(); err != nil {
		t.Fatal(err)
	}
	return mem
}

func (q *queue) attributes() map[string]string {
	a := map[string]string{"VisibilityTimeout": fmt.Sprint(int(q.visibility / time.Second))}
	if q.fifo {
		a["FifoQueue"] = "true"
	}
	if q.delay > 0 {
		a["DelaySeconds"] = fmt.Sprint(int(q.delay / time.Second))
	}
	if q.retention > 0 {
		a["MessageRetentionPeriod"] = fmt.Sprint(int(q.retention / time.Second))
	}
	if q.dead != "" {
		a["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, queueARN(q.dead), q.max)
	}
	return a
}

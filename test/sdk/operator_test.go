package sdk_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/google/go-cmp/cmp"
)

// fickleHook is a web hook that fails while it is told to, confirmed.
type fickleHook struct {
	failing  atomic.Bool
	requests atomic.Int32
}

// subscribeFickle subscribes a web hook with a dead-letter queue.
func subscribeFickle(t *testing.T, endpoint, topic, deadLetters string) (h *fickleHook, subscription string) {
	t.Helper()
	h = &fickleHook{}
	links := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("x-amz-sns-message-type") == "SubscriptionConfirmation" {
			var confirmation struct{ SubscribeURL string }
			_ = json.Unmarshal(body, &confirmation)
			links <- confirmation.SubscribeURL
			return
		}
		h.requests.Add(1)
		if h.failing.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	hidden := *must(url.Parse(server.URL + "/hook?key=k"))(t)
	subscription = subscribe(t, topicsClient(endpoint), topic, "http", hidden.String(),
		"RawMessageDelivery", "true", "RedrivePolicy", `{"deadLetterTargetArn":"`+deadLetters+`"}`)
	if r := visit(t, <-links); r.Status != http.StatusOK {
		t.Fatalf("confirming: %+v", r)
	}
	return h, subscription
}

// admin calls one of the server's own endpoints, which has to succeed.
func admin(t *testing.T, target, body string) map[string]any {
	t.Helper()
	var r response
	if body == "" {
		r = visit(t, target)
	} else {
		r = post(t, target, body)
	}
	if r.Status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", target, body, r.Status, r.Body)
	}
	return decode(t, r.Body)
}

func TestOperatorOfDeliveries(t *testing.T) {
	endpoint := start(t)
	queues, topics := client(endpoint), topicsClient(endpoint)
	dlq := createQueue(t, queues, "dlq")
	topic := createTopic(t, topics, "orders")
	h, sub := subscribeFickle(t, endpoint, topic, queueARN("dlq"))
	name := `{"subscription":"` + sub + `"`
	publish := func(text string) {
		t.Helper()
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &text}))(t)
		advance(t, endpoint, "0s") // until the attempt is over
	}
	deliveries := func() (list []map[string]any) {
		t.Helper()
		for _, d := range admin(t, endpoint+"/_godwit/deliveries?subscription="+sub, "")["deliveries"].([]any) {
			list = append(list, d.(map[string]any))
		}
		return list
	}
	backlog := func() string {
		t.Helper()
		b := admin(t, endpoint+"/_godwit/backlog?subscription="+sub, "")
		return fmt.Sprintf("%v: %v = %v due + %v waiting + %v in flight, %v s old", b["state"], b["messages"], b["due"], b["waiting"], b["inFlight"], b["oldestAgeSeconds"])
	}
	expect := func(what string, got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}

	// Retry now.
	h.failing.Store(true)
	publish("one")
	expect("after a failure", backlog(), "active: 1 = 0 due + 1 waiting + 0 in flight, 0 s old")
	id := deliveries()[0]["id"].(string)
	retry := name + `,"id":"` + id + `"}`
	expect("retried", admin(t, endpoint+"/_godwit/deliveries/retry", retry), map[string]any{"retried": 1.0})
	advance(t, endpoint, "0s")
	expect("attempts", deliveries()[0]["attempt"], 2.0)

	// A pause, longer than the message would have lived.
	b := admin(t, endpoint+"/_godwit/subscriptions/pause", name+"}")
	if b["state"] != "paused" || b["pausedAt"] == nil || b["protocol"] != "http" || b["subscription"] != sub {
		t.Errorf("paused: %v", b)
	}
	publish("two")
	advance(t, endpoint, "3h")
	expect("paused for long", backlog(), "paused: 2 = 2 due + 0 waiting + 0 in flight, 10800 s old")
	expect("requests", h.requests.Load(), int32(2))
	h.failing.Store(false)
	expect("resumed", admin(t, endpoint+"/_godwit/subscriptions/resume", name+"}")["state"], "active")
	advance(t, endpoint, "0s")
	expect("delivered", backlog(), "active: 0 = 0 due + 0 waiting + 0 in flight, <nil> s old")
	for _, d := range deliveries() {
		expect("state", d["state"], "delivered")
	}

	// Everything that waits, at once.
	h.failing.Store(true)
	publish("three")
	publish("four")
	expect("retried", admin(t, endpoint+"/_godwit/deliveries/retry", name+`,"all":true}`), map[string]any{"retried": 2.0})
	advance(t, endpoint, "0s")
	expect("after", backlog(), "active: 2 = 0 due + 2 waiting + 0 in flight, 0 s old")

	// Into the dead-letter queue.
	drop := func(which string) map[string]any {
		t.Helper()
		return admin(t, endpoint+"/_godwit/deliveries/drop", name+which)
	}
	expect("dropped", drop(`,"id":"`+deliveries()[0]["id"].(string)+`"}`), map[string]any{"deadLettered": 1.0, "dropped": 0.0, "inFlight": 0.0})
	expect("a dead letter", *takeMessage(t, queues, dlq).Body, "three")
	publish("five")
	expect("dropped", drop(`,"all":true}`), map[string]any{"deadLettered": 2.0, "dropped": 0.0, "inFlight": 0.0})
	expect("again", drop(`,"all":true}`), map[string]any{"deadLettered": 0.0, "dropped": 0.0, "inFlight": 0.0})
	expect("a dead letter", *takeMessage(t, queues, dlq).Body, "four")
	expect("a dead letter", *takeMessage(t, queues, dlq).Body, "five")
	expect("as the dead-letter queue counts it", total(t, endpoint, "AWS/SQS", "NumberOfMessagesSent", "QueueName", "dlq"), 3.0)
	for _, d := range deliveries()[:3] {
		if d["state"] != "dead-letter" || d["reason"] != fmt.Sprintf("dropped by an operator after %v attempts", d["attempt"]) || d["id"] != nil {
			t.Errorf("dropped: %v", d)
		}
	}

	// A dead-letter queue that cannot take it now, and one that is gone.
	publish("six")
	post(t, endpoint+"/_godwit/faults", `{"arn":"`+queueARN("dlq")+`","fault":"unavailable"}`)
	if r := post(t, endpoint+"/_godwit/deliveries/drop", name+`,"all":true}`); r.Status != http.StatusServiceUnavailable {
		t.Errorf("out of reach: %+v", r)
	}
	expect("untouched", backlog(), "active: 1 = 0 due + 1 waiting + 0 in flight, 0 s old")
	post(t, endpoint+"/_godwit/faults", `{"arn":"`+queueARN("dlq")+`","fault":"none"}`)
	must(topics.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
		SubscriptionArn: &sub, AttributeName: new("RedrivePolicy"), AttributeValue: new(""),
	}))(t)
	expect("without a queue", drop(`,"all":true}`), map[string]any{"deadLettered": 0.0, "dropped": 1.0, "inFlight": 0.0})
	expect("state", deliveries()[0]["state"], "dropped")
}

// TestPauseOfAQueue: a queue's subscription is paused as any other.
func TestPauseOfAQueue(t *testing.T) {
	endpoint := start(t)
	queues, topics := client(endpoint), topicsClient(endpoint)
	queue := createQueue(t, queues, "q")
	topic := createTopic(t, topics, "orders")
	sub := subscribe(t, topics, topic, "sqs", queueARN("q"), "RawMessageDelivery", "true")
	name := `{"subscription":"` + sub + `"}`
	admin(t, endpoint+"/_godwit/subscriptions/pause", name)
	for _, text := range []string{"a", "b"} {
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &text}))(t)
	}
	advance(t, endpoint, "1d")
	if b := admin(t, endpoint+"/_godwit/backlog?subscription="+sub, ""); b["due"] != 2.0 || b["endpoint"] != queueARN("q") {
		t.Errorf("backlog %v", b)
	}
	admin(t, endpoint+"/_godwit/subscriptions/resume", name)
	got := []string{*takeMessage(t, queues, queue).Body, *takeMessage(t, queues, queue).Body}
	if slices.Sort(got); !slices.Equal(got, []string{"a", "b"}) { // a standard queue has no order
		t.Errorf("got %s", got)
	}
}

func TestOperatorRefuses(t *testing.T) {
	endpoint := start(t)
	topic := createTopic(t, topicsClient(endpoint), "orders")
	createQueue(t, client(endpoint), "q")
	sub := subscribe(t, topicsClient(endpoint), topic, "sqs", queueARN("q"))
	gone := topic + ":00000000-0000-4000-8000-000000000000"
	for _, tt := range []struct {
		path, body string
		status     int
	}{
		{"subscriptions/pause", `{}`, 400},
		{"subscriptions/pause", `{"subscription":"` + topic + `"}`, 400},
		{"subscriptions/pause", `{"subscription":"` + gone + `"}`, 404},
		{"subscriptions/pause", `{"subscription":"` + sub + `","id":"0-1"}`, 400},
		{"subscriptions/resume", `{"subscription":"` + gone + `"}`, 404},
		{"deliveries/retry", `{"subscription":"` + sub + `"}`, 400},
		{"deliveries/retry", `{"subscription":"` + sub + `","id":"0-1","all":true}`, 400},
		{"deliveries/retry", `{"subscription":"` + sub + `","id":"0-1"}`, 404},
		{"deliveries/retry", `{"subscription":"` + gone + `","all":true}`, 404},
		{"deliveries/drop", `{"subscription":"` + sub + `","all":false}`, 400},
		{"deliveries/drop", `{"subscription":"` + sub + `","id":"nonsense"}`, 404},
		{"deliveries/drop", `{"subscription":"` + gone + `","all":true}`, 404},
	} {
		r := post(t, endpoint+"/_godwit/"+tt.path, tt.body)
		if r.Status != tt.status || decode(t, r.Body)["error"] == "" {
			t.Errorf("%s %s: %d %s, want %d", tt.path, tt.body, r.Status, r.Body, tt.status)
		}
	}
	for query, status := range map[string]int{"": 400, "?subscription=" + gone: 404} {
		if r := visit(t, endpoint+"/_godwit/backlog"+query); r.Status != status || decode(t, r.Body)["error"] == "" {
			t.Errorf("backlog%s: %+v, want %d", query, r, status)
		}
	}
}

// TestOperatorOfOrderedDeliveries: what waits in the groups of a FIFO topic's
// subscription is counted, retried and dropped as anything else, in order.
func TestOperatorOfOrderedDeliveries(t *testing.T) {
	endpoint := start(t)
	queues, topics := client(endpoint), topicsClient(endpoint)
	queue, dlq := createFIFO(t, queues, "q.fifo"), createFIFO(t, queues, "dlq.fifo")
	topic := createFIFOTopic(t, topics, "orders.fifo")
	sub := subscribe(t, topics, topic, "sqs", queueARN("q.fifo"), "RawMessageDelivery", "true",
		"RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dlq.fifo")+`"}`)
	name := `{"subscription":"` + sub + `"`
	fault := func(kind string) {
		t.Helper()
		admin(t, endpoint+"/_godwit/faults", `{"arn":"`+queueARN("q.fifo")+`","fault":"`+kind+`"}`)
	}
	backlog := func() string {
		t.Helper()
		b := admin(t, endpoint+"/_godwit/backlog?subscription="+sub, "")
		return fmt.Sprintf("%v = %v due + %v waiting, %v s old", b["messages"], b["due"], b["waiting"], b["oldestAgeSeconds"])
	}
	waiting := func() (ids []string, attempts []any) {
		t.Helper()
		for _, d := range admin(t, endpoint+"/_godwit/deliveries?subscription="+sub, "")["deliveries"].([]any) {
			if d := d.(map[string]any); d["id"] != nil {
				ids, attempts = append(ids, d["id"].(string)), append(attempts, d["attempt"])
			}
		}
		return ids, attempts
	}
	retry := func(which string, want float64) {
		t.Helper()
		equal(t, "retried", map[string]any{"retried": want}, admin(t, endpoint+"/_godwit/deliveries/retry", name+which))
	}

	fault("unavailable")
	for _, m := range []string{"a1", "a2", "b1"} {
		publishTo(t, topics, topic, m[:1], m)
		advance(t, endpoint, "0s")
	}
	advance(t, endpoint, "1h") // long past the ladder's first steps: the next is 20 s away
	equal(t, "the backlog", "3 = 1 due + 2 waiting, 3600 s old", backlog())
	_, before := waiting()
	admin(t, endpoint+"/_godwit/subscriptions/pause", name+"}") // so that nothing is attempted meanwhile
	retry(`,"all":true}`, 2)
	retry(`,"all":true}`, 0)
	equal(t, "retried", "3 = 3 due + 0 waiting, 3600 s old", backlog())
	admin(t, endpoint+"/_godwit/subscriptions/resume", name+"}")
	advance(t, endpoint, "0s")
	ids, after := waiting()
	for i := range before {
		made := after[i].(float64) - before[i].(float64)
		if first := before[i] != 0.0; first && made != 1 || !first && made != 0 {
			t.Errorf("attempts before %v, after %v", before, after)
		}
	}
	for i, id := range ids {
		if after[i] == 0.0 {
			retry(`,"id":"`+id+`"}`, 0) // it waits for the one before it, not for a time
		}
	}
	fault("none")
	retry(`,"all":true}`, 2)
	advance(t, endpoint, "0s")
	equal(t, "delivered", "0 = 0 due + 0 waiting, <nil> s old", backlog())
	order := map[string][]string{}
	for range 3 {
		body := *takeMessage(t, queues, queue).Body
		order[body[:1]] = append(order[body[:1]], body)
	}
	equal(t, "order", map[string][]string{"a": {"a1", "a2"}, "b": {"b1"}}, order)

	fault("unavailable")
	for _, m := range []string{"c1", "c2", "d1"} {
		publishTo(t, topics, topic, m[:1], m)
		advance(t, endpoint, "0s")
	}
	admin(t, endpoint+"/_godwit/subscriptions/pause", name+"}") // else the end of one lets the next of its group be attempted
	equal(t, "dropped", map[string]any{"deadLettered": 3.0, "dropped": 0.0, "inFlight": 0.0},
		admin(t, endpoint+"/_godwit/deliveries/drop", name+`,"all":true}`))
	equal(t, "dropped", "0 = 0 due + 0 waiting, <nil> s old", backlog())
	clear(order)
	for range 3 {
		body := *takeMessage(t, queues, dlq).Body
		order[body[:1]] = append(order[body[:1]], body)
	}
	equal(t, "order of dead letters", map[string][]string{"c": {"c1", "c2"}, "d": {"d1"}}, order)
}

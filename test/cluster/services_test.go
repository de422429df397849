package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/sdkhttp"
)

// endpoint is a web hook that fails until it is told to work.
type endpoint struct {
	mu       sync.Mutex
	works    bool
	token    string
	attempts map[string][]time.Time // by message id
	changed  chan struct{}
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct{ Type, Token, MessageId string }
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if m.Type == "SubscriptionConfirmation" {
		e.token = m.Token
	} else {
		e.attempts[m.MessageId] = append(e.attempts[m.MessageId], time.Now())
		if !e.works {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	close(e.changed)
	e.changed = make(chan struct{})
}

// until waits until the endpoint has seen something.
func (e *endpoint) until(t *testing.T, what string, seen func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for {
		e.mu.Lock()
		ok, changed := seen(), e.changed
		e.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, testTimeout)
		}
	}
}

// delivery is how a delivery stands, as any node tells.
type delivery struct {
	MessageID string
	State     string
	Attempt   int
}

func (c *cluster) delivery(subscription, message string) (found delivery) {
	answer, err := bounded.Get(c.url(1) + "/_godwit/deliveries?subscription=" + url.QueryEscape(subscription))
	if err != nil {
		return found
	}
	defer answer.Body.Close()
	var said struct{ Deliveries []delivery }
	if json.NewDecoder(answer.Body).Decode(&said) != nil {
		return found
	}
	for _, d := range said.Deliveries {
		if d.MessageID == message {
			return d
		}
	}
	return found
}

// TestDeliveriesGoOn: the retries of a web hook go on behind a takeover where they were, at
// their pace, from one node, and end with the first success.
func TestDeliveriesGoOn(t *testing.T) {
	programs.Allow(t)
	hook := &endpoint{attempts: map[string][]time.Time{}, changed: make(chan struct{})}
	at := httptest.NewServer(hook)
	t.Cleanup(at.Close) // behind the nodes: until then they may hold a request
	c := start(t, freePorts(t), t.TempDir(), "--jitter", "0")
	c.eventually("all nodes follow", status.whole)
	client := sns.New(sns.Options{
		HTTPClient:   sdkhttp.Of(bounded),
		BaseEndpoint: aws.String(c.url(1)), Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""), RetryMaxAttempts: 10,
	})
	topic, err := client.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	const pause = 2 * time.Second
	if _, err := client.Subscribe(t.Context(), &sns.SubscribeInput{
		TopicArn: topic.TopicArn, Protocol: aws.String("http"), Endpoint: aws.String(at.URL), ReturnSubscriptionArn: true,
		Attributes: map[string]string{"DeliveryPolicy": fmt.Sprintf(`{"healthyRetryPolicy":{"minDelayTarget":%d,"maxDelayTarget":%d,"numRetries":90}}`, pause/time.Second, pause/time.Second)},
	}); err != nil {
		t.Fatal(err)
	}
	hook.until(t, "the subscription is to be confirmed", func() bool { return hook.token != "" })
	confirmed, err := client.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: topic.TopicArn, Token: &hook.token})
	if err != nil {
		t.Fatal(err)
	}
	published, err := client.Publish(t.Context(), &sns.PublishInput{TopicArn: topic.TopicArn, Message: aws.String("hello")})
	if err != nil {
		t.Fatal(err)
	}
	id := *published.MessageId
	tries := func(n int) func() bool { return func() bool { return len(hook.attempts[id]) >= n } }
	hook.until(t, "three attempts", tries(3))
	for _, more := range []int{6, 9} {
		victim := c.eventually("a node serves", func(s status) bool { return s.serving() != nil }).serving().PID
		_ = syscall.Kill(victim, syscall.SIGKILL)
		c.eventually("another process serves", func(s status) bool { return s.serving() != nil && s.serving().PID != victim })
		hook.until(t, "attempts go on", tries(more))
		c.eventually("all nodes are back", status.whole)
	}
	hook.mu.Lock()
	hook.works = true
	before := len(hook.attempts[id])
	hook.mu.Unlock()
	hook.until(t, "an attempt that succeeds", tries(before+1))
	c.eventually("the delivery is through", func(status) bool { return c.delivery(*confirmed.SubscriptionArn, id).State == "delivered" })
	d := c.delivery(*confirmed.SubscriptionArn, id)
	hook.mu.Lock()
	defer hook.mu.Unlock()
	all := hook.attempts[id]
	// What was under way at a takeover, once each, may come again.
	if len(all) < d.Attempt || len(all) > d.Attempt+2 {
		t.Errorf("the endpoint saw %d attempts, and %d count", len(all), d.Attempt)
	}
	early := 0
	for i := range all[1:] {
		if all[i+1].Sub(all[i]) < pause-100*time.Millisecond {
			early++
		}
	}
	if early > 2 {
		t.Errorf("%d attempts came before their time: %v", early, all)
	}
}

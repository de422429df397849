package cluster_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/soak"
)

// unreliable are web hooks that fail three attempts of ten, each in another way: one has so many
// retries that none runs out, the other so few that many do.
type unreliable struct {
	mu     sync.Mutex
	r      *rand.Rand
	tokens map[string]string          // by path
	took   map[string]map[string]bool // the messages that were answered with success, by path
}

// paths of the hooks, and how many retries each has.
var hookRetries = map[string]int{"/patient": 100, "/hasty": 1}

func (u *unreliable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct{ Type, Token, MessageId string }
	if json.NewDecoder(r.Body).Decode(&m) != nil { // it was cut off
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if m.Type == "SubscriptionConfirmation" {
		u.tokens[r.URL.Path] = m.Token
		return
	}
	switch u.r.IntN(10) {
	case 0:
		w.WriteHeader(http.StatusServiceUnavailable)
	case 1:
		w.WriteHeader(http.StatusTooManyRequests)
	case 2:
		panic(http.ErrAbortHandler) // without an answer
	default:
		u.took[r.URL.Path][m.MessageId] = true
	}
}

// TestDeliveriesAreKept: each message that was published while owners were killed, replaced and
// stopped is taken by each web hook, or is in its dead-letter queue.
func TestDeliveriesAreKept(t *testing.T) {
	programs.Allow(t)
	seed := soak.Seed(t)
	r := soak.Rand(seed, 0)
	hooks := &unreliable{r: soak.Rand(seed, 1), tokens: map[string]string{}, took: map[string]map[string]bool{}}
	at := httptest.NewServer(hooks)
	t.Cleanup(at.Close) // behind the nodes: until then they may hold a request
	e := &everything{t: t, data: t.TempDir()}
	e.cluster = start(t, freePorts(t), e.data)
	e.eventually("all nodes follow", status.whole)
	ctx, s := t.Context(), e.settings(1)
	topics := sns.NewFromConfig(s)
	topic := *do(topics.CreateTopic(ctx, &sns.CreateTopicInput{Name: aws.String("orders")}))(t).TopicArn
	for path, retries := range hookRetries {
		hooks.took[path] = map[string]bool{}
		dead := "dead-" + path[1:]
		do(sqs.NewFromConfig(s).CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &dead, Attributes: map[string]string{
			"Policy": `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*"}}`,
		}}))(t)
		do(topics.Subscribe(ctx, &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("http"), Endpoint: aws.String(at.URL + path), Attributes: map[string]string{
			"DeliveryPolicy": fmt.Sprintf(`{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":2,"numRetries":%d}}`, retries),
			"RedrivePolicy":  fmt.Sprintf(`{"deadLetterTargetArn":%q}`, arnOf("sqs", dead)),
		}}))(t)
		var token string
		e.eventually("the subscription is to be confirmed", func(status) bool {
			hooks.mu.Lock()
			defer hooks.mu.Unlock()
			token = hooks.tokens[path]
			return token != ""
		})
		do(topics.ConfirmSubscription(ctx, &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: &token}))(t)
	}

	published, stop := newLedger(), make(chan struct{})
	var working sync.WaitGroup
	for worker := range 2 * nodes {
		working.Go(func() {
			client := sns.NewFromConfig(e.settings(worker % nodes))
			for !stopped(stop) {
				if out, err := client.Publish(ctx, &sns.PublishInput{TopicArn: &topic, Message: aws.String("hello")}); err == nil {
					published.acked(*out.MessageId)
				}
				select {
				case <-stop:
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	enough := sync.OnceFunc(func() {
		close(stop)
		working.Wait()
	})
	defer enough()
	for range soak.Rounds(t, 4, 100) {
		if !published.more(ctx, 100) {
			t.Fatal("the test ends")
		}
		e.fault([]string{"kill -9", "kill -9", "handover", "stop for a while"}[r.IntN(4)])
	}
	enough()
	e.eventually("all nodes are back", status.whole)

	dead := map[string]bool{} // a path with a message's id
	missing := func() (all []string) {
		for path := range hookRetries {
			for _, m := range e.receive("dead-" + path[1:]) {
				var letter struct{ MessageId string }
				if err := json.Unmarshal([]byte(*m.Body), &letter); err != nil {
					t.Fatalf("a dead letter: %s", *m.Body)
				}
				dead[path+letter.MessageId] = true
			}
			hooks.mu.Lock()
			for id := range published.in {
				if !hooks.took[path][id] && !dead[path+id] {
					all = append(all, path+" "+id)
				}
			}
			hooks.mu.Unlock()
		}
		return all
	}
	e.eventually("each message is taken or a dead letter", func(status) bool { return len(missing()) == 0 })
	for path := range hookRetries {
		n := 0
		for id := range dead {
			if strings.HasPrefix(id, path) {
				n++
			}
		}
		t.Logf("%s: %d published, %d taken, %d dead letters", path, len(published.in), len(hooks.took[path]), n)
		if (n > 0) != (path == "/hasty") {
			t.Errorf("%s has %d dead letters", path, n)
		}
	}
}

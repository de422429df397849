package sdk_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/config"
)

// fallenWorld is a topic and a queue for its dead letters.
type fallenWorld struct {
	endpoint string
	queues   *sqs.Client
	topics   *sns.Client
	topic    string
	fifo     bool
	dead     string // URL
	redrive  string // RedrivePolicy
}

func (w *fallenWorld) name(s string) string {
	if w.fifo {
		return s + ".fifo"
	}
	return s
}

// unreliable is a web hook that can be made to fail in any way.
type unreliable struct {
	*httptest.Server
	answer   atomic.Pointer[http.HandlerFunc] // to notifications
	identity atomic.Pointer[tls.Config]       // instead of its own
}

// subscribeUnreliable subscribes one and confirms it.
func (w *fallenWorld) subscribeUnreliable(t *testing.T, protocol string, answer http.HandlerFunc, attributes ...string) (h *unreliable, subscription string) {
	t.Helper()
	h = &unreliable{}
	h.answer.Store(&answer)
	tokens := make(chan string, 1)
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("x-amz-sns-message-type") == "SubscriptionConfirmation" {
			token, _ := decode(t, string(body))["Token"].(string)
			tokens <- token
			return
		}
		(*h.answer.Load())(rw, r)
	}))
	h.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	if protocol == "https" {
		h.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return h.identity.Load(), nil }}
		h.StartTLS()
	} else {
		h.Start()
	}
	t.Cleanup(h.Close)
	subscription = subscribe(t, w.topics, w.topic, protocol, h.URL, append(attributes, "RedrivePolicy", w.redrive)...)
	token := <-tokens
	must(w.topics.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &w.topic, Token: &token}))(t)
	return h, subscription
}

func status(code int, header ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			rw.Header().Set(header[i], header[i+1])
		}
		rw.WriteHeader(code)
	}
}

// web is a case of an endpoint: what it does to notifications.
func web(answer http.HandlerFunc, attributes ...string) func(*testing.T, *fallenWorld) string {
	return func(t *testing.T, w *fallenWorld) string {
		_, sub := w.subscribeUnreliable(t, "http", answer, attributes...)
		return sub
	}
}

// queued is a case of a queue: what happens to it once it has subscribed.
func queued(change func(t *testing.T, w *fallenWorld, queue string), attributes ...string) func(*testing.T, *fallenWorld) string {
	return func(t *testing.T, w *fallenWorld) string {
		create := createQueue
		if w.fifo {
			create = createFIFO
		}
		queue := create(t, w.queues, w.name("q"))
		sub := subscribe(t, w.topics, w.topic, "sqs", queueARN(w.name("q")), append(attributes, "RedrivePolicy", w.redrive)...)
		change(t, w, queue)
		return sub
	}
}

func removed(t *testing.T, w *fallenWorld, queue string) {
	t.Helper()
	must(w.queues.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &queue}))(t)
}

func locked(t *testing.T, w *fallenWorld, queue string) {
	t.Helper()
	must(w.queues.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &queue, Attributes: map[string]string{
		"KmsMasterKeyId": "alias/none",
	}}))(t)
}

func closed(t *testing.T, w *fallenWorld, queue string) {
	t.Helper()
	must(w.queues.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &queue, Attributes: map[string]string{
		"Policy": policyOf(`{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*"}`),
	}}))(t)
}

// TestDeadLettersOfTopics: a message that fails for good comes to the dead-letter queue,
// whatever the protocol and the reason, after so many attempts as that allows, at
// once or at its time, in the form that a queue would have got.
func TestDeadLettersOfTopics(t *testing.T) {
	const twice = `{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":1,"numRetries":2}}`
	raw := []string{"RawMessageDelivery", "true"}
	tooMany := map[string]snstypes.MessageAttributeValue{}
	for i := range 11 {
		tooMany[fmt.Sprint("a", i)] = textAttribute("x")
	}
	trusted := trusting(t)
	for _, tc := range []struct {
		name       string
		prepare    func(t *testing.T, w *fallenWorld) (subscription string)
		fifo       bool
		attributes map[string]snstypes.MessageAttributeValue
		after      string   // when the dead letter is there; not before
		before     string   // when it is not there yet; empty: it is there at once
		outcomes   []string // and status
		reason     string
		raw        bool
		carries    int // attributes of the dead letter itself
	}{
		{name: "client error", prepare: web(status(404)), outcomes: []string{"client-error 404"}, reason: "client-side error: HTTP 404 Not Found"},
		{
			name: "client error, raw", prepare: web(status(400), raw...), outcomes: []string{"client-error 400"},
			reason: "client-side error: HTTP 400 Bad Request", raw: true,
		},
		{
			name: "redirect", prepare: web(status(302, "Location", "/")), outcomes: []string{"client-error 302"},
			reason: "client-side error: HTTP 302 Found, and redirects are not followed",
		},
		{
			name: "a retry with a client error", outcomes: []string{"server-error 503", "client-error 410"}, before: "999ms", after: "1ms",
			prepare: func() func(*testing.T, *fallenWorld) string {
				var n atomic.Int32
				return web(func(rw http.ResponseWriter, _ *http.Request) {
					rw.WriteHeader([]int{503, 410}[min(n.Add(1), 2)-1])
				}, "DeliveryPolicy", twice)
			}(),
			reason: "client-side error: HTTP 410 Gone",
		},
		{
			name: "server error, exhausted", prepare: web(status(500), "DeliveryPolicy", twice), before: "1999ms", after: "1ms",
			outcomes: []string{"server-error 500", "server-error 500", "server-error 500"},
			reason:   "retry policy exhausted after 3 attempts, at last: HTTP 500 Internal Server Error",
		},
		{
			name: "too many requests, exhausted", prepare: web(status(429), "DeliveryPolicy", twice), before: "1999ms", after: "1ms",
			outcomes: []string{"server-error 429", "server-error 429", "server-error 429"},
			reason:   "retry policy exhausted after 3 attempts, at last: HTTP 429 Too Many Requests",
		},
		{
			name: "no retries", prepare: web(status(503), "DeliveryPolicy", `{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":1,"numRetries":0}}`),
			outcomes: []string{"server-error 503"}, reason: "retry policy exhausted after 1 attempts, at last: HTTP 503 Service Unavailable",
		},
		{
			name: "refused by the endpoint's host", before: "1999ms", after: "1ms",
			prepare: func(t *testing.T, w *fallenWorld) string {
				h, sub := w.subscribeUnreliable(t, "http", status(200), "DeliveryPolicy", twice)
				h.Close()
				return sub
			},
			outcomes: []string{"server-error 0", "server-error 0", "server-error 0"},
			reason:   "retry policy exhausted after 3 attempts, at last: connection refused",
		},
		{
			name: "no answer", before: "1999ms", after: "1ms", prepare: web(func(rw http.ResponseWriter, _ *http.Request) {
				panic(http.ErrAbortHandler)
			}, "DeliveryPolicy", twice),
			outcomes: []string{"server-error 0", "server-error 0", "server-error 0"},
			reason:   "retry policy exhausted after 3 attempts, at last: connection closed without an answer",
		},
		{
			name: "the deadline", prepare: func() func(*testing.T, *fallenWorld) string {
				var n atomic.Int32
				return web(func(rw http.ResponseWriter, r *http.Request) {
					if n.Add(1) == 1 { // so that the third retry is too late
						status(503, "Retry-After", "1201")(rw, r)
						return
					}
					rw.WriteHeader(503)
				}, "DeliveryPolicy", `{"healthyRetryPolicy":{"minDelayTarget":1200,"maxDelayTarget":1200,"numRetries":3}}`)
			}(),
			before: "1h", after: "2ms", outcomes: []string{"server-error 503", "server-error 503", "server-error 503"},
			reason: "expired: not delivered within one hour of its publish",
		},
		{
			name: "https, client error", prepare: func(t *testing.T, w *fallenWorld) string {
				_, sub := w.subscribeUnreliable(t, "https", status(403))
				return sub
			},
			outcomes: []string{"client-error 403"}, reason: "client-side error: HTTP 403 Forbidden",
		},
		{
			name: "https, not trusted any more", before: "1999ms", after: "1ms", prepare: func(t *testing.T, w *fallenWorld) string {
				h, sub := w.subscribeUnreliable(t, "https", status(200), append(raw, "DeliveryPolicy", twice)...)
				h.identity.Store(&tls.Config{Certificates: []tls.Certificate{stranger(t)}})
				h.CloseClientConnections()
				return sub
			},
			outcomes: []string{"server-error 0", "server-error 0", "server-error 0"},
			reason:   "retry policy exhausted after 3 attempts, at last: TLS: the certificate is not trusted", raw: true,
		},
		{name: "queue gone", prepare: queued(removed), outcomes: []string{"client-error 0"}, reason: "client-side error: the queue does not exist"},
		{
			name: "queue gone, raw", prepare: queued(removed, raw...), outcomes: []string{"client-error 0"},
			reason: "client-side error: the queue does not exist", raw: true, carries: 1,
		},
		{name: "queue forbids", prepare: queued(closed), outcomes: []string{"client-error 0"}, reason: "client-side error: the queue's policy forbids it"},
		{name: "queue's key is gone", prepare: queued(locked), outcomes: []string{"client-error 0"}, reason: "client-side error: the queue's key does not exist"},
		{
			name: "too many attributes for a queue", prepare: queued(func(*testing.T, *fallenWorld, string) {}, raw...), attributes: tooMany,
			outcomes: []string{"client-error 0"}, reason: "client-side error: raw delivery to a queue carries at most 10 message attributes", raw: true, carries: 11,
		},
		{
			name: "queue of a FIFO topic gone", prepare: queued(removed, raw...), fifo: true, outcomes: []string{"client-error 0"},
			reason: "client-side error: the queue does not exist", raw: true, carries: 1,
		},
		{
			name: "queue of a FIFO topic forbids", prepare: queued(closed), fifo: true, outcomes: []string{"client-error 0"},
			reason: "client-side error: the queue's policy forbids it",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &fallenWorld{fifo: tc.fifo, endpoint: startWith(t, func(c *config.Config) {
				c.EndpointCA, c.RetryAfter, c.DeliveryHistory = trusted, true, 24*time.Hour
			})}
			w.queues, w.topics = client(w.endpoint), topicsClient(w.endpoint)
			in := &sns.PublishInput{Message: aws.String("hello"), Subject: aws.String("greeting"), MessageAttributes: tc.attributes}
			if in.MessageAttributes == nil {
				in.MessageAttributes = map[string]snstypes.MessageAttributeValue{"color": textAttribute("red")}
			}
			if tc.fifo {
				w.topic, w.dead = createFIFOTopic(t, w.topics, "t.fifo"), createFIFO(t, w.queues, "dead.fifo")
				in.MessageGroupId, in.MessageDeduplicationId = aws.String("g"), aws.String("d")
			} else {
				w.topic, w.dead = createTopic(t, w.topics, "t"), createQueue(t, w.queues, "dead")
			}
			w.redrive = `{"deadLetterTargetArn":"` + queueARN(w.name("dead")) + `"}`
			sub := tc.prepare(t, w)
			in.TopicArn = &w.topic
			id := *must(w.topics.Publish(t.Context(), in))(t).MessageId
			inQueue := func() string { return attributesOf(t, w.queues, w.dead)["ApproximateNumberOfMessages"] }
			advance(t, w.endpoint, "0s")
			if tc.before != "" {
				advance(t, w.endpoint, tc.before)
				equal(t, "before its time", "0", inQueue())
				advance(t, w.endpoint, tc.after)
			}
			equal(t, "at its time", "1", inQueue())

			last := w.delivery(t, sub, id)
			var outcomes []string
			for _, a := range last["attempts"].([]any) {
				a := a.(map[string]any)
				outcomes = append(outcomes, fmt.Sprint(a["outcome"], " ", a["status"]))
			}
			if d := cmp.Diff(tc.outcomes, outcomes); d != "" || last["state"] != "dead-letter" || last["reason"] != tc.reason {
				t.Errorf("%v, because %v, after (-want +got):\n%s", last["state"], last["reason"], d)
			}

			dead := takeMessage(t, w.queues, w.dead)
			if len(dead.MessageAttributes) != tc.carries {
				t.Errorf("it carries %v", dead.MessageAttributes)
			}
			if tc.fifo {
				equal(t, "group", "g", dead.Attributes["MessageGroupId"])
			}
			if tc.raw {
				equal(t, "dead letter", "hello", *dead.Body)
				return
			}
			e := decode(t, *dead.Body)
			equal(t, "dead letter", []any{"Notification", id, w.topic, "hello", "greeting", map[string]any{"color": map[string]any{"Type": "String", "Value": "red"}}},
				[]any{e["Type"], e["MessageId"], e["TopicArn"], e["Message"], e["Subject"], e["MessageAttributes"]})
		})
	}
}

// trusting writes what a test server of https shows into a file.
func trusting(t *testing.T) (file string) {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	file = filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// stranger is a certificate that nobody trusts.
func stranger(t *testing.T) tls.Certificate {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Package operator_test asks the operator's API over HTTP, as the console and the commands
// do, and holds every answer against the API's document.
package operator_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/test/sdkhttp"
)

const (
	region  = "us-east-1"
	account = "000000000000"
	prefix  = "/_godwit/v1/"
)

// seen are the operations and statuses that were answered.
var seen sync.Map

// TestMain holds a whole run against the document: every operation has succeeded, and was
// refused as the document says that it can be.
func TestMain(m *testing.M) {
	flag.Parse()
	http.DefaultClient.Timeout = 5 * time.Minute // what is never answered, or a stream that tells no more, fails its own test
	code := m.Run()
	if run := flag.Lookup("test.run").Value.String() + flag.Lookup("test.skip").Value.String(); code == 0 && run == "" {
		doc := document(nil)
		for path, item := range doc.Paths {
			for method, op := range item {
				for status := range op.Responses {
					if op.Responses["200"].Content["text/event-stream"].Schema != nil && status == "200" {
						continue // TestEvents reads that
					}
					if slices.Contains([]string{"401", "403", "413", "500", "503"}, status) {
						continue // not each by each
					}
					if _, ok := seen.Load(strings.ToUpper(method) + " " + path + " " + status); !ok {
						fmt.Printf("no test was answered %s %s with %s\n", strings.ToUpper(method), path, status)
						code = 1
					}
				}
			}
		}
	}
	os.Exit(code)
}

// world is a server and the clients of it.
type world struct {
	t        *testing.T
	endpoint string
	config   aws.Config
	stop     func()           // the server; it may be called again
	ingest   string           // where posts to sources are taken; empty: nowhere
	signs    *aws.Credentials // nil: requests of the operator's API go without a signature
	queues   *sqs.Client
	topics   *sns.Client
}

// signingPair is the same for all servers, since to make one takes longer than most tests.
var signingPair = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func build(ctx context.Context, deps server.Deps) (server.Parts, error) {
	deps.World.SigningPair = signingPair
	return server.Assemble(ctx, deps)
}

// start starts a server in development, on a virtual clock, in memory.
func start(t *testing.T) *world { return startWith(t, func(*config.Config) {}) }

func startWith(t *testing.T, change func(c *config.Config)) *world {
	t.Helper()
	settings := config.Config{
		Listen: "127.0.0.1:0", Store: config.MemoryStore, Clock: config.VirtualClock, Data: t.TempDir(), Region: region, Account: account,
		AllowPrivateEndpoints: true, Metrics: true, JitterSeed: 1, EndpointConcurrency: 50, DeliveryConcurrency: 500, FunctionIsolation: config.IsolationNone,
	}
	change(&settings)
	s := server.New(settings, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), build)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	w := worldAt(t, "http://"+s.Addr().String(), aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"})
	w.stop = stop
	if at := s.IngestAddr(); at != nil {
		w.ingest = "http://" + at.String() + "/in/"
	}
	return w
}

func worldAt(t *testing.T, endpoint string, who aws.Credentials) *world {
	t.Helper()
	cfg := aws.Config{
		Region: region, BaseEndpoint: &endpoint, RetryMaxAttempts: 1, HTTPClient: sdkhttp.Of(http.DefaultClient),
		Credentials: credentials.NewStaticCredentialsProvider(who.AccessKeyID, who.SecretAccessKey, who.SessionToken),
	}
	return &world{t: t, endpoint: endpoint, config: cfg, queues: sqs.NewFromConfig(cfg), topics: sns.NewFromConfig(cfg)}
}

// must takes a result that comes with an error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func queueARN(name string) string { return "arn:aws:sqs:" + region + ":" + account + ":" + name }

func (w *world) queue(name string, attributes map[string]string) (url string) {
	w.t.Helper()
	return *must(w.queues.CreateQueue(w.t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes}))(w.t).QueueUrl
}

func (w *world) send(url, body string) {
	w.t.Helper()
	must(w.queues.SendMessage(w.t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}))(w.t)
}

func (w *world) topic(name string) (arn string) {
	w.t.Helper()
	return *must(w.topics.CreateTopic(w.t.Context(), &sns.CreateTopicInput{Name: &name}))(w.t).TopicArn
}

func (w *world) subscribe(topic, protocol, endpoint string, attributes map[string]string) (arn string) {
	w.t.Helper()
	return *must(w.topics.Subscribe(w.t.Context(), &sns.SubscribeInput{
		TopicArn: &topic, Protocol: &protocol, Endpoint: &endpoint, Attributes: attributes, ReturnSubscriptionArn: true,
	}))(w.t).SubscriptionArn
}

func (w *world) publish(topic, text string) {
	w.t.Helper()
	must(w.topics.Publish(w.t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &text}))(w.t)
}

// hook is a web hook that answers a status.
type hook struct {
	status   atomic.Int32
	requests atomic.Int32
	gate     sync.RWMutex // held for writing, it holds requests up
}

// hooked subscribes a web hook and confirms it.
func (w *world) hooked(topic string, attributes map[string]string) (h *hook, subscription string) {
	w.t.Helper()
	h = &hook{}
	h.status.Store(http.StatusOK)
	links := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("x-amz-sns-message-type") == "SubscriptionConfirmation" {
			var confirmation struct{ SubscribeURL string }
			_ = json.Unmarshal(body, &confirmation)
			links <- confirmation.SubscribeURL
			return
		}
		h.requests.Add(1)
		h.gate.RLock()
		defer h.gate.RUnlock()
		rw.WriteHeader(int(h.status.Load()))
	}))
	w.t.Cleanup(s.Close)
	subscription = w.subscribe(topic, "http", s.URL+"/hook", attributes)
	w.fetch(http.MethodGet, <-links, "", http.StatusOK)
	return h, subscription
}

// advance moves the virtual clock.
func (w *world) advance(by string) {
	w.t.Helper()
	w.fetch(http.MethodPost, w.endpoint+"/_godwit/clock", `{"advance":"`+by+`"}`, http.StatusOK)
}

// fetch asks for anything, which has to be answered with a status.
func (w *world) fetch(method, url, body string, want int) string {
	w.t.Helper()
	status, text := w.ask(method, url, body)
	if status != want {
		w.t.Fatalf("%s %s %s: %d %s; want %d", method, url, body, status, text, want)
	}
	return text
}

// ask asks for anything.
func (w *world) ask(method, url, body string) (status int, text string) {
	w.t.Helper()
	req, err := w.request(method, url, body)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, string(must(io.ReadAll(resp.Body))(w.t))
}

// request is one for anything, signed where the operator's API is asked so.
func (w *world) request(method, url, body string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(w.t.Context(), method, url, strings.NewReader(body))
	if err != nil || w.signs == nil {
		return req, err
	}
	sum := sha256.Sum256([]byte(body))
	return req, v4.NewSigner().SignHTTP(w.t.Context(), *w.signs, req, hex.EncodeToString(sum[:]), "godwit", region, time.Now())
}

// get asks for a path of the API, whose parameters are pairs of name and value, and holds
// the answer against the document.
func get[T any](w *world, path string, parameters ...string) T {
	w.t.Helper()
	return decode[T](w, w.call(http.MethodGet, path, query(parameters), "", http.StatusOK))
}

// post is get for what changes something.
func post[T any](w *world, path, body string) T {
	w.t.Helper()
	want := http.StatusOK
	if op := document(w).operation(w.t, http.MethodPost, prefix+path); op.Responses["202"].Content != nil {
		want = http.StatusAccepted
	}
	return decode[T](w, w.call(http.MethodPost, path, "", body, want))
}

func decode[T any](w *world, text string) (out T) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

func query(parameters []string) string {
	form := url.Values{}
	for pair := range slices.Chunk(parameters, 2) {
		form.Set(pair[0], pair[1])
	}
	return form.Encode()
}

// refused asks for what is to be refused.
func (w *world) refused(status int, method, path, queryOrBody string) {
	w.t.Helper()
	var text string
	if method == http.MethodGet {
		text = w.call(method, path, queryOrBody, "", status)
	} else {
		text = w.call(method, path, "", queryOrBody, status)
	}
	if problem := decode[struct{ Error, Code string }](w, text); problem.Error == "" || problem.Code == "" {
		w.t.Errorf("%s %s: %s", method, path, text)
	}
}

// call asks, and holds the answer against the document.
func (w *world) call(method, path, query, body string, want int) string {
	w.t.Helper()
	doc := document(w)
	op := doc.operation(w.t, method, prefix+path)
	for name := range must(url.ParseQuery(query))(w.t) {
		if want < 300 && !slices.ContainsFunc(op.Parameters, func(p parameter) bool { return p.Name == name }) {
			w.t.Errorf("%s is no parameter of %s", name, path)
		}
	}
	link := w.endpoint + prefix + path
	if query != "" {
		link += "?" + query
	}
	text := w.fetch(method, link, body, want)
	answer, ok := op.Responses[strconv.Itoa(want)]
	if !ok {
		w.t.Errorf("%s %s: the document has no status %d", method, path, want)
		return text
	}
	if _, binary := answer.Content["application/octet-stream"]; binary {
		seen.Store(method+" "+prefix+path+" "+strconv.Itoa(want), true)
		return text
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		w.t.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
	for _, wrong := range doc.check(answer.Content["application/json"].Schema, value, path) {
		w.t.Errorf("%s: %s", wrong, text)
	}
	seen.Store(method+" "+prefix+path+" "+strconv.Itoa(want), true)
	return text
}

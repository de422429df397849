// Package godwittest runs a Godwit server in the process of a test, in memory and on a virtual
// clock that moves only when the test says so: a schedule of 23 days passes in seconds, and a
// visibility timeout at once.
//
//	func TestOrders(t *testing.T) {
//		s := godwittest.Start(t)
//		queues := sqs.NewFromConfig(s.Config())
//		// … send, receive and do not delete …
//		s.Advance(30 * time.Second)
//		// … it is there again
//	}
package godwittest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
)

// Account and Region are those of a server.
const (
	Account = "000000000000"
	Region  = "us-east-1"
)

// stopTime is how long the end of a test waits for requests and attempts in progress.
const stopTime = 20 * time.Second

// Server is a server that ends with its test.
type Server struct {
	t   testing.TB
	url string
}

// signingPair is the key pair that all servers of a process sign messages with: generating one
// for each would take most of the CPU time of a start.
var signingPair = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func assemble(ctx context.Context, deps server.Deps) (server.Parts, error) {
	deps.World.SigningPair = signingPair
	return server.Assemble(ctx, deps)
}

// Start starts a server. It accepts any access key, delivers to private addresses, and retries
// without jitter. Its warnings are in the test's log.
func Start(t testing.TB) *Server {
	t.Helper()
	s := server.New(config.Config{
		Listen: "127.0.0.1:0", Store: config.MemoryStore, Clock: config.VirtualClock, Data: t.TempDir(), Region: Region, Account: Account,
		AllowPrivateEndpoints: true, Retry429: true, RetryAfter: true, JitterSeed: 1, EndpointConcurrency: 50, DeliveryConcurrency: 500,
		MaxAlarms: 5000, Metrics: true, DeliveryHistory: time.Hour, LambdaIdle: 5 * time.Minute, LambdaConcurrency: 1000,
		FunctionNetwork: "private", FunctionIsolation: config.IsolationNone, FunctionConnections: 4096,
		MailFrom: "no-reply@godwit.localhost",
	}, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), assemble)
	if err := s.Start(t.Context()); err != nil {
		t.Fatalf("godwittest: the server does not start: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("godwittest: the server does not stop: %v", err)
		}
	})
	return &Server{t: t, url: "http://" + s.Addr().String()}
}

// URL is the server's address: the endpoint URL of any AWS SDK.
func (s *Server) URL() string { return s.url }

// Config is the configuration for clients of AWS's SDK. They do not retry: the test sees every
// failure.
func (s *Server) Config() aws.Config {
	return aws.Config{
		Region: Region, BaseEndpoint: aws.String(s.url), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

// Now is the server's time.
func (s *Server) Now() time.Time {
	s.t.Helper()
	return s.clock(http.MethodGet, nil).Now
}

// Advance moves the server's time, from timer to timer, and returns when everything that became
// due is done: deliveries, retries, visibility timeouts, delays, retention, alarms.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	s.clock(http.MethodPost, map[string]string{"advance": d.String()})
}

// Kinds of outage.
const (
	Unavailable = "unavailable"
	Throttled   = "throttled"
	None        = "none" // it is over
)

// Fault injects an outage into a queue, function or stream, by its ARN.
func (s *Server) Fault(arn, fault string) {
	s.t.Helper()
	s.ask(http.MethodPost, "v1/faults", map[string]string{"arn": arn, "fault": fault})
}

type moment struct{ Now time.Time }

func (s *Server) clock(method string, body map[string]string) (m moment) {
	s.t.Helper()
	if err := json.Unmarshal(s.ask(method, "v1/clock", body), &m); err != nil {
		s.t.Fatalf("godwittest: the clock cannot be read: %v", err)
	}
	return m
}

// ask sends a request to Godwit's own API.
func (s *Server) ask(method, path string, body map[string]string) []byte {
	s.t.Helper()
	answer, err := s.tryAsk(method, path, body)
	if err != nil {
		s.t.Fatalf("godwittest: %s %s: %v", method, path, err)
	}
	return answer
}

func (s *Server) tryAsk(method, path string, body map[string]string) ([]byte, error) {
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body) // texts can always be encoded
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+"/_godwit/"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	text, err = io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(text))
	}
	return text, err
}

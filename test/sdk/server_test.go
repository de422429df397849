// Package sdk_test speaks to a whole server over HTTP as its users do: with
// the AWS SDK, and with requests written by hand where the SDK would not send
// them.
package sdk_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/invoke/process"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/test/sdkhttp"
)

const (
	region  = "us-east-1"
	account = "000000000000"
)

// start runs a server of its own for the test, in memory and on a virtual
// clock that advance moves. It verifies signatures. endpoint is http://host:port.
func start(t *testing.T) (endpoint string) { return startWith(t, func(*config.Config) {}) }

// isolation is what functions can have on this machine.
var isolation = sync.OnceValue(func() config.FunctionIsolation {
	if process.Isolated() != nil {
		return config.IsolationNone
	}
	return config.IsolationNamespaces
})

// startWith is start with other settings.
func startWith(t *testing.T, change func(c *config.Config)) (endpoint string) {
	t.Helper()
	return startBuilt(t, withTestKeys, change)
}

// startBuilt is startWith of other parts, or, for nil, of the server's own.
func startBuilt(t *testing.T, build server.Build, change func(c *config.Config)) (endpoint string) {
	t.Helper()
	return "http://" + startServer(t, build, change).Addr().String()
}

// startServer is startBuilt for what asks the server for more than its endpoint.
func startServer(t *testing.T, build server.Build, change func(c *config.Config)) *server.Server {
	t.Helper()
	besideOthers(t)
	settings := config.Config{
		Listen: "127.0.0.1:0", Store: config.MemoryStore, Clock: config.VirtualClock, Data: t.TempDir(),
		Region: region, Account: account, AllowPrivateEndpoints: true, Metrics: true, JitterSeed: 1, Retry429: true,
		EndpointConcurrency: 50, DeliveryConcurrency: 500, Enforce: true,
		TransferWindow: time.Minute, // beside other tests a client may stand still for seconds
	}
	settings.FunctionIsolation = isolation()
	change(&settings)
	s := server.New(settings, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), build)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if address := s.Addr().String(); settings.Enforce {
		enforcing.Store(address, true)
		t.Cleanup(func() { enforcing.Delete(address) })
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

var parallel sync.Map // names of tests

// besideOthers lets a test run while others do, since it has a server of its own. What
// stands behind a subtest counts on its end.
func besideOthers(t *testing.T) {
	if _, before := parallel.LoadOrStore(t.Name(), true); !before && !strings.Contains(t.Name(), "/") {
		t.Parallel()
	}
}

// alone keeps a test from running while others do, since it changes what they share.
func alone(t *testing.T) { parallel.Store(t.Name(), true) }

// client is an SQS client of account 000000000000.
func client(endpoint string) *sqs.Client { return clientOf(endpoint, region, "test") }

func clientOf(endpoint, region, accessKey string) *sqs.Client {
	return sqs.New(sqs.Options{
		BaseEndpoint:     aws.String(endpoint),
		Region:           region,
		Credentials:      credentials.NewStaticCredentialsProvider(accessKey, secretOf(accessKey), ""),
		RetryMaxAttempts: 1,
		HTTPClient:       eager,
	})
}

// eager is the HTTP client of SDK clients.
var eager = sdkhttp.Of(http.DefaultClient)

// response is an answer to a request written by hand.
type response struct {
	Status int
	Header http.Header
	Body   string
}

func do(t *testing.T, req *http.Request) response {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{Status: resp.StatusCode, Header: resp.Header, Body: string(body)}
}

// callJSON sends an operation of SQS as JSON. The body is a JSON text.
func callJSON(t *testing.T, endpoint, operation, body string) response {
	t.Helper()
	return do(t, newJSON(t, endpoint, operation, body))
}

func newJSON(t *testing.T, endpoint, operation, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "AmazonSQS."+operation)
	return req
}

// callQuery sends an operation of SQS as a form to endpoint, which may be a
// queue's URL. The parameters are pairs of name and value.
func callQuery(t *testing.T, endpoint, operation string, parameters ...string) response {
	t.Helper()
	form := url.Values{"Action": {operation}, "Version": {"2012-11-05"}}
	for i := 0; i < len(parameters); i += 2 {
		form.Set(parameters[i], parameters[i+1])
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return do(t, req)
}

// advance moves the server's clock; what comes due has happened when it
// returns.
func advance(t *testing.T, endpoint, duration string) {
	t.Helper()
	if r := post(t, endpoint+"/_godwit/clock", `{"advance":"`+duration+`"}`); r.Status != http.StatusOK {
		t.Fatalf("advancing the clock by %s: %d %s", duration, r.Status, r.Body)
	}
}

// post sends a JSON text to one of the server's own endpoints.
func post(t *testing.T, url, body string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return do(t, req)
}

// sdkNoise leaves out what the SDK adds to its types.
var sdkNoise = cmp.FilterPath(func(p cmp.Path) bool {
	f, ok := p.Last().(cmp.StructField)
	return ok && (f.Name() == "noSmithyDocumentSerde" || f.Name() == "ResultMetadata")
}, cmp.Ignore())

// equal compares what the SDK gave with what is wanted, field by field.
func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, sdkNoise); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// must is the value of a call that may not fail.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// createQueue makes a queue and gives its URL. The attributes are pairs of
// name and value.
func createQueue(t *testing.T, c *sqs.Client, name string, attributes ...string) string {
	t.Helper()
	in := &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: map[string]string{}}
	for i := 0; i < len(attributes); i += 2 {
		in.Attributes[attributes[i]] = attributes[i+1]
	}
	return aws.ToString(must(c.CreateQueue(t.Context(), in))(t).QueueUrl)
}

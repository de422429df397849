package rental_test

import (
	"archive/zip"
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// What the shop has in place of its web hook and its consumer.
const (
	billingFunction = "Rental-Billing"
	recovery        = "Rental-Recovery"
	billingOwnDLQ   = "Rental-Billing-DLQ"
)

// office is the shop with functions.
type office struct {
	*shop
	lambda *lambda.Client
	logs   *cloudwatchlogs.Client
	zip    []byte

	refused string // why functions do not run on this machine; empty: they do
}

// TestRentalFunctions is the second part of README.md, on a virtual clock: an hour
// of retries is over at once.
func TestRentalFunctions(t *testing.T) {
	t.Parallel()
	godwit, clerk := build(t, "clerk")
	address := freeAddress(t)
	launch(t, t, "http://"+address+"/_godwit/health", godwit,
		"--listen", address, "--data", t.TempDir(), "--log-level", "warn", "--jitter", "0", "--clock", "virtual")
	endpoint := "http://" + address
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""), BaseEndpoint: &endpoint}
	s := &office{shop: newShop(endpoint, ""), lambda: lambda.NewFromConfig(config), logs: cloudwatchlogs.NewFromConfig(config), zip: packed(t, clerk)}
	for _, step := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"set up", s.setUp},
		{"an order is reserved and billed", s.billed},
		{"a broken order is in the dead-letter queues", s.broken},
		{"without permission the topic cannot invoke", s.forbidden},
		{"the queue is deleted, and the order is recovered", s.recovered},
	} {
		if !t.Run(step.name, step.run) {
			t.FailNow() // the steps build on each other
		}
		if s.refused != "" {
			t.Skip(s.refused)
		}
	}
}

// packed is a function's code: the program as bootstrap.
func packed(t *testing.T, program string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Clean(program))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	h := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	h.SetMode(0o755)
	f, err := w.CreateHeader(h)
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (s *office) createFunction(t *testing.T, name string, duties map[string]string, deadLetter *lambdatypes.DeadLetterConfig) (arn string) {
	t.Helper()
	out, err := s.lambda.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: &name, Runtime: lambdatypes.RuntimeProvidedal2023, Handler: aws.String("bootstrap"), Timeout: aws.Int32(10),
		Role: aws.String("arn:aws:iam::000000000000:role/rental"), Code: &lambdatypes.FunctionCode{ZipFile: s.zip}, DeadLetterConfig: deadLetter,
		Environment: &lambdatypes.Environment{Variables: duties},
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.State == lambdatypes.StateFailed {
		s.refused = *out.StateReason
	}
	return *out.FunctionArn
}

func (s *office) feed(t *testing.T, queue, function string) {
	t.Helper()
	_, err := s.lambda.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: aws.String(s.arn[queue]), FunctionName: &function,
		FunctionResponseTypes: []lambdatypes.FunctionResponseType{lambdatypes.FunctionResponseTypeReportBatchItemFailures},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *office) setUp(t *testing.T) {
	for _, name := range []string{fulfilmentDLQ, fanoutDLQ, billingDLQ, billingOwnDLQ} {
		s.createQueue(t, name, nil)
	}
	s.createQueue(t, fulfilmentName, map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"` + s.arn[fulfilmentDLQ] + `","maxReceiveCount":3}`,
	})
	s.createTopic(t)
	s.subscribeFulfilment(t)
	own := s.arn[billingOwnDLQ]
	billing := s.createFunction(t, billingFunction, map[string]string{"ANNOUNCED": "reserved", "QUEUED": "billed", "BROKEN": "X-"},
		&lambdatypes.DeadLetterConfig{TargetArn: &own})
	s.allow(t)
	s.toBilling = s.subscribe(t, "lambda", billing, map[string]string{
		"FilterPolicy":  filterPolicy,
		"RedrivePolicy": `{"deadLetterTargetArn":"` + s.arn[billingDLQ] + `"}`,
	})
	s.feed(t, fulfilmentName, billingFunction)
	s.createFunction(t, recovery, map[string]string{"QUEUED": "recovered"}, nil)
	s.feed(t, fanoutDLQ, recovery)
}

// allow lets the topic invoke billing.
func (s *office) allow(t *testing.T) {
	t.Helper()
	if _, err := s.lambda.AddPermission(t.Context(), &lambda.AddPermissionInput{
		FunctionName: aws.String(billingFunction), StatementId: aws.String("orders"), Action: aws.String("lambda:InvokeFunction"),
		Principal: aws.String("sns.amazonaws.com"), SourceArn: &s.topic,
	}); err != nil {
		t.Fatal(err)
	}
}

// said waits until a function has printed a line n times, which Node.js puts time, request and
// level before.
func (s *office) said(t *testing.T, function, line string, n int) {
	t.Helper()
	eventually(t, function+" says: "+line, func() (bool, error) {
		out, err := s.logs.FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("/aws/lambda/" + function)})
		if err != nil {
			return false, err
		}
		found := 0
		for _, e := range out.Events {
			if said := strings.TrimSpace(aws.ToString(e.Message)); said == line || strings.HasSuffix(said, "\tINFO\t"+line) {
				found++
			}
		}
		return found == n, nil
	})
}

// advance moves the server's clock.
func (s *office) advance(t *testing.T, by string) {
	t.Helper()
	resp, err := http.Post(s.endpoint+"/_godwit/clock", "application/json", strings.NewReader(`{"advance":"`+by+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("advancing the clock: %s", resp.Status)
	}
}

func (s *office) billed(t *testing.T) {
	s.publish(t, "R-1", "confirmed")
	s.publish(t, "R-2", "quoted") // which neither wants
	s.publish(t, "R-3", "canceled")
	for _, order := range []string{"R-1", "R-3"} {
		s.said(t, billingFunction, "reserved "+order, 1)
		s.said(t, billingFunction, "billed "+order, 1)
	}
	s.said(t, billingFunction, "reserved R-2", 0)
	s.said(t, billingFunction, "billed R-2", 0)
	s.advance(t, "1ms") // which waits for what is under way
	s.wantEmpty(t, fulfilmentName)
}

// broken: billing is tried again with the announcement after one and two minutes,
// and with the queue's message until it has come three times; then either is in a
// dead-letter queue.
func (s *office) broken(t *testing.T) {
	s.publish(t, "X-1", "confirmed")
	const failure = "order X-1 is broken"
	for n := 1; n <= 3; n++ {
		s.said(t, billingFunction, failure, n)
		s.advance(t, "1ms")
		s.advance(t, "30s") // until it is visible again
	}
	if dead := s.take(t, fulfilmentDLQ); dead.Envelope.Message != body("X-1", "confirmed") {
		t.Errorf("%s has %s", fulfilmentDLQ, dead.Envelope.Message)
	}
	s.advance(t, "3m")
	out, err := s.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(s.url[billingOwnDLQ]), WaitTimeSeconds: 20, MessageAttributeNames: []string{"All"},
	})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("%d messages came to %s: %v", len(out.Messages), billingOwnDLQ, err)
	}
	m := out.Messages[0]
	if !strings.Contains(*m.Body, `X-1`) || aws.ToString(m.MessageAttributes["ErrorMessage"].StringValue) != failure {
		t.Errorf("%s has %s, %v", billingOwnDLQ, *m.Body, m.MessageAttributes)
	}
	s.wantEmpty(t, billingDLQ) // the topic has delivered it
}

// forbidden: a refusal is final, and the order is in the dead-letter queue of the
// subscription.
func (s *office) forbidden(t *testing.T) {
	if _, err := s.lambda.RemovePermission(t.Context(), &lambda.RemovePermissionInput{
		FunctionName: aws.String(billingFunction), StatementId: aws.String("orders"),
	}); err != nil {
		t.Fatal(err)
	}
	id := s.publish(t, "R-4", "confirmed")
	if dead := s.take(t, billingDLQ); dead.Envelope.MessageId != id {
		t.Errorf("%s has %s, want R-4", billingDLQ, dead.Envelope.Message)
	}
	s.said(t, billingFunction, "billed R-4", 1)
	s.said(t, billingFunction, "reserved R-4", 0)
	s.allow(t)
}

// recovered: what cannot be delivered to the queue comes to the function that
// empties the subscription's dead-letter queue.
func (s *office) recovered(t *testing.T) {
	s.advance(t, "1ms")
	if _, err := s.sqs.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String(s.url[fulfilmentName])}); err != nil {
		t.Fatal(err)
	}
	s.publish(t, "R-5", "confirmed")
	s.said(t, recovery, "recovered R-5", 1)
	s.said(t, billingFunction, "reserved R-5", 1)
	s.said(t, billingFunction, "billed R-5", 0)
	s.advance(t, "1ms")
	s.wantEmpty(t, fanoutDLQ)
}

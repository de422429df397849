package sdk_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
)

// far is a function that runs elsewhere: in the test.
type far struct {
	*httptest.Server

	mu       sync.Mutex
	failures int      // of the runs to come
	payloads []string // of the runs so far
}

func startFar(t *testing.T) *far {
	f := &far{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.payloads = append(f.payloads, string(body))
		if f.failures > 0 {
			f.failures--
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			io.WriteString(w, `{"errorMessage":"no","errorType":"Error"}`)
			return
		}
		io.WriteString(w, `{"ok":true}`)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *far) fail(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = n
}

// ran is the payloads of the runs since it was last asked.
func (f *far) ran() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.payloads
	f.payloads = nil
	return all
}

// createFar makes a function of what runs elsewhere, active when it returns.
func createFar(t *testing.T, endpoint string, c *lambda.Client, name string, f *far, deadLetter string) {
	t.Helper()
	in := &lambda.CreateFunctionInput{
		FunctionName: &name, Role: new(roleARN), PackageType: types.PackageTypeImage, Code: &types.FunctionCode{ImageUri: &f.URL},
		Timeout: new(int32(runTime)),
	}
	if deadLetter != "" {
		in.DeadLetterConfig = &types.DeadLetterConfig{TargetArn: &deadLetter}
	}
	must(c.CreateFunction(t.Context(), in))(t)
	advance(t, endpoint, "0s") // until it is active
}

// invokeAsync makes an asynchronous invocation and gives its request's id.
func invokeAsync(t *testing.T, c *lambda.Client, name, payload string) (id string) {
	t.Helper()
	var head http.Header
	out := must(c.Invoke(t.Context(), &lambda.InvokeInput{
		FunctionName: &name, InvocationType: types.InvocationTypeEvent, Payload: []byte(payload),
	}, func(o *lambda.Options) { o.HTTPClient = heads{&head} }))(t)
	equal(t, "the answer to an event", &lambda.InvokeOutput{StatusCode: 202}, out)
	return head.Get("X-Amzn-Requestid")
}

// heads keeps the heads of answers.
type heads struct{ head *http.Header }

func (h heads) Do(req *http.Request) (*http.Response, error) {
	resp, err := eager.Do(req)
	if err == nil {
		*h.head = resp.Header
	}
	return resp, err
}

// startDisk runs a server that restart ends and starts again on what it kept.
func startDisk(t *testing.T) (endpoint string, restart func() string) {
	t.Helper()
	return startDiskWith(t, func(*config.Config) {})
}

// startDiskWith is startDisk with other settings.
func startDiskWith(t *testing.T, change func(c *config.Config)) (endpoint string, restart func() string) {
	t.Helper()
	settings := config.Config{
		Listen: "127.0.0.1:0", Store: config.PebbleStore, Clock: config.VirtualClock, Data: t.TempDir(), Region: region, Account: account,
		AllowPrivateEndpoints: true, Metrics: true, JitterSeed: 1, Retry429: true, EndpointConcurrency: 50, DeliveryConcurrency: 500,
	}
	change(&settings)
	var s *server.Server
	begin := func() string {
		s = server.New(settings, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), nil)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if settings.Enforce {
			enforcing.Store(s.Addr().String(), true)
		}
		return "http://" + s.Addr().String()
	}
	end := func() {
		enforcing.Delete(s.Addr().String())
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { end() })
	return begin(), func() string {
		end()
		return begin()
	}
}

// backlogOf is how many events wait for a function, as an operator sees it.
func backlogOf(t *testing.T, endpoint, name string) map[string]any {
	t.Helper()
	r := fetch(t, endpoint+"/_godwit/events?function="+functionARN(name))
	if r.Status != 200 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	return decode(t, r.Body)
}

// TestAsyncLife is the whole life of an event that fails: three attempts over
// three minutes and two restarts, then the dead-letter queue and the destination.
func TestAsyncLife(t *testing.T) {
	endpoint, restart := startDisk(t)
	c, queues := functionsClient(endpoint), client(endpoint)
	f := startFar(t)
	createQueue(t, queues, "dead")
	createQueue(t, queues, "failed")
	createFar(t, endpoint, c, "f", f, queueARN("dead"))
	must(c.PutFunctionEventInvokeConfig(t.Context(), &lambda.PutFunctionEventInvokeConfigInput{
		FunctionName: new("f"), DestinationConfig: &types.DestinationConfig{OnFailure: &types.OnFailure{Destination: new(queueARN("failed"))}},
	}))(t)
	f.fail(3)
	id := invokeAsync(t, c, "f", `{"n":1}`)
	advance(t, endpoint, "0s")
	equal(t, "the first attempt", []string{`{"n":1}`}, f.ran())
	b := backlogOf(t, endpoint, "f")
	equal(t, "what waits", []any{1.0, 1.0, 0.0, 0.0, 0.0}, []any{b["events"], b["waiting"], b["due"], b["inFlight"], b["oldestAgeSeconds"]})
	endpoint = restart()
	// A server that starts is not behind the machine's clock: what the test itself has
	// taken so far is gone from the minute.
	advance(t, endpoint, "45s")
	equal(t, "before the second", []string(nil), f.ran())
	advance(t, endpoint, "16s") // a restart may cost part of a second
	equal(t, "the second attempt", []string{`{"n":1}`}, f.ran())
	endpoint = restart()
	advance(t, endpoint, "110s") // likewise
	equal(t, "before the third", []string(nil), f.ran())
	advance(t, endpoint, "11s")
	equal(t, "the third attempt", []string{`{"n":1}`}, f.ran())
	queues = client(endpoint)
	dead := takeMessage(t, queues, endpoint+"/"+account+"/dead")
	equal(t, "the dead letter", `{"n":1}`, *dead.Body)
	got := map[string]string{}
	for name, a := range dead.MessageAttributes {
		got[name] = *a.DataType + " " + *a.StringValue
	}
	equal(t, "its attributes", map[string]string{"RequestID": "String " + id, "ErrorCode": "Number 200", "ErrorMessage": "String no"}, got)
	record := decode(t, *takeMessage(t, queues, endpoint+"/"+account+"/failed").Body)
	if _, err := time.Parse("2006-01-02T15:04:05.000Z", record["timestamp"].(string)); err != nil {
		t.Error(err)
	}
	delete(record, "timestamp")
	equal(t, "the record", map[string]any{
		"version": "1.0", "requestPayload": map[string]any{"n": 1.0},
		"requestContext": map[string]any{
			"requestId": id, "functionArn": functionARN("f") + ":$LATEST", "condition": "RetriesExhausted", "approximateInvokeCount": 3.0,
		},
		"responseContext": map[string]any{"statusCode": 200.0, "executedVersion": "$LATEST", "functionError": "Unhandled"},
		"responsePayload": map[string]any{"errorMessage": "no", "errorType": "Error"},
	}, record)
	advance(t, endpoint, "7h")
	equal(t, "later attempts", []string(nil), f.ran())
	equal(t, "what is left", 0.0, backlogOf(t, endpoint, "f")["events"].(float64))
}

// TestAsyncFaults: an outage of the function is retried from one second on, and
// is no failure of the function's.
func TestAsyncFaults(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	f := startFar(t)
	createFar(t, endpoint, c, "f", f, "")
	invokeAsync(t, c, "f", `1`)
	advance(t, endpoint, "0s")
	equal(t, "without a fault", []string{`1`}, f.ran())
	f.fail(1)
	invokeAsync(t, c, "f", `2`)
	advance(t, endpoint, "0s")
	equal(t, "a failure", []string{`2`}, f.ran())
	for _, name := range []string{"throttled", "unavailable"} {
		post(t, endpoint+"/_godwit/faults", `{"arn":"`+functionARN("f")+`","fault":"`+name+`"}`)
	}
	advance(t, endpoint, "60s")
	equal(t, "in an outage", []string(nil), f.ran())
	post(t, endpoint+"/_godwit/faults", `{"arn":"`+functionARN("f")+`","fault":"none"}`)
	advance(t, endpoint, "1s")
	equal(t, "after it", []string{`2`}, f.ran())
	if r := post(t, endpoint+"/_godwit/faults", `{"arn":"`+functionARN("f")+`:1","fault":"none"}`); r.Status != 400 {
		t.Errorf("a fault of a version: %d %s", r.Status, r.Body)
	}
}

// TestChain: a success continues to a topic, and from its subscriber, a function, to
// another one.
func TestChain(t *testing.T) {
	endpoint := start(t)
	c, topics := functionsClient(endpoint), topicsClient(endpoint)
	first, second, third := startFar(t), startFar(t), startFar(t)
	createFar(t, endpoint, c, "first", first, "")
	createFar(t, endpoint, c, "second", second, "")
	createFar(t, endpoint, c, "third", third, "")
	topic := createTopic(t, topics, "news")
	allowTopic(t, c, "second", topic)
	subscribe(t, topics, topic, "lambda", functionARN("second"))
	onSuccess := func(name, destination string) {
		t.Helper()
		must(c.PutFunctionEventInvokeConfig(t.Context(), &lambda.PutFunctionEventInvokeConfigInput{
			FunctionName: &name, DestinationConfig: &types.DestinationConfig{OnSuccess: &types.OnSuccess{Destination: &destination}},
		}))(t)
	}
	onSuccess("first", topic)
	onSuccess("second", functionARN("third"))
	invokeAsync(t, c, "first", `{"order":7}`)
	advance(t, endpoint, "0s")
	got := third.ran()
	if len(got) != 1 {
		t.Fatalf("the third function ran %d times", len(got))
	}
	outer := decode(t, got[0])
	records := outer["requestPayload"].(map[string]any)["Records"].([]any)
	inner := decode(t, records[0].(map[string]any)["Sns"].(map[string]any)["Message"].(string))
	equal(t, "what came through", map[string]any{"order": 7.0}, inner["requestPayload"].(map[string]any))
}

// allowTopic lets a topic invoke a function.
func allowTopic(t *testing.T, c *lambda.Client, name, topic string) {
	t.Helper()
	must(c.AddPermission(t.Context(), &lambda.AddPermissionInput{
		FunctionName: &name, StatementId: new("sns"), Action: new("lambda:InvokeFunction"), Principal: new("sns.amazonaws.com"), SourceArn: &topic,
	}))(t)
}

func TestEventRefusals(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	createFar(t, endpoint, c, "f", startFar(t), "")
	send := func(name, payload string) error {
		_, err := c.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &name, InvocationType: types.InvocationTypeEvent, Payload: []byte(payload)})
		return err
	}
	refused(t, send("none", `1`), "ResourceNotFoundException", 404, "Function not found: "+functionARN("none")+":$LATEST")
	refused(t, send("f:7", `1`), "ResourceNotFoundException", 404, "Function not found: "+functionARN("f:7"))
	large := `"` + strings.Repeat("x", 1<<20-1) + `"`
	refused(t, send("f", large), "RequestEntityTooLargeException", 413, "1048577 byte payload is too large for the Event invocation type (limit 1048576 bytes)")
	if err := send("f", large[1:2]+large[2:]); err == nil {
		t.Error("not JSON, and taken")
	}
	if err := send("f", `"`+large[2:]); err != nil {
		t.Errorf("an event of exactly 1 MB: %v", err)
	}
}

func TestEventInvokeConfigs(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	ctx := t.Context()
	createFar(t, endpoint, c, "f", startFar(t), "")
	must(c.PublishVersion(ctx, &lambda.PublishVersionInput{FunctionName: new("f")}))(t)
	must(c.CreateAlias(ctx, &lambda.CreateAliasInput{FunctionName: new("f"), Name: new("live"), FunctionVersion: new("1")}))(t)

	_, err := c.GetFunctionEventInvokeConfig(ctx, &lambda.GetFunctionEventInvokeConfigInput{FunctionName: new("f")})
	const none = "doesn't have an EventInvokeConfig"
	refused(t, err, "ResourceNotFoundException", 404, "The function "+functionARN("f")+":$LATEST "+none)
	_, err = c.UpdateFunctionEventInvokeConfig(ctx, &lambda.UpdateFunctionEventInvokeConfigInput{FunctionName: new("f"), MaximumRetryAttempts: new(int32(1))})
	refused(t, err, "ResourceNotFoundException", 404, "The function "+functionARN("f")+":$LATEST "+none)
	_, err = c.DeleteFunctionEventInvokeConfig(ctx, &lambda.DeleteFunctionEventInvokeConfigInput{FunctionName: new("f"), Qualifier: new("live")})
	refused(t, err, "ResourceNotFoundException", 404, "The function "+functionARN("f")+":live "+none)
	put := func(in *lambda.PutFunctionEventInvokeConfigInput) (*lambda.PutFunctionEventInvokeConfigOutput, error) {
		if in.FunctionName == nil {
			in.FunctionName = new("f")
		}
		return c.PutFunctionEventInvokeConfig(ctx, in)
	}
	fails := func(text, code string, in *lambda.PutFunctionEventInvokeConfigInput) {
		t.Helper()
		_, err := put(in)
		status := 400
		if code == "ResourceNotFoundException" {
			status = 404
		}
		refused(t, err, code, status, text)
	}
	const invalid = "InvalidParameterValueException"
	fails("You must specify at least one of error handling or destination setting.", invalid, &lambda.PutFunctionEventInvokeConfigInput{})
	fails("The function doesn't exist.", "ResourceNotFoundException",
		&lambda.PutFunctionEventInvokeConfigInput{FunctionName: new("none"), MaximumRetryAttempts: new(int32(1))})
	fails("The function doesn't exist.", "ResourceNotFoundException",
		&lambda.PutFunctionEventInvokeConfigInput{Qualifier: new("9"), MaximumRetryAttempts: new(int32(1))})
	to := func(arn string) *types.DestinationConfig {
		return &types.DestinationConfig{OnFailure: &types.OnFailure{Destination: &arn}}
	}
	fails("You can't specify the function as a destination for itself.", invalid, &lambda.PutFunctionEventInvokeConfigInput{DestinationConfig: to(functionARN("f"))})
	fails("The provided destination config DestinationConfig(onSuccess=null, onFailure=OnFailure(destination=arn:aws:s3:us-east-1:000000000000:b)) is invalid.",
		invalid, &lambda.PutFunctionEventInvokeConfigInput{DestinationConfig: to("arn:aws:s3:us-east-1:000000000000:b")})
	fails("1 validation error detected: Value '3' at 'maximumRetryAttempts' failed to satisfy constraint: Member must have value less than or equal to 2",
		"ValidationException", &lambda.PutFunctionEventInvokeConfigInput{MaximumRetryAttempts: new(int32(3))})
	fails("1 validation error detected: Value '59' at 'maximumEventAgeInSeconds' failed to satisfy constraint: Member must have value greater than or equal to 60",
		"ValidationException", &lambda.PutFunctionEventInvokeConfigInput{MaximumEventAgeInSeconds: new(int32(59))})

	at := func(modified *time.Time) *time.Time {
		t.Helper()
		if modified == nil || modified.IsZero() {
			t.Fatal("no LastModified")
		}
		return modified
	}
	out := must(put(&lambda.PutFunctionEventInvokeConfigInput{MaximumRetryAttempts: new(int32(0))}))(t)
	unset := func() *types.DestinationConfig {
		return &types.DestinationConfig{OnSuccess: &types.OnSuccess{}, OnFailure: &types.OnFailure{}}
	}
	equal(t, "put", &lambda.PutFunctionEventInvokeConfigOutput{
		FunctionArn: new(functionARN("f") + ":$LATEST"), LastModified: at(out.LastModified), MaximumRetryAttempts: new(int32(0)), DestinationConfig: unset(),
	}, out)
	updated := must(c.UpdateFunctionEventInvokeConfig(ctx, &lambda.UpdateFunctionEventInvokeConfigInput{
		FunctionName: new("f"), MaximumEventAgeInSeconds: new(int32(21600)), DestinationConfig: to(queueARN("q")),
	}))(t)
	merged := unset()
	merged.OnFailure.Destination = new(queueARN("q"))
	equal(t, "update", &lambda.UpdateFunctionEventInvokeConfigOutput{
		FunctionArn: out.FunctionArn, LastModified: at(updated.LastModified), MaximumRetryAttempts: new(int32(0)),
		MaximumEventAgeInSeconds: new(int32(21600)), DestinationConfig: merged,
	}, updated)
	must(put(&lambda.PutFunctionEventInvokeConfigInput{Qualifier: new("live"), MaximumRetryAttempts: new(int32(2))}))(t)
	again := must(put(&lambda.PutFunctionEventInvokeConfigInput{MaximumEventAgeInSeconds: new(int32(60))}))(t)
	equal(t, "put again", &lambda.PutFunctionEventInvokeConfigOutput{
		FunctionArn: out.FunctionArn, LastModified: at(again.LastModified), MaximumEventAgeInSeconds: new(int32(60)), DestinationConfig: unset(),
	}, again)
	got := must(c.GetFunctionEventInvokeConfig(ctx, &lambda.GetFunctionEventInvokeConfigInput{FunctionName: new("f"), Qualifier: new("live")}))(t)
	equal(t, "get", &lambda.GetFunctionEventInvokeConfigOutput{
		FunctionArn: new(functionARN("f") + ":live"), LastModified: at(got.LastModified), MaximumRetryAttempts: new(int32(2)), DestinationConfig: unset(),
	}, got)

	var arns []string
	pages := lambda.NewListFunctionEventInvokeConfigsPaginator(c, &lambda.ListFunctionEventInvokeConfigsInput{FunctionName: new("f"), MaxItems: new(int32(1))})
	for pages.HasMorePages() {
		page := must(pages.NextPage(ctx))(t)
		if len(page.FunctionEventInvokeConfigs) > 1 {
			t.Errorf("%d on a page of one", len(page.FunctionEventInvokeConfigs))
		}
		for _, one := range page.FunctionEventInvokeConfigs {
			arns = append(arns, *one.FunctionArn)
		}
	}
	equal(t, "list", []string{functionARN("f") + ":$LATEST", functionARN("f") + ":live"}, arns)
	_, err = c.ListFunctionEventInvokeConfigs(ctx, &lambda.ListFunctionEventInvokeConfigsInput{FunctionName: new("none")})
	refused(t, err, "ResourceNotFoundException", 404, "The function doesn't exist.")

	// What was said of an alias goes with it.
	must(c.DeleteAlias(ctx, &lambda.DeleteAliasInput{FunctionName: new("f"), Name: new("live")}))(t)
	_, err = c.GetFunctionEventInvokeConfig(ctx, &lambda.GetFunctionEventInvokeConfigInput{FunctionName: new("f"), Qualifier: new("live")})
	refused(t, err, "ResourceNotFoundException", 404, "The function "+functionARN("f")+":live "+none)
	must(c.DeleteFunctionEventInvokeConfig(ctx, &lambda.DeleteFunctionEventInvokeConfigInput{FunctionName: new("f")}))(t)
	left := must(c.ListFunctionEventInvokeConfigs(ctx, &lambda.ListFunctionEventInvokeConfigsInput{FunctionName: new("f")}))(t)
	equal(t, "what is left", 0, len(left.FunctionEventInvokeConfigs))
}

// subscribedFunction is a function that is subscribed to a topic, with a
// dead-letter queue.
func subscribedFunction(t *testing.T, endpoint string) (f *far, topic, subscription string) {
	t.Helper()
	c, topics := functionsClient(endpoint), topicsClient(endpoint)
	f = startFar(t)
	createFar(t, endpoint, c, "f", f, "")
	topic = createTopic(t, topics, "news")
	createQueue(t, client(endpoint), "undelivered")
	subscription = subscribe(t, topics, topic, "lambda", functionARN("f"), "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("undelivered")+`"}`)
	return f, topic, subscription
}

// TestSNSToLambda: the event is AWS's, with a signature that verifies.
func TestSNSToLambda(t *testing.T) {
	endpoint := start(t)
	topics := topicsClient(endpoint)
	f, topic, subscription := subscribedFunction(t, endpoint)
	allowTopic(t, functionsClient(endpoint), "f", topic)
	equal(t, "confirmed", "false", subscriptionAttributes(t, topics, subscription)["PendingConfirmation"])
	published := must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("hello")}))(t)
	advance(t, endpoint, "0s")
	got := f.ran()
	if len(got) != 1 {
		t.Fatalf("%d runs", len(got))
	}
	event := decode(t, got[0])
	notification := event["Records"].([]any)[0].(map[string]any)["Sns"].(map[string]any)
	signature, stamp, certificate := notification["Signature"].(string), notification["Timestamp"].(string), notification["SigningCertUrl"].(string)
	if len(signature) != 344 || strings.HasPrefix(signature, "AAAA") || !strings.HasPrefix(certificate, endpoint+"/SimpleNotificationService-") {
		t.Errorf("signature %q, certificate %q", signature, certificate)
	}
	equal(t, "the event", map[string]any{"Records": []any{map[string]any{
		"EventSource": "aws:sns", "EventVersion": "1.0", "EventSubscriptionArn": subscription,
		"Sns": map[string]any{
			"Type": "Notification", "MessageId": *published.MessageId, "TopicArn": topic, "Subject": nil, "Message": "hello",
			"Timestamp": stamp, "SignatureVersion": "1", "Signature": signature, "SigningCertUrl": certificate,
			"UnsubscribeUrl":    endpoint + "/?Action=Unsubscribe&SubscriptionArn=" + subscription,
			"MessageAttributes": map[string]any{},
		},
	}}}, event)
	// A failure of the function is the function's: the delivery has been made.
	f.fail(3)
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("fails")}))(t)
	advance(t, endpoint, "1h")
	equal(t, "attempts at an event", 3, len(f.ran()))
	none(t, endpoint, "undelivered")
}

// none checks that a queue is empty.
func none(t *testing.T, endpoint, name string) {
	t.Helper()
	out := must(client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: new(endpoint + "/" + account + "/" + name)}))(t)
	if len(out.Messages) != 0 {
		t.Errorf("%s has %s", name, *out.Messages[0].Body)
	}
}

// TestSNSToLambdaClientErrors: without a permission, and without the function, a
// message is a dead letter at once: the envelope that a queue would get.
func TestSNSToLambdaClientErrors(t *testing.T) {
	endpoint := start(t)
	c, topics := functionsClient(endpoint), topicsClient(endpoint)
	f, topic, _ := subscribedFunction(t, endpoint)
	dead := func(why string) {
		t.Helper()
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &why}))(t)
		advance(t, endpoint, "0s")
		letter := decode(t, *takeMessage(t, client(endpoint), endpoint+"/"+account+"/undelivered").Body)
		equal(t, why, []any{"Notification", why}, []any{letter["Type"], letter["Message"]})
	}
	dead("never permitted")
	allowTopic(t, c, "f", topic)
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("permitted")}))(t)
	advance(t, endpoint, "0s")
	equal(t, "runs", 1, len(f.ran()))
	must(c.RemovePermission(t.Context(), &lambda.RemovePermissionInput{FunctionName: new("f"), StatementId: new("sns")}))(t)
	dead("revoked")
	allowTopic(t, c, "f", topicARN("other"))
	dead("another topic's")
	must(c.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: new("f")}))(t)
	dead("deleted")
	equal(t, "runs", 0, len(f.ran()))
}

// TestSNSToLambdaLadder: an outage of the function's owner is retried by the
// AWS-managed policy.
func TestSNSToLambdaLadder(t *testing.T) {
	endpoint := start(t)
	topics := topicsClient(endpoint)
	f, topic, subscription := subscribedFunction(t, endpoint)
	allowTopic(t, functionsClient(endpoint), "f", topic)
	post(t, endpoint+"/_godwit/faults", `{"arn":"`+functionARN("f")+`","fault":"unavailable"}`)
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("late")}))(t)
	advance(t, endpoint, "2h")
	r := fetch(t, endpoint+"/_godwit/deliveries?subscription="+subscription)
	var deliveries struct {
		Deliveries []struct {
			State   string
			Attempt int
		}
	}
	if err := json.Unmarshal([]byte(r.Body), &deliveries); err != nil || len(deliveries.Deliveries) != 1 {
		t.Fatalf("%v in %s", err, r.Body)
	}
	// 3 at once, 2 a second apart, 10 up to 20 s, and 20 s apart ever after.
	if d := deliveries.Deliveries[0]; d.State != "pending" || d.Attempt < 360 || d.Attempt > 376 {
		t.Errorf("after 2 hours: %+v", d)
	}
	post(t, endpoint+"/_godwit/faults", `{"arn":"`+functionARN("f")+`","fault":"none"}`)
	advance(t, endpoint, "25s")
	equal(t, "runs", 1, len(f.ran()))
	none(t, endpoint, "undelivered")
}

func TestLambdaSubscriptionRefusals(t *testing.T) {
	endpoint := start(t)
	topics := topicsClient(endpoint)
	topic := createTopic(t, topics, "news")
	try := func(topic, to string, attributes map[string]string) error {
		_, err := topics.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: new("lambda"), Endpoint: &to, Attributes: attributes})
		return err
	}
	for _, to := range []string{"f", queueARN("q"), "arn:aws:lambda:us-east-1:000000000000:f", functionARN("f:"), functionARN("f:1:2")} {
		refused(t, try(topic, to, nil), "InvalidParameter", 400, "Invalid parameter: Lambda endpoint ARN")
	}
	refused(t, try(topic, functionARN("f"), map[string]string{"RawMessageDelivery": "true"}), "InvalidParameter", 400,
		"Invalid parameter: Attributes Reason: Delivery protocol [lambda] does not support raw message delivery.")
	fifo := *must(topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: new("news.fifo"), Attributes: map[string]string{"FifoTopic": "true"}}))(t).TopicArn
	refused(t, try(fifo, functionARN("f"), nil), "InvalidParameter", 400, "Invalid parameter: Invalid protocol type: lambda")
	if err := try(topic, functionARN("f:live"), map[string]string{"RawMessageDelivery": "false"}); err != nil {
		t.Error(err)
	}
	// Another account's function has to confirm.
	other := subscribe(t, topics, topic, "lambda", "arn:aws:lambda:us-east-1:111111111111:function:f")
	equal(t, "pending", "true", subscriptionAttributes(t, topics, other)["PendingConfirmation"])
}

// TestLambdaDeliveryStatus: entries have Lambda's status and request id.
func TestLambdaDeliveryStatus(t *testing.T) {
	endpoint := start(t)
	c, topics, groups := functionsClient(endpoint), topicsClient(endpoint), logsClient(endpoint)
	_, topic, _ := subscribedFunction(t, endpoint)
	role := feedbackRole(t, endpoint)
	for _, name := range []string{"LambdaSuccessFeedbackRoleArn", "LambdaFailureFeedbackRoleArn"} {
		must(topics.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: &name, AttributeValue: &role}))(t)
	}
	publish := func(group string) map[string]any {
		t.Helper()
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new("s3cret")}))(t)
		advance(t, endpoint, "0s")
		found := must(groups.FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &group}))(t)
		for _, event := range found.Events {
			entry := decode(t, *event.Message)
			if d := entry["delivery"].(map[string]any); d["destination"] == functionARN("f") {
				d["status"] = entry["status"]
				return d
			}
		}
		t.Fatal("no entry")
		return nil
	}
	const group = "sns/us-east-1/000000000000/news"
	d := publish(group + "/Failure")
	equal(t, "forbidden", []any{"FAILURE", 403.0}, []any{d["status"], d["statusCode"]})
	if answer := decode(t, d["providerResponse"].(string)); answer["ErrorCode"] != "AccessDeniedException" || answer["lambdaRequestId"] != "Unrecoverable" {
		t.Errorf("answer %v", answer)
	}
	allowTopic(t, c, "f", topic)
	d = publish(group)
	equal(t, "delivered", []any{"SUCCESS", 202.0}, []any{d["status"], d["statusCode"]})
	if id, _ := decode(t, d["providerResponse"].(string))["lambdaRequestId"].(string); len(id) != 36 {
		t.Errorf("answer %v", d["providerResponse"])
	}
}

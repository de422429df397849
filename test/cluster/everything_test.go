package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"mime/quotedprintable"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	hosetypes "github.com/aws/aws-sdk-go-v2/service/firehose/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"godwit.dev/godwit/test/gateways"
	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/sdkhttp"
)

const accountID = "000000000000"

func arnOf(service, name string) string {
	return "arn:aws:" + service + ":us-east-1:" + accountID + ":" + name
}

// settings are those of an SDK's clients of one node.
func (c *cluster) settings(node int) aws.Config {
	return aws.Config{
		HTTPClient:   sdkhttp.Of(bounded),
		BaseEndpoint: aws.String(c.url(node)), Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""), RetryMaxAttempts: 10,
	}
}

// ledger is what was acknowledged, and what came out, of one service.
type ledger struct {
	mu   sync.Mutex
	in   map[string]bool
	out  map[string]int
	grew chan struct{} // closed with the next that is acknowledged
}

func newLedger() *ledger {
	return &ledger{in: map[string]bool{}, out: map[string]int{}, grew: make(chan struct{})}
}

func (l *ledger) acked(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.in[id] = true
	close(l.grew)
	l.grew = make(chan struct{})
}

func (l *ledger) seen(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out[id]++
}

func (l *ledger) counts() (acked, missing int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.in {
		if l.out[id] == 0 {
			missing++
		}
	}
	return len(l.in), missing
}

// more waits until n more are acknowledged, and reports whether they were.
func (l *ledger) more(ctx context.Context, n int) bool {
	acked, _ := l.counts()
	for want := acked + n; ; {
		l.mu.Lock()
		grew, now := l.grew, len(l.in)
		l.mu.Unlock()
		if now >= want {
			return true
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return false
		}
	}
}

// everything is a cluster with a queue, topic, function, phone, app, stream, log group, key and user.
type everything struct {
	*cluster
	t       *testing.T
	data    string
	hose    string // directory of a stream's objects
	device  string // ARN of an app's endpoint
	ledgers map[string]*ledger
	hanging chan struct{} // told of the first run of an event, which hangs
	blob    []byte        // "secret", encrypted
	session *sts.AssumeRoleOutput
}

func do[T any](out T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

func (e *everything) queueURL(name string) *string {
	return aws.String(e.url(0) + "/" + accountID + "/" + name)
}

// function runs jobs of the mapping, and an event that hangs the first time.
func (e *everything) function() *httptest.Server {
	runs := 0
	var mu sync.Mutex
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Records []struct{ Body string }
			Event   string
		}
		text, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(text, &in) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if in.Event != "" {
			mu.Lock()
			runs++
			first := runs == 1
			mu.Unlock()
			if first {
				close(e.hanging)
				<-r.Context().Done() // until its owner is killed
				return
			}
			e.ledgers["events"].seen(in.Event)
		}
		for _, record := range in.Records {
			e.ledgers["jobs"].seen(record.Body)
		}
		_, _ = io.WriteString(w, "{}")
	}))
}

// provider takes text messages, and writes the flag's settings for it.
func (e *everything) provider() (at *httptest.Server, settings string) {
	at = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if text, err := io.ReadAll(r.Body); err == nil { // else it was cut off
			e.ledgers["texts"].seen(string(text))
		}
	}))
	return at, e.file("sms.json", fmt.Appendf(nil, `{"url":%q,"body":"{{.Text}}"}`, at.URL))
}

// phones takes push messages as APNs does. It returns the CA of its certificate in a file,
// and the attributes of an application of it.
func (e *everything) phones() (apns *gateways.APNs, ca string, app map[string]string) {
	apns = gateways.NewAPNs(e.t)
	key, text := gateways.NewECKey()
	apns.Know("TEAM", "KEY", &key.PublicKey)
	apns.Observe(func(r gateways.Received) {
		var payload struct{ APS struct{ Alert string } }
		if r.Status == http.StatusOK && json.Unmarshal(r.Body, &payload) == nil { // else it was cut off
			e.ledgers["pushes"].seen(payload.APS.Alert)
		}
	})
	return apns, e.file("ca.pem", apns.CA()), map[string]string{
		"PlatformPrincipal": "KEY", "PlatformCredential": text, "ApplePlatformTeamID": "TEAM", "ApplePlatformBundleID": "dev.godwit.shop",
	}
}

func (e *everything) file(name string, content []byte) string {
	path := filepath.Join(e.t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		e.t.Fatal(err)
	}
	return path
}

var mailToken = regexp.MustCompile(`Token=([0-9A-Za-z]+)`)

// mails are the texts of all mails in the outbox, which the nodes share.
func (e *everything) mails() (all []string) {
	_ = filepath.WalkDir(filepath.Join(e.data, "outbox"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		letter, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			return nil // it is being written
		}
		if text, err := io.ReadAll(quotedprintable.NewReader(letter.Body)); err == nil {
			all = append(all, string(text))
		}
		return nil
	})
	return all
}

func (e *everything) prepare(function string, app map[string]string) {
	t, ctx, s := e.t, e.t.Context(), e.settings(1)
	for _, name := range []string{"jobs", "done", "notices", "sealed"} {
		do(sqs.NewFromConfig(s).CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{"VisibilityTimeout": "20"}}))(t)
	}
	functions := lambda.NewFromConfig(s)
	do(functions.CreateFunction(ctx, &lambda.CreateFunctionInput{
		FunctionName: aws.String("f"), Role: aws.String("arn:aws:iam::" + accountID + ":role/f"), PackageType: lambdatypes.PackageTypeImage,
		Code: &lambdatypes.FunctionCode{ImageUri: &function}, Timeout: aws.Int32(20),
	}))(t)
	do(functions.CreateEventSourceMapping(ctx, &lambda.CreateEventSourceMappingInput{FunctionName: aws.String("f"), EventSourceArn: aws.String(arnOf("sqs", "jobs"))}))(t)
	do(functions.PutFunctionEventInvokeConfig(ctx, &lambda.PutFunctionEventInvokeConfigInput{
		FunctionName: aws.String("f"), DestinationConfig: &lambdatypes.DestinationConfig{OnSuccess: &lambdatypes.OnSuccess{Destination: aws.String(arnOf("sqs", "done"))}},
	}))(t)

	topics := sns.NewFromConfig(s)
	for topic, subscribers := range map[string]map[string]string{"post": {"email": "ada@example.com"}, "alarms": {"sqs": arnOf("sqs", "notices")}} {
		do(topics.CreateTopic(ctx, &sns.CreateTopicInput{Name: &topic}))(t)
		for protocol, endpoint := range subscribers {
			do(topics.Subscribe(ctx, &sns.SubscribeInput{TopicArn: aws.String(arnOf("sns", topic)), Protocol: &protocol, Endpoint: &endpoint}))(t)
		}
	}
	var token string
	e.eventually("a mail asks for a confirmation", func(status) bool {
		for _, text := range e.mails() {
			if found := mailToken.FindStringSubmatch(text); found != nil {
				token = found[1]
			}
		}
		return token != ""
	})
	do(topics.ConfirmSubscription(ctx, &sns.ConfirmSubscriptionInput{TopicArn: aws.String(arnOf("sns", "post")), Token: &token}))(t)

	shop := do(topics.CreatePlatformApplication(ctx, &sns.CreatePlatformApplicationInput{Name: aws.String("shop"), Platform: aws.String("APNS"), Attributes: app}))(t)
	e.device = *do(topics.CreatePlatformEndpoint(ctx, &sns.CreatePlatformEndpointInput{
		PlatformApplicationArn: shop.PlatformApplicationArn, Token: aws.String(strings.Repeat("0a", 32)),
	}))(t).EndpointArn

	do(firehose.NewFromConfig(s).CreateDeliveryStream(ctx, &firehose.CreateDeliveryStreamInput{
		DeliveryStreamName: aws.String("hose"), ExtendedS3DestinationConfiguration: &hosetypes.ExtendedS3DestinationConfiguration{
			BucketARN: aws.String("arn:aws:s3:::bucket"), RoleARN: aws.String("arn:aws:iam::" + accountID + ":role/hose"),
			BufferingHints: &hosetypes.BufferingHints{IntervalInSeconds: aws.Int32(1), SizeInMBs: aws.Int32(1)},
		},
	}))(t)
	logs := cloudwatchlogs.NewFromConfig(s)
	do(logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("group")}))(t)
	do(logs.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: aws.String("group"), LogStreamName: aws.String("stream")}))(t)

	keys := kms.NewFromConfig(s)
	key := do(keys.CreateKey(ctx, &kms.CreateKeyInput{}))(t).KeyMetadata.KeyId
	e.blob = do(keys.Encrypt(ctx, &kms.EncryptInput{KeyId: key, Plaintext: []byte("secret")}))(t).CiphertextBlob
	do(sqs.NewFromConfig(s).SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: e.queueURL("sealed"), Attributes: map[string]string{"KmsMasterKeyId": *key}}))(t)

	users := iam.NewFromConfig(s)
	do(users.CreateUser(ctx, &iam.CreateUserInput{UserName: aws.String("ada")}))(t)
	do(users.PutUserPolicy(ctx, &iam.PutUserPolicyInput{
		UserName: aws.String("ada"), PolicyName: aws.String("p"), PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sqs:*","Resource":"*"}}`),
	}))(t)
	do(users.CreateRole(ctx, &iam.CreateRoleInput{
		RoleName: aws.String("r"), AssumeRolePolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sts:AssumeRole"}}`),
	}))(t)
	e.session = do(sts.NewFromConfig(s).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: aws.String("arn:aws:iam::" + accountID + ":role/r"), RoleSessionName: aws.String("session")}))(t)
}

// puts are what clients do again and again, each with an id of its own.
func (e *everything) puts() map[string]func(ctx context.Context, s aws.Config, id string) error {
	return map[string]func(context.Context, aws.Config, string) error{
		"jobs": func(ctx context.Context, s aws.Config, id string) error {
			_, err := sqs.NewFromConfig(s).SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: e.queueURL("jobs"), MessageBody: &id})
			return err
		},
		"sealed": func(ctx context.Context, s aws.Config, id string) error {
			_, err := sqs.NewFromConfig(s).SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: e.queueURL("sealed"), MessageBody: &id})
			return err
		},
		"mails": func(ctx context.Context, s aws.Config, id string) error {
			_, err := sns.NewFromConfig(s).Publish(ctx, &sns.PublishInput{TopicArn: aws.String(arnOf("sns", "post")), Message: aws.String("<" + id + ">")})
			return err
		},
		"texts": func(ctx context.Context, s aws.Config, id string) error {
			_, err := sns.NewFromConfig(s).Publish(ctx, &sns.PublishInput{PhoneNumber: aws.String("+15551234567"), Message: &id})
			return err
		},
		"pushes": func(ctx context.Context, s aws.Config, id string) error {
			_, err := sns.NewFromConfig(s).Publish(ctx, &sns.PublishInput{TargetArn: &e.device, Message: &id})
			return err
		},
		"records": func(ctx context.Context, s aws.Config, id string) error {
			_, err := firehose.NewFromConfig(s).PutRecord(ctx, &firehose.PutRecordInput{DeliveryStreamName: aws.String("hose"), Record: &hosetypes.Record{Data: []byte(id + "\n")}})
			return err
		},
		"logs": func(ctx context.Context, s aws.Config, id string) error {
			_, err := cloudwatchlogs.NewFromConfig(s).PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{
				LogGroupName: aws.String("group"), LogStreamName: aws.String("stream"),
				LogEvents: []logtypes.InputLogEvent{{Message: &id, Timestamp: aws.Int64(time.Now().UnixMilli())}},
			})
			return err
		},
	}
}

// look brings what has come out so far into the ledgers; the function does so by itself.
func (e *everything) look() {
	ctx, s := e.t.Context(), e.settings(2)
	for _, text := range e.mails() {
		if _, rest, ok := strings.Cut(text, "<mails"); ok {
			id, _, _ := strings.Cut(rest, ">")
			e.ledgers["mails"].seen("mails" + id)
		}
	}
	_ = filepath.WalkDir(e.hose, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			text, _ := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				e.ledgers["records"].seen(strings.TrimSpace(line))
			}
		}
		return nil
	})
	pages := cloudwatchlogs.NewFilterLogEventsPaginator(cloudwatchlogs.NewFromConfig(s), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("group")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return
		}
		for _, event := range page.Events {
			e.ledgers["logs"].seen(*event.Message)
		}
	}
	for _, m := range e.receive("sealed") {
		e.ledgers["sealed"].seen(*m.Body)
	}
}

// receive takes what there is in a queue, up to some, and takes it away: else it would come
// again before the rest, where there is much.
func (e *everything) receive(queue string) (all []sqstypes.Message) {
	client := sqs.NewFromConfig(e.settings(0))
	for range 100 {
		out, err := client.ReceiveMessage(e.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: e.queueURL(queue), MaxNumberOfMessages: 10})
		if err != nil || len(out.Messages) == 0 {
			return all
		}
		var done []sqstypes.DeleteMessageBatchRequestEntry
		for _, m := range out.Messages {
			done = append(done, sqstypes.DeleteMessageBatchRequestEntry{Id: m.MessageId, ReceiptHandle: m.ReceiptHandle})
		}
		_, _ = client.DeleteMessageBatch(e.t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: e.queueURL(queue), Entries: done}) // else it comes again
		all = append(all, out.Messages...)
	}
	return all
}

// fault ends, stops or replaces the owner.
func (e *everything) fault(what string) {
	owner := e.eventually("all nodes are back", status.whole).serving()
	e.t.Logf("%s of node %s", what, owner.Name)
	switch what {
	case "kill -9":
		_ = syscall.Kill(owner.PID, syscall.SIGKILL)
	case "stop for a while":
		_ = syscall.Kill(owner.PID, syscall.SIGSTOP)
		defer func() { _ = syscall.Kill(owner.PID, syscall.SIGCONT) }()
	case "handover":
		answer, err := http.NewRequestWithContext(e.t.Context(), http.MethodPost, owner.URL+"/_godwit/v1/cluster/step-down", nil)
		if err != nil {
			e.t.Fatal(err)
		}
		answer.Header.Set("X-Godwit-Operator", "yes")
		said, err := bounded.Do(answer)
		if err != nil {
			e.t.Fatal(err)
		}
		said.Body.Close()
	}
	e.eventually("another node serves", func(s status) bool {
		return s.serving() != nil && s.serving().PID != owner.PID
	})
}

// TestEverythingGoesOn: what was acknowledged of every service is there, and comes out,
// behind takeovers in the middle of it.
func TestEverythingGoesOn(t *testing.T) {
	programs.Allow(t)
	e := &everything{t: t, data: t.TempDir(), hose: t.TempDir(), ledgers: map[string]*ledger{"events": newLedger()}, hanging: make(chan struct{})}
	for name := range e.puts() {
		e.ledgers[name] = newLedger()
	}
	// They end behind the nodes: until then one may hold a request.
	function := e.function()
	t.Cleanup(function.Close)
	provider, settings := e.provider()
	t.Cleanup(provider.Close)
	apns, ca, app := e.phones()
	e.cluster = start(t, freePorts(t), e.data, "--firehose-directory", e.hose,
		"--sms-http", settings, "--sms-price", "0", "--push-apns-url", apns.URL, "--endpoint-ca", ca)
	e.eventually("all nodes follow", status.whole)
	e.prepare(function.URL, app)

	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer stop()
	number := 0
	for name, put := range e.puts() {
		number++
		worker := number
		working.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("%s-%d", name, i)
				if put(ctx, e.settings((worker+i)%nodes), id) == nil {
					e.ledgers[name].acked(id)
				}
				select { // all of it is looked at again and again at the end
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	do(lambda.NewFromConfig(e.settings(2)).Invoke(t.Context(), &lambda.InvokeInput{
		FunctionName: aws.String("f"), InvocationType: lambdatypes.InvocationTypeEvent, Payload: []byte(`{"Event":"events-0"}`),
	}))(t)
	e.ledgers["events"].acked("events-0")
	select {
	case <-e.hanging:
	case <-time.After(testTimeout):
		t.Fatal("the event does not run")
	}
	progress := func() {
		t.Helper()
		within, cancel := context.WithTimeout(ctx, testTimeout)
		defer cancel()
		for name := range e.puts() {
			if !e.ledgers[name].more(within, 5) {
				t.Fatalf("no more %s are acknowledged: not within %v; the nodes: %+v", name, testTimeout, e.status())
			}
		}
	}
	progress()
	e.fault("kill -9")
	progress()
	do(cloudwatch.NewFromConfig(e.settings(1)).PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName: aws.String("a"), Namespace: aws.String("n"), MetricName: aws.String("m"), Statistic: cwtypes.StatisticMaximum, Period: aws.Int32(10),
		EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(1), ComparisonOperator: cwtypes.ComparisonOperatorGreaterThanThreshold,
		TreatMissingData: aws.String("ignore"), AlarmActions: []string{arnOf("sns", "alarms")},
	}))(t)
	high := func() {
		do(cloudwatch.NewFromConfig(e.settings(1)).PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{
			Namespace: aws.String("n"), MetricData: []cwtypes.MetricDatum{{MetricName: aws.String("m"), Value: aws.Float64(5), StorageResolution: aws.Int32(1)}},
		}))(t)
	}
	high()
	e.fault("handover")
	progress()
	e.fault("stop for a while")
	progress()
	stop()
	working.Wait()
	e.eventually("all nodes are back", status.whole)

	defer func() {
		for name, l := range e.ledgers {
			acked, missing := l.counts()
			t.Logf("%s: %d acknowledged, %d missing", name, acked, missing)
		}
	}()
	e.eventually("what was acknowledged comes out", func(status) bool {
		e.look()
		for _, l := range e.ledgers {
			if _, missing := l.counts(); missing > 0 {
				return false
			}
		}
		return true
	})
	e.eventually("the destination of the event is told", func(status) bool { return len(e.receive("done")) > 0 })
	var notices []sqstypes.Message
	e.eventually("the alarm tells", func(status) bool {
		high() // what came before may have passed by while nobody evaluated
		notices = append(notices, e.receive("notices")...)
		return len(notices) > 0
	})
	for _, n := range notices { // one that was under way at a takeover may come again
		if !strings.Contains(*n.Body, "ALARM") {
			t.Errorf("a notice of the alarm: %s", *n.Body)
		}
	}
	e.identities()
}

// identities are what they were, and keys open what they have sealed.
func (e *everything) identities() {
	e.t.Helper()
	ctx, s := e.t.Context(), e.settings(0)
	if plain := do(kms.NewFromConfig(s).Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: e.blob}))(e.t).Plaintext; string(plain) != "secret" {
		e.t.Errorf("decrypted: %q", plain)
	}
	policy := do(iam.NewFromConfig(s).GetUserPolicy(ctx, &iam.GetUserPolicyInput{UserName: aws.String("ada"), PolicyName: aws.String("p")}))(e.t).PolicyDocument
	if !strings.Contains(*policy, "sqs") {
		e.t.Errorf("the user's policy is %s", *policy)
	}
	c := e.session.Credentials
	s.Credentials = credentials.NewStaticCredentialsProvider(*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken)
	who := do(sts.NewFromConfig(s).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))(e.t)
	if *who.Arn != *e.session.AssumedRoleUser.Arn {
		e.t.Errorf("the session is %s", *who.Arn)
	}
}

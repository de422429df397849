package sdk_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/keyspace/values"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/storetest"
)

// everything is a server on which a random history is made with every service.
type everything struct {
	t    *testing.T
	dir  string
	rand *rand.Rand
	stop func()
	// What was committed, in order.
	mu      sync.Mutex
	batches []*mutation.FramedBatch

	url string

	queues, topics []string // URLs and ARNs
	dead, standard string   // URLs
	fifoTopic      string
	replay         string // a subscription to it
	device         string // a platform endpoint
	handles        map[string][]string
	fn             *farFunction
	hook           *hook
	known          identified
}

// start starts the server as development, or as production with the same root key, which
// seals what the store has in clear first.
func (e *everything) start(production bool) {
	e.t.Helper()
	s := server.New(config.Config{
		Production: production,
		Listen:     "127.0.0.1:0", Store: config.PebbleStore, Clock: config.VirtualClock, Data: e.dir, Metrics: true,
		Region: region, Account: account, AllowPrivateEndpoints: true, JitterSeed: 1, Retry429: true,
		EndpointConcurrency: 50, DeliveryConcurrency: 500, SMS: config.SMS{Price: "0.001"},
	}, slog.New(slog.NewTextHandler(e.t.Output(), &slog.HandlerOptions{Level: slog.LevelError})), func(ctx context.Context, deps server.Deps) (server.Parts, error) {
		deps.Committed = e.committed
		return server.Assemble(ctx, deps)
	})
	if err := s.Start(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
	e.stop = func() {
		if err := s.Stop(context.Background()); err != nil {
			e.t.Error(err)
		}
	}
	e.url = "http://" + s.Addr().String()
}

func (e *everything) committed(sealed []byte) {
	c, err := mutation.DecodeFramedBatch(bytes.Clone(sealed))
	if err != nil {
		e.t.Errorf("a framed batch of %d bytes cannot be decoded: %v", len(sealed), err)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.batches = append(e.batches, c)
}

// setUp makes some of everything.
func (e *everything) setUp() {
	t := e.t
	t.Helper()
	q, n, l, f := client(e.url), topicsClient(e.url), logsClient(e.url), functionsClient(e.url)
	e.dead = createQueue(t, q, "dead")
	redrive := `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":"2"}`
	e.standard = createQueue(t, q, "standard", "RedrivePolicy", redrive, "VisibilityTimeout", "5")
	e.queues = []string{
		e.standard, createQueue(t, q, "orders.fifo", "FifoQueue", "true", "VisibilityTimeout", "5"), createQueue(t, q, "delayed", "DelaySeconds", "20"), e.dead,
	}
	e.hook = newHook(t)
	orders := createTopic(t, n, "orders")
	subscribe(t, n, orders, "sqs", queueARN("standard"))
	subscribe(t, n, orders, "http", e.hook.URL, "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
	subscribe(t, n, orders, "email", "nobody@example.com") // who does not answer
	visit(t, decode(t, e.hook.next(t).Body)["SubscribeURL"].(string))
	e.hook.answer(503)
	go func() {
		for {
			select {
			case <-e.hook.requests: // what comes now is not looked at
			case <-t.Context().Done():
				return
			}
		}
	}()
	e.fifoTopic = createFIFOTopic(t, n, "archived.fifo", "ArchivePolicy", `{"MessageRetentionPeriod":"30"}`)
	e.replay = subscribe(t, n, e.fifoTopic, "sqs", queueARN("orders.fifo"))
	wide := createTopic(t, n, "wide")
	for i := range 40 { // more than one publication gets to, of those that do not keep up
		subscribe(t, n, wide, "lambda", functionARN(fmt.Sprint("none-", i)))
	}
	e.topics = []string{orders, e.fifoTopic, wide}
	e.device = createEndpoint(t, n, createApplication(t, n, "GCM", "shop", "EventEndpointUpdated", orders), "token")

	const phone = "+15551234567"
	setTexts(t, n, "DefaultSenderID", "Godwit")
	must(n.CreateSMSSandboxPhoneNumber(t.Context(), &sns.CreateSMSSandboxPhoneNumberInput{PhoneNumber: aws.String(phone)}))(t)
	publishText(t, n, phone, "hello")
	advance(t, e.url, "1s") // it is paid for
	post(t, e.url+"/_godwit/sms/receive", `{"from":"`+phone+`","text":"STOP"}`)

	zipped := functionInput(t, "zipped")
	zipped.Layers = []string{*publishLayer(t, f, "kept", "a", "x").LayerVersionArn}
	must(f.CreateFunction(t.Context(), zipped))(t)
	must(f.DeleteLayerVersion(t.Context(), &lambda.DeleteLayerVersionInput{LayerName: aws.String("kept"), VersionNumber: aws.Int64(1)}))(t)
	publishLayer(t, f, "kept", "a", "y")
	must(f.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: aws.String("zipped")}))(t)
	must(f.CreateAlias(t.Context(), &lambda.CreateAliasInput{FunctionName: aws.String("zipped"), FunctionVersion: aws.String("1"), Name: aws.String("live")}))(t)
	must(f.CreateFunctionUrlConfig(t.Context(), &lambda.CreateFunctionUrlConfigInput{FunctionName: aws.String("zipped"), Qualifier: aws.String("live"), AuthType: lambdatypes.FunctionUrlAuthTypeNone}))(t)
	must(f.CreateFunction(t.Context(), functionInput(t, "gone")))(t)
	must(f.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: aws.String("gone")}))(t)
	must(f.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: aws.String("gone")}))(t)
	e.fn = createAnswered(t, f, "far")
	createQueue(t, q, "work")
	mapped(t, f, "work", "far", nil)

	_, _ = firehoseAs(e.url, account).CreateDeliveryStream(t.Context(), &firehose.CreateDeliveryStreamInput{DeliveryStreamName: aws.String("hose"), ExtendedS3DestinationConfiguration: toBucket()})
	putHose(t, firehoseAs(e.url, account), "hose", "made")

	createGroup(t, l, "application", "one", "two")
	must(l.PutRetentionPolicy(t.Context(), &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: aws.String("application"), RetentionInDays: aws.Int32(1)}))(t)
	allowLogs(t, f, "zipped", "application")
	must(l.PutSubscriptionFilter(t.Context(), subscriptionInput("application", "none", "nothing", functionARN("zipped"))))(t)
	putAlarm(t, e.url, "loud", func(in *cloudwatch.PutMetricAlarmInput) { in.AlarmActions = []string{orders} })
	e.handles = map[string][]string{}
	e.known.done = map[string]int{}
	for _, asked := range firstIdentities {
		e.askIdentity(asked)
	}
	e.askKeys(`CreateKey {}`)
}

// step makes one random request, or moves the clock.
func (e *everything) step(i int) {
	t, r := e.t, e.rand
	t.Helper()
	q, n, m, l := client(e.url), topicsClient(e.url), metricsClient(e.url), logsClient(e.url)
	queue := e.queues[r.IntN(len(e.queues))]
	fifo := strings.HasSuffix(queue, ".fifo")
	body := fmt.Sprintf("%d %s", i, strings.Repeat("x", r.IntN(2000)))
	switch r.IntN(15) {
	case 0, 1, 2:
		in := &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body}
		if fifo || r.IntN(2) == 0 { // a standard queue's is a tenant
			in.MessageGroupId = aws.String(fmt.Sprint("group-", r.IntN(3)))
		}
		if fifo {
			in.MessageDeduplicationId = aws.String(fmt.Sprint("once-", i/2))
		}
		must(q.SendMessage(t.Context(), in))(t)
	case 3, 4, 5:
		for _, got := range must(q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 5}))(t).Messages {
			e.handles[queue] = append(e.handles[queue], *got.ReceiptHandle)
		}
	case 6:
		for _, handle := range e.handles[queue] {
			if r.IntN(2) == 0 {
				_, _ = q.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: &handle}) // it may have expired
			} else {
				_, _ = q.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &queue, ReceiptHandle: &handle, VisibilityTimeout: int32(r.IntN(30))})
			}
		}
		delete(e.handles, queue)
	case 7:
		in := &sns.PublishInput{TopicArn: &e.topics[r.IntN(len(e.topics))], Message: &body}
		if *in.TopicArn == e.fifoTopic {
			in.MessageGroupId, in.MessageDeduplicationId = aws.String("g"), aws.String(fmt.Sprint("once-", i/2))
		}
		must(n.Publish(t.Context(), in))(t)
		pushTo(t, n, e.device, body)
		must(n.SetEndpointAttributes(t.Context(), &sns.SetEndpointAttributesInput{EndpointArn: &e.device, Attributes: map[string]string{"CustomUserData": fmt.Sprint(i)}}))(t)
	case 8:
		data := []cloudwatchtypes.MetricDatum{
			{MetricName: aws.String("m"), Value: aws.Float64(float64(r.IntN(40)))},
			{MetricName: aws.String("fine"), Value: aws.Float64(r.Float64()), StorageResolution: aws.Int32(1)},
		}
		must(m.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: data}))(t)
	case 9:
		stream := []string{"one", "two"}[r.IntN(2)]
		putLogs(t, l, "application", stream, logEvents(serverNow(t, e.url), "a", "b", body))
	case 10:
		must(functionsClient(e.url).Invoke(t.Context(), &lambda.InvokeInput{
			FunctionName: aws.String("far"), InvocationType: lambdatypes.InvocationTypeEvent, Payload: []byte(`{}`),
		}))(t)
		if call := e.fn.next(); r.IntN(2) == 0 {
			call.fail()
		} else {
			call.succeed(`{}`)
		}
	case 11:
		// A task may be running, or the queue have been purged within a minute.
		_, _ = q.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead"))})
		_, _ = q.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &e.queues[2]})
	case 12:
		must(q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(strings.Replace(e.standard, "standard", "work", 1)), MessageBody: &body}))(t)
		e.fn.next().succeed(`{}`)
	case 13:
		e.advance([]string{"1s", "10s", "70s", "30m"}[r.IntN(4)])
	case 14:
		e.passing(fmt.Sprint("passing-", i), body)
	}
}

// passing makes something, uses it and deletes it, or puts records into a delivery stream.
func (e *everything) passing(name, body string) {
	t := e.t
	t.Helper()
	switch e.rand.IntN(6) {
	case 0:
		n := topicsClient(e.url)
		topic := createTopic(t, n, name)
		subscribe(t, n, topic, "lambda", functionARN("none-0"))
		subscribe(t, n, topic, "sqs", queueARN("standard"))
		must(n.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &body}))(t)
		must(n.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &topic}))(t)
	case 1:
		q := client(e.url)
		queue := createQueue(t, q, name)
		send(t, q, queue, body)
		must(q.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &queue}))(t)
	case 2:
		f := functionsClient(e.url)
		must(f.CreateFunction(t.Context(), functionInput(t, name)))(t)
		must(f.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: &name}))(t)
	case 3:
		l := logsClient(e.url)
		createGroup(t, l, name, "one")
		putLogs(t, l, name, "one", logEvents(serverNow(t, e.url), body))
		must(l.DeleteLogGroup(t.Context(), &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: &name}))(t)
	case 4:
		c := cloudformationAs(e.url, account)
		made := deploy(t, c, name, `{"Resources":{"Q":{"Type":"AWS::SQS::Queue"}}}`)
		must(c.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: &name}))(t)
		awaitStack(t, c, *made.StackId)
	case 5:
		putHose(t, firehoseAs(e.url, account), "hose", body)
	}
}

// advance moves the clock. Retries of events come to the function on the way.
func (e *everything) advance(by string) {
	e.t.Helper()
	advanced := make(chan struct{})
	go func() {
		defer close(advanced)
		for {
			select {
			case call := <-e.fn.calls:
				call.succeed(`{}`)
			case advanced <- struct{}{}:
				return
			}
		}
	}()
	advance(e.t, e.url, by)
	<-advanced
}

// leave has some of everything under way: what a store holds only for a while.
func (e *everything) leave() {
	t := e.t
	t.Helper()
	q, n := client(e.url), topicsClient(e.url)
	quiet := createQueue(t, q, "quiet")
	send(t, q, quiet, "m")
	putHose(t, firehoseAs(e.url, account), "hose", "left") // production has nowhere to put it
	e.leaveStack()
	e.advance("30m") // in which it tells the same
	send(t, q, quiet, "m")
	e.advance("2m")

	left := createQueue(t, q, "left.fifo", "FifoQueue", "true")
	for i := range 4 {
		body := aws.String(fmt.Sprint("left-", i))
		must(q.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: &left, MessageBody: body, MessageGroupId: aws.String(fmt.Sprint(i % 2)), MessageDeduplicationId: body,
		}))(t)
		must(q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &e.standard, MessageBody: body, MessageGroupId: aws.String("left")}))(t)
		must(q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &e.queues[2], MessageBody: body}))(t)
	}
	for range 2 { // one of each group, of which the latter comes back
		got := must(q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &left, MaxNumberOfMessages: 1, VisibilityTimeout: 600}))(t).Messages
		e.handles[left] = append(e.handles[left], *got[0].ReceiptHandle)
	}
	must(q.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &left, ReceiptHandle: &e.handles[left][1], VisibilityTimeout: 0}))(t)
	must(q.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &left, Entries: []sqstypes.SendMessageBatchRequestEntry{
		{Id: aws.String("a"), MessageBody: aws.String("a"), MessageGroupId: aws.String("2"), MessageDeduplicationId: aws.String("a")},
		{Id: aws.String("b"), MessageBody: aws.String("b"), MessageGroupId: aws.String("2"), MessageDeduplicationId: aws.String("b")},
	}}))(t)
	must(n.Publish(t.Context(), &sns.PublishInput{
		TopicArn: &e.fifoTopic, Message: aws.String("left"), MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("left"),
	}))(t)
	must(metricsClient(e.url).PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: []cloudwatchtypes.MetricDatum{
		{MetricName: aws.String("left"), Value: aws.Float64(1), StorageResolution: aws.Int32(1)},
	}}))(t)
	putLogs(t, logsClient(e.url), "application", "one", logEvents(serverNow(t, e.url), "left"))
	must(metricsClient(e.url).SetAlarmState(t.Context(), &cloudwatch.SetAlarmStateInput{
		AlarmName: aws.String("loud"), StateValue: cloudwatchtypes.StateValueOk, StateReason: aws.String("left"),
	}))(t)
	must(n.Publish(t.Context(), &sns.PublishInput{TopicArn: &e.topics[0], Message: aws.String("left")}))(t)
	i := iamClient(e.url)
	must(i.CreateUser(t.Context(), &iam.CreateUserInput{UserName: aws.String("left")}))(t)
	access := must(i.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: aws.String("left")}))(t).AccessKey
	must(i.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: aws.String("left"), PolicyName: aws.String("p"), PolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":[` + statement("Allow", `"sts:AssumeRole"`, "*") + `]}`)}))(t)
	role := must(i.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("left"), AssumeRolePolicyDocument: aws.String(trustRoot)}))(t).Role
	must(stsAs(e.url, longTerm(access)).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: role.Arn, RoleSessionName: aws.String("left")}))(t)
	made := decode(t, e.callKeys("CreateKey", `{}`))["KeyMetadata"].(map[string]any)["KeyId"].(string)
	e.callKeys("CreateAlias", `{"AliasName":"alias/left","TargetKeyId":"`+made+`"}`)
	e.callKeys("CreateGrant", `{"KeyId":"`+made+`","GranteePrincipal":"`+*role.Arn+`","Operations":["Encrypt"]}`)
	source := must(http.NewRequestWithContext(t.Context(), http.MethodPost, e.url+"/_godwit/v1/sources", strings.NewReader(
		`{"name":"shop","target":"arn:aws:sqs:`+region+`:`+account+`:quiet","verification":{"kind":"api-key"},"secrets":["a key of some length"]}`)))(t)
	if r := do(t, source); r.Status != http.StatusOK {
		t.Fatalf("a source: %d %s", r.Status, r.Body)
	}
	job := must(http.NewRequestWithContext(t.Context(), http.MethodPost, e.url+"/_godwit/v1/jobs",
		strings.NewReader(`{"kind":"delete","arn":"arn:aws:sqs:`+region+`:`+account+`:quiet","where":{"until":"2020-01-01T00:00:00Z"}}`)))(t)
	if r := do(t, job); r.Status != http.StatusAccepted {
		t.Fatalf("a job: %d %s", r.Status, r.Body)
	}
	eventually(t, "an attempt that failed", func() bool {
		return strings.Contains(fetch(t, e.url+"/_godwit/deliveries?subscription="+e.sub(e.topics[0], "http")).Body, `"outcome":"server-error"`)
	})
}

// callKeys sends an operation of KMS, which has to succeed.
func (e *everything) callKeys(operation, body string) (answer string) {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), http.MethodPost, e.url, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "TrentService."+operation)
	r := do(e.t, req)
	if r.Status != http.StatusOK {
		e.t.Fatalf("%s %s: %d %s", operation, body, r.Status, r.Body)
	}
	return r.Body
}

func (e *everything) sub(topic, protocol string) string {
	e.t.Helper()
	for _, s := range must(topicsClient(e.url).ListSubscriptionsByTopic(e.t.Context(), &sns.ListSubscriptionsByTopicInput{TopicArn: &topic}))(e.t).Subscriptions {
		if *s.Protocol == protocol {
			return *s.SubscriptionArn
		}
	}
	e.t.Fatal("no such subscription")
	return ""
}

// leaveStack leaves a stack with a change set.
func (e *everything) leaveStack() {
	t, c := e.t, cloudformationAs(e.url, account)
	deploy(t, c, "left", `{"Resources":{"Q":{"Type":"AWS::SQS::Queue"}}}`)
	must(c.CreateChangeSet(t.Context(), &cloudformation.CreateChangeSetInput{
		StackName: aws.String("left"), ChangeSetName: aws.String("more"), TemplateBody: aws.String(`{"Resources":{"R":{"Type":"AWS::SNS::Topic"}}}`),
	}))(t)
}

// TestStoreOfEverything makes a random history with every service, with a restart. All
// that the store holds then is in the table of the key space and can be read; and the
// framed batches, replayed into an empty store, give the same store, key for key.
func TestStoreOfEverything(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	e := &everything{t: t, dir: filepath.Join(t.TempDir(), "data"), rand: rand.New(rand.NewPCG(seed, 0))}
	e.start(false)
	e.setUp()
	for i := range 120 {
		e.identify()
		switch e.step(i); i {
		case 40:
			e.advance("170h") // keys that are to be deleted are
		case 60:
			e.stop()
			e.start(true)
		}
	}
	e.checkIdentified()
	e.leave()
	e.stop()

	s, err := pebble.Open(filepath.Join(e.dir, "store"), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	holdToTable(t, s)
	e.checkStreams()
	inOrder, byStream := memory.New(), memory.New()
	for _, c := range e.batches {
		must(0, inOrder.Apply(store.Sync, &c.Batch))(t)
	}
	slices.SortStableFunc(e.batches, func(a, b *mutation.FramedBatch) int { return cmp.Compare(a.Stream, b.Stream) })
	for _, c := range e.batches {
		must(0, byStream.Apply(store.Sync, &c.Batch))(t)
	}
	storetest.Equal(t, s, inOrder)
	storetest.Equal(t, s, byStream)
}

// checkStreams holds the framed batches to what a standby relies on: each stream's sequences
// have no gap over restarts, its epochs do not go back, and it writes its own keys only.
func (e *everything) checkStreams() {
	t := e.t
	t.Helper()
	var last [keyspace.Streams]*mutation.FramedBatch
	for _, c := range e.batches {
		before := last[c.Stream]
		if last[c.Stream] = c; before == nil {
			before = &mutation.FramedBatch{}
		}
		if c.Sequence != before.Sequence+1 || c.Epoch < before.Epoch || c.Epoch == 0 {
			t.Errorf("stream %d: batch %d of epoch %d follows %d of %d", c.Stream, c.Sequence, c.Epoch, before.Sequence, before.Epoch)
		}
		err := c.Batch.Each(func(op mutation.Op, key, end []byte) error {
			own, ok := keyspace.StreamOf(key)
			if op == mutation.DeleteRange && ok {
				var to uint16
				to, ok = keyspace.StreamOf(end)
				ok = ok && to == own
			}
			if !ok || own != c.Stream {
				t.Errorf("stream %d writes %q", c.Stream, key)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	for id, c := range last {
		starts := uint32(2)
		if id == int(keyspace.KMSStream) {
			starts++ // it is also begun to note what the store is sealed with
		}
		if c == nil || c.Epoch != starts {
			t.Errorf("stream %d ends with %+v after two starts", id, c)
		}
	}
}

// holdToTable holds all that a store holds to the table of the key space.
func holdToTable(t *testing.T, s store.Store) {
	t.Helper()
	it, err := s.Iter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[keyspace.ID]int{}
	var names values.Names
	var incarnated []keyspace.Key
	for it.Next() {
		k, err := values.Check(it.Key(), it.Value())
		if err != nil {
			t.Error(err)
			continue
		}
		seen[k.ID]++
		names.Add(it.Key(), it.Value())
		if k.ID == keyspace.KindMessage || k.ID == keyspace.KindCounters {
			own, _ := keyspace.Parse(slices.Clone(it.Key()))
			incarnated = append(incarnated, own)
		}
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	for _, k := range incarnated {
		if _, ok := names.Of(&k); !ok {
			shard, _ := k.Shard()
			inc, _ := k.Number(keyspace.PartIncarnation)
			t.Errorf("nobody owns a %s of incarnation %d in shard %d", k.Kind().Name, inc, shard)
		}
	}
	// What is not there now is made and removed within a step, takes a crash, or is of an
	// earlier version.
	brief := []keyspace.ID{
		keyspace.KindDeletedTopics, keyspace.KindDelivered, keyspace.KindFanout, keyspace.KindReplay, keyspace.KindTransfer,
		keyspace.KindLogDeleted, keyspace.KindLogPut, keyspace.KindAlarmAction, keyspace.KindMetricFloor, keyspace.KindMoveTask,
		keyspace.KindLogClock,
		keyspace.KindFence, // of a cluster
	}
	for id := range keyspace.Table {
		if seen[keyspace.ID(id)] == 0 && !slices.Contains(brief, keyspace.ID(id)) {
			t.Errorf("the history left no %s", keyspace.Table[id].Name)
		}
	}
}

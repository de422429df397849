package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/keyspace/values"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/storetest"
)

// TestEncryptedQueue: messages of a queue under a customer's key come back whole. Data
// keys outlive the disabling of the key for as long as they are reused, and no longer.
func TestEncryptedQueue(t *testing.T) {
	endpoint := start(t)
	c, k := client(endpoint), newKMS(t, endpoint, account)
	key := makeKey(t, k, &kms.CreateKeyInput{})
	ask(t, k.CreateAlias, &kms.CreateAliasInput{AliasName: aws.String("alias/orders"), TargetKeyId: key.KeyId})
	dead := createQueue(t, c, "dead")
	q := createQueue(t, c, "q", "KmsMasterKeyId", "alias/orders", "KmsDataKeyReusePeriodSeconds", "60", "VisibilityTimeout", "0",
		"RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`","maxReceiveCount":1}`)
	send := func() error {
		_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("an order"), MessageAttributes: map[string]types.MessageAttributeValue{
			"a": {DataType: aws.String("String"), StringValue: aws.String("v")},
		}})
		return err
	}
	receive := func(from string) (*sqs.ReceiveMessageOutput, error) {
		return c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &from, MessageAttributeNames: []string{"All"}, WaitTimeSeconds: 0})
	}
	if err := send(); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{q, dead} { // the second receive moves it, as it is
		if from == dead {
			if _, err := receive(q); err != nil {
				t.Fatal(err)
			}
		}
		got, err := receive(from)
		if err != nil || len(got.Messages) != 1 || *got.Messages[0].Body != "an order" || *got.Messages[0].MessageAttributes["a"].StringValue != "v" {
			t.Fatalf("from %s: %+v, %v", from, got, err)
		}
	}
	if err := send(); err != nil {
		t.Fatal(err)
	}
	ask(t, k.DisableKey, &kms.DisableKeyInput{KeyId: key.KeyId})
	if err := send(); err != nil {
		t.Errorf("while the data key is reused: %v", err)
	}
	advance(t, endpoint, "61s")
	refusedWith(t, send(), "KMS.DisabledException", *key.Arn+" is disabled.")
	_, err := receive(q)
	refusedWith(t, err, "KMS.DisabledException", "*")
	ask(t, k.EnableKey, &kms.EnableKeyInput{KeyId: key.KeyId})
	if got, err := receive(q); err != nil || len(got.Messages) != 1 {
		t.Errorf("once it is enabled: %+v, %v", got, err)
	}
	none := createQueue(t, c, "none", "KmsMasterKeyId", "alias/none")
	_, err = c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &none, MessageBody: aws.String("x")})
	refusedWith(t, err, "KMS.NotFoundException", "*")
	if got, err := receive(none); err != nil || len(got.Messages) != 0 {
		t.Errorf("an empty receive needs no key: %+v, %v", got, err)
	}
}

// TestEncryptedQueueAndTopic: the key of a queue that AWS manages does not let SNS in,
// which the delivery's log tells; a customer's key does whose policy says so.
func TestEncryptedQueueAndTopic(t *testing.T) {
	endpoint := start(t)
	c, topics, k := client(endpoint), topicsClient(endpoint), newKMS(t, endpoint, account)
	policy := `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + account + `:root"},"Action":"kms:*","Resource":"*"},
		{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":["kms:GenerateDataKey*","kms:Decrypt"],"Resource":"*",
			"Condition":{"ArnEquals":{"aws:SourceArn":"` + topicARN("orders") + `"}}}]}`
	customer := makeKey(t, k, &kms.CreateKeyInput{Policy: &policy})
	topic := createTopic(t, topics, "orders")
	role := feedbackRole(t, endpoint)
	for _, name := range []string{"SQSSuccess", "SQSFailure"} {
		must(topics.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{
			TopicArn: &topic, AttributeName: aws.String(name + "FeedbackRoleArn"), AttributeValue: &role,
		}))(t)
	}
	managed := createQueue(t, c, "managed", "KmsMasterKeyId", "alias/aws/sqs")
	own := createQueue(t, c, "own", "KmsMasterKeyId", *customer.KeyId)
	subscribe(t, topics, topic, "sqs", queueARN("managed"))
	subscribe(t, topics, topic, "sqs", queueARN("own"), "RawMessageDelivery", "true")
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("an order")}))(t)
	got := must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &own, WaitTimeSeconds: 5}))(t)
	if len(got.Messages) != 1 || *got.Messages[0].Body != "an order" {
		t.Errorf("under the customer's key: %+v", got.Messages)
	}
	if got := must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &managed}))(t); len(got.Messages) != 0 {
		t.Errorf("under AWS's key: %+v", got.Messages)
	}
	if _, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &managed, MessageBody: aws.String("x")}); err != nil {
		t.Errorf("who calls in the account may send: %v", err)
	}
	advance(t, endpoint, "1m")
	entries := statusEntries(t, endpoint, "sns/"+region+"/"+account+"/orders/Failure")
	if len(entries) == 0 {
		t.Fatal("the delivery's log tells of no failure")
	}
	response := entries[0]["delivery"].(map[string]any)["providerResponse"].(string)
	for _, part := range []string{`"ErrorCode":"KMS.AccessDeniedException"`, `"sqsRequestId":"Unrecoverable"`} {
		if !bytes.Contains([]byte(response), []byte(part)) {
			t.Errorf("the provider's response is %s", response)
		}
	}
}

// serveFrom runs a server on a data directory, for as long as f takes. Nothing that it sends
// by mail, text, push or delivery stream arrives anywhere.
func serveFrom(t *testing.T, dir string, production bool, log io.Writer, f func(endpoint string)) {
	t.Helper()
	serveWith(t, dir, production, true, log, f)
}

// serveWith is serveFrom, without gateways unless they are there and unreachable.
func serveWith(t *testing.T, dir string, production, unreachable bool, log io.Writer, f func(endpoint string)) {
	t.Helper()
	settings := config.Config{
		Listen: "127.0.0.1:0", Store: config.PebbleStore, Clock: config.SystemClock, Data: dir, Region: region, Account: account,
		AllowPrivateEndpoints: true, Metrics: true, JitterSeed: 1, EndpointConcurrency: 5, DeliveryConcurrency: 5, FunctionIsolation: config.IsolationNone,
		Production: production,
	}
	if unreachable {
		password := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(password, []byte("canary-smsc"), 0o600); err != nil {
			t.Fatal(err)
		}
		settings.MailRelay, settings.MailFrom, settings.SMS = "smtp://127.0.0.1:1", "no-reply@example.com", config.SMS{SMSC: "smpp://godwit@127.0.0.1:1", PasswordFile: password, Window: 1, Price: "0.001"}
		settings.PushFCMURL, settings.FirehoseS3Endpoint = "https://127.0.0.1:1", "http://127.0.0.1:1"
		settings.FirehoseMaxStreams, settings.FirehoseMaxBuffer = 10, 1<<30
	}
	s := server.New(settings, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f("http://" + s.Addr().String())
	if err := s.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// writeCanaries uses everything that keeps secrets, and gives those that the server drew.
func writeCanaries(t *testing.T, endpoint string) (secrets [][]byte) {
	c, topics, k := client(endpoint), topicsClient(endpoint), newKMS(t, endpoint, account)
	key := makeKey(t, k, &kms.CreateKeyInput{})
	dead := createQueue(t, c, "dead")
	admitting := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*"}]}`
	large := "canary" + strings.Repeat(" of some length", 100)
	for name, attributes := range map[string][]string{
		"managed":  {"Policy", admitting, "RedrivePolicy", `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":1}`, "VisibilityTimeout", "0"},
		"customer": {"KmsMasterKeyId", *key.KeyId},
		"kept":     {},
	} {
		q := createQueue(t, c, name, attributes...)
		for _, body := range []string{"canary", large} {
			must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{
				"canary-name": {DataType: aws.String("String"), StringValue: aws.String("canary-value")},
			}}))(t)
		}
	}
	publish := func(topic string, group *string) {
		must(topics.Publish(t.Context(), &sns.PublishInput{
			TopicArn: &topic, Message: aws.String(`{"default":"` + large + `","sqs":"canary-of-its-own"}`), MessageStructure: aws.String("json"),
			Subject: aws.String("canary-subject"), MessageGroupId: group, MessageDeduplicationId: group,
			MessageAttributes: map[string]snstypes.MessageAttributeValue{"canary-name": {DataType: aws.String("String"), StringValue: aws.String("canary-value")}},
		}))(t)
	}
	for _, under := range []string{"", *key.KeyId} { // what its web hook does not take waits
		topic := createTopic(t, topics, "t"+under)
		if under != "" {
			setTopic(t, topics, topic, "KmsMasterKeyId", under)
		}
		sub, _ := confirmedHook(t, topics, topic, newHook(t))
		subscribe(t, topics, topic, "https", "https://user:canary-password@127.0.0.1:1/")
		admin(t, endpoint+"/_godwit/subscriptions/pause", `{"subscription":"`+sub+`"}`)
		subscribe(t, topics, topic, "sqs", queueARN("managed"), "RawMessageDelivery", "true")
		subscribe(t, topics, topic, "sqs", queueARN("gone"), "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("managed")+`"}`)
		publish(topic, nil)
	}
	publish(createFIFOTopic(t, topics, "t.fifo", "ArchivePolicy", `{"MessageRetentionPeriod":"30"}`), aws.String("g"))
	managed := endpoint + "/" + account + "/managed"
	for range 3 { // to the dead letters
		must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &managed, MaxNumberOfMessages: 10}))(t)
	}
	got := must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &dead, MaxNumberOfMessages: 10, WaitTimeSeconds: 5}))(t)
	if len(got.Messages) == 0 {
		t.Error("no dead letters")
	}

	writeMoreCanaries(t, endpoint)

	functions := functionsClient(endpoint)
	must(functions.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: aws.String("f"), Role: aws.String(roleARN), PackageType: lambdatypes.PackageTypeImage,
		Code:        &lambdatypes.FunctionCode{ImageUri: aws.String("http://user:canary-password@127.0.0.1:1/")},
		Environment: &lambdatypes.Environment{Variables: map[string]string{"PASSWORD": "canary-variable"}},
	}))(t)
	must(functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("f"), InvocationType: lambdatypes.InvocationTypeEvent, Payload: []byte(`"canary-event"`)}))(t)

	users := iamClientOf(endpoint, account, secretOf(account), "")
	must(users.CreateUser(t.Context(), &iam.CreateUserInput{UserName: aws.String("ann")}))(t)
	access := must(users.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: aws.String("ann")}))(t).AccessKey
	must(users.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("r"), AssumeRolePolicyDocument: aws.String(trustRoot)}))(t)
	must(users.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: aws.String("ann"), PolicyName: aws.String("p"), PolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":[` + statement("Allow", `"sts:AssumeRole"`, "*") + `]}`)}))(t)
	session := must(stsAs(endpoint, longTerm(access)).AssumeRole(t.Context(), &sts.AssumeRoleInput{
		RoleArn: aws.String("arn:aws:iam::" + account + ":role/r"), RoleSessionName: aws.String("session"),
	}))(t).Credentials
	data := ask(t, k.GenerateDataKey, &kms.GenerateDataKeyInput{KeyId: key.KeyId, NumberOfBytes: aws.Int32(32)})
	return [][]byte{data.Plaintext, []byte(*access.SecretAccessKey), []byte(*session.SecretAccessKey), []byte(*session.SessionToken)}
}

// writeMoreCanaries uses what leads out of AWS, by gateways that cannot be reached.
func writeMoreCanaries(t *testing.T, endpoint string) {
	topics, hoses := topicsClient(endpoint), firehoseAs(endpoint, "test")
	topic := createTopic(t, topics, "devices")
	application := *must(topics.CreatePlatformApplication(t.Context(), &sns.CreatePlatformApplicationInput{
		Name: aws.String("shop"), Platform: aws.String("GCM"), Attributes: map[string]string{"PlatformCredential": "canary-credential"},
	}))(t).PlatformApplicationArn
	device := createEndpoint(t, topics, application, "token")
	to := toEndpoint("https://127.0.0.1:1/")
	to.EndpointConfiguration.AccessKey, to.RetryOptions.DurationInSeconds = aws.String("canary-access"), aws.Int32(7200)
	must(hoses.CreateDeliveryStream(t.Context(), &firehose.CreateDeliveryStreamInput{DeliveryStreamName: aws.String("web"), HttpEndpointDestinationConfiguration: to}))(t)
	putHose(t, hoses, "web", "canary-record")
	for protocol, to := range map[string]string{
		"email": "ops@example.com", "sms": "+15551234567", "application": device, "firehose": "arn:aws:firehose:" + region + ":" + account + ":deliverystream/web",
	} {
		var attributes []string
		if protocol == "firehose" {
			attributes = []string{"SubscriptionRoleArn", "arn:aws:iam::" + account + ":role/hose"}
		}
		subscribe(t, topics, topic, protocol, to, attributes...)
	}
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("canary-of-devices"), Subject: aws.String("canary-subject")}))(t)
	pushTo(t, topics, device, "canary-push")
	publishText(t, topics, "+15551234567", "canary-text")
}

// TestOutboxOfDevelopmentIsNamed: what development kept of messages that it has sent to
// nobody is not the store's, and production says where it is.
func TestOutboxOfDevelopmentIsNamed(t *testing.T) {
	besideOthers(t)
	dir := t.TempDir()
	outbox := filepath.Join(dir, "outbox")
	start := func(production bool, f func(endpoint string)) string {
		var logged bytes.Buffer
		serveWith(t, dir, production, false, &logged, f)
		return logged.String()
	}
	start(false, func(endpoint string) {
		publishText(t, topicsClient(endpoint), "+15551234567", "canary")
		eventually(t, "the text is in the outbox", func() bool { return len(textsTo(t, endpoint, "+15551234567")) > 0 })
	})
	nothing := func(string) {}
	if log := start(true, nothing); !strings.Contains(log, "development has left something in clear") || !strings.Contains(log, outbox) {
		t.Errorf("the log does not name %s:\n%s", outbox, log)
	}
	if err := os.RemoveAll(outbox); err != nil {
		t.Fatal(err)
	}
	if log := start(true, nothing); strings.Contains(log, "development has left") {
		t.Errorf("the log names what is not there:\n%s", log)
	}
}

// findCanaries looks for secrets in the files of a directory, and in the records of its
// store, which files have compressed.
func findCanaries(t *testing.T, dir string, secrets [][]byte) {
	t.Helper()
	secrets = append([][]byte{[]byte("canary")}, secrets...)
	look := func(what string, text []byte) {
		for _, secret := range secrets {
			if bytes.Contains(text, secret) {
				t.Errorf("%s has %.20q", what, secret)
			}
		}
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files++
		look(path, text)
		return err
	})
	if err != nil || files < 3 {
		t.Errorf("%d files: %v", files, err)
	}
	st, err := pebble.Open(filepath.Join(dir, "store"), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	for key, value := range storetest.Dump(t, st) {
		records++
		k, err := values.Check(key, value)
		if err != nil {
			t.Error(err)
		}
		look("the key of a "+k.Kind().Name, key)
		look("a "+k.Kind().Name, value)
		if k.ID == keyspace.KindSigningKey || k.ID == keyspace.KindHandleKey {
			if value[0] != seal.Form {
				t.Errorf("a %s is in clear", k.Kind().Name)
			}
		}
	}
	if err := st.Close(); err != nil || records < 50 {
		t.Errorf("%d records: %v", records, err)
	}
}

// TestNothingInClear: in production what is secret stands nowhere in the data directory,
// nor in the logs, before and after the store's files have been rewritten.
func TestNothingInClear(t *testing.T) {
	besideOthers(t)
	dir := t.TempDir()
	var logged bytes.Buffer
	var secrets [][]byte
	serveFrom(t, dir, true, &logged, func(endpoint string) { secrets = writeCanaries(t, endpoint) })
	findCanaries(t, dir, secrets)
	serveFrom(t, dir, true, &logged, func(string) {})
	compactAll(t, dir)
	findCanaries(t, dir, secrets)
	for _, secret := range append([][]byte{[]byte("canary")}, secrets...) {
		if bytes.Contains(logged.Bytes(), secret) {
			t.Errorf("the log has %.20q", secret)
		}
	}
}

// TestDevelopmentDataIsSealed: what development has written in clear is in no file of the
// data directory any more once production serves from it, and comes out as it was.
func TestDevelopmentDataIsSealed(t *testing.T) {
	besideOthers(t)
	dir := t.TempDir()
	var secrets [][]byte
	serveFrom(t, dir, false, io.Discard, func(endpoint string) { secrets = writeCanaries(t, endpoint) })
	compactAll(t, dir) // as after a long time
	serveFrom(t, dir, false, io.Discard, func(endpoint string) {
		q := endpoint + "/" + account + "/kept"
		must(client(endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("canary")}))(t)
	})
	var logged bytes.Buffer
	serveFrom(t, dir, true, &logged, func(endpoint string) {
		q := endpoint + "/" + account + "/kept"
		for range 3 {
			if m := takeMessage(t, client(endpoint), q); !strings.HasPrefix(*m.Body, "canary") {
				t.Errorf("%+v", m)
			}
		}
	})
	if !strings.Contains(logged.String(), "what was stored in clear is sealed") {
		t.Error("the log does not tell that it was sealed")
	}
	findCanaries(t, dir, secrets)
}

// compactAll rewrites the files of a store.
func compactAll(t *testing.T, dir string) {
	t.Helper()
	st, err := pebble.Open(filepath.Join(dir, "store"), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(st.Compact([]byte{0}, []byte{0xff}, 0), st.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestSealedSurvivesRestart: what is sealed is read again by the next process, and no
// password of an endpoint is in the files.
func TestSealedSurvivesRestart(t *testing.T) {
	besideOthers(t)
	dir := t.TempDir()
	run := func(f func(endpoint string)) {
		t.Helper()
		settings := config.Config{
			Listen: "127.0.0.1:0", Store: config.PebbleStore, Clock: config.SystemClock, Data: dir, Region: region, Account: account,
			AllowPrivateEndpoints: true, JitterSeed: 1, EndpointConcurrency: 5, DeliveryConcurrency: 5, FunctionIsolation: config.IsolationNone,
		}
		s := server.New(settings, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), nil)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		f("http://" + s.Addr().String())
		if err := s.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	var key, rsa, blob, signature, q, arn string
	const address = "https://user:canary-password@127.0.0.1:1/hook"
	run(func(endpoint string) {
		c, topics, k := client(endpoint), topicsClient(endpoint), newKMS(t, endpoint, account)
		key = *makeKey(t, k, &kms.CreateKeyInput{}).KeyId
		rsa = *makeKey(t, k, &kms.CreateKeyInput{KeySpec: "ECC_NIST_P384", KeyUsage: "SIGN_VERIFY"}).KeyId
		blob = string(ask(t, k.Encrypt, &kms.EncryptInput{KeyId: &key, Plaintext: []byte("x")}).CiphertextBlob)
		signature = string(ask(t, k.Sign, &kms.SignInput{KeyId: &rsa, Message: []byte("x"), SigningAlgorithm: "ECDSA_SHA_384"}).Signature)
		ask(t, k.RotateKeyOnDemand, &kms.RotateKeyOnDemandInput{KeyId: &key})
		ask(t, k.CreateAlias, &kms.CreateAliasInput{AliasName: aws.String("alias/a"), TargetKeyId: &key})
		q = createQueue(t, c, "q", "KmsMasterKeyId", "alias/a")
		must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("canary-body")}))(t)
		topic := createTopic(t, topics, "t")
		arn = *must(topics.Subscribe(t.Context(), &sns.SubscribeInput{
			TopicArn: &topic, Protocol: aws.String("https"), Endpoint: aws.String(address), ReturnSubscriptionArn: true,
		}))(t).SubscriptionArn
	})
	run(func(endpoint string) {
		c, k := client(endpoint), newKMS(t, endpoint, account)
		if out := ask(t, k.Decrypt, &kms.DecryptInput{CiphertextBlob: []byte(blob)}); string(out.Plaintext) != "x" {
			t.Errorf("%q", out.Plaintext)
		}
		ask(t, k.Verify, &kms.VerifyInput{KeyId: &rsa, Message: []byte("x"), Signature: []byte(signature), SigningAlgorithm: "ECDSA_SHA_384"})
		url := endpoint + "/" + account + "/q"
		got := must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 1}))(t)
		if len(got.Messages) != 1 || *got.Messages[0].Body != "canary-body" {
			t.Errorf("%+v", got.Messages)
		}
		if arn == "" {
			t.Error("no subscription")
		}
	})
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("canary-")) {
			t.Errorf("%s has a canary", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

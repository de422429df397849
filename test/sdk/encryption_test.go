package sdk_test

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
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
	for _, name := range []string{"SQSSuccess", "SQSFailure"} {
		must(topics.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{
			TopicArn: &topic, AttributeName: aws.String(name + "FeedbackRoleArn"), AttributeValue: aws.String("arn:aws:iam::000000000000:role/feedback"),
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

// TestNothingInClear: in production what is secret stands nowhere in the data directory,
// nor in the logs.
func TestNothingInClear(t *testing.T) {
	besideOthers(t)
	dir := t.TempDir()
	var logged bytes.Buffer
	settings := config.Config{
		Listen: "127.0.0.1:0", Store: config.PebbleStore, Clock: config.SystemClock, Data: dir, Region: region, Account: account,
		AllowPrivateEndpoints: true, Metrics: true, JitterSeed: 1, EndpointConcurrency: 5, DeliveryConcurrency: 5, FunctionIsolation: config.IsolationNone,
		Production: true,
	}
	s := server.New(settings, slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	endpoint := "http://" + s.Addr().String()
	c, topics, k := client(endpoint), topicsClient(endpoint), newKMS(t, endpoint, account)
	key := makeKey(t, k, &kms.CreateKeyInput{})
	dead := createQueue(t, c, "dead")
	redrive := `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":1}`
	topic := createTopic(t, topics, "t")
	admitting := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*"}]}`
	for name, attributes := range map[string][]string{"managed": {"Policy", admitting, "RedrivePolicy", redrive, "VisibilityTimeout", "0"}, "customer": {"KmsMasterKeyId", *key.KeyId}} {
		q := createQueue(t, c, name, attributes...)
		must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("canary-body"), MessageAttributes: map[string]types.MessageAttributeValue{
			"a": {DataType: aws.String("String"), StringValue: aws.String("canary-value")},
		}}))(t)
		if name == "managed" {
			subscribe(t, topics, topic, "sqs", queueARN(name))
			must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("canary-notification")}))(t)
			for range 3 { // to the dead letters
				must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q, MaxNumberOfMessages: 10}))(t)
			}
			got := must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &dead, MaxNumberOfMessages: 10, WaitTimeSeconds: 5}))(t)
			if len(got.Messages) == 0 {
				t.Error("no dead letters")
			}
		}
	}
	data := ask(t, k.GenerateDataKey, &kms.GenerateDataKeyInput{KeyId: key.KeyId, NumberOfBytes: aws.Int32(32)})
	if err := s.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	secrets := [][]byte{[]byte("canary"), data.Plaintext}
	look := func(what string, text []byte) {
		for _, secret := range secrets {
			if bytes.Contains(text, secret) {
				t.Errorf("%s has %q", what, secret)
			}
		}
	}
	look("the log", logged.Bytes())
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

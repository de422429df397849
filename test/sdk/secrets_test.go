package sdk_test

import (
	"context"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
)

// Marks of what may never be logged. Each holds the word that is looked for.
const (
	markedBody    = "body-S3CRET"
	markedUser    = "user-S3CRET"
	markedPass    = "pass-S3CRET"
	markedQuery   = "query-S3CRET"
	markedKey     = "key-S3CRET"
	markedSession = "session-S3CRET"
	markedAccess  = "AKIAS3CRET"
)

// TestNoSecretIsLogged: whatever goes over every protocol, and whatever comes of
// it, no body and no secret is in the log, at any level.
func TestNoSecretIsLogged(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		t.Run(level.String(), func(t *testing.T) {
			log := &logBuffer{}
			s := server.New(config.Config{
				Listen: "127.0.0.1:0", Store: config.PebbleStore, Data: t.TempDir(), Clock: config.VirtualClock, Region: region, Account: account,
				AllowPrivateEndpoints: true, JitterSeed: 1, Retry429: true, EndpointConcurrency: 50, DeliveryConcurrency: 500,
				EndpointCA: certificate(t), Metrics: true, Prometheus: true, PrometheusSeries: 10,
			}, slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: level})), nil)
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			secrets := secretTraffic(t, "http://"+s.Addr().String())
			if err := s.Stop(context.Background()); err != nil {
				t.Fatal(err)
			}
			text := log.b.String()
			for line := range strings.Lines(text) {
				decode(t, line) // each line is one object
				for _, secret := range append(secrets, "S3CRET") {
					if strings.Contains(line, secret) {
						t.Errorf("%.20s… is in the line %s", secret, line)
					}
				}
			}
			if level == slog.LevelDebug {
				for _, message := range []string{"request", "delivery attempt", "delivery status", "SNS metrics"} {
					if !strings.Contains(text, `"msg":"`+message+`"`) {
						t.Errorf("no line says %q: the test proves nothing", message)
					}
				}
			}
			if level >= slog.LevelError && text != "" {
				t.Errorf("errors were logged: %s", text)
			}
		})
	}
}

// certificate is a file with that of httptest's servers.
func certificate(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// secretTraffic uses the server as its users do, with marks, and returns what else
// is secret: tokens and receipt handles.
func secretTraffic(t *testing.T, endpoint string) (secrets []string) {
	ctx := t.Context()
	keys := credentials.NewStaticCredentialsProvider(markedAccess, markedKey, markedSession)
	queues := sqs.New(sqs.Options{BaseEndpoint: &endpoint, Region: region, Credentials: keys, RetryMaxAttempts: 1, HTTPClient: eager{}})
	topics := sns.New(sns.Options{BaseEndpoint: &endpoint, Region: region, Credentials: keys, RetryMaxAttempts: 1, HTTPClient: eager{}})
	groups := cloudwatchlogs.New(cloudwatchlogs.Options{BaseEndpoint: &endpoint, Region: region, Credentials: keys, RetryMaxAttempts: 1, HTTPClient: eager{}})
	topic := createTopic(t, topics, "orders")
	work := createQueue(t, queues, "work")
	createQueue(t, queues, "dlq")
	for _, name := range []string{"HTTP", "SQS"} {
		for _, outcome := range []string{"Success", "Failure"} {
			must(topics.SetTopicAttributes(ctx, &sns.SetTopicAttributesInput{
				TopicArn: &topic, AttributeName: new(name + outcome + "FeedbackRoleArn"), AttributeValue: new("arn:aws:iam::000000000000:role/feedback"),
			}))(t)
		}
	}

	// Web hooks with credentials and a query: one that takes everything, one that
	// refuses, one that redirects, and one that is not there.
	tokens := make(chan string, 10)
	secretLink := regexp.MustCompile(`Token=([^&"]+)`)
	hook := func(answer func(w http.ResponseWriter)) string {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("x-amz-sns-message-type") == "SubscriptionConfirmation" {
				body := make([]byte, 1<<16)
				n, _ := r.Body.Read(body)
				if found := secretLink.FindSubmatch(body[:n]); found != nil {
					tokens <- string(found[1])
				}
				return
			}
			answer(w)
		}))
		t.Cleanup(server.Close)
		u, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.User, u.Path, u.RawQuery = url.UserPassword(markedUser, markedPass), "/hook", "token="+markedQuery
		return u.String()
	}
	hooks := []string{
		hook(func(w http.ResponseWriter) {}),
		hook(func(w http.ResponseWriter) { http.Error(w, markedBody, http.StatusInternalServerError) }),
		hook(func(w http.ResponseWriter) {
			w.Header().Set("Location", "/elsewhere?token="+markedQuery)
			w.WriteHeader(http.StatusFound)
		}),
		hook(func(w http.ResponseWriter) {
			w.Header().Set("WWW-Authenticate", `Digest realm="`+markedBody+`", nonce="`+markedQuery+`", qop="auth"`)
			w.WriteHeader(http.StatusUnauthorized)
		}),
		hook(func(w http.ResponseWriter) { panic(http.ErrAbortHandler) }),
	}
	for _, address := range hooks {
		subscribe(t, topics, topic, "https", address, "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dlq")+`"}`)
		advance(t, endpoint, "0s")
		token := <-tokens
		secrets = append(secrets, token)
		must(topics.ConfirmSubscription(ctx, &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: &token}))(t)
	}
	subscribe(t, topics, topic, "https", "https://"+markedUser+":"+markedPass+"@127.0.0.1:1/x?token="+markedQuery)
	subscribe(t, topics, topic, "http", "http://127.0.0.1:1/x?token="+markedQuery)
	subscribe(t, topics, topic, "sqs", queueARN("work"))
	subscribe(t, topics, topic, "sqs", queueARN("gone"), "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("missing")+`"}`)

	must(topics.Publish(ctx, &sns.PublishInput{
		TopicArn: &topic, Message: new(markedBody), Subject: new(markedBody),
		MessageAttributes: map[string]snstypes.MessageAttributeValue{"a": {DataType: new("String"), StringValue: new(markedBody)}},
	}))(t)
	must(queues.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &work, MessageBody: new(markedBody),
		MessageAttributes: map[string]sqstypes.MessageAttributeValue{"a": {DataType: new("String"), StringValue: new(markedBody)}},
	}))(t)
	advance(t, endpoint, "2h")
	for range 2 {
		secrets = append(secrets, aws.ToString(takeMessage(t, queues, work).ReceiptHandle))
	}

	createGroup(t, groups, "/app", "s")
	putLogs(t, groups, "/app", "s", logEvents(serverNow(t, endpoint), markedBody))
	must(groups.FilterLogEvents(ctx, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: new("/app"), FilterPattern: new(`"` + markedBody + `"`)}))(t)

	// Requests that are refused, in every protocol, with marks where they do not
	// belong.
	_, _ = queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: new(work + "x"), MessageBody: new(markedBody)})
	_, _ = queues.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &work, ReceiptHandle: new(markedQuery)})
	_, _ = topics.ConfirmSubscription(ctx, &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: new(markedQuery)})
	_, _ = topics.Subscribe(ctx, &sns.SubscribeInput{TopicArn: &topic, Protocol: new("http"), Endpoint: new("ftp://" + markedPass)})
	_, _ = groups.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{LogGroupName: new("x"), LogStreamName: new("x"), LogEvents: logEvents(0, markedBody)})
	callJSON(t, endpoint, "SendMessage", `{"MessageBody":"`+markedBody)
	callQuery(t, endpoint, "SendMessage", "MessageBody", markedBody, "AWSAccessKeyId", markedAccess, "Signature", markedKey)
	callQuery(t, endpoint, markedQuery)
	post(t, endpoint+"/_godwit/faults?token="+markedQuery, `{"arn":"`+markedBody+`"}`)
	return secrets
}

package sdk_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"io"
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
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
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
	markedPath    = "path-S3CRET"
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
			text := log.String()
			for line := range strings.Lines(text) {
				decode(t, line) // each line is one object
				for _, secret := range append(secrets, "S3CRET") {
					if strings.Contains(line, secret) {
						t.Errorf("%.20s… is in the line %s", secret, line)
					}
				}
			}
			if level == slog.LevelDebug {
				for _, message := range []string{
					"request", "delivery attempt", "delivery status", "SNS metrics", "an alarm's action failed",
					"a function could not be run with an event", "what came of an event is not taken, and is lost",
				} {
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
	queues := sqs.New(sqs.Options{BaseEndpoint: &endpoint, Region: region, Credentials: keys, RetryMaxAttempts: 1, HTTPClient: eager})
	topics := sns.New(sns.Options{BaseEndpoint: &endpoint, Region: region, Credentials: keys, RetryMaxAttempts: 1, HTTPClient: eager})
	groups := cloudwatchlogs.New(cloudwatchlogs.Options{BaseEndpoint: &endpoint, Region: region, Credentials: keys, RetryMaxAttempts: 1, HTTPClient: eager})
	topic := createTopic(t, topics, "orders")
	work := createQueue(t, queues, "work")
	createQueue(t, queues, "dlq")
	createQueue(t, queues, "feed")
	createQueue(t, queues, "feed-2")
	for _, name := range []string{"HTTP", "SQS"} {
		for _, outcome := range []string{"Success", "Failure"} {
			must(topics.SetTopicAttributes(ctx, &sns.SetTopicAttributesInput{
				TopicArn: &topic, AttributeName: new(name + outcome + "FeedbackRoleArn"), AttributeValue: new("arn:aws:iam::000000000000:role/feedback"),
			}))(t)
		}
	}

	// Web hooks with credentials, a path and a query: one that takes everything, one that
	// refuses, one that redirects, and one that is not there.
	tokens := make(chan string, 10)
	secretLink := regexp.MustCompile(`Token=([^&"]+)`)
	hook := func(answer func(w http.ResponseWriter)) string {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("x-amz-sns-message-type") == "SubscriptionConfirmation" {
				body, _ := io.ReadAll(r.Body)
				if found := secretLink.FindSubmatch(body); found != nil {
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
		u.User, u.Path, u.RawQuery = url.UserPassword(markedUser, markedPass), "/"+markedPath, "token="+markedQuery
		return u.String()
	}
	hooks := []string{
		hook(func(w http.ResponseWriter) {}),
		hook(func(w http.ResponseWriter) { http.Error(w, markedBody, http.StatusInternalServerError) }),
		hook(func(w http.ResponseWriter) {
			w.Header().Set("Location", "/elsewhere/"+markedPath+"?token="+markedQuery)
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
	subscribe(t, topics, topic, "https", "https://"+markedUser+":"+markedPass+"@127.0.0.1:1/"+markedPath+"?token="+markedQuery)
	subscribe(t, topics, topic, "http", "http://127.0.0.1:1/"+markedPath+"?token="+markedQuery)
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

	secretMetrics(t, endpoint, keys)
	secretFunctions(t, endpoint, keys, queues, topics, work, topic)

	// Policies may name anybody.
	policy := `{"Version":"2012-10-17","Statement":[{"Sid":"` + markedBody + `","Effect":"Allow","Principal":"*","Action":"SQS:*","Resource":"` + queueARN("work") +
		`","Condition":{"StringEquals":{"aws:username":"` + markedUser + `"}}}]}`
	must(queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &work, Attributes: map[string]string{"Policy": policy}}))(t)
	must(topics.SetTopicAttributes(ctx, &sns.SetTopicAttributesInput{
		TopicArn: &topic, AttributeName: new("Policy"), AttributeValue: new(strings.NewReplacer("SQS:*", "SNS:Publish", queueARN("work"), topic).Replace(policy)),
	}))(t)
	must(topics.Publish(ctx, &sns.PublishInput{TopicArn: &topic, Message: new(markedBody)}))(t)
	advance(t, endpoint, "2h")
	must(queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &work, Attributes: map[string]string{"Policy": ""}}))(t)
	_, err := queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &work, Attributes: map[string]string{"Policy": markedBody}})
	if err == nil {
		t.Error("a policy that is none is taken")
	}

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

// secretMetrics uses CloudWatch with marks in what clients put there.
func secretMetrics(t *testing.T, endpoint string, keys aws.CredentialsProvider) {
	ctx := t.Context()
	c := cloudwatch.New(cloudwatch.Options{BaseEndpoint: &endpoint, Region: region, Credentials: keys, RetryMaxAttempts: 1, HTTPClient: eager})
	data := []cwtypes.MetricDatum{{MetricName: new("m"), Value: new(1.0), Dimensions: dimensions("user", markedUser), StorageResolution: new(int32(1))}}
	must(c.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: new("n"), MetricData: data}))(t)
	must(c.ListMetrics(ctx, &cloudwatch.ListMetricsInput{Namespace: new("n")}))(t)
	must(c.PutMetricAlarm(ctx, &cloudwatch.PutMetricAlarmInput{
		AlarmName: new("a"), AlarmDescription: new(markedBody), Namespace: new("n"), MetricName: new("m"), Dimensions: dimensions("user", markedUser),
		Statistic: "Sum", Period: new(int32(60)), EvaluationPeriods: new(int32(1)), Threshold: new(0.0), ComparisonOperator: "GreaterThanThreshold",
		AlarmActions: []string{topicARN("orders"), topicARN("gone"), functionARN("gone")},
		Tags:         []cwtypes.Tag{{Key: new("k"), Value: new(markedBody)}},
	}))(t)
	advance(t, endpoint, "2m")
	equal(t, "the alarm's actions", 3, strings.Count(strings.Join(alarmHistory(t, endpoint, "a"), " "), "Action: "))
	must(c.SetAlarmState(ctx, &cloudwatch.SetAlarmStateInput{
		AlarmName: new("a"), StateValue: "ALARM", StateReason: new(markedBody), StateReasonData: new(`{"a":"` + markedBody + `"}`),
	}))(t)
	advance(t, endpoint, "2h")
	data[0].Unit = markedBody
	if _, err := c.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: new("n"), MetricData: data}); err == nil {
		t.Error("an unknown unit is taken")
	}
	_, _ = c.GetMetricData(ctx, &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(serverTime(t, endpoint)), EndTime: aws.Time(serverTime(t, endpoint)), NextToken: new(markedQuery),
		MetricDataQueries: []cwtypes.MetricDataQuery{{Id: new(markedBody), Expression: new(markedBody)}},
	})
	callMetricsJSON(t, endpoint, "PutMetricData", `{"Namespace":"`+markedBody)
}

// secretFunctions uses Lambda with marks in code, variables, events, answers,
// output and addresses, with successes and failures of all kinds.
func secretFunctions(t *testing.T, endpoint string, keys aws.CredentialsProvider, queues *sqs.Client, topics *sns.Client, work, topic string) {
	ctx := t.Context()
	c := lambda.New(lambda.Options{BaseEndpoint: &endpoint, Region: region, Credentials: keys, RetryMaxAttempts: 1, HTTPClient: eager})
	event := []byte(`{"password":"` + markedBody + `"}`)
	variables := &lambdatypes.Environment{Variables: map[string]string{"PASSWORD": markedPass}}
	far := func(name string, answer http.HandlerFunc) {
		t.Helper()
		address := "http://" + markedUser + ":" + markedPass + "@127.0.0.1:1/" + markedPath + "?token=" + markedQuery
		if answer != nil {
			server := httptest.NewServer(answer)
			t.Cleanup(server.Close)
			address = strings.Replace(server.URL, "http://", "http://"+markedUser+":"+markedPass+"@", 1) + "/" + markedPath + "?token=" + markedQuery
		}
		_, err := c.CreateFunction(ctx, &lambda.CreateFunctionInput{
			FunctionName: &name, Role: new(roleARN), PackageType: lambdatypes.PackageTypeImage, Code: &lambdatypes.FunctionCode{ImageUri: &address},
			Environment: variables, Description: new(markedBody), DeadLetterConfig: &lambdatypes.DeadLetterConfig{TargetArn: new(queueARN("gone"))},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	far("takes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString([]byte(markedBody)))
		w.Write(event)
	})
	far("fails", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		w.Write([]byte(`{"errorMessage":"` + markedBody + `","errorType":"` + markedBody + `"}`))
	})
	far("answers-strangely", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, markedBody, http.StatusTeapot) })
	far("breaks-off", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	far("absent", nil)
	must(c.CreateFunction(ctx, &lambda.CreateFunctionInput{
		FunctionName: new("process"), Role: new(roleARN), Handler: new("bootstrap"), Runtime: lambdatypes.RuntimeProvidedal2023, Environment: variables,
		Code: &lambdatypes.FunctionCode{ZipFile: zipOf(t, "bootstrap", "#!/bin/sh\necho "+markedBody+" $PASSWORD\necho $PASSWORD >&2\nexit 5\n")},
	}))(t)
	must(c.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{FunctionName: new("takes"), Environment: variables}))(t)
	must(c.AddPermission(ctx, &lambda.AddPermissionInput{
		FunctionName: new("takes"), StatementId: new("s"), Action: new("lambda:InvokeFunction"), Principal: new("sns.amazonaws.com"), SourceArn: &topic,
	}))(t)
	subscribe(t, topics, topic, "lambda", functionARN("takes"))
	subscribe(t, topics, topic, "lambda", functionARN("fails"))
	for _, name := range []string{"takes", "fails"} {
		must(c.CreateEventSourceMapping(ctx, &lambda.CreateEventSourceMappingInput{
			FunctionName: &name, EventSourceArn: new(queueARN(map[string]string{"takes": "feed", "fails": "feed-2"}[name])),
			FilterCriteria: &lambdatypes.FilterCriteria{Filters: []lambdatypes.Filter{{Pattern: new(`{"body":[{"prefix":"` + markedBody + `"}]}`)}}},
		}))(t)
	}
	for _, name := range []string{"feed", "feed-2"} {
		must(queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: new(strings.TrimSuffix(work, "work") + name), MessageBody: new(markedBody)}))(t)
	}
	custom := base64.StdEncoding.EncodeToString([]byte(`{"custom":{"a":"` + markedSession + `"}}`))
	for _, name := range []string{"takes", "fails", "answers-strangely", "breaks-off", "absent", "process", "unknown"} {
		_, _ = c.Invoke(ctx, &lambda.InvokeInput{FunctionName: &name, Payload: event, ClientContext: &custom, LogType: lambdatypes.LogTypeTail})
		_, _ = c.Invoke(ctx, &lambda.InvokeInput{FunctionName: &name, Payload: event, InvocationType: lambdatypes.InvocationTypeEvent})
		_, _ = c.Invoke(ctx, &lambda.InvokeInput{FunctionName: &name, Payload: []byte(markedBody), Qualifier: new("nosuch")})
	}
	must(topics.Publish(ctx, &sns.PublishInput{TopicArn: &topic, Message: new(markedBody)}))(t)
	advance(t, endpoint, "7h")
	must(c.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: new("process")}))(t)
	_, _ = c.UpdateFunctionCode(ctx, &lambda.UpdateFunctionCodeInput{FunctionName: new("process"), ZipFile: []byte(markedBody)})
}

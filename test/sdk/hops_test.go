package sdk_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	hosetypes "github.com/aws/aws-sdk-go-v2/service/firehose/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
)

// What services do among themselves needs the rights of whom they do it for, or of their
// own names.

// SNS writes a delivery status log with the role that the topic names, which has to trust
// it and to be allowed what it does there.
func TestFeedbackRoleIsAsked(t *testing.T) {
	const group = "sns/us-east-1/000000000000/orders"
	endpoint := start(t)
	identities, topics, groups := iamClient(endpoint), topicsClient(endpoint), logsClient(endpoint)
	topic := createTopic(t, topics, "orders")
	createQueue(t, client(endpoint), "q")
	subscribe(t, topics, topic, "sqs", queueARN("q"))
	role := feedbackRole(t, endpoint)
	setTopic(t, topics, topic, "SQSSuccessFeedbackRoleArn", role)
	may := func(resource string, actions ...string) {
		t.Helper()
		must(identities.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: aws.String("feedback"), PolicyName: aws.String("logs"), PolicyDocument: aws.String(allow(resource, actions...))}))(t)
	}
	logged := 0
	publish := func(what string, want bool) {
		t.Helper()
		must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("m")}))(t)
		advance(t, endpoint, "0s")
		before := logged
		logged = 0
		if found, err := groups.FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String(group)}); err == nil {
			logged = len(found.Events)
		}
		if (logged > before) != want {
			t.Errorf("%s: %d entries after %d", what, logged, before)
		}
	}
	may("*", "logs:CreateLogStream", "logs:PutLogEvents")
	publish("without the right to make the group", false)
	may("*", "logs:CreateLogGroup", "logs:PutLogEvents")
	publish("without the right to make the stream", false)
	may("*", "logs:CreateLogGroup", "logs:CreateLogStream")
	publish("without the right to put events", false)
	may("arn:aws:logs:us-east-1:000000000000:log-group:"+group+"-other:*", logging...)
	publish("with the right to another group", false)
	may("arn:aws:logs:us-east-1:000000000000:log-group:"+group+":*", logging...)
	publish("with all of them", true)
	may("*", "logs:PutLogEvents")
	publish("into the stream that is there", true)
	may("*", logging...)
	trust := func(document string) {
		t.Helper()
		must(identities.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("feedback"), PolicyDocument: &document}))(t)
	}
	trust(lambdaTrust)
	publish("a role that does not trust SNS", false)
	ofSNS := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sts:AssumeRole","Condition":{"ArnEquals":{"aws:SourceArn":"`
	trust(ofSNS + topicARN("other") + `"}}}]}`)
	publish("a role that trusts SNS for another topic", false)
	trust(ofSNS + topic + `"}}}]}`)
	publish("a role that trusts SNS for this one", true)
	must(identities.DeleteRolePolicy(t.Context(), &iam.DeleteRolePolicyInput{RoleName: aws.String("feedback"), PolicyName: aws.String("logs")}))(t)
	must(identities.DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: aws.String("feedback")}))(t)
	publish("a role that is gone", false)
}

// What a function prints is written with its role, which needs what AWS's managed policy
// for that allows; without it nothing is written, and the function runs all the same.
func TestFunctionLogsNeedTheRole(t *testing.T) {
	const group = "/aws/lambda/f"
	h := newHops(t)
	groups := logsClient(h.endpoint)
	f := createAnsweredAs(t, h.functions, "f", role(t, h.identities, "printer", nothing))
	logged := func() (n int) {
		found, err := groups.FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String(group)})
		if err != nil {
			refused(t, err, "ResourceNotFoundException", http.StatusBadRequest, "The specified log group does not exist.")
			return 0
		}
		return len(found.Events)
	}
	run := func(what, resource string, want bool, actions ...string) {
		t.Helper()
		role(t, h.identities, "printer", allow(resource, actions...))
		before := logged()
		ended := make(chan *lambda.InvokeOutput, 1)
		go func() {
			out, err := h.functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("f"), LogType: types.LogTypeTail})
			if err != nil {
				t.Error(err)
			}
			ended <- out
		}()
		f.next().succeed("{}")
		if out := <-ended; out == nil || out.FunctionError != nil || aws.ToString(out.LogResult) == "" {
			t.Errorf("%s: %+v", what, out)
		}
		if got := logged() > before; got != want {
			t.Errorf("%s: logged %t, want %t", what, got, want)
		}
	}
	of := func(group string) string { return "arn:aws:logs:us-east-1:000000000000:log-group:" + group + ":*" }
	run("without the right to make the group", "*", false, "logs:CreateLogStream", "logs:PutLogEvents")
	run("without the right to make the stream", "*", false, "logs:CreateLogGroup", "logs:PutLogEvents")
	run("without the right to put events", "*", false, "logs:CreateLogGroup", "logs:CreateLogStream")
	run("with the right to another group", of(group+"-other"), false, logging...)
	run("with all of them", of(group), true, logging...)
	run("into the stream that is there", "*", true, "logs:PutLogEvents")
	run("without any again", "*", false, "sqs:SendMessage")
}

// What a delivery stream logs of failures is written with its role.
func TestFirehoseLogsNeedTheRole(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.FirehoseDirectory = t.TempDir() })
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(failing.Close)
	hoses, identities, groups := firehoseAs(endpoint, account), iamClient(endpoint), logsClient(endpoint)
	must(identities.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("hose"), AssumeRolePolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"firehose.amazonaws.com"},"Action":"sts:AssumeRole"}]}`)}))(t)
	to := toEndpoint(failing.URL)
	to.RetryOptions.DurationInSeconds = aws.Int32(0)
	to.CloudWatchLoggingOptions = &hosetypes.CloudWatchLoggingOptions{Enabled: aws.Bool(true), LogGroupName: aws.String("hose"), LogStreamName: aws.String("s")}
	must(hoses.CreateDeliveryStream(t.Context(), &firehose.CreateDeliveryStreamInput{DeliveryStreamName: aws.String("web"), HttpEndpointDestinationConfiguration: to}))(t)
	logged := func() int {
		found, err := groups.FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("hose")})
		if err != nil {
			return 0
		}
		return len(found.Events)
	}
	for _, tt := range []struct {
		what    string
		actions []string
		want    bool
	}{
		{"without any right", []string{"s3:PutObject"}, false},
		{"without the right to make the group", []string{"logs:CreateLogStream", "logs:PutLogEvents"}, false},
		{"with all of them", logging, true},
		{"into the stream that is there", []string{"logs:PutLogEvents"}, true},
		{"without any again", []string{"s3:PutObject"}, false},
	} {
		must(identities.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: aws.String("hose"), PolicyName: aws.String("p"), PolicyDocument: aws.String(allow("*", tt.actions...))}))(t)
		before := logged()
		putHose(t, hoses, "web", "x")
		advance(t, endpoint, "2m")
		if got := logged() > before; got != tt.want {
			t.Errorf("%s: logged %t", tt.what, got)
		}
	}
}

// CloudWatch itself publishes the action of an alarm: a topic's policy has to let it, that of the same
// account, too, and that of another account names the service and not the account.
func TestAlarmNeedsTheTopicsPolicy(t *testing.T) {
	const other = "111111111111"
	endpoint := start(t)
	mine, theirs := topicsClient(endpoint), topicsClientOf(endpoint, region, other)
	own, foreign := createTopic(t, mine, "ops"), createTopic(t, theirs, "ops")
	nextMinute(t, endpoint)
	putAlarm(t, endpoint, "a", func(in *cloudwatch.PutMetricAlarmInput) { in.AlarmActions = []string{own, foreign} })
	told := func(what string, want map[string]bool) {
		t.Helper()
		for _, state := range []cwtypes.StateValue{"OK", "ALARM"} {
			must(metricsClient(endpoint).SetAlarmState(t.Context(), &cloudwatch.SetAlarmStateInput{AlarmName: aws.String("a"), StateValue: state, StateReason: &what}))(t)
		}
		advance(t, endpoint, "1m")
		got := map[string]string{}
		for _, line := range alarmHistory(t, endpoint, "a") {
			for _, topic := range []string{own, foreign} {
				if strings.HasPrefix(line, "Action: ") && strings.Contains(line, topic) {
					got[topic] = line // the latest
				}
			}
		}
		for topic, may := range want {
			line := `Action: Successfully executed action ` + topic
			if !may {
				line = `Action: Failed to execute action ` + topic + `. Received error: "Resource: ` + alarmARN("a") + ` is not authorized to perform: SNS:Publish on resource: ` + topic + `"`
			}
			equal(t, what, line, got[topic])
		}
	}
	policy := func(principal, topic, condition string) string {
		return policyOf(`{"Effect":"Allow","Principal":` + principal + `,"Action":"sns:Publish","Resource":"` + topic + `"` + condition + `}`)
	}
	const cloudwatch = `{"Service":"cloudwatch.amazonaws.com"}`
	told("by the default policies", map[string]bool{own: true, foreign: false})
	setTopic(t, theirs, foreign, "Policy", policy(`{"AWS":"`+account+`"}`, foreign, ""))
	setTopic(t, mine, own, "Policy", policy(`{"Service":"s3.amazonaws.com"}`, own, ""))
	told("by policies that do not name CloudWatch", map[string]bool{own: false, foreign: false})
	setTopic(t, theirs, foreign, "Policy", policy(cloudwatch, foreign, `,"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:cloudwatch:*:`+account+`:alarm:a"},"StringEquals":{"aws:SourceAccount":"`+account+`"}}`))
	setTopic(t, mine, own, "Policy", policy(cloudwatch, own, ""))
	told("by policies that do", map[string]bool{own: true, foreign: true})
	setTopic(t, theirs, foreign, "Policy", policy(cloudwatch, foreign, `,"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:cloudwatch:*:`+account+`:alarm:b"}}`))
	told("by a policy for another alarm", map[string]bool{own: true, foreign: false})
}

// A dead letter that a move task carries back to a subscription is published again: who
// asks for it needs the right to.
func TestMoveTaskToASubscriptionNeedsPublish(t *testing.T) {
	endpoint := start(t)
	root, topics, identities := client(endpoint), topicsClient(endpoint), iamClient(endpoint)
	dead := createQueue(t, root, "dead")
	topic := createTopic(t, topics, "orders")
	subscribe(t, topics, topic, "sqs", queueARN("q"), "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("m")}))(t)
	advance(t, endpoint, "1h")
	equal(t, "dead letters", "1", counts(t, root, dead)[0])
	q := createQueue(t, root, "q")

	keys := userOf(t, identities, "mover", movers("q"))
	c := sqs.New(sqs.Options{BaseEndpoint: &endpoint, Region: region, Credentials: keys, RetryMaxAttempts: 1, HTTPClient: eager})
	move := func(what, want string) {
		t.Helper()
		startMove(t, c, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead"))})
		advance(t, endpoint, "1s")
		task := moveTasks(t, c, 1)[0]
		equal(t, what, want, aws.ToString(task.Status)+" "+aws.ToString(task.FailureReason))
	}
	move("without the right to publish", "FAILED AccessDenied")
	equal(t, "in the queue", "0", counts(t, root, q)[0])
	setUser(t, identities, "mover", strings.Replace(movers("q"), `"sqs:SendMessage"`, `"sns:Publish"`, 1))
	move("with that to another topic", "FAILED AccessDenied")
	setUser(t, identities, "mover", strings.Replace(strings.Replace(movers("q"), `"sqs:SendMessage"`, `"sns:Publish"`, 1), queueARN("q"), topic, 1))
	move("with the right", "COMPLETED ")
	equal(t, "in the queue", "1", counts(t, root, q)[0])
}

// What comes of an event is published under an encrypted topic's key as the function's
// role.
func TestDestinationUnderATopicsKey(t *testing.T) {
	h := newHops(t)
	topics := topicsClient(h.endpoint)
	key := makeKey(t, newKMS(t, h.endpoint, account), &kms.CreateKeyInput{})
	topic, q := createTopic(t, topics, "told"), createQueue(t, h.queues, "q")
	setTopic(t, topics, topic, "KmsMasterKeyId", *key.KeyId)
	subscribe(t, topics, topic, "sqs", queueARN("q"), "RawMessageDelivery", "true")
	name := role(t, h.identities, "sender", allow("*", "sns:Publish"))
	f := startFar(t)
	must(h.functions.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: aws.String("f"), Role: &name, PackageType: types.PackageTypeImage, Code: &types.FunctionCode{ImageUri: &f.URL}, Timeout: aws.Int32(runTime),
		DeadLetterConfig: &types.DeadLetterConfig{TargetArn: &topic},
	}))(t)
	advance(t, h.endpoint, "0s")
	must(h.functions.PutFunctionEventInvokeConfig(t.Context(), &lambda.PutFunctionEventInvokeConfigInput{FunctionName: aws.String("f"), MaximumRetryAttempts: aws.Int32(0)}))(t)
	fail := func(what, want string) {
		t.Helper()
		f.fail(1)
		invokeAsync(t, h.functions, "f", `{}`)
		advance(t, h.endpoint, "1ms")
		equal(t, what, want, h.waiting(t, q))
	}
	fail("without the right to the key", "0")
	role(t, h.identities, "sender", policyOf(`{"Effect":"Allow","Action":"sns:Publish","Resource":"*"},{"Effect":"Allow","Action":["kms:GenerateDataKey","kms:Decrypt"],"Resource":"`+*key.Arn+
		`","Condition":{"StringEquals":{"kms:ViaService":"sns.us-east-1.amazonaws.com"}}}`))
	fail("with the right, through SNS", "1")
}

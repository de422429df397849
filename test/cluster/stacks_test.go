package cluster_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cftypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/test/built"
	"godwit.dev/godwit/test/programs"
)

// template is a stack of queues, each of which waits for the one before it, behind a topic
// that the last one subscribes to.
func template(queues, visibility int) string {
	var b strings.Builder
	b.WriteString("Resources:\n  News: {Type: AWS::SNS::Topic, Properties: {TopicName: news}}\n")
	before := "News"
	for i := range queues {
		name := fmt.Sprintf("Q%d", i)
		fmt.Fprintf(&b, "  %s: {Type: AWS::SQS::Queue, DependsOn: %s, Properties: {QueueName: stack-%d, VisibilityTimeout: %d}}\n", name, before, i, visibility)
		before = name
	}
	fmt.Fprintf(&b, "  Feed: {Type: AWS::SNS::Subscription, Properties: {TopicArn: !Ref News, Protocol: sqs, Endpoint: !GetAtt %s.Arn}}\n", before)
	return b.String()
}

// stackIs waits until a stack has come to a status, which is to be this one.
func (e *everything) stackIs(id string, want cftypes.StackStatus) {
	e.t.Helper()
	client := cloudformation.NewFromConfig(e.settings(0))
	var last cftypes.Stack
	e.eventually("the stack's operation ends", func(status) bool {
		out, err := client.DescribeStacks(e.t.Context(), &cloudformation.DescribeStacksInput{StackName: &id})
		if err != nil || len(out.Stacks) != 1 {
			return false
		}
		last = out.Stacks[0]
		return !strings.HasSuffix(string(last.StackStatus), "IN_PROGRESS")
	})
	if last.StackStatus != want {
		e.t.Fatalf("the stack is %s (%s), want %s", last.StackStatus, aws.ToString(last.StackStatusReason), want)
	}
}

// made is what the services have of a stack: its queues, and how many topics and subscriptions
// there are.
func (e *everything) made() (queues []string, topics, subscriptions int) {
	e.t.Helper()
	ctx, s := e.t.Context(), e.settings(1)
	for _, url := range do(sqs.NewFromConfig(s).ListQueues(ctx, &sqs.ListQueuesInput{QueueNamePrefix: aws.String("stack-")}))(e.t).QueueUrls {
		queues = append(queues, url[strings.LastIndexByte(url, '/')+1:])
	}
	slices.Sort(queues)
	topics = len(do(sns.NewFromConfig(s).ListTopics(ctx, &sns.ListTopicsInput{}))(e.t).Topics)
	subscriptions = len(do(sns.NewFromConfig(s).ListSubscriptions(ctx, &sns.ListSubscriptionsInput{}))(e.t).Subscriptions)
	return queues, topics, subscriptions
}

// inStep waits until some of a stack's resources are through.
func (e *everything) inStep(id string, at cftypes.ResourceStatus) {
	e.t.Helper()
	client := cloudformation.NewFromConfig(e.settings(0))
	through := 0
	e.eventually("some resources are through", func(status) bool {
		out, err := client.DescribeStackResources(e.t.Context(), &cloudformation.DescribeStackResourcesInput{StackName: &id})
		if err != nil {
			return false
		}
		through = 0
		for _, r := range out.StackResources {
			if r.ResourceStatus == at {
				through++
			}
		}
		return through >= 3
	})
	e.t.Logf("%d resources are %s", through, at)
}

// TestStacksGoOn: the owner is killed, hands over and is stopped in the middle of a stack's
// creation, its update and its deletion. Each comes to its end with the next owner, and what
// the services have is what the stack says, once. Beside it events of a function in the nodes'
// own processes, which are under way when their owner is killed, are all run.
func TestStacksGoOn(t *testing.T) {
	programs.Allow(t)
	e := &everything{t: t, data: t.TempDir()}
	e.cluster = start(t, freePorts(t), e.data)
	e.eventually("all nodes follow", status.whole)
	ctx, s := t.Context(), e.settings(1)
	stacks := cloudformation.NewFromConfig(s)

	functions, events := lambda.NewFromConfig(s), 12
	do(sqs.NewFromConfig(s).CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("done")}))(t)
	do(functions.CreateFunction(ctx, &lambda.CreateFunctionInput{
		FunctionName: aws.String("f"), Role: aws.String("arn:aws:iam::" + accountID + ":role/f"), Handler: aws.String("x"), Timeout: aws.Int32(60),
		Runtime: lambdatypes.RuntimeProvidedal2023, Code: &lambdatypes.FunctionCode{ZipFile: zipped(t)},
	}))(t)
	do(functions.PutFunctionEventInvokeConfig(ctx, &lambda.PutFunctionEventInvokeConfigInput{
		FunctionName: aws.String("f"), DestinationConfig: &lambdatypes.DestinationConfig{OnSuccess: &lambdatypes.OnSuccess{Destination: aws.String(arnOf("sqs", "done"))}},
	}))(t)
	for i := range events {
		do(functions.Invoke(ctx, &lambda.InvokeInput{
			FunctionName: aws.String("f"), InvocationType: lambdatypes.InvocationTypeEvent, Payload: fmt.Appendf(nil, `{"raw":"\"event %d.\"","sleep":"1s"}`, i),
		}))(t)
	}

	const many = 60
	id := *do(stacks.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: aws.String(template(many, 11)), TimeoutInMinutes: aws.Int32(60)}))(t).StackId
	e.inStep(id, cftypes.ResourceStatusCreateComplete)
	e.fault("kill -9")
	e.stackIs(id, cftypes.StackStatusCreateComplete)
	holds := func(want, topic int) {
		t.Helper()
		if queues, topics, subscriptions := e.made(); len(queues) != want || topics != topic || subscriptions != topic {
			t.Errorf("%d queues, %d topics, %d subscriptions, want %d, %d, %d", len(queues), topics, subscriptions, want, topic, topic)
		}
	}
	holds(many, 1)

	do(stacks.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: &id, TemplateBody: aws.String(template(many/2, 22))}))(t)
	e.inStep(id, cftypes.ResourceStatusUpdateComplete)
	e.fault("handover")
	e.stackIs(id, cftypes.StackStatusUpdateComplete)
	holds(many/2, 1)
	for i := range many / 2 {
		attributes := do(sqs.NewFromConfig(s).GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: e.queueURL(fmt.Sprintf("stack-%d", i)), AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameVisibilityTimeout}}))(t).Attributes
		if attributes["VisibilityTimeout"] != "22" {
			t.Errorf("queue %d has %v", i, attributes)
		}
	}

	do(stacks.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: &id}))(t)
	e.inStep(id, cftypes.ResourceStatusDeleteComplete)
	e.fault("stop for a while")
	e.stackIs(id, cftypes.StackStatusDeleteComplete)
	holds(0, 0)

	seen := map[string]bool{}
	e.eventually("all events are run", func(status) bool {
		for _, m := range e.receive("done") {
			for i := range events {
				if name := fmt.Sprintf("event %d.", i); strings.Contains(*m.Body, name) {
					seen[name] = true
				}
			}
		}
		return len(seen) == events
	})
}

// zipped is the function of test/handler in a zip.
func zipped(t *testing.T) []byte {
	t.Helper()
	code, err := built.Function(t.TempDir(), filepath.Join("..", ".."), "test/handler")
	if err != nil {
		t.Fatal(err)
	}
	return code
}

package rental_test

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cloudformationtypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const stackName = "rental"

// deployment is the shop as one stack.
type deployment struct {
	*office
	cloudformation *cloudformation.Client
	hook           string // base URL of what is told of alarms
	template       string
}

// TestRentalStack is README.md's part on one template, on a virtual clock.
func TestRentalStack(t *testing.T) {
	t.Parallel()
	godwit, billing := build(t, "billing")
	address, hook := freeAddress(t), freeAddress(t)
	launch(t, t, "http://"+address+"/_godwit/health", godwit,
		"--listen", address, "--data", t.TempDir(), "--log-level", "warn", "--jitter", "0", "--clock", "virtual")
	launch(t, t, "http://"+hook+"/arrivals", billing, "--listen", hook, "--topic", "arn:aws:sns:us-east-1:000000000000:"+alarmsTopic)
	template, err := os.ReadFile("template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "http://" + address
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""), BaseEndpoint: &endpoint}
	s := &deployment{
		office:         &office{shop: newShop(endpoint, "http://"+hook), lambda: lambda.NewFromConfig(config), logs: cloudwatchlogs.NewFromConfig(config)},
		cloudformation: cloudformation.NewFromConfig(config), hook: "http://" + hook, template: string(template),
	}
	s.setBilling(t, http.StatusOK)
	for _, step := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"deployed", s.deploy},
		{"an order is reserved and billed", s.exercise},
		{"a broken order becomes a dead letter, which the web hook is told of", s.broken},
		{"changed, billing takes it", s.change},
		{"what is changed beside the stack is found", s.drift},
		{"deleted", s.remove},
	} {
		if !t.Run(step.name, step.run) {
			t.FailNow() // the steps build on each other
		}
	}
	if s.refused != "" {
		t.Log("functions did not run on this machine: " + s.refused)
	}
}

// await waits until nothing of the stack is under way, and wants it to end so.
func (s *deployment) await(t *testing.T, id string, want cloudformationtypes.StackStatus) (is cloudformationtypes.Stack) {
	t.Helper()
	eventually(t, "nothing of the stack is under way", func() (bool, error) {
		out, err := s.cloudformation.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: &id})
		if err != nil {
			return false, err
		}
		is = out.Stacks[0]
		return !strings.HasSuffix(string(is.StackStatus), "_IN_PROGRESS"), nil
	})
	if is.StackStatus == want {
		return is
	}
	events, err := s.cloudformation.DescribeStackEvents(t.Context(), &cloudformation.DescribeStackEventsInput{StackName: &id})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.StackEvents {
		t.Log(*e.LogicalResourceId, e.ResourceStatus, aws.ToString(e.ResourceStatusReason))
	}
	t.Fatalf("the stack is %s, want %s", is.StackStatus, want)
	return is
}

func (s *deployment) parameters(changed ...string) (all []cloudformationtypes.Parameter) {
	for _, p := range append([]string{"AlarmHook=" + s.hook + "/orders"}, changed...) {
		name, value, _ := strings.Cut(p, "=")
		all = append(all, cloudformationtypes.Parameter{ParameterKey: &name, ParameterValue: &value})
	}
	return all
}

var mayMakeRoles = []cloudformationtypes.Capability{cloudformationtypes.CapabilityCapabilityIam}

func (s *deployment) deploy(t *testing.T) {
	_, err := s.cloudformation.CreateStack(t.Context(), &cloudformation.CreateStackInput{
		StackName: aws.String(stackName), TemplateBody: &s.template, Capabilities: mayMakeRoles, Parameters: s.parameters(),
	})
	if err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{}
	for _, o := range s.await(t, stackName, cloudformationtypes.StackStatusCreateComplete).Outputs {
		outputs[*o.OutputKey] = *o.OutputValue
	}
	s.topic = outputs["Topic"]
	for output, queue := range map[string]string{
		"Fulfilment": fulfilmentName, "FulfilmentDead": fulfilmentDLQ, "FulfilmentUndelivered": fanoutDLQ, "BillingDead": billingOwnDLQ, "BillingUndelivered": billingDLQ,
	} {
		s.url[queue] = outputs[output]
		if !strings.HasSuffix(outputs[output], "/"+queue) {
			t.Errorf("%s is %s", output, outputs[output])
		}
	}
	is, err := s.lambda.GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(billingFunction)})
	if err != nil {
		t.Fatal(err)
	}
	if is.State == lambdatypes.StateFailed {
		s.refused = aws.ToString(is.StateReason)
	}
}

func (s *deployment) exercise(t *testing.T) {
	if s.refused != "" {
		t.Skip(s.refused)
	}
	s.publish(t, "R-1", "confirmed")
	s.publish(t, "R-2", "quoted") // which neither wants
	s.said(t, billingFunction, "reserved R-1", 1)
	s.said(t, billingFunction, "billed R-1", 1)
	s.advance(t, "1ms") // which waits for what is under way
	s.said(t, billingFunction, "reserved R-2", 0)
	s.wantEmpty(t, fulfilmentName)
}

func (s *deployment) broken(t *testing.T) {
	if s.refused != "" {
		t.Skip(s.refused)
	}
	s.publish(t, "X-1", "confirmed")
	// Three times from the queue, and three times from the topic; then the alarm sees the
	// queue's dead letter at the end of a minute.
	for range 20 {
		s.advance(t, "30s")
	}
	for _, queue := range []string{fulfilmentDLQ, billingOwnDLQ} {
		out, err := s.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(s.url[queue]), AttributeNames: []sqstypes.QueueAttributeName{"ApproximateNumberOfMessages"}})
		if err != nil || out.Attributes["ApproximateNumberOfMessages"] != "1" {
			t.Errorf("%s has %v messages, want 1: %v", queue, out, err)
		}
	}
	eventually(t, "the web hook is told of the alarm", func() (bool, error) {
		var all []arrival
		err := getJSON(t.Context(), s.hook+"/arrivals", &all)
		return len(all) > 0, err
	})
}

// change has the queue hand out messages more often, and billing take what it could not; the
// dead letter goes back to the queue.
func (s *deployment) change(t *testing.T) {
	_, err := s.cloudformation.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{
		StackName: aws.String(stackName), TemplateBody: &s.template, Capabilities: mayMakeRoles, Parameters: s.parameters("MaxReceiveCount=5", "Broken=Y-"),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.await(t, stackName, cloudformationtypes.StackStatusUpdateComplete)
	out, err := s.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(s.url[fulfilmentName]), AttributeNames: []sqstypes.QueueAttributeName{"RedrivePolicy"}})
	var policy struct{ MaxReceiveCount json.Number }
	if err != nil || json.Unmarshal([]byte(out.Attributes["RedrivePolicy"]), &policy) != nil || policy.MaxReceiveCount != "5" {
		t.Errorf("the redrive policy is %v: %v", out, err)
	}
	if s.refused != "" {
		t.Skip(s.refused)
	}
	source := "arn:aws:sqs:us-east-1:000000000000:" + fulfilmentDLQ
	if _, err := s.sqs.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: &source}); err != nil {
		t.Fatal(err)
	}
	s.advance(t, "1m")
	s.said(t, billingFunction, "billed X-1", 1)
}

func (s *deployment) drift(t *testing.T) {
	if _, err := s.sqs.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: aws.String(s.url[fulfilmentName]), Attributes: map[string]string{"VisibilityTimeout": "7", "RedrivePolicy": ""},
	}); err != nil {
		t.Fatal(err)
	}
	begun, err := s.cloudformation.DetectStackDrift(t.Context(), &cloudformation.DetectStackDriftInput{StackName: aws.String(stackName)})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stack is compared", func() (bool, error) {
		is, err := s.cloudformation.DescribeStackDriftDetectionStatus(t.Context(), &cloudformation.DescribeStackDriftDetectionStatusInput{StackDriftDetectionId: begun.StackDriftDetectionId})
		return err == nil && is.DetectionStatus == cloudformationtypes.StackDriftDetectionStatusDetectionComplete, err
	})
	found, err := s.cloudformation.DescribeStackResourceDrifts(t.Context(), &cloudformation.DescribeStackResourceDriftsInput{
		StackName: aws.String(stackName), MaxResults: aws.Int32(100),
	})
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for _, d := range found.StackResourceDrifts {
		if d.StackResourceDriftStatus == cloudformationtypes.StackResourceDriftStatusInSync {
			continue
		}
		changed = append(changed, *d.LogicalResourceId+" "+string(d.StackResourceDriftStatus))
		for _, p := range d.PropertyDifferences {
			changed = append(changed, *p.PropertyPath+" "+string(p.DifferenceType))
		}
	}
	if want := []string{"Fulfilment MODIFIED", "/RedrivePolicy REMOVE"}; !slices.Equal(changed, want) {
		t.Errorf("found %q, want %q: of what the template does not say nothing is told", changed, want)
	}
}

func (s *deployment) remove(t *testing.T) {
	is, err := s.cloudformation.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: aws.String(stackName)})
	if err == nil {
		_, err = s.cloudformation.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: aws.String(stackName)})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.await(t, *is.Stacks[0].StackId, cloudformationtypes.StackStatusDeleteComplete)
	queues, err := s.sqs.ListQueues(t.Context(), &sqs.ListQueuesInput{})
	if err != nil || len(queues.QueueUrls) > 0 {
		t.Errorf("left: %v, %v", queues, err)
	}
}

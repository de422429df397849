package sdk_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/shard/stacks"
	stackmachine "godwit.dev/godwit/internal/stack"
)

// repeating takes each step again whose outcome is lost, as a start does after the process
// ended between a step and its record.
type repeating struct{ stacks.Worker }

func (r repeating) Do(ctx context.Context, t *stacks.Task) (o stackmachine.Outcome, later time.Duration) {
	lost := *t
	if o, later = r.Worker.Do(ctx, &lost); later != 0 {
		return o, later
	}
	t.Again = true
	return r.Worker.Do(ctx, t)
}

func withStepsRepeated(ctx context.Context, deps server.Deps) (server.Parts, error) {
	deps.World.Deploying = func(w stacks.Worker) stacks.Worker { return repeating{w} }
	return withTestKeys(ctx, deps)
}

// Whatever step of a stack the process ends behind, nothing is made twice, refused because it
// is there already, or left behind: of every type, at its creation, change, replacement and
// deletion.
func TestStackStepsTwice(t *testing.T) {
	const shared = "Parameters: {Action: {Type: String, Default: 'sqs:SendMessage'}, Name: {Type: String, Default: one}}\n" +
		"Resources:\n  Own: {Type: AWS::IAM::ManagedPolicy, Properties: {ManagedPolicyName: !Ref Name, PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: !Ref Action, Resource: '*'}]}}}\n"
	rental, err := os.ReadFile("../../examples/rental-orders/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	code := &artifacts{objects: map[string]string{"/bucket/one": string(zipOf(t, "python/a.py", "1"))}}
	code.Server = httptest.NewServer(code)
	t.Cleanup(code.Close)
	for _, c := range []struct {
		name, template string
		parameters     []string
		changed        []string // of parameters
		replace        []string // pairs of texts
	}{
		{"shop", shop, nil, []string{"Delay", "5"}, []string{"AWS::SQS::Queue\n    Properties:\n      DelaySeconds", "AWS::SQS::Queue\n    Properties:\n      QueueName: other\n      DelaySeconds"}},
		{"pricing", pricing, nil, []string{"Rate", "4", "Seconds", "20", "Batch", "6"}, []string{"      Handler:", "      FunctionName: price\n      Handler:"}},
		{"staff", staff, nil, []string{"Action", "sqs:ReceiveMessage", "Session", "7200"}, []string{"AWS::IAM::Group}", "AWS::IAM::Group, Properties: {GroupName: other}}"}},
		{"locked", strings.Replace(safe, "      EnableKeyRotation", "      Enabled: true\n      EnableKeyRotation", 1), nil, []string{"Words", "returns"}, []string{"alias/orders", "alias/other"}},
		{"shared", shared, nil, []string{"Action", "sqs:ReceiveMessage"}, []string{"Default: one", "Default: other"}},
		{"safe", safe, nil, []string{"Words", "returns"}, []string{"alias/orders", "alias/other"}},
		{"rates", rates, nil, nil, []string{"Name: live", "Name: now"}},
		{"hose", hose, nil, []string{"Seconds", "120"}, []string{"DeliveryStreamType:", "DeliveryStreamName: other\n      DeliveryStreamType:"}},
		{"way", way, []string{"Secret", "a key of sixteen bytes"}, []string{"Secret", "another key of some length"}, []string{"Target:", "Name: other\n      Target:"}},
		{"layered", layered, nil, nil, []string{"LayerName: tools", "LayerName: other"}},
		{"rental", string(rental), []string{"AlarmHook", "http://127.0.0.1:1/"}, []string{"AlarmHook", "http://127.0.0.1:1/", "MaxReceiveCount", "5", "Broken", "Y-"}, []string{"FunctionName: Rental-Billing", "FunctionName: Other-Billing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			endpoint := startBuilt(t, withStepsRepeated, func(conf *config.Config) {
				conf.Enforce, conf.FirehoseDirectory, conf.IngestListen = false, t.TempDir(), "127.0.0.1:0"
				conf.Artifacts.Endpoint = code.URL
			})
			stackTwice(t, endpoint, c.template, c.parameters, c.changed, c.replace)
		})
	}
}

func stackTwice(t *testing.T, endpoint, template string, parameters, changed, replace []string) {
	ctx, c := t.Context(), cloudformationAs(endpoint, account)
	before := resourcesOf(t, endpoint)
	granted := []types.Capability{types.CapabilityCapabilityNamedIam}
	made := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("s"), TemplateBody: &template, Capabilities: granted, Parameters: pairs(parameters)}))(t)
	ends := func(want types.StackStatus) {
		t.Helper()
		if s := awaitStack(t, c, *made.StackId); s.StackStatus != want {
			t.Fatalf("%s: %q", s.StackStatus, eventsOfStack(t, c, *made.StackId))
		}
	}
	ends(types.StackStatusCreateComplete)
	created := resourcesOf(t, endpoint)
	update := func(template string) {
		t.Helper()
		must(c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("s"), TemplateBody: &template, Capabilities: granted, Parameters: pairs(changed)}))(t)
		ends(types.StackStatusUpdateComplete)
	}
	if changed != nil {
		// A key that is disabled takes no change of its rotation.
		update(strings.Replace(template, "Enabled: true\n      EnableKeyRotation: true\n      RotationPeriodInDays: 100", "Enabled: false\n      EnableKeyRotation: true\n      RotationPeriodInDays: 200", 1))
	}
	if now := resourcesOf(t, endpoint); !slices.Equal(now, created) {
		t.Errorf("after a change there are\n%q\nand were\n%q", now, created)
	}
	replaced := strings.Replace(template, replace[0], replace[1], 1)
	if replaced == template {
		t.Fatalf("%q is not in the template", replace[0])
	}
	update(replaced)
	if now := resourcesOf(t, endpoint); len(now) != len(created) || slices.Equal(now, created) {
		t.Errorf("after a replacement there are\n%q\nand were\n%q", now, created)
	}
	must(c.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: new("s")}))(t)
	ends(types.StackStatusDeleteComplete)
	if now := resourcesOf(t, endpoint); !slices.Equal(now, before) {
		t.Errorf("left behind: %q, and before: %q", now, before)
	}
}

// resourcesOf are the names of what stacks make, sorted.
func resourcesOf(t *testing.T, endpoint string) (names []string) {
	t.Helper()
	ctx, who := t.Context(), iamClient(endpoint)
	add := func(kind string, name *string) { names = append(names, kind+" "+*name) }
	for _, url := range must(client(endpoint).ListQueues(ctx, &sqs.ListQueuesInput{}))(t).QueueUrls {
		add("queue", &url)
	}
	for _, topic := range must(topicsClient(endpoint).ListTopics(ctx, &sns.ListTopicsInput{}))(t).Topics {
		add("topic", topic.TopicArn)
	}
	for _, s := range must(topicsClient(endpoint).ListSubscriptions(ctx, &sns.ListSubscriptionsInput{}))(t).Subscriptions {
		add("subscription", new(*s.TopicArn+" "+*s.Protocol+" "+*s.Endpoint)) // its own name is another one each time
	}
	functions := functionsClient(endpoint)
	for _, f := range must(functions.ListFunctions(ctx, &lambda.ListFunctionsInput{}))(t).Functions {
		add("function", f.FunctionName)
		versions := must(functions.ListVersionsByFunction(ctx, &lambda.ListVersionsByFunctionInput{FunctionName: f.FunctionName}))(t)
		for _, v := range versions.Versions {
			add("version", new(*v.FunctionName+":"+*v.Version))
		}
		for _, a := range must(functions.ListAliases(ctx, &lambda.ListAliasesInput{FunctionName: f.FunctionName}))(t).Aliases {
			add("alias", a.AliasArn)
		}
	}
	for _, l := range must(functions.ListLayers(ctx, &lambda.ListLayersInput{}))(t).Layers {
		for _, v := range must(functions.ListLayerVersions(ctx, &lambda.ListLayerVersionsInput{LayerName: l.LayerName}))(t).LayerVersions {
			add("version", v.LayerVersionArn)
		}
	}
	for _, m := range must(functions.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{}))(t).EventSourceMappings {
		add("mapping", new(*m.EventSourceArn+" "+*m.FunctionArn))
	}
	for _, r := range must(who.ListRoles(ctx, &iam.ListRolesInput{}))(t).Roles {
		add("role", r.RoleName)
	}
	for _, u := range must(who.ListUsers(ctx, &iam.ListUsersInput{}))(t).Users {
		add("user", u.UserName)
		for _, k := range must(who.ListAccessKeys(ctx, &iam.ListAccessKeysInput{UserName: u.UserName}))(t).AccessKeyMetadata {
			add("access key of", k.UserName)
		}
	}
	for _, g := range must(who.ListGroups(ctx, &iam.ListGroupsInput{}))(t).Groups {
		add("group", g.GroupName)
	}
	for _, p := range must(who.ListPolicies(ctx, &iam.ListPoliciesInput{Scope: iamtypes.PolicyScopeTypeLocal}))(t).Policies {
		add("policy", p.PolicyName)
		if versions := must(who.ListPolicyVersions(ctx, &iam.ListPolicyVersionsInput{PolicyArn: p.Arn}))(t).Versions; len(versions) > 2 {
			t.Errorf("%s has %d versions", *p.PolicyName, len(versions))
		}
	}
	for _, a := range must(metricsClient(endpoint).DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{}))(t).MetricAlarms {
		add("alarm", a.AlarmName)
	}
	for _, g := range must(logsClient(endpoint).DescribeLogGroups(ctx, &cloudwatchlogs.DescribeLogGroupsInput{}))(t).LogGroups {
		add("log group", g.LogGroupName)
	}
	keys := newKMS(t, endpoint, account)
	for _, k := range must(keys.ListKeys(ctx, &kms.ListKeysInput{}))(t).Keys {
		if is := must(keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: k.KeyId}))(t).KeyMetadata; is.DeletionDate == nil {
			add("key", k.KeyId)
		}
	}
	for _, a := range must(keys.ListAliases(ctx, &kms.ListAliasesInput{}))(t).Aliases {
		add("alias", a.AliasName)
	}
	for _, name := range must(firehoseAs(endpoint, account).ListDeliveryStreams(ctx, &firehose.ListDeliveryStreamsInput{}))(t).DeliveryStreamNames {
		add("stream", &name)
	}
	var sources struct{ Sources []struct{ Name string } }
	if err := json.Unmarshal([]byte(fetch(t, endpoint+"/_godwit/v1/sources").Body), &sources); err != nil {
		t.Fatal(err)
	}
	for _, s := range sources.Sources {
		add("source", &s.Name)
	}
	slices.Sort(names)
	return names
}

package sdk_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// stackTarget is a stack, or one that is not there and would be called the same.
type stackTarget struct{ id, set, detection, physical string }

// stackAttacks ask for what is about one stack.
var stackAttacks = map[string]func(ctx context.Context, c *cfn.Client, v stackTarget) error{
	"UpdateStack": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.UpdateStack(ctx, &cfn.UpdateStackInput{StackName: &v.id, TemplateBody: new("Resources: {Q: {Type: AWS::SQS::Queue}}")}))
	},
	"DeleteStack": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.DeleteStack(ctx, &cfn.DeleteStackInput{StackName: &v.id}))
	},
	"RollbackStack": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.RollbackStack(ctx, &cfn.RollbackStackInput{StackName: &v.id}))
	},
	"ContinueUpdateRollback": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.ContinueUpdateRollback(ctx, &cfn.ContinueUpdateRollbackInput{StackName: &v.id}))
	},
	"CancelUpdateStack": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.CancelUpdateStack(ctx, &cfn.CancelUpdateStackInput{StackName: &v.id}))
	},
	"UpdateTerminationProtection": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.UpdateTerminationProtection(ctx, &cfn.UpdateTerminationProtectionInput{StackName: &v.id, EnableTerminationProtection: new(true)}))
	},
	"SetStackPolicy": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.SetStackPolicy(ctx, &cfn.SetStackPolicyInput{StackName: &v.id, StackPolicyBody: new(`{"Statement":[]}`)}))
	},
	"GetStackPolicy": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.GetStackPolicy(ctx, &cfn.GetStackPolicyInput{StackName: &v.id}))
	},
	"DescribeStacks": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.DescribeStacks(ctx, &cfn.DescribeStacksInput{StackName: &v.id}))
	},
	"DescribeStackEvents": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.DescribeStackEvents(ctx, &cfn.DescribeStackEventsInput{StackName: &v.id}))
	},
	"DescribeStackResource": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.DescribeStackResource(ctx, &cfn.DescribeStackResourceInput{StackName: &v.id, LogicalResourceId: new("P")}))
	},
	"DescribeStackResources": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.DescribeStackResources(ctx, &cfn.DescribeStackResourcesInput{StackName: &v.id}))
	},
	"DescribeStackResources of a resource": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.DescribeStackResources(ctx, &cfn.DescribeStackResourcesInput{PhysicalResourceId: &v.physical}))
	},
	"ListStackResources": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.ListStackResources(ctx, &cfn.ListStackResourcesInput{StackName: &v.id}))
	},
	"GetTemplate": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.GetTemplate(ctx, &cfn.GetTemplateInput{StackName: &v.id}))
	},
	"GetTemplate of a change set": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.GetTemplate(ctx, &cfn.GetTemplateInput{ChangeSetName: &v.set}))
	},
	"GetTemplateSummary": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.GetTemplateSummary(ctx, &cfn.GetTemplateSummaryInput{StackName: &v.id}))
	},
	"DetectStackDrift": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.DetectStackDrift(ctx, &cfn.DetectStackDriftInput{StackName: &v.id}))
	},
	"DetectStackResourceDrift": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.DetectStackResourceDrift(ctx, &cfn.DetectStackResourceDriftInput{StackName: &v.id, LogicalResourceId: new("P")}))
	},
	"DescribeStackResourceDrifts": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.DescribeStackResourceDrifts(ctx, &cfn.DescribeStackResourceDriftsInput{StackName: &v.id}))
	},
	"DescribeStackDriftDetectionStatus": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.DescribeStackDriftDetectionStatus(ctx, &cfn.DescribeStackDriftDetectionStatusInput{StackDriftDetectionId: &v.detection}))
	},
	"CreateChangeSet": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.CreateChangeSet(ctx, &cfn.CreateChangeSetInput{StackName: &v.id, ChangeSetName: new("theirs"), UsePreviousTemplate: new(true)}))
	},
	"ListChangeSets": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.ListChangeSets(ctx, &cfn.ListChangeSetsInput{StackName: &v.id}))
	},
	"DescribeChangeSet": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.DescribeChangeSet(ctx, &cfn.DescribeChangeSetInput{ChangeSetName: &v.set}))
	},
	"ExecuteChangeSet": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.ExecuteChangeSet(ctx, &cfn.ExecuteChangeSetInput{ChangeSetName: &v.set}))
	},
	"DeleteChangeSet": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.DeleteChangeSet(ctx, &cfn.DeleteChangeSetInput{ChangeSetName: &v.set}))
	},
	"ListImports": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		return errorOf(c.ListImports(ctx, &cfn.ListImportsInput{ExportName: new("victims")}))
	},
	"a parameter of it": func(ctx context.Context, c *cfn.Client, v stackTarget) error {
		by := "Parameters: {S: {Type: 'AWS::SSM::Parameter::Value<String>', Default: " + v.physical + "}}\nResources: {H: {Type: 'AWS::CloudFormation::WaitConditionHandle'}}"
		return errorOf(c.CreateStack(ctx, &cfn.CreateStackInput{StackName: new("reads"), TemplateBody: &by}))
	},
}

// stackLists list what is the caller's own.
var stackLists = map[string]func(ctx context.Context, c *cfn.Client) (any, error){
	"DescribeStacks": func(ctx context.Context, c *cfn.Client) (any, error) {
		return shown(c.DescribeStacks(ctx, &cfn.DescribeStacksInput{}))
	},
	"ListStacks": func(ctx context.Context, c *cfn.Client) (any, error) {
		return shown(c.ListStacks(ctx, &cfn.ListStacksInput{}))
	},
	"ListExports": func(ctx context.Context, c *cfn.Client) (any, error) {
		return shown(c.ListExports(ctx, &cfn.ListExportsInput{}))
	},
}

// Stacks stay out of sight of strangers, as everything else does (TestStrangers).
func TestStrangersToStacks(t *testing.T) {
	const other = "444455556666"
	ctx, endpoint := t.Context(), start(t)
	c := cloudformationAs(endpoint, account)
	const template = "Resources: {P: {Type: AWS::SSM::Parameter, Properties: {Name: /there, Type: String, Value: canary}}}\nOutputs: {O: {Value: canary, Export: {Name: victims}}}"
	s := deployed(t, c, "victim", template)
	more := strings.Replace(template, "Resources: {", "Resources: {H: {Type: 'AWS::CloudFormation::WaitConditionHandle'}, ", 1)
	set := must(c.CreateChangeSet(ctx, &cfn.CreateChangeSetInput{StackName: &s.id, ChangeSetName: new("more"), TemplateBody: &more}))(t)
	detection := must(c.DetectStackDrift(ctx, &cfn.DetectStackDriftInput{StackName: &s.id}))(t)
	ours := stackTarget{s.id, *set.Id, *detection.StackDriftDetectionId, "/there"}
	another := func(id string) string { // of the same form
		return id[:len(id)-12] + "000000000000"
	}
	absent := stackTarget{another(ours.id), another(ours.set), another(ours.detection), "/nowhere"}
	before := fmt.Sprint(eventsOfStack(t, c, s.id))

	for who, caller := range map[string]struct {
		keys    aws.CredentialsProvider
		outside bool
	}{
		"a user who may nothing":          {makeUser(t, endpoint, "eve"), false},
		"another account's root":          {credentials.NewStaticCredentialsProvider(other, secretOf(other), ""), true},
		"another account's administrator": {userOf(t, iamClientOf(endpoint, other, secretOf(other), ""), "mallory", allow("*", "*")), true},
	} {
		t.Run(who, func(t *testing.T) {
			theirs := cfn.New(cfn.Options{Region: region, BaseEndpoint: &endpoint, Credentials: caller.keys, RetryMaxAttempts: 1, HTTPClient: eager})
			for name, f := range stackAttacks {
				one, two := f(ctx, theirs, ours), f(ctx, theirs, absent)
				if one == nil {
					t.Errorf("%s is allowed", name)
					continue
				}
				if strings.Contains(one.Error(), "canary") {
					t.Errorf("%s tells: %v", name, one)
				}
				told := func(err error, v stackTarget) string {
					text := toldOf(err, target{name: "none"})
					for _, part := range []string{v.id, v.set, v.detection, v.physical} {
						text = strings.ReplaceAll(text, part, "IT")
					}
					return text
				}
				if a, b := told(one, ours), told(two, absent); a != b {
					t.Errorf("%s tells what is there:\n%s\n%s", name, a, b)
				}
			}
			for name, f := range stackLists {
				text, err := f(ctx, theirs)
				if !caller.outside && err == nil {
					t.Errorf("%s is allowed", name)
				} else if shown := fmt.Sprint(text, err); strings.Contains(shown, "canary") || err == nil && strings.Contains(shown, "victim") {
					t.Errorf("%s shows %v, %v", name, text, err)
				}
			}
		})
	}
	if after := fmt.Sprint(eventsOfStack(t, c, s.id)); after != before {
		t.Errorf("after all that there are events:\n%s\n%s", before, after)
	}
	sets := must(c.ListChangeSets(ctx, &cfn.ListChangeSetsInput{StackName: &s.id}))(t).Summaries
	if !slices.ContainsFunc(sets, func(one types.ChangeSetSummary) bool { return *one.ChangeSetName == "more" }) || len(sets) != 1 {
		t.Errorf("change sets after all that: %v", sets)
	}
}

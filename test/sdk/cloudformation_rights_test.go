package sdk_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// What policies forbid of a stack they forbid too where a request names it by the ARN of a
// change set, or by a resource.
func TestStackByOtherNames(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c := cloudformationAs(endpoint, account)
	const one, two = "Resources: {Q: {Type: AWS::SQS::Queue}}", "Resources: {Q: {Type: AWS::SQS::Queue}, R: {Type: AWS::SQS::Queue}}"
	made := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("prod"), TemplateBody: new(one)}))(t)
	awaitStack(t, c, *made.StackId)
	set := must(c.CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{StackName: new("prod"), ChangeSetName: new("more"), TemplateBody: new(two)}))(t).Id
	queue := must(c.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{StackName: new("prod")}))(t).StackResources[0].PhysicalResourceId
	who := userOf(t, iamClient(endpoint), "careful", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["cloudformation:*","sqs:*"],"Resource":"*"},
		{"Effect":"Deny","Action":"cloudformation:*","Resource":"arn:aws:cloudformation:*:*:stack/prod/*"}]}`)
	limited := cloudformation.New(cloudformation.Options{Region: region, BaseEndpoint: &endpoint, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager})
	for name, ask := range map[string]func() error{
		"DescribeChangeSet": func() error {
			_, err := limited.DescribeChangeSet(ctx, &cloudformation.DescribeChangeSetInput{ChangeSetName: set})
			return err
		},
		"ExecuteChangeSet": func() error {
			_, err := limited.ExecuteChangeSet(ctx, &cloudformation.ExecuteChangeSetInput{ChangeSetName: set})
			return err
		},
		"DeleteChangeSet": func() error {
			_, err := limited.DeleteChangeSet(ctx, &cloudformation.DeleteChangeSetInput{ChangeSetName: set})
			return err
		},
		"GetTemplate": func() error {
			_, err := limited.GetTemplate(ctx, &cloudformation.GetTemplateInput{ChangeSetName: set})
			return err
		},
		"DescribeStackResources": func() error {
			_, err := limited.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{PhysicalResourceId: queue})
			return err
		},
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), "explicit deny") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.ExecuteChangeSet(ctx, &cloudformation.ExecuteChangeSetInput{ChangeSetName: set}); err != nil {
		t.Error(err)
	}
	awaitStack(t, c, *made.StackId)
}

// What a stack asks for whoever deploys it is known as asked by CloudFormation; in a role of its own
// it asks for itself.
func TestStackIsCalledVia(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c, identities := cloudformationAs(endpoint, account), iamClient(endpoint)
	const template = `
Resources:
  Q: {Type: AWS::SQS::Queue}
  P: {Type: AWS::SSM::Parameter, Properties: {Name: /shop/size, Type: String, Value: large}}
  K: {Type: AWS::KMS::Key, Properties: {EnableKeyRotation: true, Description: !GetAtt P.Value}}`
	may := func(condition string) string {
		return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["cloudformation:*","iam:PassRole"],"Resource":"*"},
			{"Effect":"Allow","Action":["sqs:*","ssm:*","kms:*"],"Resource":"*","Condition":` + condition + `}]}`
	}
	const called, alone = `{"ForAnyValue:StringEquals":{"aws:CalledVia":"cloudformation.amazonaws.com"}}`, `{"Bool":{"aws:ViaAWSService":"false"}}`
	who := userOf(t, identities, "deployer", may(called))
	deployer := cloudformation.New(cloudformation.Options{Region: region, BaseEndpoint: &endpoint, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager})
	queues := sqs.New(sqs.Options{Region: region, BaseEndpoint: &endpoint, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager})
	deployed(t, deployer, "called", template).remove()
	if _, err := queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: new("direct")}); err == nil {
		t.Error("who may by CloudFormation only may without it")
	}
	setUser(t, identities, "deployer", may(alone))
	deployedBadly(t, deployer, "forbidden", template).remove()
	must(queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: new("direct")}))(t)

	role := must(identities.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("deploys"), AssumeRolePolicyDocument: new(
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"cloudformation.amazonaws.com"},"Action":"sts:AssumeRole"}}`)}))(t).Role
	must(identities.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: role.RoleName, PolicyName: new("p"), PolicyDocument: new(may(alone))}))(t)
	setUser(t, identities, "deployer", may(called))
	made := must(deployer.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("role"), TemplateBody: new(template), RoleARN: role.Arn}))(t)
	if s := awaitStack(t, c, *made.StackId); s.StackStatus != types.StackStatusCreateComplete {
		t.Errorf("in a role: %q", eventsOfStack(t, c, *made.StackId))
	}
}

// Who deploys reads, makes and deletes the parameters that policies let him, though there are no
// operations for them.
func TestParametersAsPoliciesLet(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c, identities := cloudformationAs(endpoint, account), iamClient(endpoint)
	const (
		parameter = `Resources: {P: {Type: AWS::SSM::Parameter, Properties: {Name: /prod/secret, Type: String, Value: hunter2}}}`
		other     = `Resources: {P: {Type: AWS::SSM::Parameter, Properties: {Name: /prod/other, Type: String, Value: mine}}}`
		byType    = "Parameters: {S: {Type: 'AWS::SSM::Parameter::Value<String>', Default: /prod/secret}}\nResources: {H: {Type: 'AWS::CloudFormation::WaitConditionHandle'}}\nOutputs: {O: {Value: !Ref S}}"
		dynamic   = `Resources: {T: {Type: AWS::SNS::Topic, Properties: {DisplayName: "{{resolve:ssm:/prod/secret}}"}}}`
		may       = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["cloudformation:*","sns:*"],"Resource":"*"}]}`
		mayMore   = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["cloudformation:*","sns:*"],"Resource":"*"},{"Effect":"Allow","Action":"ssm:*","Resource":"arn:aws:ssm:*:*:parameter/prod/*"}]}`
	)
	made := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("prod"), TemplateBody: new(parameter)}))(t)
	awaitStack(t, c, *made.StackId)
	who := userOf(t, identities, "deployer", may)
	limited := cloudformation.New(cloudformation.Options{Region: region, BaseEndpoint: &endpoint, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager})
	create := func(name, template string) (types.StackStatus, error) {
		made, err := limited.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: &name, TemplateBody: &template})
		if err != nil {
			return "", err
		}
		return awaitStack(t, c, *made.StackId).StackStatus, nil
	}
	_, err := create("typed", byType)
	refusedWith(t, err, "ValidationError", "Unable to fetch parameters [/prod/secret] from parameter store for this account.")
	execute := func(name string) types.StackStatus {
		set := must(limited.CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{StackName: &name, ChangeSetName: new("c"), ChangeSetType: types.ChangeSetTypeCreate, TemplateBody: new(dynamic)}))(t)
		must(limited.ExecuteChangeSet(ctx, &cloudformation.ExecuteChangeSetInput{ChangeSetName: set.Id}))(t)
		return awaitStack(t, c, *set.StackId).StackStatus
	}
	equal(t, "a reference of a change set", types.StackStatusRollbackComplete, execute("set"))
	for name, template := range map[string]string{"dynamic": dynamic, "other": other} {
		status, err := create(name, template)
		if err != nil {
			t.Error(err)
		}
		equal(t, name, types.StackStatusRollbackComplete, status)
	}
	setUser(t, identities, "deployer", mayMore)
	for name, template := range map[string]string{"typed": byType, "dynamic2": dynamic, "other2": other} {
		status, err := create(name, template)
		if err != nil {
			t.Error(err)
		}
		equal(t, name, types.StackStatusCreateComplete, status)
	}
	equal(t, "a reference of a change set", types.StackStatusCreateComplete, execute("set2"))
}

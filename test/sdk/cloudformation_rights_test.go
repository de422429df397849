package sdk_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
)

// What policies forbid of a stack they forbid too where a request names it by the ARN of a
// change set, or by a resource.
func TestStackByOtherNames(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c := cloudformationAs(endpoint, account)
	const one, two = "Resources: {Q: {Type: AWS::SQS::Queue}}", "Resources: {Q: {Type: AWS::SQS::Queue}, R: {Type: AWS::SQS::Queue}}"
	made := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("prod"), TemplateBody: new(one)}))(t)
	settled(t, c, *made.StackId)
	set := must(c.CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{StackName: new("prod"), ChangeSetName: new("more"), TemplateBody: new(two)}))(t).Id
	queue := must(c.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{StackName: new("prod")}))(t).StackResources[0].PhysicalResourceId
	who := userOf(t, iamClient(endpoint), "careful", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["cloudformation:*","sqs:*"],"Resource":"*"},
		{"Effect":"Deny","Action":"cloudformation:*","Resource":"arn:aws:cloudformation:*:*:stack/prod/*"}]}`)
	limited := cloudformation.New(cloudformation.Options{Region: region, BaseEndpoint: &endpoint, Credentials: who, RetryMaxAttempts: 1, HTTPClient: eager{}})
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
	settled(t, c, *made.StackId)
}

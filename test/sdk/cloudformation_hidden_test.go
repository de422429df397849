package sdk_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// A hidden value stays hidden where it comes from the store, where an update keeps it with a template
// that does not hide it, where a refusal names it, and in a nested stack that is given it.
func TestStackHiddenValues(t *testing.T) {
	const secret = "hunter2-and-more"
	ctx := t.Context()
	endpoint, a := startArtifacts(t)
	c := cloudformationAs(endpoint, account)
	deployed(t, c, "store", `Resources: {P: {Type: AWS::SSM::Parameter, Properties: {Name: /secret, Type: String, Value: `+secret+`}}}`)
	a.put("/bucket/inner", "Parameters: {Given: {Type: String}}\nResources: {T: {Type: AWS::SNS::Topic, Properties: {DisplayName: !Ref Given}}}")
	outer := "Parameters: {S: {Type: String, NoEcho: true}, F: {Type: 'AWS::SSM::Parameter::Value<String>', Default: /secret, NoEcho: true}}\n" +
		"Resources: {Part: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: '" + a.URL + "/bucket/inner', Parameters: {Given: !Sub 'is ${S}'}}}}\n" +
		"Outputs: {Part: {Value: !Ref Part}}"
	s := deployed(t, c, "outer", outer, "S", secret)
	part := s.outputs()["Part"]
	shown := func(what string) {
		t.Helper()
		for _, name := range []string{s.id, part} {
			for _, p := range awaitStack(t, c, name).Parameters {
				for _, value := range []*string{p.ParameterValue, p.ResolvedValue} {
					if value != nil && strings.Contains(*value, secret) {
						t.Errorf("%s: %s of %s is shown", what, *p.ParameterKey, name)
					}
				}
			}
		}
	}
	shown("made")
	kept := []types.Parameter{{ParameterKey: new("S"), UsePreviousValue: new(true)}}
	update := func(template string) error {
		_, err := c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: &s.id, TemplateBody: &template, Parameters: kept, Tags: []types.Tag{{Key: new("a"), Value: new("b")}}})
		return err
	}
	if err := update(strings.Replace(outer, "Outputs:", "Mappings: {M: {a: {b: c}}}\nConditions: {C: !Equals [!FindInMap [M, !Ref S, b], c]}\nOutputs:", 1)); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a refusal: %v", err)
	}
	set := must(c.CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{StackName: &s.id, ChangeSetName: new("c"), TemplateBody: new(strings.Replace(outer, "S: {Type: String, NoEcho: true}", "S: {Type: String}", 1)), Parameters: kept}))(t)
	for _, p := range must(c.DescribeChangeSet(ctx, &cloudformation.DescribeChangeSetInput{ChangeSetName: set.Id}))(t).Parameters {
		if strings.Contains(*p.ParameterValue, secret) {
			t.Errorf("a change set shows %s", *p.ParameterKey)
		}
	}
	if err := update(strings.ReplaceAll(outer, ", NoEcho: true", "")); err != nil {
		t.Fatal(err)
	}
	s.ends(types.StackStatusUpdateComplete)
	for _, p := range awaitStack(t, c, s.id).Parameters {
		if *p.ParameterKey == "S" {
			equal(t, "a value that is kept", "****", *p.ParameterValue)
		}
	}
	s.remove()
}

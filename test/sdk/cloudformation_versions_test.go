package sdk_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/shard/stacks"
	stackmachine "godwit.dev/godwit/internal/stack"
)

// rates is a function with a version, and an alias of it.
const rates = `
Resources:
  May:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: lambda.amazonaws.com}, Action: "sts:AssumeRole"}]}
  Rates:
    Type: AWS::Lambda::Function
    Properties: {Role: !GetAtt May.Arn, Runtime: python3.13, Handler: index.handler, Code: {ZipFile: "one"}}
  First: {Type: AWS::Lambda::Version, Properties: {FunctionName: !Ref Rates, Description: the first}}
  Live: {Type: AWS::Lambda::Alias, Properties: {FunctionName: !Ref Rates, Name: live, FunctionVersion: !GetAtt First.Version, Description: serves}}
Outputs:
  Name: {Value: !Ref Rates}
  Version: {Value: !GetAtt First.Version}
  VersionArn: {Value: !Ref First}
  Alias: {Value: !Ref Live}
  AliasArn: {Value: !GetAtt Live.AliasArn}
`

// Versions and aliases of a stack: an alias moves to another version in place and is replaced
// under another name, a version does not change.
func TestStackVersions(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	functions := functionsClient(endpoint)
	s := deployed(t, cloudformationAs(endpoint, account), "rates", rates)
	out := s.outputs()
	name := out["Name"]
	equal(t, "version", "1", out["Version"])
	equal(t, "Ref of a version", functionARN(name)+":1", out["VersionArn"])
	equal(t, "Ref of an alias", functionARN(name)+":live", out["Alias"])
	equal(t, "GetAtt of an alias", functionARN(name)+":live", out["AliasArn"])
	equal(t, "description", "the first", *configuration(t, functions, out["VersionArn"]).Description)
	alias := func(of string) *lambda.GetAliasOutput {
		t.Helper()
		return must(functions.GetAlias(ctx, &lambda.GetAliasInput{FunctionName: &name, Name: &of}))(t)
	}
	equal(t, "alias", "1 serves", *alias("live").FunctionVersion+" "+*alias("live").Description)

	second := strings.Replace(rates, `"one"`, `"two"`, 1)
	second = strings.Replace(second, "  Live:", "  Second: {Type: AWS::Lambda::Version, Properties: {FunctionName: !Ref Rates}}\n  Live:", 1)
	second = strings.Replace(second, "FunctionVersion: !GetAtt First.Version, Description: serves",
		`FunctionVersion: !GetAtt First.Version, RoutingConfig: {AdditionalVersionWeights: [{FunctionVersion: !GetAtt Second.Version, FunctionWeight: "0.25"}]}`, 1)
	s.update(types.StackStatusUpdateComplete, second)
	equal(t, "alias", "1 ", *alias("live").FunctionVersion+" "+*alias("live").Description)
	equal(t, "second version of the alias", map[string]float64{"2": 0.25}, alias("live").RoutingConfig.AdditionalVersionWeights)

	moved := second[:strings.Index(second, "FunctionVersion: !GetAtt First")] + "FunctionVersion: !GetAtt Second.Version}}\n" + second[strings.Index(second, "Outputs:"):]
	s.update(types.StackStatusUpdateComplete, moved)
	equal(t, "alias", "2", *alias("live").FunctionVersion)
	if alias("live").RoutingConfig != nil {
		t.Error("the alias still leads to two versions")
	}

	s.update(types.StackStatusUpdateRollbackComplete, strings.Replace(moved, "the first", "another text", 1))
	s.told("The property Description does not support updates.")

	s.update(types.StackStatusUpdateComplete, strings.Replace(moved, "Name: live", "Name: now", 1))
	equal(t, "replaced", functionARN(name)+":now", s.outputs()["Alias"])
	equal(t, "alias", "2", *alias("now").FunctionVersion)
	equal(t, "aliases", 1, len(must(functions.ListAliases(ctx, &lambda.ListAliasesInput{FunctionName: &name}))(t).Aliases))

	s.update(types.StackStatusUpdateRollbackComplete, strings.Replace(strings.Replace(moved, "Name: live", "Name: now", 1), "  Live:", "  Third: {Type: AWS::Lambda::Version, Properties: {FunctionName: !Ref Rates}}\n  Live:", 1))
	s.told("A version for this Lambda function exists ( 2 ). Modify the function to create a new version.")
	gone := strings.Replace(moved, "  First: {Type: AWS::Lambda::Version, Properties: {FunctionName: !Ref Rates, Description: the first}}\n", "", 1)
	gone = gone[:strings.Index(gone, "  Version:")] + gone[strings.Index(gone, "  Alias:"):]
	s.update(types.StackStatusUpdateComplete, gone)
	versions := []string{}
	for _, v := range must(functions.ListVersionsByFunction(ctx, &lambda.ListVersionsByFunctionInput{FunctionName: &name}))(t).Versions {
		versions = append(versions, *v.Version)
	}
	equal(t, "versions", []string{"$LATEST", "2"}, versions)
	s.remove()
	equal(t, "functions", 0, len(must(functions.ListFunctions(ctx, &lambda.ListFunctionsInput{}))(t).Functions))
}

// Of two versions that are begun side by side one is published, the steps taken again or not: the
// function has not changed for the other.
func TestStackVersionsSideBySide(t *testing.T) {
	for name, endpoint := range map[string]string{"once": start(t), "again": startBuilt(t, withStepsRepeated, func(c *config.Config) { c.Enforce = false })} {
		t.Run(name, func(t *testing.T) {
			functions := functionsClient(endpoint)
			s := deployed(t, cloudformationAs(endpoint, account), "rates", rates)
			name := s.outputs()["Name"]
			two := "  Second: {Type: AWS::Lambda::Version, Properties: {FunctionName: !Ref Rates}}\n  Third: {Type: AWS::Lambda::Version, Properties: {FunctionName: !Ref Rates}}\n  Live:"
			s.update(types.StackStatusUpdateRollbackComplete, strings.Replace(strings.Replace(rates, `"one"`, `"two"`, 1), "  Live:", two, 1))
			s.told("A version for this Lambda function exists ( 2 ). Modify the function to create a new version.")
			versions := []string{}
			for _, v := range must(functions.ListVersionsByFunction(t.Context(), &lambda.ListVersionsByFunctionInput{FunctionName: &name}))(t).Versions {
				versions = append(versions, *v.Version)
			}
			equal(t, "versions", []string{"$LATEST", "1"}, versions)
		})
	}
}

// begunEarlier has the versions of functions published before by an earlier version of the server, which
// kept no tokens with them and ended before it noted what it had published.
type begunEarlier struct{ stacks.Worker }

func (b begunEarlier) Do(ctx context.Context, t *stacks.Task) (o stackmachine.Outcome, later time.Duration) {
	if t.Target.Type == "AWS::Lambda::Version" && t.Action == stackmachine.Create {
		before := *t
		before.Token = ""
		if o, later = b.Worker.Do(ctx, &before); later != 0 {
			return o, later
		}
		t.Again, t.Try = true, 0
	}
	return b.Worker.Do(ctx, t)
}

// A stack goes on behind an upgrade with what the version before had published.
func TestStackVersionBegunEarlier(t *testing.T) {
	endpoint := startBuilt(t, func(ctx context.Context, deps server.Deps) (server.Parts, error) {
		deps.World.Deploying = func(w stacks.Worker) stacks.Worker { return begunEarlier{w} }
		return withTestKeys(ctx, deps)
	}, func(c *config.Config) { c.Enforce = false })
	s := deployed(t, cloudformationAs(endpoint, account), "rates", rates)
	equal(t, "version", "1", s.outputs()["Version"])
}

// changing has a function changed between the publication of a version and its repetition.
type changing struct {
	stacks.Worker
	change func(version string)
}

func (c changing) Do(ctx context.Context, t *stacks.Task) (o stackmachine.Outcome, later time.Duration) {
	if o, later = c.Worker.Do(ctx, t); later == 0 && t.Target.Type == "AWS::Lambda::Version" && t.Action == stackmachine.Create {
		c.change(o.Physical)
		t.Again = true
		return c.Worker.Do(ctx, t)
	}
	return o, later
}

// A version whose publication was not noted is found again, though its function and its own policy
// have changed since.
func TestStackVersionFoundAgain(t *testing.T) {
	change := make(chan func(version string), 1)
	endpoint := startBuilt(t, func(ctx context.Context, deps server.Deps) (server.Parts, error) {
		deps.World.Deploying = func(w stacks.Worker) stacks.Worker {
			return changing{w, func(version string) { (<-change)(version) }}
		}
		return withTestKeys(ctx, deps)
	}, func(c *config.Config) { c.Enforce = false })
	functions := functionsClient(endpoint)
	change <- func(version string) {
		name := strings.TrimSuffix(version, ":1")
		_, err := functions.AddPermission(t.Context(), &lambda.AddPermissionInput{
			FunctionName: &name, Qualifier: new("1"), StatementId: new("all"), Action: new("lambda:InvokeFunction"), Principal: new("sns.amazonaws.com"),
		})
		if err == nil {
			_, err = functions.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: &name, MemorySize: new(int32(256))})
		}
		if err != nil {
			t.Error(err)
		}
	}
	s := deployed(t, cloudformationAs(endpoint, account), "rates", rates)
	equal(t, "version", "1", s.outputs()["Version"])
	all := must(functions.ListVersionsByFunction(t.Context(), &lambda.ListVersionsByFunctionInput{FunctionName: new(s.outputs()["Name"])}))(t).Versions
	equal(t, "versions", 2, len(all)) // with $LATEST
}

// A function of the Serverless Application Model that publishes its versions.
func TestServerlessAlias(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	functions := functionsClient(endpoint)
	const template = `
Transform: AWS::Serverless-2016-10-31
Resources:
  Asked: {Type: AWS::SQS::Queue}
  Told: {Type: AWS::SNS::Topic}
  Rates:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: python3.13
      Handler: index.handler
      InlineCode: "one"
      AutoPublishAlias: live
      EventInvokeConfig: {MaximumRetryAttempts: 0}
      FunctionUrlConfig: {AuthType: NONE}
      Events: {Ask: {Type: SQS, Properties: {Queue: !GetAtt Asked.Arn}}, Tell: {Type: SNS, Properties: {Topic: !Ref Told}}}
Outputs: {Name: {Value: !Ref Rates}, Alias: {Value: !Ref Rates.Alias}, Version: {Value: !Ref Rates.Version}, Of: {Value: !GetAtt RatesUrl.FunctionArn}}
`
	s := deployed(t, cloudformationAs(endpoint, account), "serverless", template)
	name := s.outputs()["Name"]
	equal(t, "alias", functionARN(name)+":live", s.outputs()["Alias"])
	equal(t, "version", functionARN(name)+":1", s.outputs()["Version"])
	mappings := must(functions.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{}))(t).EventSourceMappings
	equal(t, "what messages invoke", functionARN(name)+":live", *mappings[0].FunctionArn)
	policy := must(functions.GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: &name, Qualifier: new("live")}))(t)
	equal(t, "what the URL invokes", functionARN(name)+":live", s.outputs()["Of"])
	if !strings.Contains(*policy.Policy, "lambda:InvokeFunctionUrl") {
		t.Errorf("nobody may invoke the alias by its URL: %s", *policy.Policy)
	}
	if !strings.Contains(*policy.Policy, "sns.amazonaws.com") {
		t.Errorf("the topic may not invoke the alias: %s", *policy.Policy)
	}
	tries := must(functions.GetFunctionEventInvokeConfig(ctx, &lambda.GetFunctionEventInvokeConfigInput{FunctionName: &name, Qualifier: new("live")}))(t)
	equal(t, "tries of the alias", int32(0), *tries.MaximumRetryAttempts)
	s.update(types.StackStatusUpdateComplete, strings.Replace(template, `"one"`, `"two"`, 1))
	equal(t, "version", functionARN(name)+":2", s.outputs()["Version"])
	equal(t, "alias", "2", *must(functions.GetAlias(ctx, &lambda.GetAliasInput{FunctionName: &name, Name: new("live")}))(t).FunctionVersion)
	listed := must(functions.ListVersionsByFunction(ctx, &lambda.ListVersionsByFunctionInput{FunctionName: &name}))(t).Versions
	equal(t, "versions, of which the first is retained", 3, len(listed))
	s.remove()
}

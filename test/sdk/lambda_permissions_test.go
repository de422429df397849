package sdk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

const stalePolicy = "The Revision Id provided does not match the latest Revision Id. Call the GetPolicy API to retrieve the latest Revision Id"

func permission(name, id, principal string) *lambda.AddPermissionInput {
	return &lambda.AddPermissionInput{
		FunctionName: &name, StatementId: &id, Principal: &principal, Action: aws.String("lambda:InvokeFunction"),
	}
}

func TestFunctionPermissions(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	in := functionInput(t, "f")
	in.Publish = true
	must(c.CreateFunction(t.Context(), in))(t)
	completeFunctions(t, endpoint)
	must(c.CreateAlias(t.Context(), &lambda.CreateAliasInput{FunctionName: in.FunctionName, Name: aws.String("live"), FunctionVersion: aws.String("1")}))(t)

	topic := permission("f", "topic", "sns.amazonaws.com")
	topic.SourceArn, topic.SourceAccount = aws.String(topicARN("orders")), aws.String(account)
	added := must(c.AddPermission(t.Context(), topic))(t)
	statement := map[string]any{
		"Sid": "topic", "Effect": "Allow", "Principal": map[string]any{"Service": "sns.amazonaws.com"}, "Action": "lambda:InvokeFunction",
		"Resource": functionARN("f"), "Condition": map[string]any{
			"ArnLike": map[string]any{"AWS:SourceArn": topicARN("orders")}, "StringEquals": map[string]any{"AWS:SourceAccount": account},
		},
	}
	equal(t, "the statement", statement, decode(t, *added.Statement))
	equal(t, "the order of its conditions", `"Condition":{"StringEquals":{"AWS:SourceAccount":"`+account+`"},"ArnLike":{"AWS:SourceArn":"`+topicARN("orders")+`"}}}`,
		(*added.Statement)[strings.Index(*added.Statement, `"Condition"`):])
	other := permission("f", "account", "111122223333")
	other.PrincipalOrgID, other.EventSourceToken, other.FunctionUrlAuthType = aws.String("o-1234567890"), aws.String("tok"), types.FunctionUrlAuthTypeNone
	other.InvokedViaFunctionUrl = aws.Bool(true)
	must(c.AddPermission(t.Context(), other))(t)
	must(c.AddPermission(t.Context(), permission("f", "all", "*")))(t)
	must(iamClientOf(endpoint, "111122223333", secretOf("111122223333"), "").CreateUser(t.Context(), &iam.CreateUserInput{UserName: new("u")}))(t)
	must(c.AddPermission(t.Context(), permission("f", "user", "arn:aws:iam::111122223333:user/u")))(t)
	policy := must(c.GetPolicy(t.Context(), &lambda.GetPolicyInput{FunctionName: in.FunctionName}))(t)
	plain := func(sid string, principal any) map[string]any {
		return map[string]any{"Sid": sid, "Effect": "Allow", "Principal": principal, "Action": "lambda:InvokeFunction", "Resource": functionARN("f")}
	}
	ofAccount := plain("account", map[string]any{"AWS": "arn:aws:iam::111122223333:root"})
	ofAccount["Condition"] = map[string]any{
		"StringEquals": map[string]any{"aws:PrincipalOrgID": "o-1234567890", "lambda:EventSourceToken": "tok", "lambda:FunctionUrlAuthType": "NONE"},
		"Bool":         map[string]any{"lambda:InvokedViaFunctionUrl": "true"},
	}
	equal(t, "the policy", map[string]any{
		"Version": "2012-10-17", "Id": "default",
		"Statement": []any{statement, ofAccount, plain("all", "*"), plain("user", map[string]any{"AWS": "arn:aws:iam::111122223333:user/u"})},
	}, decode(t, *policy.Policy))
	equal(t, "its revision", *configuration(t, c, "f").RevisionId, *policy.RevisionId)

	// A version and an alias have policies of their own.
	for _, qualifier := range []string{"1", "live"} {
		_, err := c.GetPolicy(t.Context(), &lambda.GetPolicyInput{FunctionName: in.FunctionName, Qualifier: &qualifier})
		refused(t, err, notFound, 404, "The resource you requested does not exist.")
		own := permission("f", "topic", "sns.amazonaws.com")
		own.Qualifier = &qualifier
		must(c.AddPermission(t.Context(), own))(t)
		policy := must(c.GetPolicy(t.Context(), &lambda.GetPolicyInput{FunctionName: in.FunctionName, Qualifier: &qualifier}))(t)
		if !strings.Contains(*policy.Policy, `"Resource":"`+functionARN("f")+":"+qualifier+`"`) {
			t.Errorf("the policy of %s is %s", qualifier, *policy.Policy)
		}
		must(c.RemovePermission(t.Context(), &lambda.RemovePermissionInput{
			FunctionName: in.FunctionName, StatementId: aws.String("topic"), Qualifier: &qualifier, RevisionId: policy.RevisionId,
		}))(t)
		_, err = c.RemovePermission(t.Context(), &lambda.RemovePermissionInput{FunctionName: in.FunctionName, StatementId: aws.String("topic"), Qualifier: &qualifier})
		refused(t, err, notFound, 404, "No policy is associated with the given resource.")
	}

	_, err := c.AddPermission(t.Context(), topic)
	refused(t, err, "ResourceConflictException", 409, "The statement id (topic) provided already exists. Please provide a new statement id, "+
		"or remove the existing statement.")
	latest := permission("f", "s", "sns.amazonaws.com")
	latest.Qualifier = aws.String("$LATEST")
	_, err = c.AddPermission(t.Context(), latest)
	refused(t, err, invalidValue, 400, "We currently do not support adding policies for $LATEST.")
	_, err = c.RemovePermission(t.Context(), &lambda.RemovePermissionInput{FunctionName: in.FunctionName, StatementId: aws.String("topic"), Qualifier: latest.Qualifier})
	refused(t, err, invalidValue, 400, "We currently do not support adding policies for $LATEST.")
	_, err = c.AddPermission(t.Context(), permission("f", "s", "arn:aws:iam::111122223333:user/none"))
	refused(t, err, invalidValue, 400, "The provided principal was invalid. Please check the principal and try again.")
	_, err = c.AddPermission(t.Context(), permission("f", "s", "arn:aws:iam::111122223333:user/*"))
	refused(t, err, invalidValue, 400, "The provided principal was invalid. Please check the principal and try again.")
	stale := permission("f", "s", "sns.amazonaws.com")
	stale.RevisionId = aws.String("x")
	_, err = c.AddPermission(t.Context(), stale)
	refused(t, err, "PreconditionFailedException", 412, stalePolicy)
	_, err = c.RemovePermission(t.Context(), &lambda.RemovePermissionInput{FunctionName: in.FunctionName, StatementId: aws.String("topic"), RevisionId: aws.String("x")})
	refused(t, err, "PreconditionFailedException", 412, stalePolicy)
	_, err = c.RemovePermission(t.Context(), &lambda.RemovePermissionInput{FunctionName: in.FunctionName, StatementId: aws.String("none")})
	refused(t, err, notFound, 404, "Statement none is not found in resource policy.")
	for i := 0; err != nil && i < 200; i++ {
		_, err = c.AddPermission(t.Context(), permission("f", fmt.Sprint("many", i, strings.Repeat("x", 90)), "sns.amazonaws.com"))
		if err != nil {
			break
		}
		err = fmt.Errorf("not yet full")
	}
	if err == nil || !strings.Contains(err.Error(), "PolicyLengthExceededException: The final policy size (") {
		t.Errorf("a full policy: %v", err)
	}
}

func TestFunctionTags(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	createFunction(t, endpoint, c, "f")
	arn := aws.String(functionARN("f"))
	tags := func() map[string]string {
		t.Helper()
		return must(c.ListTags(t.Context(), &lambda.ListTagsInput{Resource: arn}))(t).Tags
	}
	equal(t, "no tags", map[string]string{}, tags())
	must(c.TagResource(t.Context(), &lambda.TagResourceInput{Resource: arn, Tags: map[string]string{"a": "1", "b": "", "ü / +": "&=?"}}))(t)
	must(c.TagResource(t.Context(), &lambda.TagResourceInput{Resource: arn, Tags: map[string]string{"b": "2"}}))(t)
	equal(t, "tags", map[string]string{"a": "1", "b": "2", "ü / +": "&=?"}, tags())
	must(c.UntagResource(t.Context(), &lambda.UntagResourceInput{Resource: arn, TagKeys: []string{"a", "ü / +", "none"}}))(t)
	equal(t, "what is left", map[string]string{"b": "2"}, tags())

	many := map[string]string{}
	for i := range 50 {
		many[fmt.Sprint("k", i)] = "v"
	}
	for text, in := range map[string]*lambda.TagResourceInput{
		"Number of tags exceeds resource tag limit.":                                              {Resource: arn, Tags: many},
		"The prefix aws: of tags is reserved.":                                                    {Resource: arn, Tags: map[string]string{"aws:x": "y"}},
		"The key of a tag must have 1 to 128 characters.":                                         {Resource: arn, Tags: map[string]string{strings.Repeat("k", 129): ""}},
		"The value of a tag must have at most 256 characters.":                                    {Resource: arn, Tags: map[string]string{"k": strings.Repeat("v", 257)}},
		"Tags on function aliases and versions are not supported. Please specify a function ARN.": {Resource: aws.String(*arn + ":1"), Tags: map[string]string{"k": "v"}},
		"An error occurred and the request cannot be processed.":                                  {Resource: arn, Tags: map[string]string{}},
	} {
		_, err := c.TagResource(t.Context(), in)
		refused(t, err, invalidValue, 400, text)
	}
	equal(t, "tags afterwards", map[string]string{"b": "2"}, tags())
	_, err := c.UntagResource(t.Context(), &lambda.UntagResourceInput{Resource: aws.String(*arn + ":1"), TagKeys: []string{"a"}})
	refused(t, err, invalidValue, 400, "Tags on function aliases and versions are not supported. Please specify a function ARN.")
	_, err = c.ListTags(t.Context(), &lambda.ListTagsInput{Resource: aws.String(*arn + ":1")})
	refused(t, err, invalidValue, 400, "Tags on function aliases and versions are not supported. Please specify a function ARN.")
	_, err = c.ListTags(t.Context(), &lambda.ListTagsInput{Resource: aws.String("f")})
	if err == nil || !strings.Contains(err.Error(), "ValidationException: 1 validation error detected: Value 'f' at 'resource'") {
		t.Errorf("the tags of no ARN: %v", err)
	}
}

// What is reserved for functions leaves 100 executions for all others.
func TestReservedConcurrency(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	createFunction(t, endpoint, c, "f")
	createFunction(t, endpoint, c, "g")
	put := func(name string, n int32) error {
		out, err := c.PutFunctionConcurrency(t.Context(), &lambda.PutFunctionConcurrencyInput{FunctionName: &name, ReservedConcurrentExecutions: &n})
		if err == nil {
			equal(t, "the answer", n, *out.ReservedConcurrentExecutions)
		}
		return err
	}
	get := func(name string) *int32 {
		t.Helper()
		return must(c.GetFunctionConcurrency(t.Context(), &lambda.GetFunctionConcurrencyInput{FunctionName: &name}))(t).ReservedConcurrentExecutions
	}
	left := func() int32 {
		t.Helper()
		return *must(c.GetAccountSettings(t.Context(), &lambda.GetAccountSettingsInput{}))(t).AccountLimit.UnreservedConcurrentExecutions
	}
	if get("f") != nil {
		t.Error("a new function has a reservation")
	}
	const tooMany = "Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its minimum value of [100]."
	refused(t, put("f", 901), invalidValue, 400, tooMany)
	for _, n := range []int32{900, 0, 500} {
		if err := put("f", n); err != nil {
			t.Error(err)
		}
		equal(t, "what is reserved", n, *get("f"))
		equal(t, "what is left", 1000-n, left())
	}
	refused(t, put("g", 401), invalidValue, 400, tooMany)
	if err := put("g", 400); err != nil {
		t.Error(err)
	}
	shown := must(c.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: aws.String("f")}))(t)
	equal(t, "in GetFunction", int32(500), *shown.Concurrency.ReservedConcurrentExecutions)
	must(c.DeleteFunctionConcurrency(t.Context(), &lambda.DeleteFunctionConcurrencyInput{FunctionName: aws.String("f")}))(t)
	if get("f") != nil {
		t.Error("a deleted reservation is there")
	}
	must(c.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: aws.String("g")}))(t)
	equal(t, "what is left in the end", int32(1000), left())
	refused(t, put("f", -1), "ValidationException", 400, "1 validation error detected: Value '-1' at 'reservedConcurrentExecutions' failed to "+
		"satisfy constraint: Member must have value greater than or equal to 0")
}

func TestAccountSettings(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	in := functionInput(t, "f")
	in.Publish = true
	must(c.CreateFunction(t.Context(), in))(t)
	got := must(c.GetAccountSettings(t.Context(), &lambda.GetAccountSettingsInput{}))(t)
	equal(t, "limits", &types.AccountLimit{
		CodeSizeUnzipped: 262144000, CodeSizeZipped: 52428800, ConcurrentExecutions: 1000, UnreservedConcurrentExecutions: aws.Int32(1000),
	}, got.AccountLimit)
	equal(t, "usage", &types.AccountUsage{FunctionCount: 1, TotalCodeSize: int64(2 * len(in.Code.ZipFile))}, got.AccountUsage)
}

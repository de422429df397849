package sdk_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// What can befall any action on the settings of asynchronous invocation, and how
// each refuses a qualifier that does not fit.
func TestEventInvokeActionsCanFail(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	createFunction(t, endpoint, c, "f")
	calls := func(name string, qualifier *string) map[string]func() error {
		n, ctx := aws.String(name), t.Context()
		return map[string]func() error{
			"Put": func() error {
				_, err := c.PutFunctionEventInvokeConfig(ctx, &lambda.PutFunctionEventInvokeConfigInput{FunctionName: n, Qualifier: qualifier, MaximumRetryAttempts: aws.Int32(1)})
				return err
			},
			"Update": func() error {
				_, err := c.UpdateFunctionEventInvokeConfig(ctx, &lambda.UpdateFunctionEventInvokeConfigInput{FunctionName: n, Qualifier: qualifier, MaximumRetryAttempts: aws.Int32(1)})
				return err
			},
			"Get": func() error {
				_, err := c.GetFunctionEventInvokeConfig(ctx, &lambda.GetFunctionEventInvokeConfigInput{FunctionName: n, Qualifier: qualifier})
				return err
			},
			"Delete": func() error {
				_, err := c.DeleteFunctionEventInvokeConfig(ctx, &lambda.DeleteFunctionEventInvokeConfigInput{FunctionName: n, Qualifier: qualifier})
				return err
			},
			"List": func() error {
				_, err := c.ListFunctionEventInvokeConfigs(ctx, &lambda.ListFunctionEventInvokeConfigsInput{FunctionName: n})
				return err
			},
		}
	}
	for action, call := range calls("f:1", aws.String("2")) {
		want := "The derived qualifier from the function name does not match the specified qualifier."
		if action == "List" {
			want = "This operation does not support versioned or aliased function names: f:1"
		}
		refused(t, call(), invalidValue, 400, want)
	}
	fault := func(name string) {
		t.Helper()
		if r := post(t, endpoint+"/_godwit/faults", `{"arn":"arn:aws:lambda:`+region+":"+account+`:*","fault":"`+name+`"}`); r.Status != 200 {
			t.Fatalf("fault %s: %d %s", name, r.Status, r.Body)
		}
	}
	for _, call := range calls("f", nil) {
		fault("internal")
		refused(t, call(), "ServiceException", 500, "We encountered an internal error. Please try again.")
		fault("throttled")
		refused(t, call(), "TooManyRequestsException", 429, "Rate exceeded.")
		fault("none")
	}
}

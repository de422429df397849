package sdk_test

import (
	"archive/zip"
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"godwit.dev/godwit/internal/config"
)

// functionsClient is a Lambda client of account 000000000000.
func functionsClient(endpoint string) *lambda.Client {
	return functionsClientOf(endpoint, region, "test")
}

func functionsClientOf(endpoint, region, accessKey string) *lambda.Client {
	makeRoles(endpoint, accessKey)
	return lambda.New(lambda.Options{
		BaseEndpoint:     &endpoint,
		Region:           region,
		Credentials:      credentials.NewStaticCredentialsProvider(accessKey, secretOf(accessKey), ""),
		RetryMaxAttempts: 1,
		HTTPClient:       eager,
	})
}

// functionARN is the ARN of a function of account 000000000000.
func functionARN(name string) string {
	return "arn:aws:lambda:" + region + ":" + account + ":function:" + name
}

// roleARN is the role of tests' functions, which may do everything.
const roleARN = "arn:aws:iam::" + account + ":role/function"

// makeRoles makes it, and another one, where it is asked what they may, once.
func makeRoles(endpoint, accessKey string) {
	if _, enforces := enforcing.Load(strings.TrimPrefix(endpoint, "http://")); !enforces {
		return
	}
	c, ctx := iamClientOf(endpoint, accessKey, secretOf(accessKey), ""), context.Background()
	for _, name := range []string{"function", "function2"} {
		if _, err := c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(lambdaTrust)}); err != nil {
			return // they are there
		}
		_, _ = c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{
			RoleName: &name, PolicyName: aws.String("all"),
			PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`),
		})
	}
}

// startSlow runs a server on which creating and updating a function takes a second
// of its clock.
func startSlow(t *testing.T) (endpoint string) {
	return startWith(t, func(c *config.Config) { c.LambdaUpdateTime = 1e9 })
}

// completeFunctions completes the changes of functions of a server of startSlow.
func completeFunctions(t *testing.T, endpoint string) {
	t.Helper()
	advance(t, endpoint, "1s")
}

// zipOf packs files: pairs of name and content.
func zipOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		h := &zip.FileHeader{Name: files[i], Method: zip.Deflate}
		h.SetMode(0o755)
		f := must(w.CreateHeader(h))(t)
		must(f.Write([]byte(files[i+1])))(t)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// runTime is the timeout of functions that are run, in seconds: as long as the
// visibility timeout of a queue allows, since it is the machine's time.
const runTime = 30

// functionInput is a request for a function that says as little as it may.
func functionInput(t *testing.T, name string) *lambda.CreateFunctionInput {
	t.Helper()
	role, handler := roleARN, "bootstrap"
	return &lambda.CreateFunctionInput{
		FunctionName: &name, Role: &role, Handler: &handler, Runtime: types.RuntimeProvidedal2023,
		Code: &types.FunctionCode{ZipFile: zipOf(t, "bootstrap", "#!/bin/sh")},
	}
}

// createFunction makes a function on a server of startSlow, which is active when
// it returns.
func createFunction(t *testing.T, endpoint string, c *lambda.Client, name string) {
	t.Helper()
	must(c.CreateFunction(t.Context(), functionInput(t, name)))(t)
	completeFunctions(t, endpoint)
}

// configuration is a function as GetFunctionConfiguration shows it.
func configuration(t *testing.T, c *lambda.Client, name string) *lambda.GetFunctionConfigurationOutput {
	t.Helper()
	return must(c.GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: &name}))(t)
}

// fetch gets what is at a URL.
func fetch(t *testing.T, url string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, req)
}

//go:build linux

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	functions "godwit.dev/godwit/internal/invoke/process"

	"godwit.dev/godwit/test/sdkhttp"
)

// office is what functions need of a server of production: a role that may write logs, and
// clients of the root user's.
type office struct {
	functions *lambda.Client
	logs      *cloudwatchlogs.Client
	role      string
	zip       []byte
}

// newOffice skips the test where functions do not run.
func newOffice(t *testing.T, p *production, s *process) *office {
	t.Helper()
	if err := functions.Isolated(); err != nil {
		t.Skipf("functions are refused: %v", err)
	}
	creds := credentials.NewStaticCredentialsProvider(p.AccessKeyID, p.SecretAccessKey, "")
	roles := iam.New(iam.Options{Region: region, BaseEndpoint: &s.base, Credentials: creds, HTTPClient: sdkhttp.Of(s.http)})
	made, err := roles.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("function"), AssumeRolePolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := roles.AttachRolePolicy(t.Context(), &iam.AttachRolePolicyInput{
		RoleName: aws.String("function"), PolicyArn: aws.String("arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := roles.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{ // for environments
		RoleName: aws.String("function"), PolicyName: aws.String("keys"),
		PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"kms:Decrypt","Resource":"*"}]}`),
	}); err != nil {
		t.Fatal(err)
	}
	return &office{
		functions: lambda.New(lambda.Options{Region: region, BaseEndpoint: &s.base, Credentials: creds, HTTPClient: sdkhttp.Of(s.http), RetryMaxAttempts: 1}),
		logs:      cloudwatchlogs.New(cloudwatchlogs.Options{Region: region, BaseEndpoint: &s.base, Credentials: creds, HTTPClient: sdkhttp.Of(s.http)}),
		role:      *made.Role.Arn, zip: handlerZip(t),
	}
}

// create makes a function of test/handler that is active when it returns.
func (o *office) create(t *testing.T, name string, change func(in *lambda.CreateFunctionInput)) {
	t.Helper()
	in := &lambda.CreateFunctionInput{
		FunctionName: &name, Runtime: types.RuntimeProvidedal2023, Handler: aws.String("x"), Role: &o.role,
		Code: &types.FunctionCode{ZipFile: o.zip}, Timeout: aws.Int32(60),
	}
	change(in)
	if _, err := o.functions.CreateFunction(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	eventually(t, name+" is active", func() (bool, error) {
		out, err := o.functions.GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: &name})
		return err == nil && out.State == types.StateActive, err
	})
}

func (o *office) invoke(t *testing.T, name, event string) *lambda.InvokeOutput {
	t.Helper()
	out, err := o.functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &name, Payload: []byte(event)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// printed is what is in the log group of a function.
func (o *office) printed(t *testing.T, name string) string {
	t.Helper()
	out, err := o.logs.FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("/aws/lambda/" + name)})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, e := range out.Events {
		fmt.Fprintln(&text, *e.Message)
	}
	return text.String()
}

// holders are the processes that have a text in their environment.
func holders(t *testing.T, text string) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		environment, _ := os.ReadFile("/proc/" + e.Name() + "/environ") // what has ended meanwhile has none
		if strings.Contains(string(environment), text) {
			var pid int
			if _, err := fmt.Sscan(e.Name(), &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// The credentials of a function are in its processes alone: in no file and no log, not in what
// a crash leaves, and not in what other functions or users of the machine see of processes.
func TestFunctionCredentialsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	p := initialise(t)
	addr, cwd, logs := freeAddress(t), t.TempDir(), t.TempDir()
	s := launch(t, addr, crashing(cwd, exec.Command(binary, "serve", "--config", p.settings, "--listen", addr, "--log-level", "debug",
		"--audit-log", filepath.Join(logs, "audit.log"), "--audit-data-events")))
	s.awaitReady(t)
	o := newOffice(t, p, s)
	for _, name := range []string{"f", "g"} {
		o.create(t, name, func(*lambda.CreateFunctionInput) {})
	}
	var variables []string
	if err := json.Unmarshal(o.invoke(t, "f", `{"env":true}`).Payload, &variables); err != nil {
		t.Fatal(err)
	}
	var secrets []string
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		if name == "AWS_SECRET_ACCESS_KEY" || name == "AWS_SESSION_TOKEN" {
			secrets = append(secrets, value)
		}
	}
	if len(secrets) != 2 {
		t.Fatalf("the function has %d secrets", len(secrets))
	}

	// Seen by root alone: not by another user, nor by another function.
	found := holders(t, secrets[0])
	if len(found) == 0 {
		t.Log("the environments of others' processes cannot be read here")
	}
	for _, pid := range found {
		if limit := coreLimit(t, pid); !noCore(limit) {
			t.Errorf("process %d may leave a core dump of %s bytes", pid, limit)
		}
		if os.Geteuid() != 0 {
			continue
		}
		for _, file := range []string{"environ", "mem", "maps"} {
			other := exec.Command("cat", fmt.Sprintf("/proc/%d/%s", pid, file))
			other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			if out, err := other.CombinedOutput(); err == nil {
				t.Errorf("another user reads %d bytes of /proc/%d/%s", len(out), pid, file)
			}
		}
	}
	var files []string
	for _, pid := range found {
		files = append(files, fmt.Sprintf("file:///proc/%d/environ", pid))
	}
	for pid := range 100 {
		files = append(files, fmt.Sprintf("file:///proc/%d/environ", pid))
	}
	asked, err := json.Marshal(map[string][]string{"probe": files})
	if err != nil {
		t.Fatal(err)
	}
	if seen := o.invoke(t, "g", string(asked)); seen.FunctionError != nil || !strings.Contains(string(seen.Payload), "AWS_LAMBDA_FUNCTION_NAME=g") {
		t.Errorf("a function does not see its own environment: %s", seen.Payload)
	} else if strings.Contains(string(seen.Payload), secrets[0]) {
		t.Error("another function sees them")
	}

	if out := o.invoke(t, "f", `{"abort":true}`); out.FunctionError == nil {
		t.Errorf("the function has not ended: %s", out.Payload)
	}
	check := func(when string) {
		t.Helper()
		for _, dir := range []string{p.data, p.dir, logs, cwd} {
			for _, found := range filesWith(t, dir, secrets...) {
				t.Errorf("%s: %.60s…", when, found)
			}
		}
		for _, secret := range secrets {
			if strings.Contains(s.stdout.String()+s.stderr.String(), secret) {
				t.Errorf("%s: the server has printed them", when)
			}
		}
	}
	check("after a crash")
	text := o.printed(t, "f")
	if !strings.Contains(text, "SIGABRT") {
		t.Errorf("the function did not crash as it should: %s", text)
	}
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Error("the function's log has them")
		}
	}
	if left := cores(t, cwd); len(left) > 0 {
		t.Errorf("core dumps: %v", left)
	}
	s.kill()
	check("killed")
	if left := holders(t, secrets[0]); len(left) > 0 {
		t.Errorf("%v outlive the server", left)
	}
}

// What a function is told is in no file and no log: variables of its environment, under the
// store's key and a customer's, and events that wait.
func TestFunctionsWriteNothingInClear(t *testing.T) {
	t.Parallel()
	p := initialise(t)
	logs := t.TempDir()
	s := p.serve(t, freeAddress(t), nil, "--log-level", "debug", "--audit-log", filepath.Join(logs, "audit.log"), "--audit-data-events")
	o := newOffice(t, p, s)
	keys := kms.New(kms.Options{
		Region: region, BaseEndpoint: &s.base, HTTPClient: sdkhttp.Of(s.http), Credentials: credentials.NewStaticCredentialsProvider(p.AccessKeyID, p.SecretAccessKey, ""),
	})
	made, err := keys.CreateKey(t.Context(), &kms.CreateKeyInput{})
	if err != nil {
		t.Fatal(err)
	}
	const names = 2
	for n, key := range []*string{nil, made.KeyMetadata.Arn} {
		name := fmt.Sprint("f", n)
		o.create(t, name, func(in *lambda.CreateFunctionInput) {
			in.Environment, in.KMSKeyArn = &types.Environment{Variables: map[string]string{"CANARY": "canary-created"}}, key
		})
		if out := o.invoke(t, name, `{"env":true}`); !strings.Contains(string(out.Payload), "canary-created") {
			t.Fatalf("the function is told nothing: %s", out.Payload)
		}
		if _, err := o.functions.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{
			FunctionName: &name, Environment: &types.Environment{Variables: map[string]string{"CANARY": "canary-updated"}},
		}); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := o.functions.Invoke(t.Context(), &lambda.InvokeInput{
				FunctionName: &name, InvocationType: types.InvocationTypeEvent, Payload: []byte(`{"print":"event taken\n","fail":"again","what":"canary-event"}`),
			}); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, name+" has run", func() (bool, error) { return strings.Contains(o.printed(t, name), "event taken"), nil })
	}
	check := func(when string) {
		t.Helper()
		for _, dir := range []string{p.data, p.dir, logs} {
			for _, found := range filesWith(t, dir, "canary") {
				t.Errorf("%s: %s", when, found)
			}
		}
		if strings.Contains(s.stdout.String()+s.stderr.String(), "canary") {
			t.Errorf("%s: the server has printed it", when)
		}
	}
	check("while it runs")
	for n := range names {
		if text := o.printed(t, fmt.Sprint("f", n)); strings.Contains(text, "canary") {
			t.Errorf("a function's log: %s", text)
		}
	}
	s.kill()
	check("killed")
	s = p.serve(t, s.addr, nil)
	for n := range names {
		name := fmt.Sprint("f", n)
		eventually(t, name+" is told what it was told before", func() (bool, error) {
			out, err := o.functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &name, Payload: []byte(`{"env":true}`)})
			return err == nil && strings.Contains(string(out.Payload), "canary-updated"), err
		})
	}
	s.terminate(t)
	s.exit(t)
	check("ended")
}

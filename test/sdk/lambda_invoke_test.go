package sdk_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logstypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/test/built"
)

// goProgram is the function of test/handler in a zip, built once.
var goProgram = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "handler")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return built.Function(dir, "../..", "test/handler")
})

// createProgram makes a function that runs test/handler.
func createProgram(t *testing.T, c *lambda.Client, name string, change func(in *lambda.CreateFunctionInput)) {
	t.Helper()
	in := functionInput(t, name)
	in.Code.ZipFile, in.Timeout = must(goProgram())(t), aws.Int32(runTime)
	if change != nil {
		change(in)
	}
	must(c.CreateFunction(t.Context(), in))(t)
}

// invoke runs a function and gives the answer without what differs from run to run.
func invoke(t *testing.T, c *lambda.Client, name, payload string, change ...func(in *lambda.InvokeInput)) *lambda.InvokeOutput {
	t.Helper()
	in := &lambda.InvokeInput{FunctionName: &name, Payload: []byte(payload)}
	for _, f := range change {
		f(in)
	}
	return must(c.Invoke(t.Context(), in))(t)
}

func TestInvoke(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	createProgram(t, c, "f", nil)
	equal(t, "an answer", &lambda.InvokeOutput{StatusCode: 200, ExecutedVersion: aws.String("$LATEST"), Payload: []byte(`{"a":[1,"b"]}`)},
		invoke(t, c, "f", `{"a":[1,"b"]}`))
	equal(t, "no payload", &lambda.InvokeOutput{StatusCode: 200, ExecutedVersion: aws.String("$LATEST"), Payload: []byte(`{}`)}, invoke(t, c, functionARN("f"), ""))
	equal(t, "a failure", &lambda.InvokeOutput{
		StatusCode: 200, ExecutedVersion: aws.String("$LATEST"), FunctionError: aws.String("Unhandled"),
		Payload: []byte(`{"errorMessage":"no","errorType":"errorString"}`),
	}, invoke(t, c, "f", `{"fail":"no"}`))
	out := invoke(t, c, "f", `{"exit":127}`)
	id := regexp.MustCompile(`RequestId: [0-9a-f-]{36} Error`)
	equal(t, "an exit", `{"errorType":"Runtime.ExitError","errorMessage":"RequestId: ID Error: Runtime exited with error: exit status 127"}`,
		id.ReplaceAllString(string(out.Payload), "RequestId: ID Error"))
	equal(t, "an exit's error", aws.String("Unhandled"), out.FunctionError)

	dry := func(in *lambda.InvokeInput) { in.InvocationType = types.InvocationTypeDryRun }
	equal(t, "a dry run", &lambda.InvokeOutput{StatusCode: 204}, invoke(t, c, "f", "{}", dry))
}

func TestInvokeTail(t *testing.T) {
	c := functionsClient(start(t))
	createProgram(t, c, "f", nil)
	out := invoke(t, c, "f", `{"print":"hello\n"}`, func(in *lambda.InvokeInput) { in.LogType = types.LogTypeTail })
	log := string(must(base64.StdEncoding.DecodeString(aws.ToString(out.LogResult)))(t))
	want := regexp.MustCompile(`^START RequestId: ([0-9a-f-]{36}) Version: \$LATEST\nhello\nEND RequestId: ([0-9a-f-]{36})\n` +
		`REPORT RequestId: ([0-9a-f-]{36})\tDuration: [\d.]+ ms\tBilled Duration: \d+ ms\tMemory Size: 128 MB\tMax Memory Used: \d+ MB\tInit Duration: [\d.]+ ms\t\n$`)
	if m := want.FindStringSubmatch(log); m == nil || m[1] != m[2] || m[2] != m[3] {
		t.Errorf("log %q", log)
	}
	if out := invoke(t, c, "f", `{}`); out.LogResult != nil {
		t.Errorf("a log that nobody asked for: %s", *out.LogResult)
	}
}

// In the JSON format the lines of the platform are records, and lines below the
// levels are left out; a change of the format is one of the next environment.
func TestInvokeJSONLog(t *testing.T) {
	c := functionsClient(start(t))
	createProgram(t, c, "f", func(in *lambda.CreateFunctionInput) {
		in.LoggingConfig = &types.LoggingConfig{LogFormat: types.LogFormatJson, ApplicationLogLevel: types.ApplicationLogLevelWarn}
	})
	tail := func(payload string) (records []map[string]any) {
		t.Helper()
		out := invoke(t, c, "f", payload, func(in *lambda.InvokeInput) { in.LogType = types.LogTypeTail })
		for line := range strings.Lines(string(must(base64.StdEncoding.DecodeString(aws.ToString(out.LogResult)))(t))) {
			records = append(records, decode(t, line))
		}
		return records
	}
	const printed = `{\"level\":\"%s\",\"timestamp\":\"2026-01-01T00:00:00Z\"}\n`
	log := tail(`{"print":"plain\n` + fmt.Sprintf(printed, "INFO") + fmt.Sprintf(printed, "ERROR") + `"}`)
	if len(log) != 3 {
		t.Fatalf("log %v", log)
	}
	record := log[0]["record"].(map[string]any)
	equal(t, "the start", map[string]any{"requestId": record["requestId"], "functionArn": functionARN("f"), "version": "$LATEST"}, record)
	equal(t, "its type", any("platform.start"), log[0]["type"])
	equal(t, "what was printed", map[string]any{"level": "ERROR", "timestamp": "2026-01-01T00:00:00Z"}, log[1])
	equal(t, "the end's type", any("platform.report"), log[2]["type"])
	report := log[2]["record"].(map[string]any)
	equal(t, "the request", record["requestId"], report["requestId"])
	equal(t, "the status", any("success"), report["status"])
	metrics := report["metrics"].(map[string]any)
	for _, name := range []string{"durationMs", "billedDurationMs", "maxMemoryUsedMB", "initDurationMs"} {
		if n, ok := metrics[name].(float64); !ok || n <= 0 {
			t.Errorf("%s is %v", name, metrics[name])
		}
	}
	equal(t, "the memory", any(128.0), metrics["memorySizeMB"])
	log = tail(`{"fail":"no"}`)
	report = log[len(log)-1]["record"].(map[string]any)
	equal(t, "the status of a failure", any("error"), report["status"])

	must(c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{
		FunctionName: aws.String("f"), LoggingConfig: &types.LoggingConfig{LogFormat: types.LogFormatText},
	}))(t)
	out := invoke(t, c, "f", `{}`, func(in *lambda.InvokeInput) { in.LogType = types.LogTypeTail })
	if text := string(must(base64.StdEncoding.DecodeString(aws.ToString(out.LogResult)))(t)); !strings.HasPrefix(text, "START RequestId: ") {
		t.Errorf("as text again: %s", text)
	}
}

func TestInvokeVersions(t *testing.T) {
	c := functionsClient(start(t))
	createProgram(t, c, "f", func(in *lambda.CreateFunctionInput) {
		in.Publish = true
		in.Environment = &types.Environment{Variables: map[string]string{"MINE": "one"}}
	})
	must(c.CreateAlias(t.Context(), &lambda.CreateAliasInput{FunctionName: aws.String("f"), Name: aws.String("live"), FunctionVersion: aws.String("1")}))(t)
	must(c.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{
		FunctionName: aws.String("f"), Environment: &types.Environment{Variables: map[string]string{"MINE": "two"}},
	}))(t)
	for qualifier, want := range map[string][2]string{"": {"$LATEST", "two"}, "$LATEST": {"$LATEST", "two"}, "1": {"1", "one"}, "live": {"1", "one"}} {
		out := invoke(t, c, "f", `{"env":true}`, func(in *lambda.InvokeInput) {
			if qualifier != "" {
				in.Qualifier = &qualifier
			}
		})
		if version := aws.ToString(out.ExecutedVersion); version != want[0] || !strings.Contains(string(out.Payload), `"MINE=`+want[1]+`"`) {
			t.Errorf("%q: version %s, %s", qualifier, version, out.Payload)
		}
	}
	out := invoke(t, c, "f:live", `{"context":true}`, func(in *lambda.InvokeInput) {
		in.ClientContext = aws.String(base64.StdEncoding.EncodeToString([]byte(`{"custom":{"k":"v"}}`)))
	})
	var got struct {
		ARN    string
		Client struct{ Custom map[string]string }
	}
	if err := json.Unmarshal(out.Payload, &got); err != nil || got.ARN != functionARN("f:live") || got.Client.Custom["k"] != "v" {
		t.Errorf("context %s %v", out.Payload, err)
	}
}

func TestInvokeErrors(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	createProgram(t, c, "f", nil)
	invokeErr := func(in lambda.InvokeInput) error {
		if in.FunctionName == nil {
			in.FunctionName = aws.String("f")
		}
		_, err := c.Invoke(t.Context(), &in)
		return err
	}
	refused(t, invokeErr(lambda.InvokeInput{FunctionName: aws.String("g")}), "ResourceNotFoundException", 404,
		"Function not found: "+functionARN("g")+":$LATEST")
	refused(t, invokeErr(lambda.InvokeInput{Payload: []byte("{")}), "InvalidRequestContentException", 400,
		"Could not parse request body into json: unexpected end of JSON input")
	refused(t, invokeErr(lambda.InvokeInput{Payload: []byte("\"\xff\"")}), "InvalidRequestContentException", 400,
		"Could not parse request body into json: Invalid UTF-8")
	for _, bad := range []string{"?", "W10=", "bnVsbA==", "ICJ4Ig=="} { // no base64, [], null, "x"
		refused(t, invokeErr(lambda.InvokeInput{ClientContext: &bad}), "InvalidRequestContentException", 400,
			"Client context must be a valid Base64-encoded JSON object.")
	}
	large := []byte(`"` + strings.Repeat("a", 6<<20) + `"`)
	refused(t, invokeErr(lambda.InvokeInput{Payload: large}), "RequestEntityTooLargeException", 413,
		"Request must be smaller than 6291456 bytes for the InvokeFunction operation")
	refused(t, invokeErr(lambda.InvokeInput{Payload: large[len(large)-1-1<<20:], InvocationType: types.InvocationTypeEvent}), "RequestEntityTooLargeException", 413,
		"1048577 byte payload is too large for the Event invocation type (limit 1048576 bytes)")
	refused(t, invokeErr(lambda.InvokeInput{InvocationType: "Later"}), "ValidationException", 400,
		"1 validation error detected: Value 'Later' at 'invocationType' failed to satisfy constraint: Member must satisfy enum value set: [Event, RequestResponse, DryRun]")
	refused(t, invokeErr(lambda.InvokeInput{FunctionName: aws.String("f:1"), Qualifier: aws.String("2")}), "InvalidParameterValueException", 400,
		"The derived qualifier from the function name does not match the specified qualifier.")
	post(t, endpoint+"/_godwit/faults", `{"arn":"arn:aws:lambda:us-east-1:000000000000:*","fault":"internal"}`)
	refused(t, invokeErr(lambda.InvokeInput{}), "ServiceException", 500, "We encountered an internal error. Please try again.")
	post(t, endpoint+"/_godwit/faults", `{"arn":"arn:aws:lambda:us-east-1:000000000000:*","fault":"none"}`)
	must(c.PutFunctionConcurrency(t.Context(), &lambda.PutFunctionConcurrencyInput{FunctionName: aws.String("f"), ReservedConcurrentExecutions: aws.Int32(0)}))(t)
	err := invokeErr(lambda.InvokeInput{})
	refused(t, err, "TooManyRequestsException", 429,
		"Rate Exceeded.")
	var throttled *types.TooManyRequestsException
	if errors.As(err, &throttled); throttled == nil || throttled.Reason != types.ThrottleReasonReservedFunctionConcurrentInvocationLimitExceeded || aws.ToString(throttled.Type) != "User" {
		t.Errorf("reason %+v", throttled)
	}
	r := post(t, endpoint+"/2015-03-31/functions/f/invocations", "{}")
	equal(t, "a throttle on the wire", `{"Reason":"ReservedFunctionConcurrentInvocationLimitExceeded","Type":"User","message":"Rate Exceeded."}`, r.Body)
}

func TestInvokeTimeout(t *testing.T) {
	c := functionsClient(start(t))
	createProgram(t, c, "f", func(in *lambda.CreateFunctionInput) { in.Timeout = aws.Int32(1) })
	out := invoke(t, c, "f", `{"sleep":"1h"}`)
	if !strings.HasPrefix(string(out.Payload), `{"errorType":"Sandbox.Timedout","errorMessage":"RequestId: `) ||
		!strings.HasSuffix(string(out.Payload), ` Error: Task timed out after 1.00 seconds"}`) || aws.ToString(out.FunctionError) != "Unhandled" {
		t.Errorf("%s", out.Payload)
	}
}

// A new code runs at the next invocation, and a function that is created again
// has nothing of its predecessor.
func TestInvokeAfterChanges(t *testing.T) {
	c := functionsClient(start(t))
	createProgram(t, c, "f", nil)
	invoke(t, c, "f", `{"write":"old"}`)
	if out := invoke(t, c, "f", `{"read":true}`); string(out.Payload) != `"old"` {
		t.Errorf("a warm environment: %s", out.Payload)
	}
	code := zipOf(t, "bootstrap", "#!/bin/sh\nexit 5\n")
	must(c.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: aws.String("f"), ZipFile: code}))(t)
	if out := invoke(t, c, "f", `{}`); !strings.Contains(string(out.Payload), "exit status 5") {
		t.Errorf("new code: %s", out.Payload)
	}
	must(c.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: aws.String("f")}))(t)
	createProgram(t, c, "f", nil)
	if out := invoke(t, c, "f", `{"read":true}`); out.FunctionError == nil {
		t.Errorf("the predecessor's file: %s", out.Payload)
	}
}

func TestInvokeRemoteFunction(t *testing.T) {
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString([]byte("far away")))
		fmt.Fprintf(w, `{"path":%q}`, r.URL.Path)
	}))
	defer far.Close()
	c := functionsClient(start(t))
	in := functionInput(t, "far")
	in.Timeout = aws.Int32(runTime)
	in.PackageType, in.Runtime, in.Handler = types.PackageTypeImage, "", nil
	in.Code = &types.FunctionCode{ImageUri: &far.URL}
	must(c.CreateFunction(t.Context(), in))(t)
	out := invoke(t, c, "far", `{}`, func(in *lambda.InvokeInput) { in.LogType = types.LogTypeTail })
	equal(t, "its answer", &lambda.InvokeOutput{
		StatusCode: 200, ExecutedVersion: aws.String("$LATEST"), Payload: []byte(`{"path":"/2015-03-31/functions/function/invocations"}`),
		LogResult: aws.String("ZmFyIGF3YXk="),
	}, out)

	guarded := functionsClient(startWith(t, func(c *config.Config) { c.AllowPrivateEndpoints = false }))
	must(guarded.CreateFunction(t.Context(), in))(t)
	_, err := guarded.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("far")})
	refused(t, err, "ResourceNotReadyException", 502,
		"The function's address is not public, and the server does not allow that.")
}

// What a function has started in the background ends when the function, or its version, is deleted.
func TestDeletedFunctionsHaveNoProcesses(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip(err)
	}
	c := functionsClient(start(t))
	createProgram(t, c, "f", func(in *lambda.CreateFunctionInput) { in.Publish = true })
	marks := map[string]string{"": fmt.Sprint(86_000_000 + 2*os.Getpid()), "1": fmt.Sprint(86_000_001 + 2*os.Getpid())}
	runs := func(qualifier string) bool {
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		return slices.ContainsFunc(all, func(name string) bool {
			line, _ := os.ReadFile(name)
			return strings.Contains(string(line), marks[qualifier])
		})
	}
	for qualifier, mark := range marks {
		invoke(t, c, strings.TrimSuffix("f:"+qualifier, ":"), `{"leak":"`+mark+`"}`)
		eventually(t, "the background begins", func() bool { return runs(qualifier) })
	}
	for _, qualifier := range []string{"1", ""} {
		in := &lambda.DeleteFunctionInput{FunctionName: aws.String("f")}
		if qualifier != "" {
			in.Qualifier = &qualifier
		}
		must(c.DeleteFunction(t.Context(), in))(t)
		eventually(t, "the background ends", func() bool { return !runs(qualifier) })
		if qualifier == "1" && !runs("") {
			t.Error("the function has ended with its version")
		}
	}
}

// What a function prints is in its log group, in the order in which it came.
func TestInvokeLogGroup(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	createProgram(t, c, "f", nil)
	invoke(t, c, "f", `{"print":"one\ntwo\n"}`)
	l := logsClient(endpoint)
	var got []string
	for len(got) < 5 { // until it has been written
		out, err := l.FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String("/aws/lambda/f")})
		if err != nil && !errors.As(err, new(*logstypes.ResourceNotFoundException)) {
			t.Fatal(err)
		}
		got = nil
		if out != nil {
			for _, e := range out.Events {
				got = append(got, aws.ToString(e.Message))
				if !regexp.MustCompile(`^\d{4}/\d\d/\d\d/\[\$LATEST\][0-9a-f]{32}$`).MatchString(aws.ToString(e.LogStreamName)) {
					t.Fatalf("stream %s", aws.ToString(e.LogStreamName))
				}
			}
		}
	}
	want := regexp.MustCompile(`^START RequestId: [0-9a-f-]{36} Version: \$LATEST\n\|one\n\|two\n\|END RequestId: [0-9a-f-]{36}\n\|REPORT RequestId: [^|]*\t\n$`)
	if text := strings.Join(got, "|"); !want.MatchString(text) {
		t.Errorf("log %q", text)
	}
}

func TestInvokeWhilePending(t *testing.T) {
	endpoint := startSlow(t)
	c := functionsClient(endpoint)
	createProgram(t, c, "f", nil)
	_, err := c.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("f")})
	refused(t, err, "ResourceConflictException", 409, "The operation cannot be performed at this time. The function is currently in the following state: Pending")
	completeFunctions(t, endpoint)
	invoke(t, c, "f", `{}`)
}

// An interpreter may be gone when the function is to run.
func TestInvokeWithoutItsRuntime(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/node", []byte("#!/bin/sh\necho v24\necho "+dir+"/node\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	alone(t)
	t.Setenv("PATH", dir)
	c := functionsClient(start(t))
	in := functionInput(t, "f")
	in.Runtime, in.Handler, in.Code.ZipFile = types.RuntimeNodejs24x, aws.String("index.handler"), zipOf(t, "index.js", "")
	must(c.CreateFunction(t.Context(), in))(t)
	if err := os.Remove(dir + "/node"); err != nil {
		t.Fatal(err)
	}
	_, err := c.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("f")})
	refused(t, err, "InvalidRuntimeException", 502, "The runtime nodejs24.x needs node in the PATH, which is not installed on this server.")
	in.FunctionName = aws.String("g")
	_, err = c.CreateFunction(t.Context(), in)
	refused(t, err, "InvalidParameterValueException", 400, "The runtime nodejs24.x needs node in the PATH, which is not installed on this server.")
}

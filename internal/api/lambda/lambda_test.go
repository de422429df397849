package lambda

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/apitest"
	"godwit.dev/godwit/internal/api/lambda/link"
	"godwit.dev/godwit/internal/api/lambda/mappings"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/store/memory"
)

const (
	account = "000000000000"
	friend  = "111122223333"
	fARN    = "arn:aws:lambda:us-east-1:000000000000:function:f"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// asker asks the service, over a real engine whose updates take a second of its clock.
type asker struct {
	*apitest.Asker
	account string
	engine  *shard.Engine
	clock   *clock.Virtual
	service *Service
	ran     []invoke.Invocation
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	j := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(j.Close)
	a := &asker{account: account, clock: clock.NewVirtual(now)}
	var err error
	limits := shard.FunctionLimits{CodeBytes: 1 << 30, Executions: 1000, Unreserved: 100}
	a.engine, err = shard.Open(shard.Options{
		Journal: j, Clock: a.clock, Logger: slog.New(slog.DiscardHandler), FunctionLimits: limits, FunctionUpdates: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.engine.Close(); err != nil {
			t.Error(err)
		}
	})
	sealing, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	revisions := 0
	a.service = New(Options{Engine: a.engine, Pool: a, Limits: limits, Links: link.New(sealing.Sealer(link.Purpose)), NewRevision: func() string {
		revisions++
		return fmt.Sprintf("00000000-0000-4000-8000-%012d", revisions)
	}})
	a.Asker = apitest.New(t, a.service.Operations(), a.call)
	return a
}

// Invoke is the pool: it answers with the version that ran.
func (a *asker) Invoke(_ context.Context, in invoke.Invocation) (invoke.Outcome, error) {
	a.ran = append(a.ran, in)
	return invoke.Outcome{Payload: []byte(`"` + in.Target.Version + `"`), LogTail: []byte("tail")}, nil
}

// complete lets what changes come to its end.
func (a *asker) complete() {
	a.T.Helper()
	if _, err := a.clock.Advance(a.T.Context(), time.Second); err != nil {
		a.T.Fatal(err)
	}
}

// queue makes a queue for mappings.
func (a *asker) queue(name string) {
	a.T.Helper()
	if err := a.engine.CreateQueue(a.T.Context(), shard.QueueSpec{ARN: arn.Queue("us-east-1", account, name)}); err != nil {
		a.T.Fatal(err)
	}
}

// call is what a handler knows of a call.
func (a *asker) call(operation string) *api.Call {
	return &api.Call{
		RequestID: "c0ffee00-0000-4000-8000-000000000001", Region: "us-east-1", Account: a.account, AccessKey: "test", Operation: operation,
		Time: a.clock.Now(), Host: "http://127.0.0.1:4566", RemoteAddr: "127.0.0.1:1", Header: http.Header{},
	}
}

// step is one request, and what its answer or its refusal's text must have in it.
type step struct {
	operation, in string
	kind          fault.Kind // ok: it is not refused
	want          string
}

const ok = apitest.Answered

func (a *asker) run(steps ...step) {
	a.T.Helper()
	for _, s := range steps {
		a.Check(s.operation, s.in, s.kind, s.want)
	}
}

// zipped is a zip with one file, in base64.
func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("bootstrap")
	if err == nil {
		_, err = f.Write([]byte(text))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// created is a request for a function, with more members.
func created(t *testing.T, name, more string) string {
	t.Helper()
	return `{"FunctionName":"` + name + `","Role":"arn:aws:iam::000000000000:role/r","Handler":"h","Runtime":"provided.al2023","Code":{"ZipFile":"` +
		zipped(t, "one") + `"}` + more + `}`
}

func TestFunctions(t *testing.T) {
	a := newAsker(t)
	many := make([]string, 51)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":""`, i)
	}
	a.run(
		step{"CreateFunction", created(t, strings.Repeat("f", 65), ""), fault.InvalidParameter, "1 validation error detected: Value"},
		step{"CreateFunction", created(t, "f.g", ""), fault.ValidationFailed, "regular expression pattern"},
		step{"CreateFunction", created(t, "f:1", ""), fault.InvalidParameter, "versioned or aliased"},
		step{"CreateFunction", created(t, "f", `,"Timeout":0,"MemorySize":1`), fault.ValidationFailed, "2 validation errors detected"},
		step{"CreateFunction", strings.Replace(created(t, "f", ""), "ZipFile", "ImageUri", 1), fault.InvalidParameter, "Please provide a source for function code."},
		step{"CreateFunction", created(t, "f", `,"Runtime":"cobol"`), fault.InvalidParameter, "Value cobol at 'runtime'"},
		step{"CreateFunction", created(t, "f", `,"Layers":["l"]`), fault.ValidationFailed, "Value '[l]' at 'layers' failed"},
		step{"CreateFunction", created(t, "f", `,"VpcConfig":{"SubnetIds":["s"]}`), fault.InvalidParameter, "Not supported by this version: VpcConfig."},
		step{"CreateFunction", created(t, "f", `,"Tags":{`+strings.Join(many, ",")+`}`), fault.InvalidParameter, "Number of tags exceeds resource tag limit."},
		step{"CreateFunction", created(t, "f", `,"Environment":{"Variables":{"BB":"1","AA":"`+strings.Repeat("x", 4096)+`"}}`), fault.InvalidParameter, `measured: {"BB":"1","AA":"x`},
		step{"CreateFunction", created(t, "f", `,"Environment":{"Variables":{"AWS_REGION":"x"}}`), fault.InvalidParameter, "Reserved keys used in this request: AWS_REGION"},
		step{"CreateFunction", created(t, "f", `,"Publish":true,"Environment":{"Variables":{}}`), ok, `"FunctionArn":"` + fARN + `"`},
		step{"CreateFunction", created(t, "f", ""), fault.ResourceConflict, "Function already exist: f"},
		step{"GetFunction", `{"FunctionName":"f"}`, ok, `"State":"Pending"`},
		step{"UpdateFunctionConfiguration", `{"FunctionName":"f","Timeout":7}`, fault.ResourceConflict, "Pending"},
		step{"Invoke", `{"FunctionName":"f"}`, fault.ResourceConflict, "Pending"},
	)
	a.complete()
	a.run(
		step{"GetFunctionConfiguration", `{"FunctionName":"f","Qualifier":"1"}`, ok, `"FunctionArn":"` + fARN + `:1"`},
		step{"GetFunctionConfiguration", `{"FunctionName":"f"}`, ok, `"Environment":{"Variables":{},"Error":null}`},
		step{"GetFunctionConfiguration", `{"FunctionName":"f"}`, ok, `"RuntimeVersionConfig":{"RuntimeVersionArn":"arn:aws:lambda:us-east-1::runtime:`},
		step{"GetFunction", `{"FunctionName":"f"}`, ok, `"Tags":null`},
		step{"GetFunctionCodeSigningConfig", `{"FunctionName":"f"}`, ok, `{"CodeSigningConfigArn":"","FunctionName":""}`},
		step{"UpdateFunctionConfiguration", `{"FunctionName":"f","Description":"d","RevisionId":"stale"}`, fault.PreconditionFailed, "Revision Id"},
		step{"UpdateFunctionConfiguration", `{"FunctionName":"f","Handler":""}`, fault.ValidationFailed, `Value '' at 'handler' failed to satisfy constraint: Member must satisfy regular expression pattern: [^\s]+`},
		step{"UpdateFunctionConfiguration", `{"FunctionName":"f","Description":"d"}`, ok, `"LastUpdateStatus":"InProgress"`},
		step{"UpdateFunctionCode", `{"FunctionName":"f","ZipFile":"` + zipped(t, "two") + `"}`, fault.ResourceConflict, "An update is in progress for resource: " + fARN},
	)
	a.complete()
	a.run(
		step{"PublishVersion", `{"FunctionName":"f"}`, ok, `"State":"Active"`},
		step{"PublishVersion", `{"FunctionName":"f","Description":"other"}`, ok, `"Version":"2"`},
		step{"UpdateFunctionCode", `{"FunctionName":"f","ZipFile":"` + zipped(t, "one") + `","Publish":true}`, ok, `"FunctionArn":"` + fARN + `:3"`},
	)
	a.complete()
	a.run(
		step{"ListVersionsByFunction", `{"FunctionName":"f","MaxItems":2}`, ok, `"NextMarker":"`},
		step{"ListFunctions", `{"FunctionVersion":"ALL"}`, ok, fARN + `:3"`},
		step{"ListFunctions", `{"Marker":"?"}`, fault.InvalidParameter, "Marker"},
		step{"DeleteFunction", `{"FunctionName":"none","Qualifier":"$LATEST"}`, fault.InvalidParameter, "$LATEST version cannot be deleted"},
		step{"DeleteFunction", `{"FunctionName":"f","Qualifier":"2"}`, ok, `"StatusCode":204`},
		step{"GetAccountSettings", `{}`, ok, `"FunctionCount":1`},
		step{"DeleteFunction", `{"FunctionName":"f"}`, ok, `"StatusCode":204`},
		step{"GetFunction", `{"FunctionName":"f"}`, fault.ResourceNotFound, "Function not found: " + fARN},
	)
}

func TestAliasesAndPermissions(t *testing.T) {
	a := newAsker(t)
	a.run(
		step{"CreateAlias", `{"FunctionName":"f","Name":"live","FunctionVersion":"1"}`, fault.ResourceNotFound, fARN + ":1"},
		step{"CreateFunction", created(t, "f", `,"Publish":true`), ok, ""},
	)
	a.complete()
	const weights = `{"FunctionName":"f","Name":"live","FunctionVersion":"1","RoutingConfig":{"AdditionalVersionWeights":{%s}}}`
	a.run(
		step{"CreateAlias", fmt.Sprintf(weights, `"2":2`), fault.ValidationFailed, "Value '{2=2.0}'"},
		step{"CreateAlias", fmt.Sprintf(weights, `"$LATEST":0.5`), fault.ValidationFailed, "Value '{$LATEST=0.5}'"},
		step{"CreateAlias", fmt.Sprintf(weights, `"2":0.5,"3":0.5`), fault.InvalidParameter, "cannot be greater than 1"},
		step{"CreateAlias", fmt.Sprintf(weights, `"9":0.5`), fault.ResourceNotFound, fARN + ":9"},
		step{"CreateAlias", `{"FunctionName":"f","Name":"12","FunctionVersion":"1"}`, fault.ValidationFailed, "(?!^[0-9]+$)"},
		step{"UpdateAlias", `{"FunctionName":"f","Name":"live"}`, fault.ResourceNotFound, "Alias not found: " + fARN + ":live"},
		step{"CreateAlias", `{"FunctionName":"f","Name":"live","FunctionVersion":"1"}`, ok, `"AliasArn":"` + fARN + `:live"`},
		step{"UpdateAlias", `{"FunctionName":"f","Name":"live","Description":"d"}`, ok, `"Description":"d"`},
		step{"ListAliases", `{"FunctionName":"f","FunctionVersion":"1"}`, ok, `"Name":"live"`},
		step{"GetAlias", `{"FunctionName":"f","Name":"none"}`, fault.ResourceNotFound, "Cannot find alias arn: " + fARN + ":none"},
		step{"AddPermission", `{"FunctionName":"f","Qualifier":"none","StatementId":"s","Action":"lambda:InvokeFunction","Principal":"*"}`, fault.ResourceNotFound, "Cannot find alias arn"},
		step{"AddPermission", `{"FunctionName":"f:$LATEST","StatementId":"s","Action":"lambda:InvokeFunction","Principal":"*"}`, fault.InvalidParameter, "policies for $LATEST"},
		step{"AddPermission", `{"FunctionName":"f","StatementId":"s","Action":"lambda:InvokeFunction","Principal":"no.such.org"}`, fault.InvalidParameter, "principal was invalid"},
		step{"AddPermission", `{"FunctionName":"f","StatementId":"s","Action":"lambda:GetFunction","Principal":"` + friend + `"}`, ok, friend},
		step{"GetPolicy", `{"FunctionName":"f"}`, ok, `lambda:GetFunction`},
		step{"DeleteAlias", `{"FunctionName":"f","Name":"live"}`, ok, `{}`},
	)
	a.account = friend
	a.run(
		step{"GetFunction", `{"FunctionName":"` + fARN + `"}`, ok, fARN},
		step{"GetFunction", `{"FunctionName":"` + fARN + `:1"}`, fault.AccessDenied, "lambda:GetFunction on resource: " + fARN + ":1"},
		step{"Invoke", `{"FunctionName":"` + fARN + `"}`, fault.AccessDenied, "lambda:InvokeFunction"},
		step{"UpdateFunctionConfiguration", `{"FunctionName":"` + fARN + `"}`, fault.AccessDenied, "lambda:UpdateFunctionConfiguration"},
		step{"GetFunction", `{"FunctionName":"f"}`, fault.ResourceNotFound, friend},
	)
	a.account = account
	a.run(
		step{"RemovePermission", `{"FunctionName":"f","StatementId":"s"}`, ok, `{}`},
		step{"GetPolicy", `{"FunctionName":"f"}`, fault.ResourceNotFound, "The resource you requested does not exist."},
	)
}

// TestLongRefused refuses what is too long with a short answer.
func TestLongRefused(t *testing.T) {
	a := newAsker(t)
	weights, variables := make([]string, 20_000), make([]string, 20_000)
	for i := range weights {
		weights[i], variables[i] = fmt.Sprintf(`"v%d":2`, i), fmt.Sprintf(`"V%d":"x"`, i)
	}
	for _, c := range []struct {
		operation, in, want string
		most                int
	}{
		{"CreateAlias", `{"FunctionName":"f","Name":"a","FunctionVersion":"1","RoutingConfig":{"AdditionalVersionWeights":{` + strings.Join(weights, ",") + `}}}`, "cannot be greater than 1", 1000},
		{"CreateFunction", created(t, "f", `,"Architectures":["x"`+strings.Repeat(`,"x"`, 20_000)+`]`), "less than or equal to 1", 1000},
		{"CreateFunction", created(t, "f", `,"Environment":{"Variables":{"AA":"`+strings.Repeat("x", 1<<20)+`"}}`), `4KB limit. String measured: {"AA":"xx`, 17 << 10},
		{"CreateFunction", created(t, "f", `,"Environment":{"Variables":{`+strings.Join(variables, ",")+`}}`), `4KB limit. String measured: {"V0":"x","V1"`, 17 << 10},
	} {
		text := ""
		if _, err := a.Ask(c.operation, c.in); err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, c.want) || len(text) > c.most {
			t.Errorf("%s: %.500s, %d bytes", c.operation, text, len(text))
		}
	}
}

func TestSettings(t *testing.T) {
	a := newAsker(t)
	a.run(
		step{"CreateFunction", created(t, "f", ""), ok, ""},
		step{"CreateFunction", created(t, "g", ""), ok, ""},
	)
	a.complete()
	const provider = "arn:aws:lambda:us-east-1:000000000000:capacity-provider:p"
	a.run(
		step{"PutFunctionConcurrency", `{"FunctionName":"none","ReservedConcurrentExecutions":1}`, fault.ResourceNotFound, ":function:none:$LATEST"},
		step{"PutFunctionConcurrency", `{"FunctionName":"f:1","ReservedConcurrentExecutions":1}`, fault.InvalidParameter, "This operation is permitted on Lambda functions only."},
		step{"PutFunctionConcurrency", `{"FunctionName":"f","ReservedConcurrentExecutions":901}`, fault.InvalidParameter, "minimum value of [100]"},
		step{"PutFunctionConcurrency", `{"FunctionName":"f","ReservedConcurrentExecutions":7}`, ok, "7"},
		step{"GetFunctionConcurrency", `{"FunctionName":"f"}`, ok, "7"},
		step{"GetFunction", `{"FunctionName":"f"}`, ok, `"Concurrency":{"ReservedConcurrentExecutions":7}`},
		step{"GetAccountSettings", `{}`, ok, `"UnreservedConcurrentExecutions":993`},
		step{"DeleteFunctionConcurrency", `{"FunctionName":"f"}`, ok, `{}`},
		step{"TagResource", `{"Resource":"` + fARN + `","Tags":{}}`, fault.InvalidParameter, "An error occurred and the request cannot be processed."},
		step{"TagResource", `{"Resource":"` + fARN + `","Tags":{"k":"v"}}`, ok, `{}`},
		step{"ListTags", `{"Resource":"` + fARN + `"}`, ok, `{"Tags":{"k":"v"}}`},
		step{"UntagResource", `{"Resource":"` + fARN + `","TagKeys":["k"]}`, ok, `{}`},
		step{"ListTags", `{"Resource":"` + fARN + `"}`, ok, `{"Tags":{}}`},
		step{"ListTags", `{"Resource":"` + provider + `"}`, fault.ResourceNotFound, "Capacity provider not found: " + provider},
		step{"ListTags", `{"Resource":"` + provider + `:live"}`, fault.ValidationFailed, "'resource'"},

		step{"PutFunctionEventInvokeConfig", `{"FunctionName":"none"}`, fault.InvalidParameter, "You must specify at least one"},
		step{"PutFunctionEventInvokeConfig", `{"FunctionName":"none","MaximumRetryAttempts":1}`, fault.ResourceNotFound, "The function doesn't exist."},
		step{"PutFunctionEventInvokeConfig", `{"FunctionName":"f","MaximumRetryAttempts":3}`, fault.ValidationFailed, "less than or equal to 2"},
		step{"PutFunctionEventInvokeConfig", `{"FunctionName":"f","DestinationConfig":{"OnSuccess":{"Destination":"` + fARN + `x"}}}`, fault.InvalidParameter, "The destination ARN " + fARN + "x is invalid."},
		step{"PutFunctionEventInvokeConfig", `{"FunctionName":"f","DestinationConfig":{"OnSuccess":{"Destination":"` + fARN + `"}}}`, fault.InvalidParameter, "as a destination for itself"},
		step{"PutFunctionEventInvokeConfig", `{"FunctionName":"g","DestinationConfig":{"OnSuccess":{"Destination":"` + fARN + `"}}}`, ok, fARN},
		step{"UpdateFunctionEventInvokeConfig", `{"FunctionName":"g","MaximumRetryAttempts":0}`, ok, fARN},
		step{"ListFunctionEventInvokeConfigs", `{"FunctionName":"g"}`, ok, `"MaximumRetryAttempts":0`},
		step{"DeleteFunctionEventInvokeConfig", `{"FunctionName":"g"}`, ok, `{}`},
		step{"GetFunctionEventInvokeConfig", `{"FunctionName":"g"}`, fault.ResourceNotFound, "doesn't have an EventInvokeConfig"},
	)
}

func TestInvocations(t *testing.T) {
	a := newAsker(t)
	a.run(step{"CreateFunction", created(t, "f", `,"Publish":true`), ok, ""})
	a.complete()
	a.run(
		step{"Invoke", `{"FunctionName":"f","Qualifier":"1","LogType":"Tail"}`, ok, `"LogResult":"dGFpbA=="`},
		step{"Invoke", `{"FunctionName":"f","InvocationType":"DryRun"}`, ok, `"StatusCode":204`},
		step{"Invoke", `{"FunctionName":"f","InvocationType":"Event","Payload":"e30="}`, ok, `"StatusCode":202`},
		step{"Invoke", `{"FunctionName":"f","InvocationType":"Later"}`, fault.ValidationFailed, "invocationType"},
		step{"Invoke", `{"FunctionName":"f","Payload":"ew=="}`, fault.InvalidRequestContent, "Could not parse request body into json"},
		step{"Invoke", `{"FunctionName":"none"}`, fault.ResourceNotFound, ":function:none:$LATEST"},
		step{"Invoke", `{"FunctionName":"f","Qualifier":"7"}`, fault.ResourceNotFound, fARN + ":7"},
	)
	if len(a.ran) != 1 || a.ran[0].Target.Version != "1" || !a.ran[0].Tail {
		t.Errorf("ran %+v", a.ran)
	}
}

func TestMappings(t *testing.T) {
	a := newAsker(t)
	a.run(step{"CreateFunction", created(t, "f", `,"Publish":true`), ok, ""})
	a.complete()
	a.queue("q")
	const queue, other = "arn:aws:sqs:us-east-1:000000000000:q", "arn:aws:sqs:us-east-1:" + friend + ":q"
	create := func(more string) string { return `{"EventSourceArn":"` + queue + `","FunctionName":"f"` + more + `}` }
	a.run(
		step{"CreateEventSourceMapping", create(`,"BatchSize":0`), fault.ValidationFailed, "batchSize"},
		step{"CreateEventSourceMapping", create(`,"BatchSize":11`), fault.InvalidParameter, "Maximum batch window"},
		step{"CreateEventSourceMapping", create(`,"StartingPosition":"LATEST"`), fault.InvalidParameter, "StartingPosition"},
		step{"CreateEventSourceMapping", `{"EventSourceArn":"` + queue + `x","FunctionName":"f"}`, fault.InvalidParameter, "NonExistentQueue"},
		step{"CreateEventSourceMapping", `{"EventSourceArn":"` + other + `","FunctionName":"f"}`, fault.AccessDenied, other},
		step{"CreateEventSourceMapping", `{"EventSourceArn":"` + queue + `","FunctionName":"none"}`, fault.InvalidParameter, "Function does not exist"},
		step{"ListEventSourceMappings", `{"EventSourceArn":"` + other + `"}`, ok, `"EventSourceMappings":[]`},
		step{"ListEventSourceMappings", `{"FunctionName":"none"}`, ok, `"EventSourceMappings":[]`},
		step{"CreateEventSourceMapping", `{"EventSourceArn":"` + queue + `","FunctionName":"` + account + `:function:f:1"}`, ok, `"FunctionArn":"` + fARN + `:1"`},
	)
	made, err := a.Ask("CreateEventSourceMapping", create(`,"FunctionResponseTypes":[]`))
	var m mappings.EventSourceMappingConfiguration
	if err := errors.Join(err, json.Unmarshal([]byte(made), &m)); err != nil {
		t.Fatal(err)
	}
	if m.FunctionResponseTypes == nil || m.State != "Creating" || m.FunctionArn != fARN {
		t.Errorf("made %s", made)
	}
	one := `{"UUID":"` + m.UUID + `"}`
	a.run(
		step{"CreateEventSourceMapping", create(""), fault.ResourceConflict, m.UUID},
		step{"UpdateEventSourceMapping", one, fault.ResourceInUse, "Cannot update the event source mapping"},
	)
	a.complete()
	a.run(
		step{"UpdateEventSourceMapping", `{"UUID":"` + m.UUID + `","Enabled":false}`, ok, `"State":"Disabling"`},
		step{"TagResource", `{"Resource":"` + m.EventSourceMappingArn + `","Tags":{"k":"v"}}`, ok, `{}`},
		step{"ListTags", `{"Resource":"` + m.EventSourceMappingArn + `"}`, ok, `{"Tags":{"k":"v"}}`},
	)
	a.complete()
	a.run(
		step{"GetEventSourceMapping", one, ok, `"State":"Disabled"`},
		step{"ListEventSourceMappings", `{"MaxItems":1}`, ok, `"NextMarker":"`},
		step{"DeleteEventSourceMapping", one, ok, `"State":"Deleting"`},
	)
	a.complete()
	a.run(
		step{"GetEventSourceMapping", one, fault.ResourceNotFound, "The resource you requested does not exist."},
		step{"UntagResource", `{"Resource":"` + m.EventSourceMappingArn + `","TagKeys":["k"]}`, fault.ResourceNotFound, "Event source mapping not found: " + m.EventSourceMappingArn},
	)
}

// A link to code is good for ten minutes, and for nobody who made it up.
func TestDownload(t *testing.T) {
	a := newAsker(t)
	a.run(step{"CreateFunction", created(t, "f", ""), ok, ""})
	got, err := a.Ask("GetFunction", `{"FunctionName":"f"}`)
	var out GetFunctionOutput
	if err := errors.Join(err, json.Unmarshal([]byte(got), &out)); err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(out.Code.Location, "?token=")
	zip, err := a.service.Download(t.Context(), token, now.Add(linkLife-time.Second))
	if err != nil || base64.StdEncoding.EncodeToString(zip) != zipped(t, "one") {
		t.Errorf("%d bytes, %v", len(zip), err)
	}
	for name, token := range map[string]string{"cut": token[1:], "none": "", "no base64": "?"} {
		if _, err := a.service.Download(t.Context(), token, now); fault.KindOf(err) != fault.AccessDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := a.service.Download(t.Context(), token, now.Add(linkLife)); fault.KindOf(err) != fault.AccessDenied {
		t.Errorf("expired: %v", err)
	}
}

var _ Engine = (*shard.Engine)(nil)

package mappings_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/apitest"
	"godwit.dev/godwit/internal/api/lambda/mappings"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function/mapping"
)

const account = "000000000000"

// engine keeps mappings in memory, whose changes take effect at once.
type engine map[arn.ARN]mapping.Mapping

func (e engine) CreateMapping(_ context.Context, m mapping.Mapping) (mapping.Mapping, error) {
	m.Modified = time.Unix(1_767_225_600, 0)
	e[m.ARN] = m
	return m, nil
}

func (e engine) UpdateMapping(ctx context.Context, a arn.ARN, edit func(mapping.Mapping) (mapping.Update, error)) (mapping.Mapping, error) {
	m, err := e.Mapping(ctx, a)
	if err != nil {
		return m, err
	}
	u, err := edit(m)
	if err != nil {
		return m, err
	}
	m.Settings, m.Enabled = u.Settings, u.Enabled
	if u.Function != (arn.ARN{}) {
		m.Function = u.Function
	}
	e[a] = m
	return m, nil
}

func (e engine) DeleteMapping(ctx context.Context, a arn.ARN) (mapping.Mapping, error) {
	m, err := e.Mapping(ctx, a)
	delete(e, a)
	return m, err
}

func (e engine) Mapping(_ context.Context, a arn.ARN) (mapping.Mapping, error) {
	m, ok := e[a]
	if !ok {
		return m, fault.New(fault.ResourceNotFound, "no mapping")
	}
	return m, nil
}

func (e engine) Mappings(context.Context) (all []mapping.Mapping, err error) {
	for _, m := range e {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b mapping.Mapping) int { return cmp.Compare(a.UUID(), b.UUID()) })
	return all, nil
}

func newAsker(t *testing.T) (*apitest.Asker, engine) {
	e := engine{}
	return apitest.New(t, mappings.New(e).Operations(), func(operation string) *api.Call {
		return &api.Call{Operation: operation, Region: "us-east-1", Account: account, AccessKey: "k"}
	}), e
}

const queue = "arn:aws:sqs:us-east-1:" + account + ":q"

// only is the one mapping that there is.
func (e engine) only(t *testing.T) mapping.Mapping {
	t.Helper()
	all, _ := e.Mappings(t.Context())
	if len(all) != 1 {
		t.Fatalf("%d mappings", len(all))
	}
	return all[0]
}

// TestLife of a mapping: its defaults, a change of each setting, what a change leaves
// alone, and its end.
func TestLife(t *testing.T) {
	a, e := newAsker(t)
	a.Check("CreateEventSourceMapping", `{"EventSourceArn":"`+queue+`","FunctionName":"f"}`, apitest.Answered, `"BatchSize":10,"MaximumBatchingWindowInSeconds":0`)
	m := e.only(t)
	if !m.Enabled || m.Queue.String() != queue || m.Function.String() != "arn:aws:lambda:us-east-1:000000000000:function:f" || m.State() != mapping.Enabled {
		t.Errorf("%+v", m)
	}
	id := `{"UUID":"` + m.UUID() + `"`
	a.Check("UpdateEventSourceMapping", id+`,"BatchSize":100,"MaximumBatchingWindowInSeconds":5,"FunctionResponseTypes":["ReportBatchItemFailures"],`+
		`"ScalingConfig":{"MaximumConcurrency":2},"FilterCriteria":{"Filters":[{"Pattern":"{\"body\":[\"x\"]}"}]}}`, apitest.Answered, `"MaximumConcurrency":2`)
	want := mapping.Settings{BatchSize: 100, Window: 5 * time.Second, ReportFailures: true, Filters: []string{`{"body":["x"]}`}, Concurrency: 2}
	if m = e.only(t); !m.Equal(want) {
		t.Errorf("%+v", m.Settings)
	}
	a.Check("UpdateEventSourceMapping", id+`,"FunctionName":"g:live","Enabled":false}`, apitest.Answered, `"State":"Disabled"`)
	if m = e.only(t); !m.Equal(want) || m.Function.Resource != "function:g:live" || m.Enabled {
		t.Errorf("%+v", m)
	}
	a.Check("UpdateEventSourceMapping", id+`,"ScalingConfig":{},"FunctionResponseTypes":[],"FilterCriteria":{}}`, apitest.Answered, `"FunctionResponseTypes":[]`)
	if m = e.only(t); m.Concurrency != 0 || m.ReportFailures || m.Filters != nil || m.BatchSize != 100 {
		t.Errorf("what is empty clears: %+v", m.Settings)
	}
	a.Check("GetEventSourceMapping", id+`}`, apitest.Answered, `"EventSourceArn":"`+queue+`"`)
	a.Check("DeleteEventSourceMapping", id+`}`, apitest.Answered, m.UUID())
	a.Check("GetEventSourceMapping", id+`}`, fault.ResourceNotFound, "")
}

// TestRefused changes nothing.
func TestRefused(t *testing.T) {
	a, e := newAsker(t)
	for in, c := range map[string]struct {
		kind fault.Kind
		text string
	}{
		`"FunctionName":"f"`: {fault.InvalidParameter, "Unrecognized event source."},
		`"FunctionName":"f","EventSourceArn":"arn:aws:kinesis:us-east-1:000000000000:stream/s"`: {fault.InvalidParameter, "Unrecognized event source."},
		`"FunctionName":"f","EventSourceArn":"arn:aws:sqs:eu-west-1:000000000000:q"`:            {fault.InvalidParameter, "The event source must be in the same region as the function."},
		`"FunctionName":"f","EventSourceArn":"arn:aws:sqs:us-east-1:111111111111:q"`:            {fault.AccessDenied, "lambda:CreateEventSourceMapping"},
		`"FunctionName":"111111111111:function:f","EventSourceArn":"` + queue + `"`:             {fault.AccessDenied, "lambda:CreateEventSourceMapping"},
		`"FunctionName":"f","EventSourceArn":"` + queue + `","StartingPosition":"LATEST"`:       {fault.InvalidParameter, "StartingPosition is not valid for SQS event sources."},
		`"FunctionName":"f","EventSourceArn":"` + queue + `","StartingPosition":"0"`: {
			fault.ValidationFailed, "Value '0' at 'startingPosition' failed to satisfy constraint: Member must satisfy enum value set: [LATEST, AT_TIMESTAMP, TRIM_HORIZON]",
		},
		`"FunctionName":"f","EventSourceArn":"` + queue + `","StartingPosition":"AT_TIMESTAMP","StartingPositionTimestamp":1`: {fault.InvalidParameter, "StartingPosition is not valid for SQS event sources."},
		`"FunctionName":"f","EventSourceArn":"` + queue + `","StartingPositionTimestamp":1`:                                   {fault.InvalidParameter, "Unsupported StartingPositionTimestamp parameter"},
		`"FunctionName":"f","EventSourceArn":"` + queue + `","MaximumRetryAttempts":1`:                                        {fault.InvalidParameter, "Unsupported MaximumRetryAttempts parameter"},
		`"FunctionName":"f","EventSourceArn":"` + queue + `","ProvisionedPollerConfig":{}`:                                    {fault.InvalidParameter, "Unsupported ProvisionedPollerConfig parameter"},
		`"FunctionName":"f","EventSourceArn":"` + queue + `","BatchSize":0`:                                                   {fault.ValidationFailed, "batchSize"},
		`"FunctionName":"f","EventSourceArn":"` + queue + `","BatchSize":10001`:                                               {fault.ValidationFailed, "batchSize"},
		`"FunctionName":"f","EventSourceArn":"` + queue + `","MaximumBatchingWindowInSeconds":301`:                            {fault.ValidationFailed, "maximumBatchingWindowInSeconds"},
		`"FunctionName":"f","EventSourceArn":"` + queue + `","ScalingConfig":{"MaximumConcurrency":1}`:                        {fault.ValidationFailed, "scalingConfig.maximumConcurrency"},
		`"FunctionName":"f","EventSourceArn":"` + queue + `","FunctionResponseTypes":["Other"]`: {
			fault.ValidationFailed, "Value '[Other]' at 'functionResponseTypes' failed to satisfy constraint: Member must satisfy constraint: [Member must satisfy enum value set: [ReportBatchItemFailures]]",
		},
		`"FunctionName":"f","EventSourceArn":"` + queue + `","FilterCriteria":{"Filters":[{"Pattern":"["}]}`:   {fault.InvalidParameter, "Invalid filter pattern definition."},
		`"FunctionName":"f","EventSourceArn":"` + queue + `","FilterCriteria":{"Filters":[{},{},{},{},{},{}]}`: {fault.InvalidParameter, "at most 5"},
	} {
		a.Check("CreateEventSourceMapping", "{"+in+"}", c.kind, c.text)
	}
	if len(e) > 0 {
		t.Errorf("%d mappings were made", len(e))
	}
	for in, text := range map[string]string{
		`"Topics":["t"]`: "Unsupported Topics parameter", `"Queues":["q"]`: "Unsupported Queues parameter",
		`"SelfManagedEventSource":{"Endpoints":{}}`: "Unsupported SelfManagedEventSource parameter",
	} {
		a.Check("CreateEventSourceMapping", `{"FunctionName":"f","EventSourceArn":"`+queue+`",`+in+`}`, fault.InvalidParameter, text)
	}
	for in, text := range map[string]string{ // at an update, too
		`"SourceAccessConfigurations":[{"Type":"BASIC_AUTH"}]`: "Unsupported SourceAccessConfigurations parameter",
		`"AmazonManagedKafkaEventSourceConfig":{}`:             "Unsupported AmazonManagedKafkaEventSourceConfig parameter",
		`"SelfManagedKafkaEventSourceConfig":{}`:               "Unsupported SelfManagedKafkaEventSourceConfig parameter",
		`"DocumentDBEventSourceConfig":{}`:                     "Unsupported DocumentDBEventSourceConfig parameter",
		`"LoggingConfig":{"SystemLogLevel":"INFO"}`:            "Unsupported LoggingConfig parameter",
		`"KMSKeyArn":"arn:aws:kms:us-east-1:0:key/k"`:          "Not supported by this version: KMSKeyArn.",
		`"MetricsConfig":{"Metrics":["EventCount"]}`:           "Not supported by this version: MetricsConfig.",
	} {
		a.Check("CreateEventSourceMapping", `{"FunctionName":"f","EventSourceArn":"`+queue+`",`+in+`}`, fault.InvalidParameter, text)
		a.Check("UpdateEventSourceMapping", `{"UUID":"none",`+in+`}`, fault.InvalidParameter, text)
	}
	a.Check("UpdateEventSourceMapping", `{"UUID":"none","KMSKeyArn":"","MetricsConfig":{"Metrics":[]},"SourceAccessConfigurations":[]}`, fault.ResourceNotFound, "")
	a.Check("UpdateEventSourceMapping", `{"UUID":"none"}`, fault.ResourceNotFound, "")
	a.Check("UpdateEventSourceMapping", `{"UUID":"none","FunctionName":""}`, fault.ValidationFailed, "Value '' at 'functionName'")
	a.Check("ListEventSourceMappings", `{"FunctionName":""}`, fault.ValidationFailed, "Value '' at 'functionName'")
	a.Check("DeleteEventSourceMapping", `{"UUID":"none"}`, fault.ResourceNotFound, "")
}

// TestLongRefused refuses what is too long with a short answer.
func TestLongRefused(t *testing.T) {
	a, _ := newAsker(t)
	const many = 20_000
	for name, in := range map[string]string{
		"response types": `"FunctionResponseTypes":["x"` + strings.Repeat(`,"x"`, many) + `]`,
		"filters":        `"FilterCriteria":{"Filters":[{}` + strings.Repeat(`,{"Pattern":"`+strings.Repeat("x", 5000)+`"}`, 200) + `]}`,
	} {
		_, err := a.Ask("CreateEventSourceMapping", `{"EventSourceArn":"`+queue+`","FunctionName":"f",`+in+"}")
		if err == nil || len(err.Error()) > 1000 {
			t.Errorf("%s: %.200v, %d bytes", name, err, len(fmt.Sprint(err)))
		}
	}
}

// TestList pages through the account's mappings of a region, of a queue or a function.
func TestList(t *testing.T) {
	a, e := newAsker(t)
	add := func(region, of, queue, function string, i int) {
		m := mapping.Mapping{
			ARN: mapping.ARN(region, of, fmt.Sprintf("%04d", i)), Queue: arn.Queue(region, of, queue),
			Function: arn.ARN{Service: "lambda", Region: region, Account: of, Resource: "function:" + function}, Enabled: true,
		}
		e[m.ARN] = m
	}
	for i := range 205 {
		add("us-east-1", account, fmt.Sprint("q", i%2), fmt.Sprint("f", i%5), i)
	}
	add("eu-west-1", account, "q0", "f0", 900)
	add("us-east-1", "111111111111", "q0", "f0", 901)
	count := func(in string) (n int) {
		t.Helper()
		marker := ""
		for {
			out, err := a.Ask("ListEventSourceMappings", "{"+in+marker+"}")
			if err != nil {
				t.Fatal(err)
			}
			found := strings.Count(out, `"UUID":`)
			if n += found; found > 100 {
				t.Errorf("%d on a page", found)
			}
			_, rest, _ := strings.Cut(out, `"NextMarker":"`)
			next, _, _ := strings.Cut(rest, `"`)
			if next == "" {
				return n
			}
			marker = `,"Marker":"` + next + `"`
		}
	}
	for in, want := range map[string]int{
		`"MaxItems":100`: 205, `"MaxItems":7`: 205,
		`"MaxItems":9,"EventSourceArn":"arn:aws:sqs:us-east-1:000000000000:q1"`:                       102,
		`"MaxItems":9,"FunctionName":"f0"`:                                                            41,
		`"MaxItems":9,"FunctionName":"f0","EventSourceArn":"arn:aws:sqs:us-east-1:000000000000:none"`: 0,
	} {
		if got := count(in); got != want {
			t.Errorf("%s: %d mappings, want %d", in, got, want)
		}
	}
	a.Check("ListEventSourceMappings", `{"Marker":"?"}`, fault.InvalidParameter, "")
	a.Check("ListEventSourceMappings", `{"MaxItems":0}`, fault.ValidationFailed, "")
}

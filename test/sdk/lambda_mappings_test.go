package sdk_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

const noMapping = "The resource you requested does not exist."

// mapped makes a mapping of a queue and a function.
func mapped(t *testing.T, c *lambda.Client, queue, function string, change func(in *lambda.CreateEventSourceMappingInput)) (uuid *string) {
	t.Helper()
	in := &lambda.CreateEventSourceMappingInput{EventSourceArn: aws.String(queueARN(queue)), FunctionName: &function}
	if change != nil {
		change(in)
	}
	return must(c.CreateEventSourceMapping(t.Context(), in))(t).UUID
}

func mappingOf(t *testing.T, c *lambda.Client, uuid *string) *lambda.GetEventSourceMappingOutput {
	t.Helper()
	return must(c.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: uuid}))(t)
}

func TestMappingLifeCycle(t *testing.T) {
	endpoint := startSlow(t)
	c, q := functionsClient(endpoint), client(endpoint)
	createFunction(t, endpoint, c, "f")
	createQueue(t, q, "work")
	made := must(c.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: aws.String(queueARN("work")), FunctionName: aws.String("f"), Tags: map[string]string{"team": "shop"},
	}))(t)
	if !uuidForm.MatchString(aws.ToString(made.UUID)) {
		t.Errorf("UUID %q", aws.ToString(made.UUID))
	}
	arn := "arn:aws:lambda:" + region + ":" + account + ":event-source-mapping:" + *made.UUID
	want := lambda.GetEventSourceMappingOutput{
		UUID: made.UUID, EventSourceMappingArn: &arn, EventSourceArn: aws.String(queueARN("work")), FunctionArn: aws.String(functionARN("f")),
		BatchSize: aws.Int32(10), MaximumBatchingWindowInSeconds: aws.Int32(0), LastModified: made.LastModified,
		State: aws.String("Creating"), StateTransitionReason: aws.String("USER_INITIATED"), FunctionResponseTypes: []types.FunctionResponseType{},
	}
	if made.LastModified == nil || made.LastModified.IsZero() {
		t.Error("no time of change")
	}
	shown := func(what, state string) {
		t.Helper()
		want.State = &state
		got := mappingOf(t, c, made.UUID)
		equal(t, what, &want, got)
	}
	equal(t, "what creation answers", lambda.CreateEventSourceMappingOutput(want), *made)
	shown("created", "Creating")
	update := func(in lambda.UpdateEventSourceMappingInput) error {
		in.UUID = made.UUID
		out, err := c.UpdateEventSourceMapping(t.Context(), &in)
		if err == nil {
			want.LastModified = out.LastModified
		}
		return err
	}
	const busy = "Cannot %s the event source mapping because it is in use."
	refused(t, update(lambda.UpdateEventSourceMappingInput{}), "ResourceInUseException", 400, strings.Replace(busy, "%s", "update", 1))
	completeFunctions(t, endpoint)
	shown("settled", "Enabled")

	if err := update(lambda.UpdateEventSourceMappingInput{
		BatchSize: aws.Int32(50), MaximumBatchingWindowInSeconds: aws.Int32(7), ScalingConfig: &types.ScalingConfig{MaximumConcurrency: aws.Int32(2)},
		FunctionResponseTypes: []types.FunctionResponseType{"ReportBatchItemFailures"},
		FilterCriteria:        &types.FilterCriteria{Filters: []types.Filter{{Pattern: aws.String(`{"body":{"kind":["a"]}}`)}}},
	}); err != nil {
		t.Fatal(err)
	}
	want.BatchSize, want.MaximumBatchingWindowInSeconds = aws.Int32(50), aws.Int32(7)
	want.ScalingConfig = &types.ScalingConfig{MaximumConcurrency: aws.Int32(2)}
	want.FunctionResponseTypes = []types.FunctionResponseType{"ReportBatchItemFailures"}
	want.FilterCriteria = &types.FilterCriteria{Filters: []types.Filter{{Pattern: aws.String(`{"body":{"kind":["a"]}}`)}}}
	shown("updated", "Updating")
	_, err := c.DeleteEventSourceMapping(t.Context(), &lambda.DeleteEventSourceMappingInput{UUID: made.UUID})
	refused(t, err, "ResourceInUseException", 400, strings.Replace(busy, "%s", "delete", 1))
	completeFunctions(t, endpoint)
	shown("the update completed", "Enabled")
	if err := update(lambda.UpdateEventSourceMappingInput{Enabled: aws.Bool(false)}); err != nil {
		t.Fatal(err)
	}
	shown("disabled", "Disabling")
	completeFunctions(t, endpoint)
	shown("disabled for good", "Disabled")
	if err := update(lambda.UpdateEventSourceMappingInput{
		Enabled: aws.Bool(true), ScalingConfig: &types.ScalingConfig{}, FilterCriteria: &types.FilterCriteria{}, FunctionResponseTypes: []types.FunctionResponseType{},
	}); err != nil {
		t.Fatal(err)
	}
	want.ScalingConfig, want.FilterCriteria, want.FunctionResponseTypes = nil, nil, []types.FunctionResponseType{}
	shown("enabled", "Enabling")
	completeFunctions(t, endpoint)
	shown("enabled for good", "Enabled")

	tags := func() map[string]string {
		t.Helper()
		return must(c.ListTags(t.Context(), &lambda.ListTagsInput{Resource: &arn}))(t).Tags
	}
	must(c.TagResource(t.Context(), &lambda.TagResourceInput{Resource: &arn, Tags: map[string]string{"cost": "7"}}))(t)
	must(c.UntagResource(t.Context(), &lambda.UntagResourceInput{Resource: &arn, TagKeys: []string{"team"}}))(t)
	equal(t, "tags", map[string]string{"cost": "7"}, tags())

	gone := must(c.DeleteEventSourceMapping(t.Context(), &lambda.DeleteEventSourceMappingInput{UUID: made.UUID}))(t)
	want.State, want.LastModified = aws.String("Deleting"), gone.LastModified
	equal(t, "what deletion answers", lambda.DeleteEventSourceMappingOutput(want), *gone)
	shown("deleted", "Deleting")
	completeFunctions(t, endpoint)
	_, err = c.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: made.UUID})
	refused(t, err, notFound, 404, noMapping)
	_, err = c.ListTags(t.Context(), &lambda.ListTagsInput{Resource: &arn})
	refused(t, err, notFound, 404, "Event source mapping not found: "+arn)
}

func TestMappingLists(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	for _, name := range []string{"f", "g"} {
		must(c.CreateFunction(t.Context(), functionInput(t, name)))(t)
	}
	must(c.PublishVersion(t.Context(), &lambda.PublishVersionInput{FunctionName: aws.String("f")}))(t)
	for _, name := range []string{"a", "b", "c"} {
		createQueue(t, q, name)
		mapped(t, c, name, "f", nil)
	}
	disabled := func(in *lambda.CreateEventSourceMappingInput) { in.Enabled = aws.Bool(false) }
	second := mapped(t, c, "a", "g", disabled)
	mapped(t, c, "a", "f:1", disabled)
	equal(t, "a disabled one", "Disabled", aws.ToString(mappingOf(t, c, second).State))
	list := func(in lambda.ListEventSourceMappingsInput) (found []string) {
		t.Helper()
		for pages := lambda.NewListEventSourceMappingsPaginator(c, &in); pages.HasMorePages(); {
			page := must(pages.NextPage(t.Context()))(t)
			if in.MaxItems != nil && len(page.EventSourceMappings) > int(*in.MaxItems) {
				t.Errorf("a page of %d", len(page.EventSourceMappings))
			}
			for _, m := range page.EventSourceMappings {
				found = append(found, (*m.EventSourceArn)[strings.LastIndex(*m.EventSourceArn, ":")+1:]+"→"+strings.TrimPrefix(*m.FunctionArn, functionARN("")))
			}
		}
		return found
	}
	sorted := func(what string, got []string, want ...string) {
		t.Helper()
		seen := map[string]int{}
		for _, g := range got {
			seen[g]++
		}
		wanted := map[string]int{}
		for _, w := range want {
			wanted[w]++
		}
		equal(t, what, wanted, seen)
	}
	sorted("all", list(lambda.ListEventSourceMappingsInput{MaxItems: aws.Int32(2)}), "a→f", "b→f", "c→f", "a→g", "a→f:1")
	sorted("of a queue", list(lambda.ListEventSourceMappingsInput{EventSourceArn: aws.String(queueARN("a"))}), "a→f", "a→g", "a→f:1")
	sorted("of a function", list(lambda.ListEventSourceMappingsInput{FunctionName: aws.String("f")}), "a→f", "b→f", "c→f")
	sorted("of a version", list(lambda.ListEventSourceMappingsInput{FunctionName: aws.String("f:1")}), "a→f:1")
	sorted("of both", list(lambda.ListEventSourceMappingsInput{FunctionName: aws.String("g"), EventSourceArn: aws.String(queueARN("b"))}))
	sorted("another account's", func() []string {
		out := must(functionsClientOf(endpoint, region, "111122223333").ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{}))(t)
		return make([]string, len(out.EventSourceMappings))
	}())
}

func TestMappingsRefuse(t *testing.T) {
	endpoint := start(t)
	c, q := functionsClient(endpoint), client(endpoint)
	for name, timeout := range map[string]int32{"f": 3, "slow": 60} {
		in := functionInput(t, name)
		in.Timeout = &timeout
		must(c.CreateFunction(t.Context(), in))(t)
	}
	createQueue(t, q, "work")
	createQueue(t, q, "long", "VisibilityTimeout", "60")
	createQueue(t, q, "work.fifo", "FifoQueue", "true")
	create := func(change func(in *lambda.CreateEventSourceMappingInput)) error {
		in := &lambda.CreateEventSourceMappingInput{EventSourceArn: aws.String(queueARN("work")), FunctionName: aws.String("f")}
		change(in)
		_, err := c.CreateEventSourceMapping(t.Context(), in)
		return err
	}
	type input = lambda.CreateEventSourceMappingInput
	filter := func(patterns ...string) *types.FilterCriteria {
		f := &types.FilterCriteria{}
		for _, p := range patterns {
			f.Filters = append(f.Filters, types.Filter{Pattern: &p})
		}
		return f
	}
	for want, change := range map[string]func(in *input){
		"Function does not exist": func(in *input) { in.FunctionName = aws.String("none") },
		"Error occurred while ReceiveMessage. SQS Error Code: AWS.SimpleQueueService.NonExistentQueue. SQS Error Message: The specified queue does not exist.": func(in *input) { in.EventSourceArn = aws.String(queueARN("none")) },
		"Queue visibility timeout: 30 seconds is less than Function timeout: 60 seconds":                                                                       func(in *input) { in.FunctionName = aws.String("slow") },
		"Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10":                                                      func(in *input) { in.BatchSize = aws.Int32(11) },
		"Batching window is not supported for FIFO queues": func(in *input) {
			in.EventSourceArn, in.MaximumBatchingWindowInSeconds = aws.String(queueARN("work.fifo")), aws.Int32(1)
		},
		"Invalid filter pattern definition.":                   func(in *input) { in.FilterCriteria = filter(`{"body":"a"}`) },
		"Exceeded maximum number of filters: at most 5.":       func(in *input) { in.FilterCriteria = filter("{}", "{}", "{}", "{}", "{}", "{}") },
		"Unrecognized event source.":                           func(in *input) { in.EventSourceArn = nil },
		"StartingPosition is not valid for SQS event sources.": func(in *input) { in.StartingPosition = types.EventSourcePositionLatest },
		"Unsupported DestinationConfig parameter for given event source mapping type.": func(in *input) {
			in.DestinationConfig = &types.DestinationConfig{OnFailure: &types.OnFailure{Destination: aws.String(queueARN("work"))}}
		},
		"The event source must be in the same region as the function.": func(in *input) { in.EventSourceArn = aws.String("arn:aws:sqs:eu-west-1:" + account + ":work") },
	} {
		refused(t, create(change), invalidValue, 400, want)
	}
	refused(t, create(func(in *input) { in.EventSourceArn = aws.String("arn:aws:kinesis:us-east-1:" + account + ":stream/s") }), invalidValue, 400, "Unrecognized event source.")
	for want, change := range map[string]func(in *input){
		"'0' at 'batchSize' failed to satisfy constraint: Member must have value greater than or equal to 1":                        func(in *input) { in.BatchSize = aws.Int32(0) },
		"'10001' at 'batchSize' failed to satisfy constraint: Member must have value less than or equal to 10000":                   func(in *input) { in.BatchSize = aws.Int32(10001) },
		"'301' at 'maximumBatchingWindowInSeconds' failed to satisfy constraint: Member must have value less than or equal to 300":  func(in *input) { in.MaximumBatchingWindowInSeconds = aws.Int32(301) },
		"'1' at 'scalingConfig.maximumConcurrency' failed to satisfy constraint: Member must have value greater than or equal to 2": func(in *input) { in.ScalingConfig = &types.ScalingConfig{MaximumConcurrency: aws.Int32(1)} },
		"'1001' at 'scalingConfig.maximumConcurrency' failed to satisfy constraint: Member must have value less than or equal to 1000": func(in *input) {
			in.ScalingConfig = &types.ScalingConfig{MaximumConcurrency: aws.Int32(1001)}
		},
	} {
		refused(t, create(change), "ValidationException", 400, "1 validation error detected: Value "+want)
	}
	other := "arn:aws:sqs:" + region + ":111122223333:work"
	refused(t, create(func(in *input) { in.EventSourceArn = &other }), "AccessDeniedException", 403, "User: arn:aws:iam::"+account+
		":root is not authorized to perform: lambda:CreateEventSourceMapping on resource: "+other+" because no resource-based policy allows the lambda:CreateEventSourceMapping action")
	out := must(c.ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{}))(t)
	equal(t, "what was refused is not there", 0, len(out.EventSourceMappings))

	first := mapped(t, c, "long", "f", nil)
	second := mapped(t, c, "long", "slow", nil)
	exists := func(function, uuid string) string {
		return `An event source mapping with SQS arn (" ` + queueARN("long") + ` ") and function (" ` + function +
			` ") already exists. Please update or delete the existing mapping with UUID ` + uuid
	}
	err := create(func(in *input) { in.EventSourceArn = aws.String(queueARN("long")) })
	refused(t, err, "ResourceConflictException", 409, exists("f", *first))
	update := func(in lambda.UpdateEventSourceMappingInput) error {
		_, err := c.UpdateEventSourceMapping(t.Context(), &in)
		return err
	}
	before := mappingOf(t, c, second)
	refused(t, update(lambda.UpdateEventSourceMappingInput{UUID: second, FunctionName: aws.String("f")}), "ResourceConflictException", 409, exists("f", *first))
	refused(t, update(lambda.UpdateEventSourceMappingInput{UUID: second, BatchSize: aws.Int32(11)}), invalidValue, 400,
		"Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10")
	refused(t, update(lambda.UpdateEventSourceMappingInput{UUID: second, FilterCriteria: filter("[]")}), invalidValue, 400, "Invalid filter pattern definition.")
	refused(t, update(lambda.UpdateEventSourceMappingInput{UUID: second, FunctionName: aws.String("none")}), invalidValue, 400, "Function does not exist")
	refused(t, update(lambda.UpdateEventSourceMappingInput{UUID: second, ParallelizationFactor: aws.Int32(2)}), invalidValue, 400,
		"Unsupported ParallelizationFactor parameter for given event source mapping type.")
	equal(t, "after updates that were refused", before, mappingOf(t, c, second))
	for _, uuid := range []string{"00000000-0000-4000-8000-000000000000", "no-uuid"} {
		refused(t, update(lambda.UpdateEventSourceMappingInput{UUID: &uuid}), notFound, 404, noMapping)
		_, err := c.DeleteEventSourceMapping(t.Context(), &lambda.DeleteEventSourceMappingInput{UUID: &uuid})
		refused(t, err, notFound, 404, noMapping)
		_, err = c.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: &uuid})
		refused(t, err, notFound, 404, noMapping)
	}
	_, err = c.ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{Marker: aws.String("?")})
	refused(t, err, invalidValue, 400, "The Marker is not valid.")

	far := functionsClientOf(endpoint, region, "111122223333")
	_, err = far.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: first})
	refused(t, err, notFound, 404, noMapping)

	// What can befall any call.
	calls := map[string]func(ctx context.Context) error{
		"create": func(context.Context) error { return create(func(*input) {}) },
		"get": func(ctx context.Context) error {
			_, err := c.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: first})
			return err
		},
		"list": func(ctx context.Context) error {
			_, err := c.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{})
			return err
		},
		"update": func(context.Context) error { return update(lambda.UpdateEventSourceMappingInput{UUID: first}) },
		"delete": func(ctx context.Context) error {
			_, err := c.DeleteEventSourceMapping(ctx, &lambda.DeleteEventSourceMappingInput{UUID: first})
			return err
		},
	}
	for name, call := range calls {
		for _, f := range []struct {
			name, code, text string
			status           int
		}{
			{"internal", "ServiceException", "We encountered an internal error. Please try again.", 500},
			{"throttled", "TooManyRequestsException", "Rate exceeded.", 429},
		} {
			if r := post(t, endpoint+"/_godwit/faults", `{"arn":"arn:aws:lambda:`+region+":"+account+`:*","fault":"`+f.name+`"}`); r.Status != 200 {
				t.Fatalf("%s: %s", name, r.Body)
			}
			refused(t, call(t.Context()), f.code, f.status, f.text)
		}
	}
}

// The tags of a mapping have the limits of any.
func TestMappingTagsRefuse(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	must(c.CreateFunction(t.Context(), functionInput(t, "f")))(t)
	createQueue(t, client(endpoint), "work")
	tags := map[string]string{}
	for i := range 50 {
		tags[strconv.Itoa(i)] = ""
	}
	uuid := mapped(t, c, "work", "f", func(in *lambda.CreateEventSourceMappingInput) { in.Tags = tags })
	arn := mappingOf(t, c, uuid).EventSourceMappingArn
	_, err := c.TagResource(t.Context(), &lambda.TagResourceInput{Resource: arn, Tags: map[string]string{"one": "more"}})
	refused(t, err, invalidValue, 400, "Number of tags exceeds resource tag limit.")
	equal(t, "tags", tags, must(c.ListTags(t.Context(), &lambda.ListTagsInput{Resource: arn}))(t).Tags)
}

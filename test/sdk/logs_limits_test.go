package sdk_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
)

const (
	logDay  = int64(86_400_000)
	logHour = int64(3_600_000)
)

// TestPutLogEventsLimits goes up to each limit, and beyond.
func TestPutLogEventsLimits(t *testing.T) {
	endpoint := start(t)
	c, ctx := logsClient(endpoint), t.Context()
	now := serverNow(t, endpoint)
	createGroup(t, c, "/app", "s")
	put := func(events ...types.InputLogEvent) (*types.RejectedLogEventsInfo, error) {
		out, err := c.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{
			LogGroupName: new("/app"), LogStreamName: new("s"), LogEvents: events, SequenceToken: new("whatever"),
		})
		if err != nil {
			return nil, err
		}
		return out.RejectedLogEventsInfo, nil
	}
	event := func(at int64, message string) types.InputLogEvent {
		return types.InputLogEvent{Timestamp: &at, Message: &message}
	}
	many := func(n int) (all []types.InputLogEvent) {
		for range n {
			all = append(all, event(now, "x"))
		}
		return all
	}
	const largest = 1_048_576 - 26
	big := strings.Repeat("⚡", largest/3) + strings.Repeat("x", largest%3) // bytes count, not characters
	half := strings.Repeat("y", 1_048_576/2-26)
	for _, tt := range []struct {
		what     string
		events   []types.InputLogEvent
		kept     int // -1: refused
		rejected *types.RejectedLogEventsInfo
	}{
		{"the largest event", []types.InputLogEvent{event(now, big)}, 1, nil},
		{"a larger one", []types.InputLogEvent{event(now, big+"x")}, -1, nil},
		{"the largest batch", []types.InputLogEvent{event(now, half), event(now, half)}, 2, nil},
		{"a larger one", []types.InputLogEvent{event(now, half), event(now, half+"x")}, -1, nil},
		{"the most events", many(10_000), 10_000, nil},
		{"more", many(10_001), -1, nil},
		{"a day", []types.InputLogEvent{event(now-logDay, "x"), event(now, "y")}, 2, nil},
		{"more than a day", []types.InputLogEvent{event(now-logDay-1, "x"), event(now, "y")}, -1, nil},
		{"the oldest and the newest", []types.InputLogEvent{event(now-14*logDay, "x")}, 1, nil},
		{"the newest", []types.InputLogEvent{event(now+2*logHour, "x")}, 1, nil},
		{
			"older, and newer",
			[]types.InputLogEvent{event(now-14*logDay-1, "x"), event(now, "y"), event(now, "z"), event(now+2*logHour+1, "x")},
			2, &types.RejectedLogEventsInfo{TooOldLogEventEndIndex: new(int32(1)), TooNewLogEventStartIndex: new(int32(3))},
		},
		{"nothing that is kept", []types.InputLogEvent{event(now-14*logDay-1, "x")}, 0, &types.RejectedLogEventsInfo{TooOldLogEventEndIndex: new(int32(1))}},
		{"out of order", []types.InputLogEvent{event(now, "x"), event(now-1, "x")}, -1, nil},
		{"no message", []types.InputLogEvent{{Timestamp: &now, Message: new("")}}, -1, nil},
	} {
		before := logCount(t, c)
		rejected, err := put(tt.events...)
		if tt.kept < 0 {
			wantLogsError(t, tt.what, err, invalidParameter, "")
		} else if err != nil {
			t.Errorf("%s: %v", tt.what, err)
		}
		equal(t, tt.what+": rejected", tt.rejected, rejected)
		equal(t, tt.what+": kept", max(tt.kept, 0), logCount(t, c)-before)
	}

	var sizes []int
	pages := cloudwatchlogs.NewGetLogEventsPaginator(c, &cloudwatchlogs.GetLogEventsInput{LogGroupName: new("/app"), LogStreamName: new("s"), StartFromHead: new(true)},
		func(o *cloudwatchlogs.GetLogEventsPaginatorOptions) { o.StopOnDuplicateToken = true })
	for pages.HasMorePages() {
		size := 0
		page := must(pages.NextPage(ctx))(t)
		for _, e := range page.Events {
			size += len(*e.Message) + 26
		}
		if size > 1_048_576 || len(page.Events) > 10_000 {
			t.Errorf("a page of %d events has %d bytes", len(page.Events), size)
		}
		sizes = append(sizes, len(page.Events))
	}
	if len(sizes) < 4 {
		t.Errorf("pages of %v events", sizes)
	}
}

// logCount is how many events the group /app has.
func logCount(t *testing.T, c *cloudwatchlogs.Client) (n int) {
	t.Helper()
	pages := cloudwatchlogs.NewFilterLogEventsPaginator(c, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: new("/app")})
	for pages.HasMorePages() {
		page := must(pages.NextPage(t.Context()))(t)
		size := 0
		for _, e := range page.Events {
			size += len(*e.Message) + 26
		}
		if n += len(page.Events); size > 1_048_576 || len(page.Events) > 10_000 {
			t.Errorf("a page of %d events has %d bytes", len(page.Events), size)
		}
	}
	return n
}

// TestLogParameters takes every parameter of the reads by its effect, and refuses
// what is out of its range.
func TestLogParameters(t *testing.T) {
	endpoint := start(t)
	c, ctx := logsClient(endpoint), t.Context()
	now := serverNow(t, endpoint)
	createGroup(t, c, "/app", "a/1", "a/2", "b")
	createGroup(t, c, "/app#2")
	putLogs(t, c, "/app", "a/1", logEvents(now, "1", "2", "3"))
	putLogs(t, c, "/app", "b", logEvents(now-100, "x"))
	arn := logGroupARN + "/app"

	get := func(change func(in *cloudwatchlogs.GetLogEventsInput)) (string, *cloudwatchlogs.GetLogEventsOutput, error) {
		in := &cloudwatchlogs.GetLogEventsInput{LogGroupName: new("/app"), LogStreamName: new("a/1")}
		change(in)
		out, err := c.GetLogEvents(ctx, in)
		if err != nil {
			return "", nil, err
		}
		var all []string
		for _, e := range out.Events {
			all = append(all, *e.Message)
		}
		return strings.Join(all, " "), out, nil
	}
	filter := func(change func(in *cloudwatchlogs.FilterLogEventsInput)) (string, error) {
		in := &cloudwatchlogs.FilterLogEventsInput{LogGroupName: new("/app")}
		change(in)
		out, err := c.FilterLogEvents(ctx, in)
		if err != nil {
			return "", err
		}
		var all []string
		for _, e := range out.Events {
			all = append(all, *e.Message)
		}
		return strings.Join(all, " "), nil
	}
	for _, tt := range []struct {
		what   string
		change func(in *cloudwatchlogs.GetLogEventsInput)
		want   string // empty: refused
	}{
		{"all", func(*cloudwatchlogs.GetLogEventsInput) {}, "1 2 3"},
		{"limit", func(in *cloudwatchlogs.GetLogEventsInput) { in.Limit = new(int32(2)) }, "2 3"},
		{"limit from the head", func(in *cloudwatchlogs.GetLogEventsInput) { in.Limit, in.StartFromHead = new(int32(2)), new(true) }, "1 2"},
		{"startTime is part of it", func(in *cloudwatchlogs.GetLogEventsInput) { in.StartTime = new(now - 1000) }, "2 3"},
		{"the latest endTime", func(in *cloudwatchlogs.GetLogEventsInput) { in.EndTime = new(int64(math.MaxInt64)) }, "1 2 3"},
		{"endTime is not", func(in *cloudwatchlogs.GetLogEventsInput) { in.EndTime = &now }, "1 2"},
		{"unmask", func(in *cloudwatchlogs.GetLogEventsInput) { in.Unmask = true }, "1 2 3"},
		{"name as identifier", func(in *cloudwatchlogs.GetLogEventsInput) { in.LogGroupName, in.LogGroupIdentifier = nil, new("/app") }, "1 2 3"},
		{"ARN as identifier", func(in *cloudwatchlogs.GetLogEventsInput) { in.LogGroupName, in.LogGroupIdentifier = nil, &arn }, "1 2 3"},
		{"ARN with :*", func(in *cloudwatchlogs.GetLogEventsInput) {
			in.LogGroupName, in.LogGroupIdentifier = nil, new(arn+":*")
		}, ""},
		{"no group", func(in *cloudwatchlogs.GetLogEventsInput) { in.LogGroupName = nil }, ""},
		{"limit 0", func(in *cloudwatchlogs.GetLogEventsInput) { in.Limit = new(int32(0)) }, ""},
		{"startTime -1", func(in *cloudwatchlogs.GetLogEventsInput) { in.StartTime = new(int64(-1)) }, ""},
		{"endTime -1", func(in *cloudwatchlogs.GetLogEventsInput) { in.EndTime = new(int64(-1)) }, ""},
		{"stream", func(in *cloudwatchlogs.GetLogEventsInput) { in.LogStreamName = new("a:1") }, ""},
		{"empty token", func(in *cloudwatchlogs.GetLogEventsInput) { in.NextToken = new("") }, ""},
	} {
		got, _, err := get(tt.change)
		equal(t, "GetLogEvents: "+tt.what, tt.want, got)
		if tt.want == "" {
			wantLogsError(t, "GetLogEvents: "+tt.what, err, invalidParameter, "")
		}
	}
	for _, tt := range []struct {
		what   string
		change func(in *cloudwatchlogs.FilterLogEventsInput)
		want   string // empty: refused
	}{
		{"all", func(*cloudwatchlogs.FilterLogEventsInput) {}, "1 2 x 3"},
		{"interleaved is ignored", func(in *cloudwatchlogs.FilterLogEventsInput) { in.Interleaved = new(false) }, "1 2 x 3"}, //nolint:staticcheck // clients still use it
		{"unmask", func(in *cloudwatchlogs.FilterLogEventsInput) { in.Unmask = true }, "1 2 x 3"},
		{"startTime and endTime are part of it", func(in *cloudwatchlogs.FilterLogEventsInput) {
			in.StartTime, in.EndTime = new(now-1000), new(now-100)
		}, "2 x"},
		{"the latest endTime", func(in *cloudwatchlogs.FilterLogEventsInput) { in.EndTime = new(int64(math.MaxInt64)) }, "1 2 x 3"},
		{"ARN as identifier", func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogGroupName, in.LogGroupIdentifier = nil, &arn }, "1 2 x 3"},
		{"the same stream twice", func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogStreamNames = []string{"a/1", "a/1", "a/2"} }, "1 2 3"},
		{"prefix", func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogStreamNamePrefix = new("a/") }, "1 2 3"},
		{"empty pattern", func(in *cloudwatchlogs.FilterLogEventsInput) { in.FilterPattern = new("") }, "1 2 x 3"},
		{"long pattern", func(in *cloudwatchlogs.FilterLogEventsInput) { in.FilterPattern = new(strings.Repeat("a", 1025)) }, ""},
		{"no group", func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogGroupName = nil }, ""},
		{"no streams", func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogStreamNames = []string{} }, ""},
		{"too many streams", func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogStreamNames = make([]string, 101) }, ""},
		{"stream", func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogStreamNames = []string{"a:"} }, ""},
		{"empty prefix", func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogStreamNamePrefix = new("") }, ""},
		{"limit 0", func(in *cloudwatchlogs.FilterLogEventsInput) { in.Limit = new(int32(0)) }, ""},
		{"times", func(in *cloudwatchlogs.FilterLogEventsInput) { in.StartTime, in.EndTime = new(int64(2)), new(int64(1)) }, ""},
		{"startTime -1", func(in *cloudwatchlogs.FilterLogEventsInput) { in.StartTime = new(int64(-1)) }, ""},
	} {
		got, err := filter(tt.change)
		equal(t, "FilterLogEvents: "+tt.what, tt.want, got)
		if tt.want == "" {
			wantLogsError(t, "FilterLogEvents: "+tt.what, err, invalidParameter, "")
		}
	}
	_, err := filter(func(in *cloudwatchlogs.FilterLogEventsInput) { in.LogGroupIdentifier = &arn })
	wantLogsError(t, "name and ARN", err, "ValidationException", "LogGroup name and LogGroup ARN are mutually exclusive parameters.")

	// The tokens: to both ends, where they come back, and around the corner.
	_, last, _ := get(func(in *cloudwatchlogs.GetLogEventsInput) { in.Limit = new(int32(1)) })
	got, end, _ := get(func(in *cloudwatchlogs.GetLogEventsInput) { in.NextToken = last.NextForwardToken })
	equal(t, "behind the end", "", got)
	equal(t, "the token comes back", *last.NextForwardToken, *end.NextForwardToken)
	got, first, _ := get(func(in *cloudwatchlogs.GetLogEventsInput) { in.NextToken = last.NextBackwardToken })
	equal(t, "before", "1 2", got)
	got, begin, _ := get(func(in *cloudwatchlogs.GetLogEventsInput) { in.NextToken = first.NextBackwardToken })
	equal(t, "before the beginning", "", got)
	equal(t, "the token comes back", *first.NextBackwardToken, *begin.NextBackwardToken)
	got, _, _ = get(func(in *cloudwatchlogs.GetLogEventsInput) { in.NextToken = begin.NextForwardToken })
	equal(t, "forward from the beginning", "1 2 3", got)
	_, _, err = get(func(in *cloudwatchlogs.GetLogEventsInput) {
		in.LogStreamName, in.NextToken = new("b"), last.NextForwardToken
	})
	wantLogsError(t, "another stream's token", err, invalidParameter, "The specified nextToken is invalid.")

	streams := func(change func(in *cloudwatchlogs.DescribeLogStreamsInput)) (names []string, next *string, err error) {
		in := &cloudwatchlogs.DescribeLogStreamsInput{LogGroupName: new("/app")}
		change(in)
		out, err := c.DescribeLogStreams(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range out.LogStreams {
			names = append(names, *s.LogStreamName)
		}
		return names, out.NextToken, nil
	}
	names, next, _ := streams(func(in *cloudwatchlogs.DescribeLogStreamsInput) {
		in.OrderBy, in.Limit = types.OrderByLastEventTime, new(int32(2))
	})
	equal(t, "by the last event, up", []string{"a/2", "b"}, names)
	names, next2, _ := streams(func(in *cloudwatchlogs.DescribeLogStreamsInput) {
		in.OrderBy, in.NextToken = types.OrderByLastEventTime, next
	})
	equal(t, "the rest", []string{"a/1"}, names)
	equal(t, "no more", "", aws.ToString(next2))
	for what, change := range map[string]func(in *cloudwatchlogs.DescribeLogStreamsInput){
		"another order's token": func(in *cloudwatchlogs.DescribeLogStreamsInput) { in.NextToken = next },
		"limit 0":               func(in *cloudwatchlogs.DescribeLogStreamsInput) { in.Limit = new(int32(0)) },
		"limit 51":              func(in *cloudwatchlogs.DescribeLogStreamsInput) { in.Limit = new(int32(51)) },
		"order":                 func(in *cloudwatchlogs.DescribeLogStreamsInput) { in.OrderBy = "Size" },
		"empty prefix":          func(in *cloudwatchlogs.DescribeLogStreamsInput) { in.LogStreamNamePrefix = new("") },
	} {
		_, _, err := streams(change)
		wantLogsError(t, "DescribeLogStreams: "+what, err, invalidParameter, "")
	}

	groups := func(change func(in *cloudwatchlogs.DescribeLogGroupsInput)) (names []string, err error) {
		in := &cloudwatchlogs.DescribeLogGroupsInput{}
		change(in)
		out, err := c.DescribeLogGroups(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, g := range out.LogGroups {
			names = append(names, *g.LogGroupName)
		}
		return names, nil
	}
	for _, tt := range []struct {
		what   string
		change func(in *cloudwatchlogs.DescribeLogGroupsInput)
		want   []string
	}{
		{"all", func(*cloudwatchlogs.DescribeLogGroupsInput) {}, []string{"/app", "/app#2"}},
		{"a part of the name", func(in *cloudwatchlogs.DescribeLogGroupsInput) { in.LogGroupNamePattern = new("#") }, []string{"/app#2"}},
		{"no linked accounts", func(in *cloudwatchlogs.DescribeLogGroupsInput) { in.IncludeLinkedAccounts = new(true) }, []string{"/app", "/app#2"}},
		{"this account", func(in *cloudwatchlogs.DescribeLogGroupsInput) {
			in.IncludeLinkedAccounts, in.AccountIdentifiers = new(true), []string{account}
		}, []string{"/app", "/app#2"}},
		{"another account that is not asked for", func(in *cloudwatchlogs.DescribeLogGroupsInput) { in.AccountIdentifiers = []string{"111111111111"} }, []string{"/app", "/app#2"}},
		{"another account", func(in *cloudwatchlogs.DescribeLogGroupsInput) {
			in.IncludeLinkedAccounts, in.AccountIdentifiers = new(true), []string{"111111111111"}
		}, nil},
	} {
		got, err := groups(tt.change)
		if err != nil {
			t.Errorf("DescribeLogGroups: %s: %v", tt.what, err)
		}
		equal(t, "DescribeLogGroups: "+tt.what, tt.want, got)
	}
	for what, change := range map[string]func(in *cloudwatchlogs.DescribeLogGroupsInput){
		"limit 0":      func(in *cloudwatchlogs.DescribeLogGroupsInput) { in.Limit = new(int32(0)) },
		"empty prefix": func(in *cloudwatchlogs.DescribeLogGroupsInput) { in.LogGroupNamePrefix = new("") },
		"class":        func(in *cloudwatchlogs.DescribeLogGroupsInput) { in.LogGroupClass = "GLACIER" },
		"identifiers and more": func(in *cloudwatchlogs.DescribeLogGroupsInput) {
			in.LogGroupIdentifiers, in.Limit = []string{arn}, new(int32(1))
		},
		"no identifiers":       func(in *cloudwatchlogs.DescribeLogGroupsInput) { in.LogGroupIdentifiers = []string{} },
		"too many identifiers": func(in *cloudwatchlogs.DescribeLogGroupsInput) { in.LogGroupIdentifiers = make([]string, 51) },
		"account":              func(in *cloudwatchlogs.DescribeLogGroupsInput) { in.AccountIdentifiers = []string{"x"} },
		"too many accounts":    func(in *cloudwatchlogs.DescribeLogGroupsInput) { in.AccountIdentifiers = make([]string, 21) },
	} {
		_, err := groups(change)
		wantLogsError(t, "DescribeLogGroups: "+what, err, invalidParameter, "")
	}
}

// TestLogTagLimits: as many and as long tags as there may be, by both actions.
func TestLogTagLimits(t *testing.T) {
	c, ctx := logsClient(start(t)), t.Context()
	createGroup(t, c, "/app")
	tag := func(tags map[string]string) error {
		return outcome(c.TagResource(ctx, &cloudwatchlogs.TagResourceInput{ResourceArn: new(logGroupARN + "/app"), Tags: tags}))
	}
	older := func(tags map[string]string) error {
		return outcome(c.TagLogGroup(ctx, &cloudwatchlogs.TagLogGroupInput{LogGroupName: new("/app"), Tags: tags})) //nolint:staticcheck // clients still use it
	}
	fifty := map[string]string{strings.Repeat("ü", 128): strings.Repeat("v", 256)}
	for i := range 49 {
		fifty[fmt.Sprint("k", i)] = "a b_.:/=+-@"
	}
	for _, put := range []func(map[string]string) error{tag, older} {
		for _, bad := range []map[string]string{
			{}, {"": "v"}, {strings.Repeat("k", 129): ""}, {"k": strings.Repeat("v", 257)}, {"k!": ""}, {"k": "v!"}, {"AWS:k": ""},
		} {
			wantLogsError(t, fmt.Sprintf("%.20v", bad), put(bad), invalidParameter, "")
		}
		if err := put(fifty); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range [][]string{{""}, {strings.Repeat("k", 129)}, {"k!"}, {"aws:k"}} {
		_, err := c.UntagResource(ctx, &cloudwatchlogs.UntagResourceInput{ResourceArn: new(logGroupARN + "/app"), TagKeys: bad})
		wantLogsError(t, fmt.Sprintf("remove %.20v", bad), err, invalidParameter, "")
	}
	for _, bad := range [][]string{{}, {""}, {strings.Repeat("k", 129)}, {"k!"}, {"aws:k"}} {
		_, err := c.UntagLogGroup(ctx, &cloudwatchlogs.UntagLogGroupInput{LogGroupName: new("/app"), Tags: bad}) //nolint:staticcheck // clients still use it
		wantLogsError(t, fmt.Sprintf("remove %.20v", bad), err, invalidParameter, "")
	}
	_, err := c.UntagResource(ctx, &cloudwatchlogs.UntagResourceInput{ResourceArn: new(logGroupARN + "/app"), TagKeys: make([]string, 51)})
	wantLogsError(t, "remove too many", err, invalidParameter, "")
	wantLogsError(t, "one more", tag(map[string]string{"more": ""}), "TooManyTagsException", "")
	wantLogsError(t, "one more", older(map[string]string{"more": ""}), invalidParameter, "")
	got := must(c.ListTagsForResource(ctx, &cloudwatchlogs.ListTagsForResourceInput{ResourceArn: new(logGroupARN + "/app")}))(t)
	equal(t, "tags", fifty, got.Tags)
}

package logs

import (
	"context"
	"fmt"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/logs/pattern"
)

// The limits of a batch. Source: the API reference, "PutLogEvents".
const (
	maxBatch      = 10_000
	maxBatchBytes = 1_048_576 // messages, and eventOverhead for each
	maxEventBytes = 1_048_576
	eventOverhead = 26
	maxStreams    = 100
)

// createLogStream answers CreateLogStream.
func (s *Service) createLogStream(_ context.Context, call *api.Call, in *StreamInput) (*Empty, error) {
	a, err := group(call, in.LogGroupName)
	if err == nil {
		err = checkStreamName(in.LogStreamName)
	}
	if err != nil {
		return nil, err
	}
	return nil, s.store.CreateStream(a, in.LogStreamName)
}

// deleteLogStream answers DeleteLogStream.
func (s *Service) deleteLogStream(_ context.Context, call *api.Call, in *StreamInput) (*Empty, error) {
	a, err := group(call, in.LogGroupName)
	if err == nil {
		err = checkStreamName(in.LogStreamName)
	}
	if err != nil {
		return nil, err
	}
	return nil, s.store.DeleteStream(a, in.LogStreamName)
}

// describeLogStreams answers DescribeLogStreams.
func (s *Service) describeLogStreams(_ context.Context, call *api.Call, in *DescribeLogStreamsInput) (*DescribeLogStreamsOutput, error) {
	a, err := groupBy(call, in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	n, err := limit(in.Limit, maxListed)
	if err != nil {
		return nil, err
	}
	if err := oneOf("orderBy", in.OrderBy, "LogStreamName", "LastEventTime"); err != nil {
		return nil, err
	}
	o := logs.StreamOrder{Prefix: api.Deref(in.LogStreamNamePrefix), ByLast: api.Deref(in.OrderBy) == "LastEventTime", Descending: is(in.Descending)}
	if in.LogStreamNamePrefix != nil {
		if err := checkStream("logStreamNamePrefix", o.Prefix); err != nil {
			return nil, err
		}
		if o.ByLast {
			return nil, invalid("Cannot order by LastEventTime with a logStreamNamePrefix.")
		}
	}
	list := fmt.Sprintf("streams %s %+v", a, o)
	after, err := readListToken(list, in.NextToken)
	if err != nil {
		return nil, err
	}
	found, next, err := s.store.Streams(a, o, logs.Page{After: after, Limit: n})
	if err != nil {
		return nil, err
	}
	out := &DescribeLogStreamsOutput{LogStreams: []LogStream{}, NextToken: listToken(list, next)}
	for _, f := range found {
		shown := LogStream{
			LogStreamName: f.Name, CreationTime: f.Created, Arn: a.String() + ":log-stream:" + f.Name,
			FirstEventTimestamp: f.First, LastEventTimestamp: f.Last, LastIngestionTime: f.Ingested,
		}
		if f.Ingested != nil {
			shown.UploadSequenceToken = sequenceToken(*f.Ingested)
		}
		out.LogStreams = append(out.LogStreams, shown)
	}
	return out, nil
}

// sequenceToken is a sequence token, which is obsolete, but which old clients may require.
func sequenceToken(at int64) string { return fmt.Sprintf("%056d", at) }

// putLogEvents answers PutLogEvents.
func (s *Service) putLogEvents(_ context.Context, call *api.Call, in *PutLogEventsInput) (*PutLogEventsOutput, error) {
	a, err := group(call, in.LogGroupName)
	if err == nil {
		err = checkStreamName(in.LogStreamName)
	}
	if err != nil {
		return nil, err
	}
	events, err := readEvents(in.LogEvents)
	if err != nil {
		return nil, err
	}
	r, err := s.store.Put(a, in.LogStreamName, events)
	if err != nil {
		return nil, err
	}
	out := &PutLogEventsOutput{NextSequenceToken: sequenceToken(call.Time.UnixMilli())}
	if r != (logs.Rejected{}) {
		out.RejectedLogEventsInfo = &RejectedLogEventsInfo{
			TooNewLogEventStartIndex: r.TooNew, TooOldLogEventEndIndex: r.TooOld, ExpiredLogEventEndIndex: r.Expired,
		}
	}
	return out, nil
}

// maxViolations bounds the violations of an error message, so that the events of a batch do not
// make an answer that is a multiple of the request.
const maxViolations = 32

// checkEvents checks the model's constraints of all events, the first maxViolations of them.
func checkEvents(in []InputLogEvent) error {
	var all []string
	for i, e := range in {
		at := func(name string) string { return fmt.Sprintf("logEvents.%d.member.%s", i+1, name) }
		switch {
		case e.Timestamp == nil:
			all = append(all, check.NotNull(at("timestamp")))
		case *e.Timestamp < 0:
			all = append(all, violation(at("timestamp"), *e.Timestamp, "Member must have value greater than or equal to 0"))
		}
		switch {
		case e.Message == nil:
			all = append(all, check.NotNull(at("message")))
		case *e.Message == "":
			all = append(all, violation(at("message"), "", fmt.Sprintf(atLeast, 1)))
		}
		if len(all) >= maxViolations {
			break
		}
	}
	if len(all) == 0 {
		return nil
	}
	return broken(all[:min(len(all), maxViolations)]...)
}

func readEvents(in []InputLogEvent) ([]logs.Event, error) {
	switch {
	case len(in) == 0:
		return nil, constraint("logEvents", "[]", fmt.Sprintf(atLeast, 1))
	case len(in) > maxBatch:
		return nil, constraint("logEvents", len(in), fmt.Sprintf(atMost, maxBatch))
	}
	if err := checkEvents(in); err != nil {
		return nil, err
	}
	events := make([]logs.Event, len(in))
	size := 0
	for i, e := range in {
		if n := len(*e.Message); n > maxEventBytes-eventOverhead {
			return nil, invalid("Log event too large: %d bytes exceeds limit of %d", n+eventOverhead, maxEventBytes)
		}
		if i > 0 && *e.Timestamp < events[i-1].Time {
			return nil, invalid("Log events in a single PutLogEvents request must be in chronological order.")
		}
		size += len(*e.Message) + eventOverhead
		events[i] = logs.Event{Time: *e.Timestamp, Message: *e.Message}
	}
	if size > maxBatchBytes {
		return nil, invalid("Upload too large: %d bytes exceeds limit of %d", size, maxBatchBytes)
	}
	return events, nil
}

// getLogEvents answers GetLogEvents.
func (s *Service) getLogEvents(_ context.Context, call *api.Call, in *GetLogEventsInput) (*GetLogEventsOutput, error) {
	a, err := groupBy(call, in.LogGroupName, in.LogGroupIdentifier)
	if err == nil {
		err = checkStreamName(in.LogStreamName)
	}
	if err == nil {
		err = checkSpan(in.StartTime, in.EndTime)
	}
	if err != nil {
		return nil, err
	}
	q := logs.EventsQuery{Group: a, Stream: in.LogStreamName, From: in.StartTime, To: in.EndTime, FromHead: is(in.StartFromHead)}
	if q.Limit, err = limit(in.Limit, logs.MaxEvents); err != nil {
		return nil, err
	}
	if q.Token, err = checkToken(in.NextToken); err != nil {
		return nil, err
	}
	page, err := s.store.Events(q)
	if err != nil {
		return nil, err
	}
	out := &GetLogEventsOutput{
		Events: make([]OutputLogEvent, len(page.Events)), NextForwardToken: page.Forward, NextBackwardToken: page.Backward,
	}
	for i, f := range page.Events {
		out.Events[i] = OutputLogEvent{Timestamp: f.Time, Message: f.Message, IngestionTime: f.Ingested}
	}
	return out, nil
}

func checkSpan(from, to *int64) error {
	if err := moment("startTime", from); err != nil {
		return err
	}
	if err := moment("endTime", to); err != nil {
		return err
	}
	if from != nil && to != nil && *from > *to {
		return invalid("The start time must not be later than the end time.")
	}
	return nil
}

// checkToken validates a token; an empty one is invalid.
func checkToken(token *string) (string, error) {
	if token != nil && *token == "" {
		return "", constraint("nextToken", "", fmt.Sprintf(atLeast, 1))
	}
	return api.Deref(token), nil
}

// filterLogEvents answers FilterLogEvents.
func (s *Service) filterLogEvents(_ context.Context, call *api.Call, in *FilterLogEventsInput) (*FilterLogEventsOutput, error) {
	a, err := groupBy(call, in.LogGroupName, in.LogGroupIdentifier)
	if err == nil {
		err = checkSpan(in.StartTime, in.EndTime)
	}
	if err != nil {
		return nil, err
	}
	q := logs.FilterQuery{Group: a, Streams: in.LogStreamNames, Prefix: api.Deref(in.LogStreamNamePrefix), From: in.StartTime, To: in.EndTime}
	if in.LogStreamNames != nil && in.LogStreamNamePrefix != nil {
		return nil, invalid("LogStream names and LogStream name prefix are mutually exclusive parameters.")
	}
	if err := count("logStreamNames", in.LogStreamNames, 1, maxStreams); err != nil {
		return nil, err
	}
	for _, name := range in.LogStreamNames {
		if err := checkStream("logStreamNames", name); err != nil {
			return nil, err
		}
	}
	if in.LogStreamNamePrefix != nil {
		if err := checkStream("logStreamNamePrefix", q.Prefix); err != nil {
			return nil, err
		}
	}
	if q.Limit, err = limit(in.Limit, logs.MaxEvents); err != nil {
		return nil, err
	}
	if q.Token, err = checkToken(in.NextToken); err != nil {
		return nil, err
	}
	if in.FilterPattern != nil && *in.FilterPattern != "" {
		if err := length("filterPattern", *in.FilterPattern, 0, pattern.MaxLength); err != nil {
			return nil, err
		}
		if q.Pattern, err = pattern.Parse(*in.FilterPattern); err != nil {
			return nil, invalid("%s", err)
		}
	}
	found, next, err := s.store.Filter(q)
	if err != nil {
		return nil, err
	}
	out := &FilterLogEventsOutput{Events: make([]FilteredLogEvent, len(found)), SearchedLogStreams: []SearchedLogStream{}, NextToken: next}
	for i, f := range found {
		out.Events[i] = FilteredLogEvent{LogStreamName: f.Stream, Timestamp: f.Time, Message: f.Message, IngestionTime: f.Ingested, EventID: f.ID}
	}
	return out, nil
}

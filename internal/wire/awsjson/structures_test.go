package awsjson_test

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api/cloudwatch"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/wire/awsjson"
)

// What a body takes in memory is in proportion to its size.
func TestBodiesThatGrow(t *testing.T) {
	const size = 2 << 20
	many := strings.Repeat("{},", size/3) + "{}"
	for _, tc := range []struct {
		body string
		in   any
	}{
		{`{"Entries":[` + many + `]}`, new(sqs.SendMessageBatchInput)},
		{`{"MetricData":[` + many + `]}`, new(cloudwatch.PutMetricDataInput)},
		{`{"MessageAttributes":{` + strings.Repeat(`"":{},`, size/6) + `"":{}}}`, new(sqs.SendMessageInput)},
		{`{"AttributeNames":[` + strings.Repeat(`"",`, size/3) + `""]}`, new(sqs.GetQueueAttributesInput)},
		{`{"Entries":[` + strings.Repeat(`"\"",`, 10) + many + `]}`, new(sqs.SendMessageBatchInput)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := awsjson.Decode([]byte(tc.body), tc.in)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 4*size || fault.KindOf(err) != fault.MalformedInput {
			t.Errorf("%.30s…, of %d bytes, took %d: %v", tc.body, len(tc.body), took, err)
		}
		if err := awsjson.DecodeGeneric([]byte(tc.body), reflect.New(reflect.TypeOf(tc.in).Elem()).Interface()); fault.KindOf(err) != fault.MalformedInput {
			t.Errorf("%.30s…: %v", tc.body, err)
		}
	}
	// Braces and commas in texts are none, wherever those end.
	for _, text := range []string{strings.Repeat(",", size/2), strings.Repeat("{", size/2), `\\\"` + strings.Repeat(`{\"`, size/6), strings.Repeat(`\\`, 9) + strings.Repeat("{", size/2)} {
		var in sqs.SendMessageInput
		if err := awsjson.Decode([]byte(`{"QueueUrl":"q","MessageBody":"`+text+`"}`), &in); err != nil || strings.Count(in.MessageBody, "{") != strings.Count(text, "{") || strings.Count(in.MessageBody, ",") != strings.Count(text, ",") {
			t.Errorf("%.30s…: %v", text, err)
		}
	}
}

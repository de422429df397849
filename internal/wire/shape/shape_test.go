package shape_test

import (
	"bufio"
	"os"
	"reflect"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/cloudwatch"
	"godwit.dev/godwit/internal/api/sns"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/wire/shape"
)

type pair struct{ in, out reflect.Type }

func operation[In, Out any]() pair { return pair{reflect.TypeFor[In](), reflect.TypeFor[Out]()} }

var operations = map[string]map[string]pair{
	"sqs": {
		"AddPermission":                operation[sqs.AddPermissionInput, sqs.AddPermissionOutput](),
		"CancelMessageMoveTask":        operation[sqs.CancelMessageMoveTaskInput, sqs.CancelMessageMoveTaskOutput](),
		"ListDeadLetterSourceQueues":   operation[sqs.ListDeadLetterSourceQueuesInput, sqs.ListDeadLetterSourceQueuesOutput](),
		"ListMessageMoveTasks":         operation[sqs.ListMessageMoveTasksInput, sqs.ListMessageMoveTasksOutput](),
		"ListQueueTags":                operation[sqs.ListQueueTagsInput, sqs.ListQueueTagsOutput](),
		"RemovePermission":             operation[sqs.RemovePermissionInput, sqs.RemovePermissionOutput](),
		"StartMessageMoveTask":         operation[sqs.StartMessageMoveTaskInput, sqs.StartMessageMoveTaskOutput](),
		"TagQueue":                     operation[sqs.TagQueueInput, sqs.TagQueueOutput](),
		"UntagQueue":                   operation[sqs.UntagQueueInput, sqs.UntagQueueOutput](),
		"ChangeMessageVisibility":      operation[sqs.ChangeMessageVisibilityInput, sqs.ChangeMessageVisibilityOutput](),
		"ChangeMessageVisibilityBatch": operation[sqs.ChangeMessageVisibilityBatchInput, sqs.ChangeMessageVisibilityBatchOutput](),
		"CreateQueue":                  operation[sqs.CreateQueueInput, sqs.CreateQueueOutput](),
		"DeleteMessage":                operation[sqs.DeleteMessageInput, sqs.DeleteMessageOutput](),
		"DeleteMessageBatch":           operation[sqs.DeleteMessageBatchInput, sqs.DeleteMessageBatchOutput](),
		"DeleteQueue":                  operation[sqs.DeleteQueueInput, sqs.DeleteQueueOutput](),
		"GetQueueAttributes":           operation[sqs.GetQueueAttributesInput, sqs.GetQueueAttributesOutput](),
		"GetQueueUrl":                  operation[sqs.GetQueueUrlInput, sqs.GetQueueUrlOutput](),
		"ListQueues":                   operation[sqs.ListQueuesInput, sqs.ListQueuesOutput](),
		"PurgeQueue":                   operation[sqs.PurgeQueueInput, sqs.PurgeQueueOutput](),
		"ReceiveMessage":               operation[sqs.ReceiveMessageInput, sqs.ReceiveMessageOutput](),
		"SendMessage":                  operation[sqs.SendMessageInput, sqs.SendMessageOutput](),
		"SendMessageBatch":             operation[sqs.SendMessageBatchInput, sqs.SendMessageBatchOutput](),
		"SetQueueAttributes":           operation[sqs.SetQueueAttributesInput, sqs.SetQueueAttributesOutput](),
	},
	"cloudwatch": {
		"DeleteAlarms":            operation[cloudwatch.DeleteAlarmsInput, cloudwatch.DeleteAlarmsOutput](),
		"DescribeAlarmHistory":    operation[cloudwatch.DescribeAlarmHistoryInput, cloudwatch.DescribeAlarmHistoryOutput](),
		"DescribeAlarms":          operation[cloudwatch.DescribeAlarmsInput, cloudwatch.DescribeAlarmsOutput](),
		"DescribeAlarmsForMetric": operation[cloudwatch.DescribeAlarmsForMetricInput, cloudwatch.DescribeAlarmsForMetricOutput](),
		"DisableAlarmActions":     operation[cloudwatch.DisableAlarmActionsInput, cloudwatch.DisableAlarmActionsOutput](),
		"EnableAlarmActions":      operation[cloudwatch.EnableAlarmActionsInput, cloudwatch.EnableAlarmActionsOutput](),
		"GetMetricData":           operation[cloudwatch.GetMetricDataInput, cloudwatch.GetMetricDataOutput](),
		"GetMetricStatistics":     operation[cloudwatch.GetMetricStatisticsInput, cloudwatch.GetMetricStatisticsOutput](),
		"ListMetrics":             operation[cloudwatch.ListMetricsInput, cloudwatch.ListMetricsOutput](),
		"ListTagsForResource":     operation[cloudwatch.ListTagsForResourceInput, cloudwatch.ListTagsForResourceOutput](),
		"PutMetricAlarm":          operation[cloudwatch.PutMetricAlarmInput, cloudwatch.PutMetricAlarmOutput](),
		"PutMetricData":           operation[cloudwatch.PutMetricDataInput, cloudwatch.PutMetricDataOutput](),
		"SetAlarmState":           operation[cloudwatch.SetAlarmStateInput, cloudwatch.SetAlarmStateOutput](),
		"TagResource":             operation[cloudwatch.TagResourceInput, cloudwatch.TagResourceOutput](),
		"UntagResource":           operation[cloudwatch.UntagResourceInput, cloudwatch.UntagResourceOutput](),
	},
	"sns": {
		"ConfirmSubscription":       operation[sns.ConfirmSubscriptionInput, sns.ConfirmSubscriptionOutput](),
		"CreateTopic":               operation[sns.CreateTopicInput, sns.CreateTopicOutput](),
		"DeleteTopic":               operation[sns.DeleteTopicInput, sns.DeleteTopicOutput](),
		"GetSubscriptionAttributes": operation[sns.GetSubscriptionAttributesInput, sns.GetSubscriptionAttributesOutput](),
		"GetTopicAttributes":        operation[sns.GetTopicAttributesInput, sns.GetTopicAttributesOutput](),
		"ListSubscriptions":         operation[sns.ListSubscriptionsInput, sns.ListSubscriptionsOutput](),
		"ListSubscriptionsByTopic":  operation[sns.ListSubscriptionsByTopicInput, sns.ListSubscriptionsByTopicOutput](),
		"ListTopics":                operation[sns.ListTopicsInput, sns.ListTopicsOutput](),
		"Publish":                   operation[sns.PublishInput, sns.PublishOutput](),
		"SetSubscriptionAttributes": operation[sns.SetSubscriptionAttributesInput, sns.SetSubscriptionAttributesOutput](),
		"SetTopicAttributes":        operation[sns.SetTopicAttributesInput, sns.SetTopicAttributesOutput](),
		"Subscribe":                 operation[sns.SubscribeInput, sns.SubscribeOutput](),
		"Unsubscribe":               operation[sns.UnsubscribeInput, sns.UnsubscribeOutput](),
	},
}

// checkedByHandler are required members whose absence is not a missing
// parameter: it has an error or a text of its own.
var checkedByHandler = map[string]bool{
	"ChangeMessageVisibilityBatch.in.Entries": true,
	"DeleteMessageBatch.in.Entries":           true,
	"SendMessageBatch.in.Entries":             true,
	"Publish.in.Message":                      true,
	"PutMetricData.in.Namespace":              true,
	"GetMetricStatistics.in.Namespace":        true,
	"GetMetricStatistics.in.MetricName":       true,
	"GetMetricStatistics.in.StartTime":        true,
	"GetMetricStatistics.in.EndTime":          true,
	"GetMetricStatistics.in.Period":           true,
}

// newer are members of what AWS answers that its published models do not have yet.
var newer = map[string]bool{"DescribeAlarms.out.LogAlarms": true}

// The shapes have the members of AWS's models and no others, of the same kinds
// and under the same names. testdata holds an extract of the models: JSON
// members of the current ones, names in forms and XML of the Query ones.
func TestShapesAreTheModels(t *testing.T) {
	for service, ops := range operations {
		t.Run(service, func(t *testing.T) {
			want := readModel(t, "testdata/"+service+".txt")
			got := make(map[string]string)
			for name, op := range ops {
				got[name] = ""
				list(got, name+".in", shape.Of(op.in), true)
				list(got, name+".out", shape.Of(op.out), false)
			}
			for path, line := range want {
				if is, ok := got[path]; !ok || is != line {
					t.Errorf("%s: the model says %q, the shape %q", path, line, is)
				}
			}
			for path := range got {
				if _, ok := want[path]; !ok && !newer[path] {
					t.Errorf("%s is not in the model", path)
				}
			}
		})
	}
}

func readModel(t *testing.T, file string) map[string]string {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	model := make(map[string]string)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		path, rest, _ := strings.Cut(lines.Text(), " ")
		// Only an input's own members are checked for their presence.
		topLevel := strings.Count(path, ".") == 2 && strings.Contains(path, ".in.")
		if !topLevel || checkedByHandler[path] {
			rest = strings.TrimSuffix(rest, " required")
		}
		model[path] = rest
	}
	if len(model) < 50 {
		t.Fatalf("%s holds %d members", file, len(model))
	}
	return model
}

var kinds = map[shape.Kind]string{
	shape.String: "string", shape.Int: "int", shape.Bool: "bool", shape.Blob: "blob",
	shape.Long: "long", shape.Float: "double", shape.Time: "timestamp",
	shape.List: "list", shape.Map: "map", shape.Pairs: "map", shape.Struct: "structure",
}

func list(into map[string]string, path string, t *shape.Type, required bool) {
	for i := range t.Fields {
		f := &t.Fields[i]
		line, suffix := kinds[f.Type.Kind], ""
		if f.Type.Elem != nil {
			line += " of " + kinds[f.Type.Elem.Kind]
		}
		line += " name=" + f.Query
		if f.Flat {
			line += " flat"
		}
		switch f.Type.Kind {
		case shape.List:
			suffix = "[]"
		case shape.Map, shape.Pairs:
			line += " key=" + f.Key + " value=" + f.Value
			suffix = "{}"
		}
		if required && f.Required {
			line += " required"
		}
		into[path+"."+f.JSON] = line
		below := f.Type
		if below.Elem != nil {
			below = below.Elem
		}
		if below.Kind == shape.Struct {
			list(into, path+"."+f.JSON+suffix, below, false)
		}
	}
}

func TestMissing(t *testing.T) {
	type input struct {
		Name    string `wire:"required"`
		Count   *int   `wire:"required"`
		Entries []int  `wire:"required"`
		Other   string
	}
	zero := 0
	for want, in := range map[string]input{
		"Name":               {Count: &zero, Entries: []int{}},
		"Count":              {Name: "x", Entries: []int{}},
		"Entries":            {Name: "x", Count: &zero},
		"":                   {Name: "x", Count: &zero, Entries: []int{}},
		"Name Count Entries": {},
	} {
		if got := strings.Join(shape.Of(reflect.TypeFor[input]()).Missing(reflect.ValueOf(in)), " "); got != want {
			t.Errorf("%+v lacks %q, want %q", in, got, want)
		}
	}
}

func TestUnfitTypesPanic(t *testing.T) {
	type (
		float   struct{ F float32 }
		pointer struct{ S *[]string }
		keys    struct{ M map[int]string }
		nested  struct{ L [][]string }
		ofPairs struct{ L []api.Pairs }
		option  struct {
			S string `wire:"flatt"`
		}
		int16s   struct{ N int16 }
		channels struct{ C chan int }
	)
	for _, of := range []reflect.Type{
		reflect.TypeFor[float](), reflect.TypeFor[pointer](), reflect.TypeFor[keys](), reflect.TypeFor[nested](),
		reflect.TypeFor[ofPairs](), reflect.TypeFor[option](), reflect.TypeFor[int16s](), reflect.TypeFor[channels](), reflect.TypeFor[int](),
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v was accepted", of)
				}
			}()
			shape.Of(of)
		}()
	}
}

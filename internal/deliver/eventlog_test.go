package deliver

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/filter"
	"godwit.dev/godwit/internal/topic/protect"
	"godwit.dev/godwit/internal/topic/retry"
)

// totals sums up the metrics of events.
func totals(events []Event) map[string]float64 {
	sums := map[string]float64{}
	for i := range events {
		for _, m := range events[i].Metrics() {
			sums[strings.TrimPrefix(m.Name, "NumberOfNotifications")] += m.Value
		}
	}
	return sums
}

func TestMetricsOfDeliveries(t *testing.T) {
	gone := func(arn.ARN) error { return fault.New(fault.QueueDoesNotExist, "") }
	for _, tt := range []struct {
		name     string
		protocol topic.Protocol
		kind     message.NoticeKind
		f        func(context.Context, *Request) Outcome
		refuse   func(arn.ARN) error
		mend     bool // refuse no more after an hour
		dlq      arn.ARN
		want     map[string]float64
	}{
		{"success", topic.HTTP, message.Notification, succeed, nil, false, testDLQ, map[string]float64{"Delivered": 1}},
		{"a confirmation", topic.HTTP, message.SubscriptionConfirmation, succeed, nil, false, testDLQ, map[string]float64{}},
		{"HTTP counts each attempt", topic.HTTP, message.Notification, refuse, nil, false, testDLQ, map[string]float64{"Failed": 4, "RedrivenToDlq": 1}},
		{"a queue counts the end", topic.SQS, message.Notification, refuse, nil, false, testDLQ, map[string]float64{"Failed": 1, "RedrivenToDlq": 1}},
		{"without a dead-letter queue", topic.SQS, message.Notification, refuse, nil, false, arn.ARN{}, map[string]float64{"Failed": 1}},
		{"a dead-letter queue that is gone", topic.HTTP, message.Notification, refuse, gone, false, testDLQ, map[string]float64{"Failed": 4, "FailedToRedriveToDlq": 1}},
		{"one that is away for a while", topic.HTTP, message.Notification, refuse, unavailable, true, testDLQ, map[string]float64{"Failed": 4, "RedrivenToDlq": 1}},
		{"the same of a queue", topic.SQS, message.Notification, refuse, unavailable, true, testDLQ, map[string]float64{"Failed": 1, "RedrivenToDlq": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, events := clock.NewVirtual(start), &recorder{}
			r := newRig(t, v, tt.f, func(o *Options) {
				o.Events = events
				o.Senders[topic.SQS] = o.Senders[topic.HTTP]
			})
			r.set(tt.refuse)
			sub := testSub("a", "host", tt.protocol, tt.dlq)
			r.add(sub, retry.DefaultHTTP, 0)
			r.publishKind(sub.ARN, 1, tt.kind)
			advance(t, v, time.Hour)
			if tt.mend {
				r.set(nil)
				advance(t, v, time.Hour)
			}
			if d := cmp.Diff(tt.want, totals(events.all)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestMetricsOfPublishes(t *testing.T) {
	p := &shard.Published{Size: 12, Delivered: 3}
	p.FilteredOut[filter.AttributesMismatch], p.FilteredOut[filter.InvalidMessageBody] = 2, 5
	want := []Metric{
		{"NumberOfMessagesPublished", 1},
		{"PublishSize", 12},
		{"NumberOfNotificationsDelivered", 3},
		{"NumberOfNotificationsFilteredOut", 7},
		{"NumberOfNotificationsFilteredOut-MessageAttributes", 2},
		{"NumberOfNotificationsFilteredOut-InvalidMessageBody", 5},
	}
	if d := cmp.Diff(want, AppendPublishMetrics(nil, p)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	p.Later, p.Delivered = true, 0
	if d := cmp.Diff(want[3:], AppendPublishMetrics(nil, p)); d != "" {
		t.Errorf("later: -want +got:\n%s", d)
	}
	for v := filter.Match + 1; int(v) < filter.Verdicts; v++ {
		if refusals[v] == "" {
			t.Errorf("%v has no metric", v)
		}
	}
}

// statusEvent is an event of an attempt at a message of 2019.
func statusEvent(p topic.Protocol, endpoint string) Event {
	published := time.Date(2019, 10, 4, 5, 13, 55, 876_000_000, time.UTC)
	e := Event{
		Subscription: arn.Topic("us-east-1", "000000000000", "t").Subscription("6d6b8f6e-0000-4000-8000-000000000001"),
		Protocol:     p, Kind: message.Notification, MessageID: message.ID{0xaa, 15: 1}, Published: published,
		At: published.Add(1700 * time.Millisecond), Attempt: shard.Attempt{At: published.Add(1500 * time.Millisecond)}, Feedback: topic.Feedback{Success: true, Failure: true, Rate: 100},
		Endpoint: endpoint, BodyMD5: bodyMD5([]byte("hello")), Number: 2, Made: true,
	}
	return e
}

func TestStatusEntries(t *testing.T) {
	const notification = `"notification":{"messageMD5Sum":"5d41402abc4b2a76b9719d911017c592","messageId":"aa000000-0000-0000-0000-000000000001",` +
		`"topicArn":"arn:aws:sns:us-east-1:000000000000:t","timestamp":"2019-10-04 05:13:55.876"}`
	const dlq = `"redrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:dlq\"}",`
	const q = "arn:aws:sqs:us-east-1:000000000000:q"
	entries := func(change func(e *Event), p topic.Protocol, endpoint string) (out []string) {
		e := statusEvent(p, endpoint)
		change(&e)
		for _, s := range e.Status(func() float64 { return 0.5 }) {
			text, err := json.Marshal(&s)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, s.Group()+" "+strings.Replace(string(text), s.Delivery.DeliveryID, "ID", 1))
			if s.Delivery.DeliveryID != deliveryUUID(e.Subscription, e.MessageID) {
				t.Errorf("delivery id %s", s.Delivery.DeliveryID)
			}
		}
		return out
	}
	const ok, failed = "sns/us-east-1/000000000000/t ", "sns/us-east-1/000000000000/t/Failure "
	for _, tt := range []struct {
		name     string
		protocol topic.Protocol
		change   func(e *Event)
		want     []string
	}{
		{"HTTP", topic.HTTP, func(e *Event) {
			e.State, e.Attempt.Status = shard.DeliveryDelivered, 200
		}, []string{ok + `{` + notification + `,"delivery":{"deliveryId":"ID","destination":"` + q + `","providerResponse":"OK","dwellTimeMs":1500,"attempts":2,"statusCode":200},"status":"SUCCESS"}`}},
		{"HTTP, which fails and has a dead-letter queue", topic.HTTP, func(e *Event) {
			e.State, e.Attempt.Status, e.DeadLetter = shard.DeliveryPending, 503, testDLQ
		}, []string{failed + `{` + notification + `,"delivery":{"deliveryId":"ID",` + dlq + `"destination":"` + q + `","providerResponse":"Service Unavailable","dwellTimeMs":1500,"attempts":2,"statusCode":503},"status":"FAILURE"}`}},
		{"HTTP without an answer", topic.HTTP, func(e *Event) {
			e.State, e.Attempt.Detail = shard.DeliveryDropped, "connection refused"
		}, []string{failed + `{` + notification + `,"delivery":{"deliveryId":"ID","destination":"` + q + `","providerResponse":"connection refused","dwellTimeMs":1500,"attempts":2,"statusCode":0},"status":"FAILURE"}`}},
		{"a queue", topic.SQS, func(e *Event) {
			e.State, e.Provider = shard.DeliveryDelivered, Provider{Status: 200, ID: message.ID{1}}
		}, []string{ok + `{` + notification + `,"delivery":{"deliveryId":"ID","destination":"` + q + `","providerResponse":"{\"sqsRequestId\":\"` + requestID(message.ID{1}) + `\",\"sqsMessageId\":\"01000000-0000-0000-0000-000000000000\"}","dwellTimeMs":1500,"attempts":2,"statusCode":200},"status":"SUCCESS"}`}},
		{"a queue that is gone, and the dead letter", topic.SQS, func(e *Event) {
			e.State, e.DeadLetter = shard.DeliveryDeadLetter, testDLQ
			e.Provider = TransferOutcome(fault.New(fault.QueueDoesNotExist, "")).Provider
			e.Redrive = Provider{Status: 200, ID: message.ID{2}}
		}, []string{
			failed + `{` + notification + `,"delivery":{"deliveryId":"ID",` + dlq + `"destination":"` + q + `","providerResponse":"{\"ErrorCode\":\"AWS.SimpleQueueService.NonExistentQueue\",\"ErrorMessage\":\"The specified queue does not exist or you do not have access to it.\",\"sqsRequestId\":\"Unrecoverable\"}","dwellTimeMs":1500,"attempts":2,"statusCode":400},"status":"FAILURE"}`,
			ok + `{` + notification + `,"delivery":{"deliveryId":"ID","destination":"arn:aws:sqs:us-east-1:000000000000:dlq","providerResponse":"{\"sqsRequestId\":\"` + requestID(message.ID{2}) + `\",\"sqsMessageId\":\"02000000-0000-0000-0000-000000000000\"}","dwellTimeMs":1700,"attempts":1,"statusCode":200},"status":"SUCCESS"}`,
		}},
		{"a function", topic.Lambda, func(e *Event) {
			e.State, e.Provider = shard.DeliveryDelivered, Provider{Service: Lambda, Status: 202, ID: message.ID{3}}
		}, []string{ok + `{` + notification + `,"delivery":{"deliveryId":"ID","destination":"` + q + `","providerResponse":"{\"lambdaRequestId\":\"03000000-0000-0000-0000-000000000000\"}","dwellTimeMs":1500,"attempts":2,"statusCode":202},"status":"SUCCESS"}`}},
		{"a dead letter that its queue does not take", topic.HTTP, func(e *Event) {
			e.State, e.Made, e.DeadLetter, e.Redrive = shard.DeliveryPending, false, testDLQ, TransferOutcome(fault.New(fault.QueueDoesNotExist, "")).Provider
		}, []string{failed + `{` + notification + `,"delivery":{"deliveryId":"ID","destination":"arn:aws:sqs:us-east-1:000000000000:dlq","providerResponse":"{\"ErrorCode\":\"AWS.SimpleQueueService.NonExistentQueue\",\"ErrorMessage\":\"The specified queue does not exist or you do not have access to it.\",\"sqsRequestId\":\"Unrecoverable\"}","dwellTimeMs":1700,"attempts":1,"statusCode":400},"status":"FAILURE"}`}},
		{"the same of a topic that wants only successes", topic.HTTP, func(e *Event) {
			e.State, e.Made, e.DeadLetter, e.Redrive = shard.DeliveryPending, false, testDLQ, TransferOutcome(fault.New(fault.QueueDoesNotExist, "")).Provider
			e.Feedback.Failure = false
		}, nil},
		{"a dead letter of a topic that wants only failures", topic.HTTP, func(e *Event) {
			e.State, e.Made, e.DeadLetter, e.Redrive = shard.DeliveryDeadLetter, false, testDLQ, Provider{Status: 200}
			e.Feedback.Success = false
		}, nil},
		{"only failures", topic.HTTP, func(e *Event) {
			e.State, e.Attempt.Status, e.Feedback.Success = shard.DeliveryDelivered, 200, false
		}, nil},
		{"only successes", topic.HTTP, func(e *Event) {
			e.State, e.Attempt.Status, e.Feedback.Failure = shard.DeliveryPending, 500, false
		}, nil},
		{"a share of the successes that this one is not in", topic.HTTP, func(e *Event) {
			e.State, e.Attempt.Status, e.Feedback.Rate = shard.DeliveryDelivered, 200, 50
		}, nil},
		{"no success", topic.HTTP, func(e *Event) { e.State, e.Feedback.Rate = shard.DeliveryDelivered, 0 }, nil},
		{"a confirmation", topic.HTTP, func(e *Event) { e.State, e.Kind = shard.DeliveryDelivered, message.SubscriptionConfirmation }, nil},
		{"expired, without an attempt", topic.HTTP, func(e *Event) { e.State, e.Made = shard.DeliveryDropped, false }, nil},
	} {
		if d := cmp.Diff(tt.want, entries(tt.change, tt.protocol, q)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	if got := entries(func(e *Event) { e.State, e.Feedback.Rate = shard.DeliveryDelivered, 51 }, topic.HTTP, q); len(got) != 1 {
		t.Errorf("a share that this one is in: %q", got)
	}
}

func requestID(id message.ID) string {
	var v struct{ SQSRequestID string }
	_ = json.Unmarshal([]byte(Provider{Status: 200, ID: id}.response()), &v)
	return v.SQSRequestID
}

// statusGroups keep the entries of delivery status logs by their groups' names.
type statusGroups struct {
	mu      sync.Mutex
	entries map[string][]string
}

func (g *statusGroups) LogJSON(group arn.ARN, _ string, _ time.Time, value any, _ authorize.LogRights) {
	g.mu.Lock()
	defer g.mu.Unlock()
	text, _ := json.Marshal(value)
	g.entries[group.String()] = append(g.entries[group.String()], string(text))
}

// An audit of a message that has data everywhere counts all, and reports where the first are.
func TestAuditsAreBounded(t *testing.T) {
	kept := &statusGroups{entries: map[string][]string{}}
	l := NewEventLog(slog.New(slog.DiscardHandler), clock.NewJitter(1), kept, nil)
	spans := make([]protect.Span, 100_000)
	l.Audited(&shard.Audited{Topic: arn.Topic("us-east-1", "000000000000", "t"), Audit: protect.Audit{
		LogGroup: "/aws/vendedlogs/found", Findings: []protect.Finding{{Identifier: "a", Spans: spans[:600]}, {Identifier: "b", Spans: spans}, {Identifier: "c", Spans: spans}},
	}})
	var got struct {
		DataIdentifiers []struct {
			Count      int
			Detections []any
		}
	}
	if err := json.Unmarshal([]byte(kept.entries["arn:aws:logs:us-east-1:000000000000:log-group:/aws/vendedlogs/found"][0]), &got); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][2]int{{600, 600}, {100_000, 400}, {100_000, 0}} {
		if id := got.DataIdentifiers[i]; id.Count != want[0] || len(id.Detections) != want[1] || id.Detections == nil {
			t.Errorf("%d: a count of %d with %d places, want %v", i, id.Count, len(id.Detections), want)
		}
	}
}

// TestEventLog: what it writes at which level, and that no body or secret is in it.
func TestEventLog(t *testing.T) {
	for level, want := range map[slog.Level][]string{
		slog.LevelInfo:  nil,
		slog.LevelDebug: {"SNS metrics", "delivery status"},
	} {
		var log bytes.Buffer
		kept := &statusGroups{entries: map[string][]string{}}
		v := clock.NewVirtual(start)
		l := NewEventLog(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: level})), clock.NewJitter(1), kept, nil)
		r := newRig(t, v, refuse, func(o *Options) { o.Events = l })
		r.feedback = topic.Feedback{Success: true, Failure: true, Rate: 100}
		sub := testSub("a", "https://user:secret-pass@host/private-path?secret-query=1", topic.HTTPS, testDLQ)
		r.add(sub, retry.DefaultHTTP, 0)
		r.publish(sub.ARN, 1)
		advance(t, v, time.Hour)
		sqs := testSub("b", testDLQ.String(), topic.SQS, arn.ARN{})
		l.Published(&shard.Published{
			Topic: arn.Topic("us-east-1", "000000000000", "t"), Size: 5, Delivered: 1, Feedback: r.feedback,
			Immediate: []shard.ImmediateDelivery{{Subscription: sqs, Body: []byte("secret-body")}},
		})
		seen := map[string]int{}
		for line := range strings.Lines(log.String()) {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			seen[m["msg"].(string)]++
		}
		if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
			t.Errorf("at %s: %v, want %v", level, got, want)
		}
		counts := map[string]int{}
		for name, entries := range kept.entries {
			counts[name] = len(entries)
			if strings.Contains(strings.Join(entries, ""), "secret") {
				t.Errorf("in %s, a secret: %s", name, entries)
			}
		}
		const group = "arn:aws:logs:us-east-1:000000000000:log-group:sns/us-east-1/000000000000/t"
		if d := cmp.Diff(map[string]int{group: 2, group + "/Failure": 4}, counts); d != "" {
			t.Errorf("at %s, in the log groups (-want +got):\n%s", level, d)
		}
		if failed := strings.Join(kept.entries[group+"/Failure"], ""); strings.Count(failed, `"destination":"https://host/private-path"`) != 4 {
			t.Errorf("at %s, entries without their destination: %s", level, failed)
		}
		if strings.Contains(log.String(), "secret") || strings.Contains(log.String(), "private-path") {
			t.Errorf("at %s, a secret:\n%s", level, log.String())
		}
		if n := seen["delivery status"]; n != 0 && n != 6 { // 4 attempts, the dead letter, and the immediate one
			t.Errorf("%d entries:\n%s", n, log.String())
		}
	}
}

package sdk_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
)

// archiveWorld is a FIFO topic with an archive of 30 days.
type archiveWorld struct {
	t        *testing.T
	endpoint string
	c        *sns.Client
	q        *sqs.Client
	topic    string
}

func newArchiveWorld(t *testing.T, change func(c *config.Config)) *archiveWorld {
	t.Helper()
	w := &archiveWorld{t: t, endpoint: startWith(t, change)}
	w.c, w.q = topicsClient(w.endpoint), client(w.endpoint)
	w.topic = createFIFOTopic(t, w.c, "orders.fifo", "ArchivePolicy", `{"MessageRetentionPeriod":"30"}`)
	return w
}

// begins is the earliest time from which messages can be replayed.
func (w *archiveWorld) begins() time.Time {
	w.t.Helper()
	return must(time.Parse(time.RFC3339Nano, topicAttributes(w.t, w.c, w.topic)["BeginningArchiveTime"]))(w.t)
}

// publish publishes messages a minute apart: the group is the first letter.
func (w *archiveWorld) publish(bodies ...string) {
	w.t.Helper()
	for _, body := range bodies {
		publishTo(w.t, w.c, w.topic, body[:1], body)
		advance(w.t, w.endpoint, "1m")
	}
}

func replayFrom(start time.Time, end ...time.Time) string {
	policy := `{"PointType":"Timestamp","StartingPoint":"` + start.Format("2006-01-02T15:04:05.000Z") + `"`
	for _, at := range end {
		policy += `,"EndingPoint":"` + at.Format("2006-01-02T15:04:05.000Z") + `"`
	}
	return policy + "}"
}

func (w *archiveWorld) subscribe(queue string, attributes ...string) string {
	w.t.Helper()
	return subscribe(w.t, w.c, w.topic, "sqs", queueARN(queue), attributes...)
}

func (w *archiveWorld) set(sub, policy string) error {
	return errorOf(w.c.SetSubscriptionAttributes(w.t.Context(), &sns.SetSubscriptionAttributesInput{
		SubscriptionArn: &sub, AttributeName: aws.String("ReplayPolicy"), AttributeValue: &policy,
	}))
}

func (w *archiveWorld) status(sub string) string {
	w.t.Helper()
	return subscriptionAttributes(w.t, w.c, sub)["ReplayStatus"]
}

// awaitIdle lets what is under way in the background come to its end.
func (w *archiveWorld) awaitIdle() {
	w.t.Helper()
	advance(w.t, w.endpoint, "1s")
}

// took receives and deletes all there is.
func (w *archiveWorld) took(url string) (bodies []string) {
	w.t.Helper()
	for {
		got := receive(w.t, w.q, url, 10)
		if len(got) == 0 {
			return bodies
		}
		bodies = append(bodies, order(got)...)
		remove(w.t, w.q, url, got...)
	}
}

func TestArchivePolicy(t *testing.T) {
	w := newArchiveWorld(t, func(*config.Config) {})
	equal(t, "the policy", `{"MessageRetentionPeriod":"30"}`, topicAttributes(t, w.c, w.topic)["ArchivePolicy"])
	set := func(topic, value string) error {
		return errorOf(w.c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{
			TopicArn: &topic, AttributeName: aws.String("ArchivePolicy"), AttributeValue: &value,
		}))
	}
	const days = "Invalid parameter: ArchivePolicy: MessageRetentionPeriod must be a number of days from 1 to 365"
	for value, text := range map[string]string{
		"30": "Invalid parameter: ArchivePolicy: failed to parse JSON.", `{"MessageRetentionPeriod":"0"}`: days,
		`{"MessageRetentionPeriod":"366"}`: days, `{"MessageRetentionPeriod":"1.5"}`: days, `{"MessageRetentionPeriod":{}}`: days,
		`{"Days":"1"}`: "Invalid parameter: ArchivePolicy: Unexpected JSON member: Days",
	} {
		refused(t, set(w.topic, value), "InvalidParameter", 400, text)
	}
	refused(t, set(createTopic(t, w.c, "standard"), `{"MessageRetentionPeriod":"1"}`), "InvalidParameter", 400,
		"Invalid parameter: ArchivePolicy: FIFO topics only")

	// The archive begins with its policy, and moves on once that is as old as
	// it keeps messages.
	first := w.begins()
	advance(t, w.endpoint, "720h")
	equal(t, "after 30 days", first, w.begins())
	advance(t, w.endpoint, "1h")
	equal(t, "after another hour", first.Add(time.Hour), w.begins())
	if err := set(w.topic, `{"MessageRetentionPeriod":1}`); err != nil {
		t.Fatal(err)
	}
	equal(t, "with one day", first.Add(720*time.Hour-23*time.Hour), w.begins())
	if err := set(w.topic, `{"MessageRetentionPeriod":"365"}`); err != nil {
		t.Fatal(err)
	}
	equal(t, "with a year", first.Add(720*time.Hour-23*time.Hour), w.begins()) // what was dropped does not come back

	// A topic with an archive cannot be deleted.
	_, err := w.c.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &w.topic})
	refused(t, err, "InvalidState", 400, "Invalid state: Cannot delete a topic with an ArchivePolicy")
	if err := set(w.topic, "{}"); err != nil {
		t.Fatal(err)
	}
	if all := topicAttributes(t, w.c, w.topic); all["ArchivePolicy"]+all["BeginningArchiveTime"] != "" {
		t.Errorf("without an archive: %v", all)
	}
	must(w.c.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &w.topic}))(t)
}

// A reset in development takes topics with their archives.
func TestResetWithArchive(t *testing.T) {
	w := newArchiveWorld(t, func(*config.Config) {})
	if got := post(t, w.endpoint+"/_godwit/v1/reset", `{"account":"`+account+`"}`); got.Status != http.StatusOK {
		t.Fatalf("the reset is answered %d %s", got.Status, got.Body)
	}
	equal(t, "topics", 0, len(must(w.c.ListTopics(t.Context(), &sns.ListTopicsInput{}))(t).Topics))
}

func TestReplayPolicyRefuses(t *testing.T) {
	w := newArchiveWorld(t, func(*config.Config) {})
	sub := w.subscribe("q.fifo")
	at := w.begins()
	before := subscriptionAttributes(t, w.c, sub)
	for policy, text := range map[string]string{
		"x":                         "failed to parse JSON.",
		`{"PointType":"Message"}`:   "PointType is invalid",
		`{"PointType":"Timestamp"}`: "StartingPoint must be specified",
		`{"StartingPoint":"2026-01-01T00:00:00Z"}`:                 "PointType must be specified",
		`{"PointType":"Timestamp","StartingPoint":"yesterday"}`:    "StartingPoint is invalid",
		`{"PointType":"Timestamp","StartingPoint":1}`:              "StartingPoint is invalid",
		`{"PointType":"Timestamp","Begin":"2026-01-01T00:00:00Z"}`: "Unexpected JSON member: Begin",
		replayFrom(at, at):                "EndingPoint must be after StartingPoint",
		replayFrom(at.Add(time.Hour)):     "StartingPoint must not be in the future",
		replayFrom(at, at.Add(time.Hour)): "EndingPoint must not be in the future",
	} {
		refused(t, w.set(sub, policy), "InvalidParameter", 400, "Invalid parameter: ReplayPolicy: "+text)
		_, err := w.c.Subscribe(t.Context(), &sns.SubscribeInput{
			TopicArn: &w.topic, Protocol: aws.String("sqs"), Endpoint: aws.String(queueARN("other.fifo")), Attributes: map[string]string{"ReplayPolicy": policy},
		})
		refused(t, err, "InvalidParameter", 400, "Invalid parameter: Attributes Reason: ReplayPolicy: "+text)
	}
	equal(t, "after refusals", before, subscriptionAttributes(t, w.c, sub))
	plain := createFIFOTopic(t, w.c, "plain.fifo")
	refused(t, w.set(subscribe(t, w.c, plain, "sqs", queueARN("q.fifo")), replayFrom(at)), "InvalidParameter", 400,
		"Invalid parameter: ReplayPolicy: the topic has no ArchivePolicy")
	standard := createTopic(t, w.c, "standard")
	refused(t, w.set(subscribe(t, w.c, standard, "sqs", queueARN("q")), replayFrom(at)), "InvalidParameter", 400,
		"Invalid parameter: ReplayPolicy: FIFO topics only")
}

// A replay comes in order through the subscription's filter, marked, to the same
// queue while that still remembers the first delivery; new messages follow it.
func TestReplay(t *testing.T) {
	w := newArchiveWorld(t, func(*config.Config) {})
	enveloped, raw := createFIFO(t, w.q, "q.fifo"), createFIFO(t, w.q, "raw.fifo")
	sub := w.subscribe("q.fifo")
	must(w.c.Publish(t.Context(), &sns.PublishInput{
		TopicArn: &w.topic, Message: aws.String("a1"), MessageGroupId: aws.String("a"), MessageDeduplicationId: aws.String("a1"),
		MessageAttributes: map[string]snstypes.MessageAttributeValue{"status": textAttribute("open")},
	}))(t)
	live := takeMessage(t, w.q, enveloped)
	if err := w.set(sub, replayFrom(w.begins())); err != nil {
		t.Fatal(err)
	}
	again := takeMessage(t, w.q, enveloped)
	want := decode(t, *live.Body)
	want["Replayed"] = "true"
	equal(t, "the replayed message", want, decode(t, *again.Body))
	equal(t, "its group", "a", again.Attributes["MessageGroupId"])
	w.awaitIdle()
	equal(t, "status", "Completed", w.status(sub))
	equal(t, "the policy", replayFrom(w.begins()), subscriptionAttributes(t, w.c, sub)["ReplayPolicy"])

	// A new subscription gets the history, and what comes later once.
	w.publish("a2", "b1", "a3", "b2")
	late := w.subscribe("raw.fifo", "RawMessageDelivery", "true", "ReplayPolicy", replayFrom(w.begins()))
	w.awaitIdle()
	w.publish("a4")
	got := receive(t, w.q, raw, 10)
	history := map[string]string{}
	for _, m := range got {
		history[(*m.Body)[:1]] += *m.Body
		mark := m.MessageAttributes["Replayed"]
		if replayed := aws.ToString(mark.StringValue) == "true"; replayed != (*m.Body != "a4") {
			t.Errorf("%s is marked %v", *m.Body, m.MessageAttributes)
		}
	}
	equal(t, "the history", map[string]string{"a": "a1a2a3a4", "b": "b1b2"}, history)
	remove(t, w.q, raw, got...)

	// Another replay replaces the first, from its starting point to its end;
	// nothing new follows that.
	from := w.begins().Add(time.Minute) // a2 was the first within this minute
	if err := w.set(late, replayFrom(from, from.Add(2*time.Minute))); err != nil {
		t.Fatal(err)
	}
	w.awaitIdle()
	w.publish("a5")
	bounded := w.took(raw)
	if len(bounded) == 0 || len(bounded) > 3 || strings.Contains(fmt.Sprint(bounded), "a5") {
		t.Errorf("a replay of two minutes brought %v", bounded)
	}
	equal(t, "status with an end", "Completed", w.status(late))
	if err := w.set(late, "{}"); err != nil {
		t.Fatal(err)
	}
	equal(t, "status without a policy", "", w.status(late))
	w.publish("a6")
	equal(t, "without a policy", []string{"a6"}, w.took(raw))

	// Through the filter of now.
	must(w.c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
		SubscriptionArn: &late, AttributeName: aws.String("FilterPolicy"), AttributeValue: aws.String(`{"status":["open"]}`),
	}))(t)
	if err := w.set(late, replayFrom(w.begins())); err != nil {
		t.Fatal(err)
	}
	w.awaitIdle()
	equal(t, "filtered", []string{"a1"}, w.took(raw))
}

// Both ends of a replay are part of it, to the millisecond.
func TestReplayBounds(t *testing.T) {
	w := newArchiveWorld(t, func(*config.Config) {})
	url := createFIFO(t, w.q, "raw.fifo")
	var at []time.Time
	for _, body := range []string{"a1", "a2", "a3", "a4"} {
		at = append(at, time.UnixMilli(serverNow(t, w.endpoint)).UTC())
		w.publish(body)
	}
	sub := w.subscribe("raw.fifo", "RawMessageDelivery", "true")
	for _, tc := range []struct {
		start, end time.Time
		want       []string
	}{
		{at[1], at[2], []string{"a2", "a3"}},
		{at[1].Add(time.Millisecond), at[3], []string{"a3", "a4"}},
		{at[0], at[3].Add(-time.Millisecond), []string{"a1", "a2", "a3"}},
		{at[1].Add(time.Millisecond), at[2].Add(-time.Millisecond), nil},
	} {
		if err := w.set(sub, replayFrom(tc.start, tc.end)); err != nil {
			t.Fatal(err)
		}
		w.awaitIdle()
		equal(t, fmt.Sprint("from ", tc.start, " to ", tc.end), tc.want, w.took(url))
		equal(t, "status", "Completed", w.status(sub))
	}
}

// What is too old is not replayed, nor is what was dropped with the policy.
func TestReplayOfWhatIsGone(t *testing.T) {
	w := newArchiveWorld(t, func(*config.Config) {})
	url := createFIFO(t, w.q, "q.fifo")
	start := w.begins()
	w.publish("a1")
	advance(t, w.endpoint, "719h")
	w.publish("a2")
	advance(t, w.endpoint, "59m")
	sub := w.subscribe("q.fifo", "RawMessageDelivery", "true", "ReplayPolicy", replayFrom(start))
	w.awaitIdle()
	equal(t, "after 30 days", []string{"a2"}, w.took(url))

	setTopic(t, w.c, w.topic, "ArchivePolicy", "")
	setTopic(t, w.c, w.topic, "ArchivePolicy", `{"MessageRetentionPeriod":"365"}`)
	w.publish("a3")
	equal(t, "live", []string{"a3"}, w.took(url))
	if err := w.set(sub, replayFrom(start)); err != nil {
		t.Fatal(err)
	}
	w.awaitIdle()
	equal(t, "of the new archive", []string{"a3"}, w.took(url))
}

// publishMany publishes n messages, whose bodies are numbers, in ten groups.
func (w *archiveWorld) publishMany(n int) {
	w.t.Helper()
	for i := range n / 10 {
		var entries []snstypes.PublishBatchRequestEntry
		for j := range 10 {
			e := batchEntry(fmt.Sprint(j), fmt.Sprint(10*i+j))
			e.MessageGroupId, e.MessageDeduplicationId = aws.String(fmt.Sprint(j)), e.Message
			entries = append(entries, e)
		}
		must(w.c.PublishBatch(w.t.Context(), &sns.PublishBatchInput{TopicArn: &w.topic, PublishBatchRequestEntries: entries}))(w.t)
	}
}

// A replay whose deliveries an operator drops continues with what it has not delivered yet.
func TestReplayDropped(t *testing.T) {
	w := newArchiveWorld(t, func(*config.Config) {})
	url := createFIFO(t, w.q, "q.fifo")
	start := w.begins()
	const messages = 1500 // more than a replay puts ahead of its deliveries
	w.publishMany(messages)
	fault := func(kind string) {
		admin(t, w.endpoint+"/_godwit/faults", `{"arn":"`+queueARN("q.fifo")+`","fault":"`+kind+`"}`)
	}
	fault("unavailable")
	sub := w.subscribe("q.fifo", "RawMessageDelivery", "true", "ReplayPolicy", replayFrom(start))
	w.awaitIdle()
	for _, path := range []string{"subscriptions/pause", "deliveries/drop", "subscriptions/resume"} {
		body := `{"subscription":"` + sub + `"`
		if path == "deliveries/drop" {
			body += `,"all":true`
		}
		admin(t, w.endpoint+"/_godwit/"+path, body+"}")
	}
	fault("none")
	w.awaitIdle()
	w.publish("live")
	if got := w.took(url); !slices.Contains(got, "1499") || !slices.Contains(got, "live") {
		t.Errorf("%d messages came, without the last ones", len(got))
	}
	equal(t, "the status", "Completed", w.status(sub))
}

// Of replays under way there can be a quota. One of a queue that is out of reach
// continues with its deliveries, through a restart, and fails with its archive.
func TestReplayQuota(t *testing.T) {
	besideOthers(t)
	data := t.TempDir()
	setup := func(c *config.Config) { c.Store, c.Data, c.MaxReplays = config.PebbleStore, data, 1 }
	const messages = 1500 // more than a replay puts ahead of its deliveries
	const tooMany = "The topic has as many replays under way as it may have."
	var sub, other string
	var start time.Time
	unreachable := func(t *testing.T, w *archiveWorld, fault string) {
		t.Helper()
		if r := post(t, w.endpoint+"/_godwit/faults", `{"arn":"`+queueARN("q")+`","fault":"`+fault+`"}`); r.Status != 200 {
			t.Fatalf("fault %s: %d %s", fault, r.Status, r.Body)
		}
	}
	t.Run("first", func(t *testing.T) {
		w := newArchiveWorld(t, setup)
		createQueue(t, w.q, "q")
		start = w.begins()
		w.publishMany(messages)
		// A queue of another account confirms before its replay begins.
		foreign := clientOf(w.endpoint, region, "111122223333")
		foreignURL := createQueue(t, foreign, "foreign", "Policy",
			`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:SendMessage","Resource":"*"}]}`)
		subscribe(t, w.c, w.topic, "sqs", "arn:aws:sqs:"+region+":111122223333:foreign", "ReplayPolicy", replayFrom(start))
		token, _ := decode(t, *takeMessage(t, foreign, foreignURL).Body)["Token"].(string)

		unreachable(t, w, "unavailable")
		sub = w.subscribe("q", "RawMessageDelivery", "true", "ReplayPolicy", replayFrom(start))
		w.awaitIdle()
		equal(t, "status", "In progress", w.status(sub))

		other = w.subscribe("other")
		refused(t, w.set(other, replayFrom(start)), "ReplayLimitExceeded", 403, tooMany)
		_, err := w.c.Subscribe(t.Context(), &sns.SubscribeInput{
			TopicArn: &w.topic, Protocol: aws.String("sqs"), Endpoint: aws.String(queueARN("third")), Attributes: map[string]string{"ReplayPolicy": replayFrom(start)},
		})
		refused(t, err, "ReplayLimitExceeded", 403, tooMany)
		_, err = w.c.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &w.topic, Token: &token})
		refused(t, err, "ReplayLimitExceeded", 403, tooMany)
		if err := w.set(sub, replayFrom(start)); err != nil { // in the place of its own
			t.Error(err)
		}
		w.publish("live") // it comes last
	})
	t.Run("restarted", func(t *testing.T) {
		w := newArchiveWorld(t, setup)
		equal(t, "status", "Pending", w.status(sub)) // there is enough to be delivered
		refused(t, w.set(other, replayFrom(start)), "ReplayLimitExceeded", 403, tooMany)
		advance(t, w.endpoint, "5m")
		w.awaitIdle()
		equal(t, "status at last", "Completed", w.status(sub))
		url := createQueue(t, w.q, "q")
		seen := map[string]int{}
		for _, body := range w.took(url) {
			seen[body]++
		}
		for i := range messages {
			if n := seen[fmt.Sprint(i)]; n == 0 || n > 2 { // those of the first replay that were ahead come, too
				t.Errorf("%d came %d times", i, n)
			}
		}
		equal(t, "the live one", 1, seen["live"])

		unreachable(t, w, "unavailable")
		if err := w.set(sub, replayFrom(start)); err != nil {
			t.Fatal(err)
		}
		w.awaitIdle()
		equal(t, "status", "In progress", w.status(sub))
		setTopic(t, w.c, w.topic, "ArchivePolicy", "")
		equal(t, "status without an archive", "Failed", w.status(sub))
	})
}

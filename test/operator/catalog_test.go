package operator_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

type queueView struct {
	ARN, Name                            string
	FIFO                                 bool
	Messages, Visible, InFlight, Delayed int
	OldestAgeSeconds                     *float64
	DeadLetterQueue                      *string
	DeadLetterSources                    int
	MaxReceiveCount                      *int
	Sources, Subscriptions               []string
	Attributes, Tags                     map[string]string
	Totals                               struct{ Sent, Received int }
	Problem                              *string
}

type queuePage struct {
	Queues []queueView
	Total  int
	Next   *string
}

func names(p queuePage) (all []string) {
	for _, q := range p.Queues {
		all = append(all, q.Name)
	}
	return all
}

func equal[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if w, g := fmt.Sprint(want), fmt.Sprint(got); w != g {
		t.Errorf("%s: %s; want %s", what, g, w)
	}
}

func TestQueues(t *testing.T) {
	w := start(t)
	w.queue("dead", nil)
	url := w.queue("orders", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":3}`})
	w.queue("Orders-2.fifo", map[string]string{"FifoQueue": "true"})
	for i := range 3 {
		w.send(url, fmt.Sprint("order ", i))
	}
	delay := int32(60)
	body := "later"
	must(w.queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, DelaySeconds: delay}))(t)
	must(w.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url}))(t)
	w.advance("10s")

	page := get[queuePage](w, "queues")
	equal(t, "all by name", []string{"Orders-2.fifo", "dead", "orders"}, names(page))
	equal(t, "total", 3, page.Total)
	orders := page.Queues[2]
	equal(t, "counts", []int{4, 2, 1, 1}, []int{orders.Messages, orders.Visible, orders.InFlight, orders.Delayed})
	equal(t, "age", 10.0, *orders.OldestAgeSeconds)
	equal(t, "dead-letter queue", queueARN("dead"), *orders.DeadLetterQueue)
	equal(t, "receives before it", 3, *orders.MaxReceiveCount)
	equal(t, "sources", 1, page.Queues[1].DeadLetterSources)
	for parameters, want := range map[string][]string{
		"search=ORD":             {"Orders-2.fifo", "orders"},
		"kind=fifo":              {"Orders-2.fifo"},
		"kind=standard":          {"dead", "orders"},
		"kind=dead-letter":       {"dead"},
		"nonEmpty=true":          {"orders"},
		"sort=messages":          {"orders"},
		"region=eu-west-1":       nil,
		"account=111122223333":   nil,
		"search=none":            nil,
		"limit=2":                {"Orders-2.fifo", "dead"},
		"sort=messages&limit=10": {"orders"},
	} {
		equal(t, parameters, want, names(decode[queuePage](w, w.call(http.MethodGet, "queues", parameters, "", http.StatusOK))))
	}
	var walked []string
	for cursor := ""; ; {
		page := get[queuePage](w, "queues", "limit", "1", "cursor", cursor)
		walked = append(walked, names(page)...)
		if page.Next == nil {
			break
		}
		cursor = *page.Next
	}
	equal(t, "page by page", []string{"Orders-2.fifo", "dead", "orders"}, walked)
	w.refused(http.StatusBadRequest, http.MethodGet, "queues", "cursor=%25%25")

	one := get[queueView](w, "queue", "arn", queueARN("orders"))
	equal(t, "sent", 4, one.Totals.Sent)
	equal(t, "an attribute", `{"deadLetterTargetArn":"`+queueARN("dead")+`","maxReceiveCount":3}`, one.Attributes["RedrivePolicy"])
	equal(t, "sources of dead", []string{queueARN("orders")}, get[queueView](w, "queue", "arn", queueARN("dead")).Sources)
	w.refused(http.StatusNotFound, http.MethodGet, "queue", "arn="+queueARN("none"))
	w.refused(http.StatusBadRequest, http.MethodGet, "queue", "arn=x")

	w.fetch(http.MethodPost, w.endpoint+"/_godwit/faults", `{"arn":"`+queueARN("dead")+`","fault":"unavailable"}`, http.StatusOK)
	if q := get[queuePage](w, "queues", "search", "dead").Queues; len(q) != 1 || q[0].Problem == nil {
		t.Errorf("a queue that fails is shown as %+v", q)
	}
}

type topicView struct {
	ARN, Name              string
	Subscriptions, Pending int
	Owed                   int
	Protocols              map[string]int
	Attributes             map[string]string
}

type subscriptionView struct {
	ARN, ID, Topic, Protocol, Endpoint, State string
	EndpointARN, DeadLetterQueue              *string
	Owed, Due, Waiting, InFlight              int
	OldestAgeSeconds                          *float64
	Filtered                                  bool
	LastAttempt                               *attemptView
	EffectivePolicy                           struct {
		NumRetries   int
		TotalSeconds float64
	}
	FilterPolicy *string
}

type attemptView struct {
	Outcome, Detail, MessageID string
	Status, Number             int
}

type subscriptionPage struct {
	Subscriptions []subscriptionView
	Total         int
	Next          *string
}

func arns(p subscriptionPage) (all []string) {
	for _, s := range p.Subscriptions {
		all = append(all, s.ARN)
	}
	return all
}

type deliveryView struct {
	ID, MessageID, State       string
	Attempt                    int
	NextAttemptAt, PublishedAt *time.Time
	Reason                     *string
	Attempts                   []attemptView
	Topic                      string
	SizeBytes                  int
	Schedule                   struct {
		Made, RetriesTotal, AheadTotal int
		EndsAt, ExpiresAt              *time.Time
		Ahead                          []struct {
			Attempt      int
			At           time.Time
			Phase        string
			DelaySeconds float64
		}
	}
}

type deliveryPage struct {
	Deliveries []deliveryView
	Next       *string
}

// Lists have the tags of queues and topics, and can be narrowed down by one.
func TestTags(t *testing.T) {
	w := start(t)
	queueTags := map[string]map[string]string{"a": {"team": "shop"}, "b": {"team": "post", "x=y": "z"}, "c": nil}
	for name, tags := range queueTags {
		must(w.queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Tags: tags}))(t)
		must(w.topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name}))(t)
		for key, value := range tags {
			must(w.topics.TagResource(t.Context(), &sns.TagResourceInput{ResourceArn: aws.String("arn:aws:sns:" + region + ":" + account + ":" + name), Tags: []snstypes.Tag{{Key: &key, Value: &value}}}))(t)
		}
	}
	for tag, want := range map[string][]string{"": {"a", "b", "c"}, "team": {"a", "b"}, "team=shop": {"a"}, "x=y": {"b"}, "x=y=z": {"b"}, "team=": nil, "Team": nil, "shop": nil} {
		equal(t, "queues with "+tag, fmt.Sprint(want), fmt.Sprint(names(get[queuePage](w, "queues", "tag", tag))))
		var topics []string
		for _, one := range get[struct {
			Topics []struct {
				Name string
				Tags map[string]string
			}
		}](w, "topics", "tag", tag).Topics {
			topics = append(topics, one.Name)
			if len(one.Tags) != len(queueTags[one.Name]) {
				t.Errorf("%s has the tags %v", one.Name, one.Tags)
			}
		}
		equal(t, "topics with "+tag, fmt.Sprint(want), fmt.Sprint(topics))
	}
	equal(t, "a queue's", "map[team:post x=y:z]", fmt.Sprint(get[queuePage](w, "queues", "search", "b").Queues[0].Tags))
}

func TestTopicsAndSubscriptions(t *testing.T) {
	w := start(t)
	url := w.queue("orders", nil)
	topic := w.topic("orders")
	w.topic("quiet")
	toQueue := w.subscribe(topic, "sqs", queueARN("orders"), map[string]string{"FilterPolicy": `{"kind":["a"]}`})
	h, toHook := w.hooked(topic, nil)
	pending := w.subscribe(topic, "email", "someone@example.com", nil)
	w.advance("0s") // the event of the confirmation comes before what follows
	h.status.Store(http.StatusServiceUnavailable)
	w.publish(topic, "one")
	w.publish(topic, "two")
	w.advance("0s")

	topics := get[struct {
		Topics []topicView
		Total  int
		Next   *string
	}](w, "topics")
	equal(t, "topics", 2, topics.Total)
	first := topics.Topics[0]
	equal(t, "orders", []any{"orders", 2, 1, 2}, []any{first.Name, first.Subscriptions, first.Pending, first.Owed})
	equal(t, "one page", 1, len(get[struct{ Topics []topicView }](w, "topics", "limit", "1").Topics))
	equal(t, "found", 1, len(get[struct{ Topics []topicView }](w, "topics", "search", "QUI").Topics))
	detail := get[topicView](w, "topic", "arn", topic)
	equal(t, "protocols", map[string]int{"email": 1, "http": 1, "sqs": 1}, detail.Protocols)
	w.refused(http.StatusNotFound, http.MethodGet, "topic", "arn="+topic+"x")
	w.refused(http.StatusBadRequest, http.MethodGet, "topic", "arn="+toHook)

	all := get[subscriptionPage](w, "subscriptions")
	equal(t, "subscriptions", 3, len(all.Subscriptions))
	equal(t, "of the topic", arns(all), arns(get[subscriptionPage](w, "subscriptions", "topic", topic)))
	for parameters, want := range map[string][]string{
		"protocol=http":                        {toHook},
		"state=failing":                        {toHook},
		"state=pending-confirmation":           {pending},
		"state=active":                         {toQueue},
		"state=paused":                         nil,
		"sort=owed":                            {toHook},
		"endpoint=" + queueARN("orders"):       {toQueue},
		"search=SOMEONE":                       {pending},
		"region=eu-west-1":                     nil,
		"sort=owed&protocol=sqs":               nil,
		"topic=" + topic + "&protocol=http":    {toHook},
		"topic=" + topic + "&state=active":     {toQueue},
		"state=failing&endpoint=" + "http://x": nil,
	} {
		equal(t, parameters, want, arns(decode[subscriptionPage](w, w.call(http.MethodGet, "subscriptions", parameters, "", http.StatusOK))))
	}
	var walked []string
	for cursor := ""; ; {
		page := get[subscriptionPage](w, "subscriptions", "limit", "1", "topic", topic, "cursor", cursor)
		walked = append(walked, arns(page)...)
		if page.Next == nil {
			break
		}
		cursor = *page.Next
	}
	equal(t, "page by page", arns(all), walked)
	w.refused(http.StatusNotFound, http.MethodGet, "subscriptions", "topic="+topic+"x")

	one := get[subscriptionView](w, "subscription", "arn", toHook)
	equal(t, "what it is owed", []int{2, 0, 2, 0}, []int{one.Owed, one.Due, one.Waiting, one.InFlight})
	equal(t, "its last attempt", "server-error 503", fmt.Sprint(one.LastAttempt.Outcome, " ", one.LastAttempt.Status))
	equal(t, "its policy", 3, one.EffectivePolicy.NumRetries)
	equal(t, "its total", 60.0, one.EffectivePolicy.TotalSeconds)
	equal(t, "the other's filter", `{"kind":["a"]}`, *get[subscriptionView](w, "subscription", "arn", toQueue).FilterPolicy)
	equal(t, "the other's queue", queueARN("orders"), *get[subscriptionView](w, "subscription", "arn", toQueue).EndpointARN)
	equal(t, "it is told of the queue", []string{toQueue}, get[queueView](w, "queue", "arn", queueARN("orders")).Subscriptions)
	w.refused(http.StatusNotFound, http.MethodGet, "subscription", "arn="+topic+":00000000-0000-4000-8000-000000000000")
	w.refused(http.StatusBadRequest, http.MethodGet, "subscription", "arn="+topic)
	_ = url
}

func TestDeliveries(t *testing.T) {
	w := start(t)
	topic := w.topic("orders")
	h, sub := w.hooked(topic, nil)
	w.publish(topic, "delivered")
	w.advance("0s")
	h.status.Store(http.StatusServiceUnavailable)
	for range 3 {
		w.publish(topic, "failing")
	}
	w.advance("0s")

	all := get[deliveryPage](w, "deliveries", "subscription", sub)
	states := func(p deliveryPage) (out []string) {
		for _, d := range p.Deliveries {
			out = append(out, d.State)
		}
		return out
	}
	// The subscription's confirmation was delivered, too.
	equal(t, "states", []string{"pending", "pending", "pending", "delivered", "delivered"}, states(all))
	equal(t, "waiting", 3, len(get[deliveryPage](w, "deliveries", "subscription", sub, "state", "waiting").Deliveries))
	equal(t, "pending", 3, len(get[deliveryPage](w, "deliveries", "subscription", sub, "state", "pending").Deliveries))
	equal(t, "in flight", 0, len(get[deliveryPage](w, "deliveries", "subscription", sub, "state", "in-flight").Deliveries))
	equal(t, "finished", 2, len(get[deliveryPage](w, "deliveries", "subscription", sub, "state", "finished").Deliveries))
	var walked []string
	for cursor := ""; ; {
		page := get[deliveryPage](w, "deliveries", "subscription", sub, "limit", "1", "cursor", cursor)
		for _, d := range page.Deliveries {
			walked = append(walked, d.MessageID)
		}
		if page.Next == nil {
			break
		}
		cursor = *page.Next
	}
	var want []string
	for _, d := range all.Deliveries {
		want = append(want, d.MessageID)
	}
	equal(t, "page by page", want, walked)
	equal(t, "each once", len(want), len(slices.Compact(slices.Sorted(slices.Values(walked)))))
	w.refused(http.StatusBadRequest, http.MethodGet, "deliveries", "subscription="+sub+"&cursor=AAAA")
	w.refused(http.StatusNotFound, http.MethodGet, "deliveries", "subscription="+topic+":00000000-0000-4000-8000-000000000000")

	first := all.Deliveries[0]
	one := get[deliveryView](w, "delivery", "subscription", sub, "id", first.ID)
	equal(t, "attempts", 1, len(one.Attempts))
	equal(t, "topic", topic, one.Topic)
	equal(t, "made", 1, one.Schedule.Made)
	equal(t, "retries", 3, one.Schedule.RetriesTotal)
	equal(t, "ahead", 3, one.Schedule.AheadTotal)
	for i, a := range one.Schedule.Ahead {
		equal(t, "an attempt's number", i+2, a.Attempt)
		equal(t, "its phase", "backoff", a.Phase)
		equal(t, "its time", first.NextAttemptAt.Add(time.Duration(i)*20*time.Second), a.At)
	}
	equal(t, "end", first.NextAttemptAt.Add(40*time.Second), *one.Schedule.EndsAt)
	equal(t, "expiry", first.PublishedAt.Add(time.Hour), *one.Schedule.ExpiresAt)
	w.refused(http.StatusNotFound, http.MethodGet, "delivery", "subscription="+sub+"&id=0-999")
	w.refused(http.StatusNotFound, http.MethodGet, "delivery", "subscription="+sub+"&id=x")

	w.advance("21s")
	moved := get[deliveryView](w, "delivery", "subscription", sub, "id", first.ID)
	equal(t, "made after the next", 2, moved.Schedule.Made)
	equal(t, "end as it was told", one.Schedule.EndsAt, moved.Schedule.EndsAt)
}

func TestOverview(t *testing.T) {
	w := start(t)
	type overview struct {
		Server   struct{ Version, Mode, Clock, Region, Account string }
		Counts   struct{ Queues, Topics, Subscriptions, Functions int }
		Messages struct{ Visible, InFlight, Delayed int }
		Owed     struct{ Due, Waiting, InFlight int }
		Worst    []struct {
			ARN, Kind string
			Messages  int
		}
		Attention []struct{ Kind, Severity, ARN, Text string }
	}
	empty := get[overview](w, "overview")
	w.refused(http.StatusBadRequest, http.MethodGet, "overview", "x=1")
	equal(t, "nothing", 0, empty.Counts.Queues+empty.Counts.Topics+len(empty.Worst)+len(empty.Attention))
	equal(t, "server", []string{"dev", "virtual", region, account}, []string{empty.Server.Mode, empty.Server.Clock, empty.Server.Region, empty.Server.Account})

	other := start(t)
	w = other
	dead := w.queue("dead", nil)
	w.queue("orders", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":3}`})
	w.send(dead, "lost")
	topic := w.topic("orders")
	h, sub := w.hooked(topic, nil)
	h.status.Store(http.StatusServiceUnavailable)
	for range 3 {
		w.publish(topic, "x")
	}
	w.advance("0s")
	got := get[overview](w, "overview")
	equal(t, "counts", []int{2, 1, 1, 0}, []int{got.Counts.Queues, got.Counts.Topics, got.Counts.Subscriptions, got.Counts.Functions})
	equal(t, "messages", 1, got.Messages.Visible)
	equal(t, "owed", 3, got.Owed.Waiting)
	equal(t, "worst", sub, got.Worst[0].ARN)
	kinds := map[string]string{}
	for _, a := range got.Attention {
		kinds[a.Kind] = a.ARN
	}
	equal(t, "attention", map[string]string{"failing-endpoint": sub, "dead-letters": queueARN("dead")}, kinds)
	equal(t, "the worst first", "critical", got.Attention[0].Severity)
}

func TestTopology(t *testing.T) {
	w := start(t)
	w.queue("dead", nil)
	w.queue("orders", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":3}`})
	topic, apart := w.topic("orders"), w.topic("apart")
	sub := w.subscribe(topic, "sqs", queueARN("orders"), map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `"}`})
	w.hooked(apart, nil)
	type graph struct {
		Nodes     []struct{ ARN, Kind, Name string }
		Edges     []struct{ From, To, Kind, ARN, State string }
		Truncated bool
	}
	edges := func(g graph) (all []string) {
		for _, e := range g.Edges {
			all = append(all, e.From+" "+e.Kind+" "+e.To)
		}
		slices.Sort(all)
		return all
	}
	whole := get[graph](w, "topology")
	equal(t, "edges", 4, len(whole.Edges))
	equal(t, "nodes", 5, len(whole.Nodes))
	part := get[graph](w, "topology", "root", queueARN("dead"))
	equal(t, "from the dead letters", []string{
		topic + " dead-letter " + queueARN("dead"), topic + " subscription " + queueARN("orders"), queueARN("orders") + " dead-letter " + queueARN("dead"),
	}, edges(part))
	equal(t, "the subscription", true, slices.ContainsFunc(part.Edges, func(e struct{ From, To, Kind, ARN, State string }) bool { return e.ARN == sub }))
	equal(t, "cut off", true, get[graph](w, "topology", "limit", "1").Truncated)
	w.refused(http.StatusBadRequest, http.MethodGet, "topology", "root=x")
}

// A queue that takes the dead letters of subscriptions alone is a dead-letter queue, too.
func TestDeadLettersOfSubscriptions(t *testing.T) {
	w := start(t)
	for _, name := range []string{"dead", "orders", "undelivered"} {
		w.queue(name, nil)
	}
	w.queue("source", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":3}`})
	sub := w.subscribe(w.topic("orders"), "sqs", queueARN("orders"), map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("undelivered") + `"}`})
	equal(t, "dead-letter queues", []string{"dead", "undelivered"}, names(get[queuePage](w, "queues", "kind", "dead-letter")))
	type detail struct {
		TakesDeadLetters     bool
		Sources, Undelivered []string
	}
	equal(t, "a subscription's", detail{true, []string{}, []string{sub}}, get[detail](w, "queue", "arn", queueARN("undelivered")))
	equal(t, "a queue's", detail{true, []string{queueARN("source")}, []string{}}, get[detail](w, "queue", "arn", queueARN("dead")))
	equal(t, "nobody's", detail{false, []string{}, []string{}}, get[detail](w, "queue", "arn", queueARN("orders")))
}

func TestFunctions(t *testing.T) {
	w := start(t)
	w.queue("orders", map[string]string{"VisibilityTimeout": "60"})
	functions := lambda.NewFromConfig(w.config)
	role, uri := "arn:aws:iam::"+account+":role/r", "http://127.0.0.1:1"
	for _, name := range []string{"bill", "Bill-again"} {
		must(functions.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
			FunctionName: &name, Role: &role, PackageType: "Image", Code: &types.FunctionCode{ImageUri: &uri}, Description: aws.String("bills"),
			Environment: &types.Environment{Variables: map[string]string{"SECRET": "hidden"}},
		}))(t)
	}
	w.advance("10s")
	name, source := "bill", queueARN("orders")
	mapped := must(functions.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{FunctionName: &name, EventSourceArn: &source}))(t)

	type function struct {
		ARN, Name, State, Description string
		Mappings, Events              int
		Environment                   []string
		Sources                       []struct{ ID, Source, State string }
	}
	type page struct {
		Functions []function
		Next      *string
	}
	all := get[page](w, "functions")
	equal(t, "functions", 2, len(all.Functions))
	first := get[page](w, "functions", "limit", "1")
	equal(t, "page by page", all.Functions[1:], get[page](w, "functions", "limit", "1", "cursor", *first.Next).Functions)
	equal(t, "found", 1, len(get[page](w, "functions", "search", "AGAIN").Functions))
	w.refused(http.StatusBadRequest, http.MethodGet, "functions", "cursor=%25")

	arn := "arn:aws:lambda:" + region + ":" + account + ":function:bill"
	one := get[function](w, "function", "arn", arn)
	equal(t, "its variables", []string{"SECRET"}, one.Environment)
	equal(t, "its source", *mapped.UUID+" "+source, one.Sources[0].ID+" "+one.Sources[0].Source)
	w.refused(http.StatusNotFound, http.MethodGet, "function", "arn="+arn+"x")
	w.refused(http.StatusBadRequest, http.MethodGet, "function", "arn="+arn+":1")
	equal(t, "the queue's", 1, len(get[struct{ Mappings []struct{ ID string } }](w, "queue", "arn", source).Mappings))
}

package operator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

type messageView struct {
	Position, MessageID, State, Body, BodyEncoding string
	BodyTruncated                                  bool
	Receives                                       int
	AvailableAt, FirstReceivedAt                   *time.Time
	Group, SequenceNumber, Refused                 *string
	Attributes                                     []struct{ Name, Type, Value, Encoding string }
	DeadLetter                                     *struct {
		From, Kind, Cause string
		Attempts          int
	}
}

type messagePage struct {
	Messages            []messageView
	Scanned, Unreadable int
	Total               int
	Next                *string
}

func bodies(p messagePage) (all []string) {
	for _, m := range p.Messages {
		all = append(all, m.Body)
	}
	return all
}

// walk reads all pages.
func walk(w *world, parameters ...string) (all []messageView) {
	w.t.Helper()
	for cursor := ""; ; {
		page := get[messagePage](w, "messages", append(slices.Clone(parameters), "cursor", cursor)...)
		all = append(all, page.Messages...)
		if page.Next == nil {
			return all
		}
		cursor = *page.Next
	}
}

func (w *world) receive(url string) []types.Message {
	w.t.Helper()
	return must(w.queues.ReceiveMessage(w.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}}))(w.t).Messages
}

func TestPeek(t *testing.T) {
	w := start(t)
	url, arn := w.queue("orders", nil), queueARN("orders")
	for i := range 5 {
		w.send(url, fmt.Sprint("order ", i))
	}
	w.receive(url)
	body := "binary"
	must(w.queues.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &url, MessageBody: &body, DelaySeconds: 60,
		MessageAttributes: map[string]types.MessageAttributeValue{"raw": {DataType: aws.String("Binary"), BinaryValue: []byte{0xff, 1}}, "Kind": {DataType: aws.String("String"), StringValue: aws.String("Needle")}},
	}))(t)

	all := walk(w, "arn", arn)
	equal(t, "messages", 6, len(all))
	equal(t, "one by one", all, walk(w, "arn", arn, "limit", "1"))
	equal(t, "in flight", 5, len(walk(w, "arn", arn, "state", "in-flight")))
	equal(t, "in flight, one by one", 5, len(walk(w, "arn", arn, "state", "in-flight", "limit", "1")))
	late := walk(w, "arn", arn, "state", "delayed", "limit", "1")
	equal(t, "delayed", 1, len(late))
	equal(t, "its attributes", "[{Kind String Needle utf-8} {raw Binary /wE= base64}]", fmt.Sprint(late[0].Attributes))
	equal(t, "found by an attribute", 1, len(walk(w, "arn", arn, "search", "NEEDLE")))
	equal(t, "found by its body", []string{"order 3"}, bodies(messagePage{Messages: walk(w, "arn", arn, "search", "ORDER 3")}))
	equal(t, "found by its id", []string{"order 2"}, bodies(messagePage{Messages: walk(w, "arn", arn, "id", all[2].MessageID)}))
	equal(t, "not found", 0, len(walk(w, "arn", arn, "search", "none")))
	cut := get[messagePage](w, "messages", "arn", arn, "bodyBytes", "3")
	equal(t, "cut off", "ord true", fmt.Sprint(cut.Messages[0].Body, " ", cut.Messages[0].BodyTruncated))
	equal(t, "whole", "order 0", get[messageView](w, "message", "arn", arn, "position", all[0].Position).Body)
	w.refused(http.StatusNotFound, http.MethodGet, "message", "arn="+arn+"&position=0-999")
	w.refused(http.StatusBadRequest, http.MethodGet, "message", "arn="+arn+"&position=x")
	w.refused(http.StatusNotFound, http.MethodGet, "messages", "arn="+arn+"x")
	w.refused(http.StatusBadRequest, http.MethodGet, "messages", "arn="+arn+"&cursor=AAAA")
	w.refused(http.StatusNotFound, http.MethodGet, "dead-letters", "arn="+arn+"x")

	// A look changes nothing: neither counts nor order nor visibility.
	w.advance("61s")
	var order, received []string
	for _, m := range walk(w, "arn", arn) {
		equal(t, "state", "visible", m.State)
		order = append(order, m.MessageID)
	}
	for _, m := range w.receive(url) {
		received = append(received, *m.MessageId)
		if want := "2"; *m.Body != "binary" && m.Attributes["ApproximateReceiveCount"] != want {
			t.Errorf("%s was received %s times; want %s", *m.Body, m.Attributes["ApproximateReceiveCount"], want)
		}
	}
	slices.Sort(order)
	slices.Sort(received)
	equal(t, "received", order, received)
}

func TestPeekFIFO(t *testing.T) {
	w := start(t)
	url := w.queue("orders.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
	for i := range 6 {
		body, group := fmt.Sprint("order ", i), fmt.Sprint("g", i%2)
		must(w.queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageGroupId: &group}))(t)
	}
	arn := queueARN("orders.fifo")
	equal(t, "all", 6, len(walk(w, "arn", arn, "limit", "1")))
	group := walk(w, "arn", arn, "group", "g1", "limit", "2")
	equal(t, "a group", []string{"order 1", "order 3", "order 5"}, bodies(messagePage{Messages: group}))
	equal(t, "sequence", 20, len(*group[0].SequenceNumber))
	must(w.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 1}))(t)
	equal(t, "in flight", 1, len(walk(w, "arn", arn, "state", "in-flight")))
}

// hostile are bodies that somebody might take for something else than text.
var hostile = []string{
	`<script>alert(1)</script>`, "\x1b[31mred\x1b[0m", "=1+1", "\u202eevil", "a\x00b", "é" + strings.Repeat("x", 5000), `{"a":"</script>"}`,
}

func TestHostileBodies(t *testing.T) {
	w := start(t)
	url := w.queue("orders", nil)
	for _, body := range hostile {
		if strings.ContainsAny(body, "\x00\x1b") {
			continue // which SQS refuses
		}
		w.send(url, body)
	}
	text := w.call(http.MethodGet, "messages", query([]string{"arn", queueARN("orders"), "bodyBytes", "1"}), "", http.StatusOK)
	for _, m := range decode[messagePage](w, text).Messages {
		if len(m.Body) > 1 {
			t.Errorf("%q is longer than was asked for", m.Body)
		}
	}
	text = w.call(http.MethodGet, "messages", query([]string{"arn", queueARN("orders")}), "", http.StatusOK)
	if strings.Contains(text, "<script") {
		t.Error("markup stands in the answer as it is")
	}
}

func TestDeadLetters(t *testing.T) {
	w := start(t)
	dead := w.queue("dead", nil)
	orders := w.queue("orders", map[string]string{"VisibilityTimeout": "1", "RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":1}`})
	topic := w.topic("orders")
	h, sub := w.hooked(topic, map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `"}`})
	h.status.Store(http.StatusServiceUnavailable)
	for i := range 3 {
		w.publish(topic, fmt.Sprint("hook ", i))
	}
	w.send(orders, "poison")
	w.receive(orders)
	w.advance("2s")
	equal(t, "received again", 0, len(w.receive(orders)))
	w.advance("2m")
	type group struct {
		From, Kind, Cause, Position string
		Count                       int
	}
	type groups struct {
		Groups  []group
		Scanned int
		Total   int
		Next    *string
	}
	found := get[groups](w, "dead-letters", "arn", queueARN("dead"))
	if len(found.Groups) != 2 || found.Total != 4 {
		t.Fatalf("dead letters: %+v", found)
	}
	first, second := found.Groups[0], found.Groups[1]
	equal(t, "of the hook", fmt.Sprint(3, sub, "subscription"), fmt.Sprint(first.Count, first.From, first.Kind))
	if !strings.Contains(first.Cause, "503") {
		t.Errorf("cause: %s", first.Cause)
	}
	equal(t, "of the queue", fmt.Sprint(1, queueARN("orders"), "queue"), fmt.Sprint(second.Count, second.From, second.Kind))
	letters := walk(w, "arn", queueARN("dead"), "from", sub, "cause", first.Cause)
	equal(t, "those of the hook", 3, len(letters))
	equal(t, "attempts", 4, letters[0].DeadLetter.Attempts)

	// One goes back to its endpoint, one is deleted; what is named twice is done once.
	h.status.Store(http.StatusOK)
	before := h.requests.Load()
	type handled struct {
		Done    int
		Results []struct {
			Done  bool
			Error *string
		}
	}
	positions := func(at ...string) string {
		text := must(json.Marshal(map[string]any{"arn": queueARN("dead"), "positions": at}))(t)
		return string(text)
	}
	moved := post[handled](w, "messages/redrive", positions(letters[0].Position, letters[0].Position))
	equal(t, "moved", 1, moved.Done)
	equal(t, "the second time", "The message does not exist any more.", *moved.Results[1].Error)
	w.advance("0s")
	equal(t, "delivered", before+1, h.requests.Load())
	equal(t, "deleted", 1, post[handled](w, "messages/delete", positions(letters[1].Position)).Done)
	equal(t, "left", 2, get[groups](w, "dead-letters", "arn", queueARN("dead")).Total)
	poison := walk(w, "arn", queueARN("dead"), "from", queueARN("orders"))
	equal(t, "back", 1, post[handled](w, "messages/redrive", positions(poison[0].Position)).Done)
	equal(t, "in its queue", "poison", *w.receive(orders)[0].Body)
	held := w.receive(dead)
	equal(t, "received", 1, len(held))
	flying := post[handled](w, "messages/delete", positions(letters[2].Position))
	equal(t, "in flight", "The message is in flight.", *flying.Results[0].Error)
	w.refused(http.StatusNotFound, http.MethodPost, "messages/redrive", `{"arn":"`+queueARN("none")+`","positions":["0-1"]}`)
	w.refused(http.StatusNotFound, http.MethodPost, "messages/delete", `{"arn":"`+queueARN("none")+`","positions":["0-1"]}`)
	for _, body := range []string{
		`{}`, positions("x"), `{"arn":"` + queueARN("dead") + `","positions":["0-1"],"to":"` + queueARN("dead") + `"}`,
		`{"arn":"` + queueARN("dead") + `","positions":["0-1"],"to":"` + queueARN("x.fifo") + `"}`,
	} {
		w.refused(http.StatusBadRequest, http.MethodPost, "messages/redrive", body)
	}
	w.refused(http.StatusBadRequest, http.MethodPost, "messages/delete", `{"x":1}`)
}

func TestRedrive(t *testing.T) {
	w := start(t)
	dead := w.queue("dead", nil)
	w.queue("orders", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":3}`})
	for range 5 {
		w.send(dead, "x")
	}
	type redrive struct {
		ID, State   string
		Done, Total int
		PerSecond   *int
	}
	begun := post[redrive](w, "redrive", `{"arn":"`+queueARN("dead")+`","to":"`+queueARN("orders")+`","perSecond":1}`)
	equal(t, "begun", "running 5 1", fmt.Sprint(begun.State, " ", begun.Total, " ", *begun.PerSecond))
	w.advance("2s")
	all := get[struct{ Redrives []redrive }](w, "redrives", "arn", queueARN("dead"))
	if len(all.Redrives) != 1 || all.Redrives[0].Done == 0 || all.Redrives[0].Done == 5 {
		t.Errorf("after 2 s: %+v", all)
	}
	post[redrive](w, "redrive/cancel", `{"arn":"`+queueARN("dead")+`","id":"`+begun.ID+`"}`)
	w.advance("1s")
	equal(t, "cancelled", "cancelled", get[struct{ Redrives []redrive }](w, "redrives", "arn", queueARN("dead")).Redrives[0].State)
	w.refused(http.StatusNotFound, http.MethodPost, "redrive/cancel", `{"arn":"`+queueARN("dead")+`","id":"none"}`)
	w.refused(http.StatusBadRequest, http.MethodPost, "redrive/cancel", `{"arn":"`+queueARN("dead")+`"}`)
	w.refused(http.StatusNotFound, http.MethodPost, "redrive", `{"arn":"`+queueARN("none")+`"}`)
	w.refused(http.StatusBadRequest, http.MethodPost, "redrive", `{"arn":"`+queueARN("dead")+`","perSecond":501}`)
	w.refused(http.StatusNotFound, http.MethodGet, "redrives", "arn="+queueARN("none"))
}

func TestOperateSubscription(t *testing.T) {
	w := start(t)
	topic := w.topic("orders")
	h, sub := w.hooked(topic, nil)
	h.status.Store(http.StatusServiceUnavailable)
	w.publish(topic, "x")
	w.publish(topic, "y")
	w.advance("0s")
	on := func(more string) string { return `{"subscription":"` + sub + `"` + more + `}` }
	equal(t, "paused", "paused", post[subscriptionView](w, "subscription/pause", on("")).State)
	w.advance("1m")
	equal(t, "no attempt", 2, h.requests.Load())
	if resumed := post[subscriptionView](w, "subscription/resume", on("")); resumed.State == "paused" {
		t.Error("it is paused still")
	}
	w.advance("0s")
	waiting := get[deliveryPage](w, "deliveries", "subscription", sub, "state", "waiting").Deliveries
	h.status.Store(http.StatusOK)
	equal(t, "made due", true, post[struct{ Changed bool }](w, "delivery/retry", on(`,"id":"`+waiting[0].ID+`"`)).Changed)
	w.advance("0s")
	dropped := post[struct{ DeadLettered, Dropped int }](w, "delivery/drop", on(`,"id":"`+waiting[1].ID+`"`))
	equal(t, "dropped", 1, dropped.Dropped)
	equal(t, "owed", 0, get[subscriptionView](w, "subscription", "arn", sub).Owed)

	h.gate.Lock()
	w.publish(topic, "held up")
	var flying []deliveryView
	for len(flying) == 0 { // the attempt begins by itself
		flying = get[deliveryPage](w, "deliveries", "subscription", sub, "state", "in-flight").Deliveries
	}
	w.refused(http.StatusConflict, http.MethodPost, "delivery/drop", on(`,"id":"`+flying[0].ID+`"`))
	h.gate.Unlock()
	w.advance("0s")

	policy := `{"healthyRetryPolicy":{"numRetries":5,"minDelayTarget":1,"maxDelayTarget":10}}`
	value := string(must(json.Marshal(policy))(t))
	changed := post[subscriptionView](w, "subscription/attribute", on(`,"name":"DeliveryPolicy","value":`+value))
	equal(t, "retries", 5, changed.EffectivePolicy.NumRetries)
	w.refused(http.StatusBadRequest, http.MethodPost, "subscription/attribute", on(`,"name":"DeliveryPolicy","value":"{"`))
	w.refused(http.StatusBadRequest, http.MethodPost, "subscription/attribute", on(`,"name":"Endpoint"`))
	none := `{"subscription":"` + topic + `:00000000-0000-4000-8000-000000000000"`
	w.refused(http.StatusNotFound, http.MethodPost, "subscription/attribute", none+`,"name":"FilterPolicy","value":""}`)
	for _, path := range []string{"subscription/pause", "subscription/resume"} {
		w.refused(http.StatusNotFound, http.MethodPost, path, none+`}`)
		w.refused(http.StatusBadRequest, http.MethodPost, path, `{"subscription":"x"}`)
	}
	for _, path := range []string{"delivery/retry", "delivery/drop"} {
		w.refused(http.StatusNotFound, http.MethodPost, path, on(`,"id":"0-999"`))
		w.refused(http.StatusBadRequest, http.MethodPost, path, on(""))
	}
}

func TestPolicyPlan(t *testing.T) {
	w := start(t)
	type view struct {
		Valid  bool
		Error  *string
		Policy *struct {
			NumRetries   int
			TotalSeconds float64
		}
		Phases []struct {
			Name    string
			Retries int
		}
		Steps []struct {
			Retry, Count               int
			DelaySeconds, UntilSeconds float64
		}
		Backlog *struct{ Owed, Attempts int }
	}
	managed := post[view](w, "policy-plan", `{"protocol":"sqs"}`)
	equal(t, "retries", 100_015, managed.Policy.NumRetries)
	equal(t, "phases", "[{immediate 3} {pre-backoff 2} {backoff 10} {post-backoff 100000}]", fmt.Sprint(managed.Phases))
	last := managed.Steps[len(managed.Steps)-1]
	equal(t, "the last step", "16 100000 20", fmt.Sprint(last.Retry, last.Count, last.DelaySeconds))
	wrong := post[view](w, "policy-plan", `{"policy":"{\"healthyRetryPolicy\":{\"numRetries\":101}}"}`)
	if wrong.Valid || wrong.Error == nil || *wrong.Error == "" {
		t.Errorf("a wrong policy: %+v", wrong)
	}
	topic := w.topic("orders")
	h, sub := w.hooked(topic, nil)
	h.status.Store(http.StatusServiceUnavailable)
	w.publish(topic, "x")
	w.advance("0s")
	own := post[view](w, "policy-plan", `{"subscription":"`+sub+`"}`)
	equal(t, "of the subscription", "3 1 4", fmt.Sprint(own.Policy.NumRetries, own.Backlog.Owed, own.Backlog.Attempts))
	w.refused(http.StatusBadRequest, http.MethodPost, "policy-plan", `{"protocol":"smoke"}`)
	w.refused(http.StatusNotFound, http.MethodPost, "policy-plan", `{"subscription":"`+topic+`:00000000-0000-4000-8000-000000000000"}`)
}

func TestFilterTest(t *testing.T) {
	w := start(t)
	type view struct {
		Valid   bool
		Error   *string
		Results []bool
		Matched int
	}
	cases := `"messages":[{"body":"{\"kind\":\"a\"}","attributes":[{"name":"kind","type":"String","value":"a"}]},{"body":"{\"kind\":\"b\"}","attributes":[]}]`
	for _, scope := range []string{"MessageAttributes", "MessageBody"} {
		got := post[view](w, "filter-test", `{"filterPolicy":"{\"kind\":[\"a\"]}","scope":"`+scope+`",`+cases+`}`)
		equal(t, scope, "[true false] 1", fmt.Sprint(got.Results, " ", got.Matched))
	}
	if wrong := post[view](w, "filter-test", `{"filterPolicy":"{","messages":[]}`); wrong.Valid || wrong.Error == nil {
		t.Errorf("a wrong policy: %+v", wrong)
	}
	w.refused(http.StatusBadRequest, http.MethodPost, "filter-test", `{}`)
}

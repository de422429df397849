package operator_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// follow reads a stream of events, each of which is held against the document. A comment is
// an event without a name.
func (w *world) follow(path string, parameters ...string) (next func() (name, data string)) {
	w.t.Helper()
	return w.followFrom(new(string), path, parameters...)
}

// followFrom is follow from the event with an id, empty for now, and keeps that of the last one.
func (w *world) followFrom(last *string, path string, parameters ...string) (next func() (name, data string)) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.endpoint+prefix+path+"?"+query(parameters), http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	if *last != "" {
		req.Header.Set("Last-Event-ID", *last)
	}
	resp := must(http.DefaultClient.Do(req))(w.t)
	w.t.Cleanup(func() { resp.Body.Close() })
	equal(w.t, path, "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewReader(resp.Body)
	doc := document(w)
	schema := doc.operation(w.t, http.MethodGet, prefix+path).Responses["200"].Content["text/event-stream"].Schema
	return func() (name, data string) {
		w.t.Helper()
		for {
			line := must(lines.ReadString('\n'))(w.t)
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				*last = strings.TrimSpace(id)
			}
			if strings.HasPrefix(line, ":") {
				for line != "\n" {
					line = must(lines.ReadString('\n'))(w.t)
					if id, ok := strings.CutPrefix(line, "id: "); ok {
						*last = strings.TrimSpace(id)
					}
				}
				return "", ""
			}
			if named, ok := strings.CutPrefix(line, "event: "); ok {
				name = strings.TrimSpace(named)
			}
			if text, ok := strings.CutPrefix(line, "data: "); ok {
				var value any
				if err := json.Unmarshal([]byte(text), &value); err != nil {
					w.t.Fatal(err)
				}
				for _, wrong := range doc.check(schema, value, name) {
					w.t.Error(wrong)
				}
				return name, text
			}
		}
	}
}

// A tail reports what comes, once, and nothing that was there before.
func TestTail(t *testing.T) {
	w := start(t)
	topic := w.topic("orders")
	w.publish(topic, "before")
	next := w.follow("tail", "arn", topic, "search", "order")
	name, _ := next()
	equal(t, "at first", "", name)
	w.publish(topic, "something else")
	for _, text := range []string{"order 1", "order 2"} {
		id := w.publishAs(topic, text, "good")
		name, data := next()
		got := decode[publishPage](w, data).Publishes
		equal(t, "event", "publishes", name)
		if len(got) != 1 || got[0].MessageID != id || got[0].Body != text {
			t.Errorf("told of %s; want %s", data, text)
		}
	}

	group := "/orders"
	stream := "one"
	client := cloudwatchlogs.NewFromConfig(w.config)
	must(client.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &group}))(t)
	must(client.CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &group, LogStreamName: &stream}))(t)
	now := get[struct{ Server struct{ Now time.Time } }](w, "overview").Server.Now.UnixMilli()
	put := func(at int64, text string) {
		t.Helper()
		must(client.PutLogEvents(t.Context(), &cloudwatchlogs.PutLogEventsInput{LogGroupName: &group, LogStreamName: &stream, LogEvents: []types.InputLogEvent{{Timestamp: &at, Message: &text}}}))(t)
	}
	put(now-1000, "before")
	arn := "arn:aws:logs:" + region + ":" + account + ":log-group:" + group
	next = w.follow("tail", "arn", arn)
	name, _ = next()
	equal(t, "of logs at first", "", name)
	for _, text := range []string{"line 1", "line 2"} { // of the same time
		put(now, text)
		name, data := next()
		got := decode[struct{ Lines []struct{ Message string } }](w, data).Lines
		equal(t, "event", "lines", name)
		if len(got) != 1 || got[0].Message != text {
			t.Errorf("told of %s; want %s", data, text)
		}
	}

	w.refused(http.StatusNotFound, http.MethodGet, "tail", "arn="+topic+"x")
	w.refused(http.StatusNotFound, http.MethodGet, "tail", "arn="+arn+"x")
	w.refused(http.StatusNotFound, http.MethodGet, "tail", "arn="+queueARN("none"))
	w.refused(http.StatusBadRequest, http.MethodGet, "tail", "pattern=x&arn="+queueARN("none"))
	w.refused(http.StatusBadRequest, http.MethodGet, "tail", "arn=arn:aws:iam::"+account+":user/u")
	w.refused(http.StatusBadRequest, http.MethodGet, "tail", "pattern=x&arn="+topic)
}

// Whatever changes is reported to whoever asks for that, and nothing else is.
func TestCommitEvents(t *testing.T) {
	w := start(t)
	next := w.follow("events", "commits", "true")
	told := func() int64 {
		t.Helper()
		for {
			if name, data := next(); name == "commits" {
				return decode[struct{ Commits int64 }](w, data).Commits
			}
		}
	}
	before := told()
	w.topic("orders") // of which the overview tells, too
	for told() <= before {
		t.Error("it did not grow")
	}
}

// A tail of a queue reports what is sent to it, in groups or not, once and in order, and
// leaves it as it is: nothing counts as received.
func TestTailOfQueue(t *testing.T) {
	w := start(t)
	for _, name := range []string{"plain", "grouped.fifo"} {
		attributes := map[string]string{}
		if name == "grouped.fifo" {
			attributes = map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}
		}
		url := w.queue(name, attributes)
		send := func(i int, body string) {
			t.Helper()
			in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}
			if len(attributes) > 0 {
				group := fmt.Sprint("group-", i%3)
				in.MessageGroupId = &group
			}
			must(w.queues.SendMessage(t.Context(), in))(t)
		}
		for i := range 10 {
			send(i, fmt.Sprint("order before ", i))
		}
		next := w.follow("tail", "arn", queueARN(name), "search", "ORDER")
		first, _ := next()
		equal(t, "at first", "", first)
		var want, got []string
		for i := range 130 { // more than one look tells
			body := fmt.Sprint("order ", i)
			if i%10 == 9 {
				body = "something else"
			} else {
				want = append(want, body)
			}
			send(i, body)
		}
		for len(got) < len(want) {
			event, data := next()
			if event == "" {
				continue
			}
			equal(t, "event", "messages", event)
			for _, m := range decode[messagePage](w, data).Messages {
				got = append(got, m.Body)
				equal(t, "receives", "0 visible", fmt.Sprint(m.Receives, " ", m.State))
			}
		}
		if name == "grouped.fifo" { // a look that does not tell all goes group by group
			slices.Sort(want)
			slices.Sort(got)
		}
		equal(t, name, strings.Join(want, ","), strings.Join(got, ","))
		received := must(w.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"ApproximateReceiveCount"}}))(t)
		equal(t, "the first receive", "order before 0 1", *received.Messages[0].Body+" "+received.Messages[0].Attributes["ApproximateReceiveCount"])
	}
}

// A tail continues behind a purge.
func TestTailOfPurgedQueue(t *testing.T) {
	w := start(t)
	url := w.queue("orders", nil)
	w.send(url, "before")
	next := w.follow("tail", "arn", queueARN("orders"))
	next()
	must(w.queues.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url}))(t)
	w.send(url, "after")
	for {
		if event, data := next(); event != "" {
			equal(t, "messages", "after", decode[messagePage](w, data).Messages[0].Body)
			break
		}
	}
}

// A tail of a queue that is deleted and made again reports all that the new one has.
func TestTailOfQueueMadeAgain(t *testing.T) {
	w := start(t)
	url := w.queue("orders", nil)
	w.send(url, "before")
	next := w.follow("tail", "arn", queueARN("orders"))
	next()
	must(w.queues.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}))(t)
	url = w.queue("orders", nil)
	for i := range 3 {
		w.send(url, fmt.Sprint(i))
	}
	var got []string
	for len(got) < 3 {
		if event, data := next(); event == "messages" {
			for _, m := range decode[messagePage](w, data).Messages {
				got = append(got, m.Body)
			}
		}
	}
	equal(t, "messages", "0,1,2", strings.Join(got, ","))
}

// A tail that is begun with the id of the last event reports what came since, once.
func TestTailFromAPlace(t *testing.T) {
	w := start(t)
	topic, url, group, stream := w.topic("orders"), w.queue("orders", nil), "/orders", "one"
	client := cloudwatchlogs.NewFromConfig(w.config)
	must(client.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &group}))(t)
	must(client.CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &group, LogStreamName: &stream}))(t)
	now := get[struct{ Server struct{ Now time.Time } }](w, "overview").Server.Now.UnixMilli()
	for arn, put := range map[string]func(text string){
		topic:              func(text string) { w.publish(topic, text) },
		queueARN("orders"): func(text string) { w.send(url, text) },
		"arn:aws:logs:" + region + ":" + account + ":log-group:" + group: func(text string) {
			must(client.PutLogEvents(t.Context(), &cloudwatchlogs.PutLogEventsInput{LogGroupName: &group, LogStreamName: &stream, LogEvents: []types.InputLogEvent{{Timestamp: &now, Message: &text}}}))(t)
		},
	} {
		put("before")
		last, told := "", func(next func() (name, data string)) string {
			for {
				if event, data := next(); event != "" {
					page := decode[struct {
						Messages, Publishes []struct{ Body string }
						Lines               []struct{ Message string }
					}](w, data)
					var got []string
					for _, one := range append(page.Messages, page.Publishes...) {
						got = append(got, one.Body)
					}
					for _, one := range page.Lines {
						got = append(got, one.Message)
					}
					return strings.Join(got, ",")
				}
			}
		}
		next := w.followFrom(&last, "tail", "arn", arn)
		if !strings.Contains(arn, ":logs:") { // whose first poll has what is of now
			next()
			put("first")
			equal(t, arn, "first", told(next))
		} else {
			equal(t, arn, "before", told(next))
		}
		put("second")
		put("third")
		equal(t, arn, "second,third", told(w.followFrom(&last, "tail", "arn", arn)))
		put("fourth")
		equal(t, arn, "fourth", told(w.followFrom(&last, "tail", "arn", arn)))
	}
	equal(t, "of no place", "", first(w.followFrom(new("x"), "tail", "arn", queueARN("orders"))()))
}

// Jobs are reported with their progress to whoever asks for them.
func TestJobEvents(t *testing.T) {
	w := start(t)
	url := w.queue("orders", nil)
	w.send(url, "x")
	next := w.follow("events", "jobs", "true")
	name, _ := next()
	equal(t, "the first", "overview", name)
	name, data := next()
	equal(t, "jobs", "jobs", name)
	equal(t, "none", `{"jobs":{"jobs":[]}}`, strings.TrimSpace(data))
	post[struct{ ID string }](w, "jobs", `{"kind":"delete","arn":"`+queueARN("orders")+`"}`)
	for done := 0; done != 1; {
		if name, data = next(); name != "jobs" {
			continue
		}
		all := decode[struct {
			Jobs struct{ Jobs []struct{ Done int } }
		}](w, data).Jobs.Jobs
		equal(t, "jobs", 1, len(all))
		done = all[0].Done
	}
}

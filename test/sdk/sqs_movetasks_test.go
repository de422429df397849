package sdk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// deadLetters makes a dead-letter queue and one source for each of names, and
// lets n messages of each source die. Bodies are "<source> <number>".
func deadLetters(t *testing.T, endpoint string, c *sqs.Client, n int, names ...string) (dead string, sources map[string]string) {
	t.Helper()
	dead = createQueue(t, c, "dead")
	sources = map[string]string{}
	for _, name := range names {
		url := createQueue(t, c, name, "RedrivePolicy", redriveTo("dead"), "VisibilityTimeout", "1")
		sources[name] = url
		for i := range n {
			send(t, c, url, fmt.Sprint(name, " ", i))
		}
		for got := 0; got < n; {
			got += len(receive(t, c, url, 10))
		}
	}
	advance(t, endpoint, "2s")
	for _, url := range sources {
		if got := receive(t, c, url, 1); len(got) > 0 {
			t.Fatalf("%s comes again", *got[0].Body)
		}
	}
	advance(t, endpoint, "1s") // until the moves have ended
	if got := counts(t, c, dead)[0]; got != fmt.Sprint(n*len(names)) {
		t.Fatalf("%s dead letters", got)
	}
	return dead, sources
}

func startMove(t *testing.T, c *sqs.Client, in *sqs.StartMessageMoveTaskInput) string {
	t.Helper()
	return aws.ToString(must(c.StartMessageMoveTask(t.Context(), in))(t).TaskHandle)
}

func moveTasks(t *testing.T, c *sqs.Client, most int32) []types.ListMessageMoveTasksResultEntry {
	t.Helper()
	in := &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(queueARN("dead"))}
	if most > 0 {
		in.MaxResults = &most
	}
	return must(c.ListMessageMoveTasks(t.Context(), in))(t).Results
}

func TestMoveTaskToSources(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	dead, sources := deadLetters(t, endpoint, c, 40, "s1", "s2")
	before := map[string]types.Message{}
	for _, m := range receive(t, c, dead, 10) {
		before[*m.Body] = m
		must(c.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &dead, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0}))(t)
	}
	equal(t, "no tasks yet", []types.ListMessageMoveTasksResultEntry(nil), moveTasks(t, c, 10))

	startMove(t, c, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead"))})
	advance(t, endpoint, "10ms")
	tasks := moveTasks(t, c, 10)
	if len(tasks) != 1 || tasks[0].StartedTimestamp < 1_700_000_000_000 {
		t.Fatalf("tasks: %+v", tasks)
	}
	equal(t, "the task", types.ListMessageMoveTasksResultEntry{
		Status: aws.String("COMPLETED"), SourceArn: aws.String(queueARN("dead")), StartedTimestamp: tasks[0].StartedTimestamp,
		ApproximateNumberOfMessagesMoved: 80, ApproximateNumberOfMessagesToMove: aws.Int64(80),
	}, tasks[0])
	equal(t, "the dead-letter queue", [3]string{"0", "0", "0"}, counts(t, c, dead))
	for name, url := range sources {
		seen := map[string]bool{}
		for range 4 {
			for _, m := range receive(t, c, url, 10) {
				body := *m.Body
				if seen[body] || !strings.HasPrefix(body, name+" ") {
					t.Errorf("%s came to %s", body, name)
				}
				seen[body] = true
				old := before[body]
				if m.Attributes["DeadLetterQueueSourceArn"] != "" || m.Attributes["ApproximateReceiveCount"] != "1" ||
					!uuidForm.MatchString(*m.MessageId) || old.Body != nil && *m.MessageId == *old.MessageId ||
					old.Body != nil && m.Attributes["SentTimestamp"] <= old.Attributes["SentTimestamp"] {
					t.Errorf("not a new message: %v, before %v", m, old)
				}
			}
		}
		equal(t, "messages of "+name, 40, len(seen))
	}
}

func TestMoveTaskWithRate(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	dead, sources := deadLetters(t, endpoint, c, 30, "s1")
	target := createQueue(t, c, "target", "DelaySeconds", "0")
	in := &sqs.StartMessageMoveTaskInput{
		SourceArn: aws.String(queueARN("dead")), DestinationArn: aws.String(queueARN("target")), MaxNumberOfMessagesPerSecond: aws.Int32(5),
	}
	handle := startMove(t, c, in)
	send(t, c, dead, "came later")
	_, err := c.StartMessageMoveTask(t.Context(), in)
	refused(t, err, "InvalidParameterValue", 400, "There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
	for second := 1; second <= 3; second++ {
		advance(t, endpoint, "1s")
		equal(t, "moved", [2]string{fmt.Sprint(5 * second), fmt.Sprint(31 - 5*second)}, [2]string{counts(t, c, target)[0], counts(t, c, dead)[0]})
	}
	task := types.ListMessageMoveTasksResultEntry{
		TaskHandle: &handle, Status: aws.String("RUNNING"), SourceArn: in.SourceArn, DestinationArn: in.DestinationArn,
		MaxNumberOfMessagesPerSecond: aws.Int32(5), ApproximateNumberOfMessagesMoved: 15, ApproximateNumberOfMessagesToMove: aws.Int64(30),
	}
	listed := moveTasks(t, c, 0)
	task.StartedTimestamp = listed[0].StartedTimestamp
	equal(t, "while it runs", []types.ListMessageMoveTasksResultEntry{task}, listed)

	canceled := must(c.CancelMessageMoveTask(t.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: &handle}))(t)
	equal(t, "CancelMessageMoveTask", &sqs.CancelMessageMoveTaskOutput{ApproximateNumberOfMessagesMoved: 15}, canceled)
	advance(t, endpoint, "10s")
	task.TaskHandle, task.Status = nil, aws.String("CANCELLED")
	equal(t, "after it was cancelled", []types.ListMessageMoveTasksResultEntry{task}, moveTasks(t, c, 1))
	equal(t, "moved", [2]string{"15", "16"}, [2]string{counts(t, c, target)[0], counts(t, c, dead)[0]})
	_, err = c.CancelMessageMoveTask(t.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: &handle})
	refused(t, err, "ResourceNotFoundException", 404, "Task does not exist.")

	// The next one takes what can be received when it starts; a purge ends it.
	held := receive(t, c, dead, 1)
	startMove(t, c, in)
	advance(t, endpoint, "1s")
	must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &dead}))(t)
	send(t, c, dead, "after the purge")
	advance(t, endpoint, "10s")
	listed = moveTasks(t, c, 10)
	equal(t, "statuses, latest first", "COMPLETED 5 of 15, CANCELLED 15 of 30", fmt.Sprintf("%s %d of %d, %s %d of %d",
		*listed[0].Status, listed[0].ApproximateNumberOfMessagesMoved, *listed[0].ApproximateNumberOfMessagesToMove,
		*listed[1].Status, listed[1].ApproximateNumberOfMessagesMoved, *listed[1].ApproximateNumberOfMessagesToMove))
	equal(t, "moved", [2]string{"20", "1"}, [2]string{counts(t, c, target)[0], counts(t, c, dead)[0]})
	equal(t, "held", 1, len(held))
	equal(t, "the source", [3]string{"0", "0", "0"}, counts(t, c, sources["s1"]))

	// Ten tasks are kept, and none when the queue is gone.
	for range 10 {
		startMove(t, c, &sqs.StartMessageMoveTaskInput{SourceArn: in.SourceArn, DestinationArn: in.DestinationArn})
		advance(t, endpoint, "10ms")
	}
	listed = moveTasks(t, c, 10)
	equal(t, "how many", 10, len(listed))
	equal(t, "the oldest", int64(1), listed[9].ApproximateNumberOfMessagesMoved)
	must(c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &dead}))(t)
	createQueue(t, c, "dead")
	equal(t, "of a new queue", 0, len(moveTasks(t, c, 10)))
}

func TestMoveTaskFails(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	dead, sources := deadLetters(t, endpoint, c, 10, "s1", "s2")
	target := createQueue(t, c, "target")
	failed := func(what string, in *sqs.StartMessageMoveTaskInput, reason string) {
		t.Helper()
		in.SourceArn = aws.String(queueARN("dead"))
		before := counts(t, c, dead)
		startMove(t, c, in)
		if in.DestinationArn != nil {
			must(c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &target}))(t)
		}
		advance(t, endpoint, "10s")
		task := moveTasks(t, c, 1)[0]
		equal(t, what, [3]string{"FAILED", reason, ""}, [3]string{*task.Status, aws.ToString(task.FailureReason), aws.ToString(task.TaskHandle)})
		if task.ApproximateNumberOfMessagesMoved == 0 {
			equal(t, what+": the queue", before, counts(t, c, dead))
		}
	}
	failed("the destination goes", &sqs.StartMessageMoveTaskInput{DestinationArn: aws.String(queueARN("target")), MaxNumberOfMessagesPerSecond: aws.Int32(1)}, prefix+"NonExistentQueue")

	// A source that is gone; the messages of the other one still go back.
	must(c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String(sources["s2"])}))(t)
	failed("a source is gone", &sqs.StartMessageMoveTaskInput{}, prefix+"NonExistentQueue")
	total := len(receive(t, c, sources["s1"], 10)) + len(receive(t, c, dead, 10)) + len(receive(t, c, dead, 10))
	equal(t, "messages in all", 20, total)

	must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &dead}))(t)
	send(t, c, dead, "from nowhere")
	failed("a message without a source", &sqs.StartMessageMoveTaskInput{}, "CouldNotDetermineMessageSource")
	equal(t, "it stays", []string{"from nowhere"}, bodies(receive(t, c, dead, 10)))
}

// A destination that cannot take messages for a while holds a task up.
func TestMoveTaskWaits(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	dead, sources := deadLetters(t, endpoint, c, 50, "s1")
	fault := func(kind string) {
		t.Helper()
		if r := post(t, endpoint+"/_godwit/faults", `{"arn":"`+queueARN("s1")+`","fault":"`+kind+`"}`); r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	fault("unavailable")
	startMove(t, c, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead"))})
	advance(t, endpoint, "2m")
	equal(t, "status", "RUNNING", *moveTasks(t, c, 1)[0].Status)
	equal(t, "counts", "50", counts(t, c, dead)[0])
	fault("none")
	advance(t, endpoint, "10m")
	equal(t, "status", "COMPLETED", *moveTasks(t, c, 1)[0].Status)
	equal(t, "counts", [2]string{"0", "50"}, [2]string{counts(t, c, dead)[0], counts(t, c, sources["s1"])[0]})
}

func TestMoreQueryOperations(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	deadLetters(t, endpoint, c, 1, "q")
	q := endpoint + "/000000000000/q"
	dead := endpoint + "/000000000000/dead"

	send(t, c, q, "one")
	handle := element(t, callQuery(t, q, "ReceiveMessage").Body, "ReceiptHandle", 0)
	wantXML(t, callQuery(t, q, "ChangeMessageVisibilityBatch",
		"ChangeMessageVisibilityBatchRequestEntry.1.Id", "a", "ChangeMessageVisibilityBatchRequestEntry.1.ReceiptHandle", handle, "ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout", "60",
		"ChangeMessageVisibilityBatchRequestEntry.2.Id", "b", "ChangeMessageVisibilityBatchRequestEntry.2.ReceiptHandle", "garbage", "ChangeMessageVisibilityBatchRequestEntry.2.VisibilityTimeout", "60"),
		"ChangeMessageVisibilityBatch", "<ChangeMessageVisibilityBatchResultEntry><Id>a</Id></ChangeMessageVisibilityBatchResultEntry>"+
			"<BatchResultErrorEntry>"+xmlOf("Id", "b", "SenderFault", "true", "Code", "ReceiptHandleIsInvalid", "Message", "The input receipt handle &quot;garbage&quot; is not a valid receipt handle.")+"</BatchResultErrorEntry>")
	wantXML(t, callQuery(t, q, "PurgeQueue"), "PurgeQueue", "")
	equal(t, "counts after the purge", [3]string{"0", "0", "0"}, counts(t, c, q))

	wantXML(t, callQuery(t, endpoint, "TagQueue", "QueueUrl", q, "Tag.1.Key", "team", "Tag.1.Value", "rental", "Tag.2.Key", "x", "Tag.2.Value", ""), "TagQueue", "")
	wantXML(t, callQuery(t, q, "UntagQueue", "TagKey.1", "x"), "UntagQueue", "")
	wantXML(t, callQuery(t, q, "ListQueueTags"), "ListQueueTags", "<Tag>"+xmlOf("Key", "team", "Value", "rental")+"</Tag>")

	wantXML(t, callQuery(t, q, "AddPermission", "Label", "l", "AWSAccountId.1", "111111111111", "ActionName.1", "SendMessage", "ActionName.2", "ReceiveMessage"), "AddPermission", "")
	if doc := attributesOf(t, c, q)["Policy"]; !strings.Contains(doc, `"Sid":"l"`) || !strings.Contains(doc, `["SQS:SendMessage","SQS:ReceiveMessage"]`) {
		t.Errorf("Policy: %s", doc)
	}
	wantXML(t, callQuery(t, q, "RemovePermission", "Label", "l"), "RemovePermission", "")

	createQueue(t, c, "r", "RedrivePolicy", redriveTo("dead"))
	r := callQuery(t, dead, "ListDeadLetterSourceQueues", "MaxResults", "1")
	token := element(t, r.Body, "NextToken", 0)
	wantXML(t, r, "ListDeadLetterSourceQueues", xmlOf("QueueUrl", q, "NextToken", token))
	wantXML(t, callQuery(t, dead, "ListDeadLetterSourceQueues", "MaxResults", "1", "NextToken", token), "ListDeadLetterSourceQueues", xmlOf("QueueUrl", endpoint+"/000000000000/r"))

	r = callQuery(t, endpoint, "StartMessageMoveTask", "SourceArn", queueARN("dead"), "DestinationArn", queueARN("q"), "MaxNumberOfMessagesPerSecond", "1")
	task := element(t, r.Body, "TaskHandle", 0)
	wantXML(t, r, "StartMessageMoveTask", xmlOf("TaskHandle", task))
	r = callQuery(t, endpoint, "ListMessageMoveTasks", "SourceArn", queueARN("dead"))
	wantXML(t, r, "ListMessageMoveTasks", "<ListMessageMoveTasksResultEntry>"+xmlOf(
		"TaskHandle", task, "Status", "RUNNING", "SourceArn", queueARN("dead"), "DestinationArn", queueARN("q"), "MaxNumberOfMessagesPerSecond", "1",
		"ApproximateNumberOfMessagesMoved", "0", "ApproximateNumberOfMessagesToMove", "1", "StartedTimestamp", element(t, r.Body, "StartedTimestamp", 0))+"</ListMessageMoveTasksResultEntry>")
	wantXML(t, callQuery(t, endpoint, "CancelMessageMoveTask", "TaskHandle", task), "CancelMessageMoveTask", xmlOf("ApproximateNumberOfMessagesMoved", "0"))
}

// deadLettersTo is a subscription's RedrivePolicy.
func deadLettersTo(name string) string { return `{"deadLetterTargetArn":"` + queueARN(name) + `"}` }

// TestMoveTaskToEndpoints: the dead letters of subscriptions go back to their
// endpoints, as new deliveries of the same message; AWS cannot do this.
func TestMoveTaskToEndpoints(t *testing.T) {
	for _, raw := range []string{"false", "true"} {
		w := newAttributeWorld(t)
		queues := client(w.endpoint)
		dead := createQueue(t, queues, "dead")
		w.set(t, w.viaHook, "RawMessageDelivery", raw)
		w.set(t, w.viaHook, "RedrivePolicy", deadLettersTo("dead"))
		w.hook.status.Store(http.StatusNotFound) // for good
		w.publish(t, "lost")
		first := w.hook.next(t)
		advance(t, w.endpoint, "1s")
		equal(t, "dead letters", [3]string{"1", "0", "0"}, counts(t, queues, dead))

		w.hook.status.Store(http.StatusServiceUnavailable)
		startMove(t, queues, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead"))})
		w.hook.next(t)
		advance(t, w.endpoint, "1s")
		equal(t, "dead letters left", [3]string{"0", "0", "0"}, counts(t, queues, dead))
		w.hook.status.Store(http.StatusOK)
		advance(t, w.endpoint, "20s") // the policy's first retry
		again := w.hook.next(t)
		if id := again.Header.Get("X-Amz-Sns-Message-Id"); id != first.Header.Get("X-Amz-Sns-Message-Id") {
			t.Errorf("raw %s: message %s came again as %s", raw, first.Header.Get("X-Amz-Sns-Message-Id"), id)
		}
		if raw == "true" {
			equal(t, "body", first.Body, again.Body)
		} else {
			equal(t, "message", decode(t, first.Body)["Message"], decode(t, again.Body)["Message"])
		}
		equal(t, "the task", "COMPLETED", aws.ToString(moveTasks(t, queues, 1)[0].Status))

		// Without its subscription a dead letter stays where it is.
		w.hook.status.Store(http.StatusNotFound)
		w.publish(t, "orphan")
		w.hook.next(t)
		advance(t, w.endpoint, "1s")
		startMove(t, queues, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead"))})
		w.hook.next(t)
		advance(t, w.endpoint, "1s")
		must(w.c.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &w.viaHook}))(t)
		w.set(t, w.viaQueue, "RedrivePolicy", deadLettersTo("dead"))
		startMove(t, queues, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(queueARN("dead"))})
		advance(t, w.endpoint, "1s")
		task := moveTasks(t, queues, 1)[0]
		equal(t, "the orphan's task", [2]string{"FAILED", "SubscriptionDoesNotExist"}, [2]string{aws.ToString(task.Status), aws.ToString(task.FailureReason)})
		equal(t, "the orphan", [3]string{"1", "0", "0"}, counts(t, queues, dead))
	}
}

package sdk_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
)

func TestChangeMessageVisibilityBatch(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q")
	for _, body := range []string{"back", "hidden", "too long", "gone"} {
		send(t, c, url, body)
	}
	handles := map[string]*string{}
	for _, m := range receive(t, c, url, 10) {
		handles[*m.Body] = m.ReceiptHandle
	}
	must(c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: handles["gone"]}))(t)
	changed := must(c.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{
		QueueUrl: &url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("1"), ReceiptHandle: handles["back"]}, // the SDK leaves out a zero
			{Id: aws.String("2"), ReceiptHandle: handles["too long"], VisibilityTimeout: 43201},
			{Id: aws.String("3"), ReceiptHandle: handles["hidden"], VisibilityTimeout: 600},
			{Id: aws.String("4"), ReceiptHandle: handles["gone"], VisibilityTimeout: 1},
			{Id: aws.String("5"), ReceiptHandle: aws.String("garbage"), VisibilityTimeout: 1},
		},
	}))(t)
	bad := func(id, code, message string) types.BatchResultErrorEntry {
		return types.BatchResultErrorEntry{Id: &id, Code: &code, Message: &message, SenderFault: true}
	}
	equal(t, "ChangeMessageVisibilityBatch", &sqs.ChangeMessageVisibilityBatchOutput{
		Successful: []types.ChangeMessageVisibilityBatchResultEntry{{Id: aws.String("1")}, {Id: aws.String("3")}},
		Failed: []types.BatchResultErrorEntry{
			bad("2", "InvalidParameterValue", "Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200, if provided."),
			bad("4", "InvalidParameterValue", "Value "+*handles["gone"]+" for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change."),
			bad("5", "ReceiptHandleIsInvalid", `The input receipt handle "garbage" is not a valid receipt handle.`),
		},
	}, changed)
	equal(t, "received again", []string{"back"}, bodies(receive(t, c, url, 10)))
	advance(t, endpoint, "31s")
	equal(t, "31 s later", []string{"back", "too long"}, bodies(receive(t, c, url, 10)))
	advance(t, endpoint, "570s")
	equal(t, "ten minutes later", []string{"back", "hidden", "too long"}, bodies(receive(t, c, url, 10)))
}

func TestPurgeQueue(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q", "VisibilityTimeout", "600")
	other := createQueue(t, c, "other")
	send(t, c, other, "of another queue")
	send(t, c, url, "in flight")
	held := receive(t, c, url, 1)[0]
	send(t, c, url, "waiting")
	must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("delayed"), DelaySeconds: 60}))(t)
	equal(t, "counts before", [3]string{"1", "1", "1"}, counts(t, c, url))

	before := attributesOf(t, c, url)
	equal(t, "PurgeQueue", &sqs.PurgeQueueOutput{}, must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url}))(t))
	equal(t, "counts after", [3]string{"0", "0", "0"}, counts(t, c, url))
	equal(t, "attributes after", without(before, "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"),
		without(attributesOf(t, c, url), "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"))
	// To its holder the message is gone, as if it had been deleted.
	must(c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: held.ReceiptHandle}))(t)
	_, err := c.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: held.ReceiptHandle, VisibilityTimeout: 5})
	refused(t, err, "InvalidParameterValue", 400, "Value "+*held.ReceiptHandle+" for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.")
	_, err = c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &other, ReceiptHandle: held.ReceiptHandle})
	refused(t, err, "ReceiptHandleIsInvalid", 400, `The input receipt handle "`+*held.ReceiptHandle+`" is not a valid receipt handle.`)

	advance(t, endpoint, "700s")
	equal(t, "messages later", []string(nil), bodies(receive(t, c, url, 10)))
	must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url}))(t) // at once again, and empty
	send(t, c, url, "after")
	equal(t, "a message sent after", []string{"after"}, bodies(receive(t, c, url, 10)))
	equal(t, "another queue's message", []string{"of another queue"}, bodies(receive(t, c, other, 10)))
}

// A receive that waits continues waiting through a purge, and ends with a
// deletion.
func TestPurgeWhileWaiting(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q")
	type answer struct {
		out *sqs.ReceiveMessageOutput
		err error
	}
	poll := func() <-chan answer {
		got := make(chan answer, 1)
		go func() {
			out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 20})
			got <- answer{out, err}
		}()
		return got
	}
	got := poll()
	for range 20 { // whenever the receive arrives, it meets a purge
		must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url}))(t)
	}
	began := clock.System.Now()
	send(t, c, url, "after")
	a := <-got
	if a.err != nil || clock.System.Now().Sub(began) >= 20*time.Second {
		t.Fatalf("after %v: %v", clock.System.Now().Sub(began), a.err)
	}
	equal(t, "received", []string{"after"}, bodies(a.out.Messages))

	got = poll()
	must(c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}))(t)
	refused(t, (<-got).err, prefix+"NonExistentQueue", 400, "The specified queue does not exist.")
}

func TestPurgeCooldown(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.SQSCooldowns = true })
	c := client(endpoint)
	url := createQueue(t, c, "q")
	must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url}))(t)
	send(t, c, url, "kept")
	advance(t, endpoint, "59s")
	want := failure{sqsNS + "PurgeQueueInProgress", prefix + "PurgeQueueInProgress", 403, "Only one PurgeQueue operation on q is allowed every 60 seconds.", ""}
	wantJSONError(t, callJSON(t, endpoint, "PurgeQueue", `{"QueueUrl":"`+url+`"}`), want)
	wantXMLError(t, callQuery(t, url, "PurgeQueue"), want)
	equal(t, "counts", [3]string{"1", "0", "0"}, counts(t, c, url))
	advance(t, endpoint, "1s")
	must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url}))(t)
	equal(t, "counts", [3]string{"0", "0", "0"}, counts(t, c, url))

	must(c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}))(t)
	gone := failure{sqsNS + "QueueDeletedRecently", prefix + "QueueDeletedRecently", 400, "You must wait 60 seconds after deleting a queue before you can create another with the same name.", ""}
	wantJSONError(t, callJSON(t, endpoint, "CreateQueue", `{"QueueName":"q"}`), gone)
	wantXMLError(t, callQuery(t, endpoint, "CreateQueue", "QueueName", "q"), gone)
	advance(t, endpoint, "60s")
	createQueue(t, c, "q")
}

func TestTags(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q")
	list := func() map[string]string {
		t.Helper()
		return must(c.ListQueueTags(t.Context(), &sqs.ListQueueTagsInput{QueueUrl: &url}))(t).Tags
	}
	equal(t, "no tags", map[string]string(nil), list())
	equal(t, "TagQueue", &sqs.TagQueueOutput{}, must(c.TagQueue(t.Context(), &sqs.TagQueueInput{QueueUrl: &url, Tags: map[string]string{"team": "rental", "Team": ""}}))(t))
	must(c.TagQueue(t.Context(), &sqs.TagQueueInput{QueueUrl: &url, Tags: map[string]string{"team": "billing", "größe": "<1>"}}))(t)
	equal(t, "tags", map[string]string{"team": "billing", "Team": "", "größe": "<1>"}, list())

	full := map[string]string{}
	for i := range 47 {
		full[fmt.Sprint("k", i)] = "v"
	}
	must(c.TagQueue(t.Context(), &sqs.TagQueueInput{QueueUrl: &url, Tags: full}))(t)
	_, err := c.TagQueue(t.Context(), &sqs.TagQueueInput{QueueUrl: &url, Tags: map[string]string{"one": "more"}})
	refused(t, err, "InvalidParameterValue", 400, "Too many tags added for queue q.")
	must(c.TagQueue(t.Context(), &sqs.TagQueueInput{QueueUrl: &url, Tags: map[string]string{"k0": "other"}}))(t) // not one more
	equal(t, "how many tags", 50, len(list()))

	keys := []string{"Team", "never there"}
	for k := range full {
		keys = append(keys, k)
	}
	equal(t, "UntagQueue", &sqs.UntagQueueOutput{}, must(c.UntagQueue(t.Context(), &sqs.UntagQueueInput{QueueUrl: &url, TagKeys: keys}))(t))
	equal(t, "tags left", map[string]string{"team": "billing", "größe": "<1>"}, list())
	must(c.UntagQueue(t.Context(), &sqs.UntagQueueInput{QueueUrl: &url, TagKeys: []string{"team", "größe"}}))(t)
	equal(t, "no tags left", map[string]string(nil), list())

	// In Query the SDK for Java calls them Tags, where AWS's documents have Tag, and AWS takes both.
	for _, name := range []string{"Tag", "Tags"} {
		got := callQuery(t, endpoint, "TagQueue", "QueueUrl", url, name+".1.Key", name, name+".1.Value", "v")
		equal(t, name, 200, got.Status)
	}
	equal(t, "both", map[string]string{"Tag": "v", "Tags": "v"}, list())
}

func redriveTo(name string) string {
	return `{"deadLetterTargetArn":"` + queueARN(name) + `","maxReceiveCount":1}`
}

func TestListDeadLetterSourceQueues(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	dead := createQueue(t, c, "dead")
	createQueue(t, c, "dead2")
	list := func() []string {
		t.Helper()
		return must(c.ListDeadLetterSourceQueues(t.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dead}))(t).QueueUrls
	}
	equal(t, "none", []string{}, list())
	var urls []string
	for i := range 5 {
		urls = append(urls, createQueue(t, c, fmt.Sprint("s", i), "RedrivePolicy", redriveTo("dead")))
		createQueue(t, c, fmt.Sprint("t", i), "RedrivePolicy", redriveTo("dead2"))
		createQueue(t, c, fmt.Sprint("u", i))
	}
	equal(t, "all, by name", urls, list())
	var got [][]string
	pages := sqs.NewListDeadLetterSourceQueuesPaginator(c, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dead, MaxResults: aws.Int32(2)})
	for pages.HasMorePages() {
		got = append(got, must(pages.NextPage(t.Context()))(t).QueueUrls)
	}
	equal(t, "pages", [][]string{urls[:2], urls[2:4], urls[4:]}, got)

	// A token is good for its own list only.
	token := must(c.ListDeadLetterSourceQueues(t.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dead, MaxResults: aws.Int32(2)}))(t).NextToken
	_, err := c.ListQueues(t.Context(), &sqs.ListQueuesInput{NextToken: token})
	refused(t, err, "InvalidParameterValue", 400, "Invalid or expired next token.")

	// It follows changes, purges and deletions.
	for url, policy := range map[string]string{urls[0]: redriveTo("dead2"), urls[1]: ""} {
		must(c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"RedrivePolicy": policy}}))(t)
	}
	must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &urls[2]}))(t)
	must(c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &urls[3]}))(t)
	equal(t, "after changes", []string{urls[2], urls[4]}, list())
}

func TestPermissions(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q")
	policy := func() string { return attributesOf(t, c, url, types.QueueAttributeNamePolicy)["Policy"] }
	add := func(label string, accounts []string, actions ...string) error {
		_, err := c.AddPermission(t.Context(), &sqs.AddPermissionInput{QueueUrl: &url, Label: &label, AWSAccountIds: accounts, Actions: actions})
		return err
	}
	remove := func(label string) error {
		_, err := c.RemovePermission(t.Context(), &sqs.RemovePermissionInput{QueueUrl: &url, Label: &label})
		return err
	}
	want := func(what string, err error, doc string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if diff := cmp.Diff(doc, policy()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	const (
		head  = `{"Version":"2008-10-17","Id":"arn:aws:sqs:us-east-1:000000000000:q/SQSDefaultPolicy","Statement":[`
		one   = `{"Sid":"one","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111111111111:root"},"Action":"SQS:SendMessage","Resource":"arn:aws:sqs:us-east-1:000000000000:q"}`
		two   = `{"Sid":"two","Effect":"Allow","Principal":{"AWS":["arn:aws:iam::111111111111:root","arn:aws:iam::222222222222:root"]},"Action":["SQS:ReceiveMessage","SQS:*"],"Resource":"arn:aws:sqs:us-east-1:000000000000:q"}`
		own   = `{"Sid":"own","Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*","Condition":{"StringLike":{"aws:x":"<&>"}}}`
		third = `{"Sid":"third","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111111111111:root"},"Action":"SQS:PurgeQueue","Resource":"arn:aws:sqs:us-east-1:000000000000:q"}`
	)
	want("the first", add("one", []string{"111111111111"}, "SendMessage"), head+one+`]}`)
	want("the second", add("two", []string{"111111111111", "222222222222"}, "ReceiveMessage", "*"), head+one+","+two+`]}`)
	refused(t, add("one", []string{"111111111111"}, "PurgeQueue"), "InvalidParameterValue", 400, "Value one for parameter Label is invalid. Reason: Already exists.")
	refused(t, remove("none"), "InvalidParameterValue", 400, "Value none for parameter Label is invalid. Reason: can't find label.")
	want("after refusals", nil, head+one+","+two+`]}`)
	want("one removed", remove("one"), head+two+`]}`)
	want("all removed", remove("two"), "")

	// An owner's own policy stays as it is, but for the statement; a single
	// statement may stand without a list.
	must(c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"Policy": `{"Statement": ` + own + `, "Version": "2012-10-17"}`}}))(t)
	want("an owner's policy", add("third", []string{"111111111111"}, "PurgeQueue"), `{"Version":"2012-10-17","Statement":[`+own+","+third+`]}`)
	want("and back", remove("third"), `{"Version":"2012-10-17","Statement":[`+own+`]}`)

	var many []string
	for i := range 51 {
		many = append(many, fmt.Sprintf("%012d", i))
	}
	refused(t, add("many", many, "SendMessage"), "OverLimit", 403, "51 Principals were found, maximum allowed is 50.")
	if err := add("many", many[:50], "SendMessage"); err != nil {
		t.Error(err)
	}
	refused(t, add("more", many[:1], "SendMessage"), "OverLimit", 403, "51 Principals were found, maximum allowed is 50.")

	want("the many removed", remove("many"), `{"Version":"2012-10-17","Statement":[`+own+`]}`)
	for i := range 19 {
		if err := add(fmt.Sprintf("s%d", i), many[:1], "SendMessage"); err != nil {
			t.Error(err)
		}
	}
	refused(t, add("more", many[:1], "SendMessage"), "OverLimit", 403, "21 Statements were found, maximum allowed is 20.")
}

package sdk_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/internal/config"
)

// What is asserted in this file is what AWS answered, where it is not what its
// documents suggest.

// inForms runs a test in each form of both protocols. ask sends an operation and gives
// its answer's members; refuse expects a refusal of it.
func inForms(t *testing.T, test func(t *testing.T, s *script, refuse func(operation string, in members, want failure))) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			endpoint := start(t)
			s := &script{t: t, form: f, endpoint: endpoint, seen: map[string]string{}, used: map[string]bool{}}
			test(t, s, func(operation string, in members, want failure) {
				t.Helper()
				wantError(t, f, do(t, f.request(t, endpoint, operation, in)), want)
			})
		})
	}
}

// ask gives what an operation answers.
func (s *script) ask(operation string, in members) members {
	s.t.Helper()
	return s.form.answer(s.t, operation, do(s.t, s.form.request(s.t, s.endpoint, operation, in)))
}

func (s *script) attribute(q, name string) any {
	s.t.Helper()
	attributes, _ := s.ask("GetQueueAttributes", members{"QueueUrl": q, "AttributeNames": list{"All"}})["Attributes"].(members)
	return attributes[name]
}

func TestBooleansInAnyCase(t *testing.T) {
	inForms(t, func(t *testing.T, s *script, refuse func(string, members, failure)) {
		q := s.url("q.fifo")
		s.call("CreateQueue", members{"QueueName": "q.fifo", "Attributes": members{"FifoQueue": "True", "ContentBasedDeduplication": "False"}}, members{"QueueUrl": q})
		equal(t, "FifoQueue", any("true"), s.attribute(q, "FifoQueue"))
		equal(t, "ContentBasedDeduplication", any("false"), s.attribute(q, "ContentBasedDeduplication"))
		s.call("CreateQueue", members{"QueueName": "q.fifo", "Attributes": members{"FifoQueue": "true", "ContentBasedDeduplication": "fAlse"}}, members{"QueueUrl": q})
		s.call("SetQueueAttributes", members{"QueueUrl": q, "Attributes": members{"ContentBasedDeduplication": "True", "SqsManagedSseEnabled": "FALSE"}}, members{})
		equal(t, "ContentBasedDeduplication", any("true"), s.attribute(q, "ContentBasedDeduplication"))
		equal(t, "SqsManagedSseEnabled", any("false"), s.attribute(q, "SqsManagedSseEnabled"))

		// The kind of a queue stays.
		s.call("SetQueueAttributes", members{"QueueUrl": q, "Attributes": members{"FifoQueue": "true"}}, members{})
		refuse("SetQueueAttributes", members{"QueueUrl": q, "Attributes": members{"FifoQueue": "false"}},
			failure{sqsNS + "InvalidAttributeValue", "InvalidAttributeValue", 400, "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.", ""})
	})
}

func TestKeyReuseIsToldWithAKey(t *testing.T) {
	inForms(t, func(t *testing.T, s *script, _ func(string, members, failure)) {
		q := s.url("q")
		s.call("CreateQueue", members{"QueueName": "q"}, members{"QueueUrl": q})
		check := func(key, reuse, managed any) {
			t.Helper()
			got := []any{s.attribute(q, "KmsMasterKeyId"), s.attribute(q, "KmsDataKeyReusePeriodSeconds"), s.attribute(q, "SqsManagedSseEnabled")}
			equal(t, "the key, its reuse and the other encryption", []any{key, reuse, managed}, got)
		}
		check(nil, nil, "true")
		s.call("SetQueueAttributes", members{"QueueUrl": q, "Attributes": members{"KmsMasterKeyId": "testKeyId", "KmsDataKeyReusePeriodSeconds": "6000"}}, members{})
		check("testKeyId", "6000", "false")
		s.call("SetQueueAttributes", members{"QueueUrl": q, "Attributes": members{"KmsMasterKeyId": "", "KmsDataKeyReusePeriodSeconds": "300"}}, members{})
		check(nil, nil, "false")
	})
}

func TestPolicyAboutNoARN(t *testing.T) {
	doc := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sqs:SendMessage","Resource":"'$sqs_queue_arn'","Condition":{"ArnEquals":{"aws:SourceArn":"'$sns_topic_arn'"}}}]}`
	inForms(t, func(t *testing.T, s *script, _ func(string, members, failure)) {
		for name, attributes := range map[string]members{"q": {}, "q.fifo": {"FifoQueue": "true"}} {
			q := s.url(name)
			s.call("CreateQueue", members{"QueueName": name, "Attributes": attributes}, members{"QueueUrl": q})
			s.call("SetQueueAttributes", members{"QueueUrl": q, "Attributes": members{"Policy": doc}}, members{})
			equal(t, "the policy", any(doc), s.attribute(q, "Policy"))
			s.call("SetQueueAttributes", members{"QueueUrl": q, "Attributes": members{"Policy": ""}}, members{})
			equal(t, "the policy", nil, s.attribute(q, "Policy"))
		}
	})

	// It lets nobody in.
	endpoint := start(t)
	c, topics := client(endpoint), topicsClient(endpoint)
	q, topic := createQueue(t, c, "q", "Policy", strings.ReplaceAll(doc, `,"Condition":{"ArnEquals":{"aws:SourceArn":"'$sns_topic_arn'"}}`, "")), createTopic(t, topics, "t")
	subscribe(t, topics, topic, "sqs", queueARN("q"))
	must(topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("m")}))(t)
	want(t, receive(t, c, q, 1))
}

func TestFaultsOfRedrivePolicies(t *testing.T) {
	inForms(t, func(t *testing.T, s *script, refuse func(string, members, failure)) {
		q := s.url("q")
		s.call("CreateQueue", members{"QueueName": "dead"}, members{"QueueUrl": s.url("dead")})
		s.call("CreateQueue", members{"QueueName": "q"}, members{"QueueUrl": q})
		for doc, reason := range map[string]string{
			`{"deadLetterTargetArn":"` + queueARN("dead") + `"}`:                             "Redrive policy does not contain mandatory attribute: maxReceiveCount.",
			`{"maxReceiveCount":"42"}`:                                                       "Redrive policy does not contain mandatory attribute: deadLetterTargetArn.",
			`{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":"invalid"}`: "Invalid value for maxReceiveCount: invalid, valid values are from 1 to 1000 both inclusive.",
		} {
			refuse("SetQueueAttributes", members{"QueueUrl": q, "Attributes": members{"RedrivePolicy": doc}},
				invalid("Value "+doc+" for parameter RedrivePolicy is invalid. Reason: "+reason))
		}
		s.call("SetQueueAttributes", members{"QueueUrl": q, "Attributes": members{"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `","maxReceiveCount":"42"}`}}, members{})
	})
}

func TestEmptyStringsAreValues(t *testing.T) {
	inForms(t, func(t *testing.T, s *script, refuse func(string, members, failure)) {
		refuse("CreateQueue", members{"QueueName": ""}, invalid("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"))
		refuse("CreateQueue", members{}, invalid("Value for parameter QueueName is invalid. Reason: Must specify a queue name."))
		q := s.url("q.fifo")
		s.call("CreateQueue", members{"QueueName": "q.fifo", "Attributes": members{"FifoQueue": "true"}}, members{"QueueUrl": q})
		refuse("SetQueueAttributes", members{"QueueUrl": q}, missing("Attribute.Name"))
		refuse("SetQueueAttributes", members{"QueueUrl": q, "Attributes": members{}}, missing("Attribute.Name"))
		refuse("SendMessage", members{"QueueUrl": q, "MessageBody": "b", "MessageGroupId": "", "MessageDeduplicationId": "d"},
			invalid("Value  for parameter MessageGroupId is invalid. Reason: MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length."))
		refuse("SendMessage", members{"QueueUrl": q, "MessageBody": "b", "MessageDeduplicationId": "d"}, missing("MessageGroupId"))
	})
}

func TestNameAsQueueURL(t *testing.T) {
	for _, f := range forms {
		if f.atQueue {
			continue // a name is no place to send a request to
		}
		t.Run(f.name, func(t *testing.T) {
			endpoint := start(t)
			s := &script{t: t, form: f, endpoint: endpoint, seen: map[string]string{}, used: map[string]bool{}}
			s.call("CreateQueue", members{"QueueName": "q"}, members{"QueueUrl": s.url("q")})
			s.call("CreateQueue", members{"QueueName": "q.fifo", "Attributes": members{"FifoQueue": "true"}}, members{"QueueUrl": s.url("q.fifo")})
			s.ask("SendMessage", members{"QueueUrl": "q", "MessageBody": "b"})
			s.call("SetQueueAttributes", members{"QueueUrl": "q", "Attributes": members{"DelaySeconds": "9"}}, members{})
			equal(t, "DelaySeconds", any("9"), s.attribute("q", "DelaySeconds"))
			equal(t, "messages", any("1"), s.attribute("q", "ApproximateNumberOfMessages"))
			wantError(t, f, do(t, f.request(t, endpoint, "SendMessage", members{"QueueUrl": "q.fifo", "MessageBody": "b", "DelaySeconds": 5})),
				invalid("Value 5 for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type."))
			s.call("DeleteQueue", members{"QueueUrl": "q"}, members{})
			none := failure{sqsNS + "QueueDoesNotExist", prefix + "NonExistentQueue", 400, "The specified queue does not exist.", "The specified queue does not exist for this wsdl version."}
			for _, url := range []string{"q", "no name", "http://whatever-incorrect-queue-address", "https:///000000000000/q", endpoint + "/queue//000000000000/q", endpoint + "/12/q.fifo"} {
				wantError(t, f, do(t, f.request(t, endpoint, "GetQueueAttributes", members{"QueueUrl": url})), none)
			}
		})
	}
}

// Two regions have two queues of a name, which no URL can confuse.
func TestRegionsInQueueURLs(t *testing.T) {
	check := func(t *testing.T, endpoint string, urls map[string]string) {
		for region, url := range urls {
			c := clientOf(endpoint, region, "test")
			equal(t, "the URL in "+region, url, createQueue(t, c, "q"))
			equal(t, "the URL in "+region, url, aws.ToString(must(c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q")}))(t).QueueUrl))
			equal(t, "the queues of "+region, []string{url}, must(c.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t).QueueUrls)
			send(t, c, url, region)
		}
		// A URL leads to its queue, wherever the caller is.
		for region, url := range urls {
			for _, from := range []string{"us-east-1", "eu-west-1"} {
				if url == endpoint+"/000000000000/q" && from != "us-east-1" {
					continue // it names no region, and so is one of the caller's
				}
				c := clientOf(endpoint, from, "test")
				equal(t, "the queue from "+from, "arn:aws:sqs:"+region+":000000000000:q", attributesOf(t, c, url)["QueueArn"])
			}
			equal(t, "received in "+region, []string{region}, bodies(receive(t, clientOf(endpoint, region, "test"), url, 10)))
		}
	}
	t.Run("in the path", func(t *testing.T) {
		endpoint := start(t)
		other := endpoint + "/queue/eu-west-1/000000000000/q"
		check(t, endpoint, map[string]string{"us-east-1": endpoint + "/000000000000/q", "eu-west-1": other})
		send(t, clientOf(endpoint, "eu-west-1", "test"), other, "again")
		// Query at the URL, unsigned and so of no region by itself.
		if r := callQuery(t, other, "ReceiveMessage"); !strings.Contains(r.Body, "<Body>again</Body>") {
			t.Errorf("at the queue's URL: %d %s", r.Status, r.Body)
		}
	})
	t.Run("in the host", func(t *testing.T) {
		endpoint := startWith(t, func(c *config.Config) { c.QueueURLHost = "example.test" })
		_, port, _ := strings.Cut(strings.TrimPrefix(endpoint, "http://"), ":")
		at := func(region string) string {
			return "http://sqs." + region + ".example.test:" + port + "/000000000000/q"
		}
		check(t, endpoint, map[string]string{"us-east-1": at("us-east-1"), "eu-west-1": at("eu-west-1")})
		// The server answers to that host.
		req := newJSON(t, endpoint, "ListQueues", "{}")
		req.Host = "sqs.eu-west-1.example.test"
		if r := do(t, req); r.Status != http.StatusOK || !strings.Contains(r.Body, "http://sqs.eu-west-1.example.test/000000000000/q") {
			t.Errorf("asked at the host: %d %s", r.Status, r.Body)
		}
	})
}

func TestOldJSONOfQuery(t *testing.T) {
	endpoint := start(t)
	q := createQueue(t, client(endpoint), "q")
	ask := func(at, query string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "application/json")
		r := do(t, req)
		return strings.ReplaceAll(r.Body, r.Header.Get("x-amzn-RequestId"), "ID")
	}
	equal(t, "queues", `{"ListQueuesResponse":{"ListQueuesResult":{"queueUrls":["`+q+`"]},"ResponseMetadata":{"RequestId":"ID"}}}`, ask(endpoint+"/", "Action=ListQueues"))
	equal(t, "attributes", `{"GetQueueAttributesResponse":{"GetQueueAttributesResult":{"Attributes":[{"Name":"DelaySeconds","Value":"0"},{"Name":"VisibilityTimeout","Value":"30"}]},"ResponseMetadata":{"RequestId":"ID"}}}`,
		ask(q, "Action=GetQueueAttributes&AttributeName.1=DelaySeconds&AttributeName.2=VisibilityTimeout"))
	body := "a\r\n\"b\" &quot;"
	send(t, client(endpoint), q, body)
	if got := ask(q, "Action=ReceiveMessage&AttributeName.1=ApproximateReceiveCount"); !strings.HasPrefix(got, `{"ReceiveMessageResponse":{"ReceiveMessageResult":{"messages":[{"MessageId":`) ||
		!strings.Contains(got, `"Body":"a\r\n\"b\" &quot;","Attributes":[{"Name":"ApproximateReceiveCount","Value":"1"}]`) {
		t.Errorf("a message: %s", got)
	}
}

func TestOddRequestsAtQueueURLs(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	q, other := createQueue(t, c, "q"), createQueue(t, c, "other")
	get := func(at, accept string) response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		return do(t, req)
	}
	if r := get(q+"?Action=ReceiveMessage", ""); r.Status != http.StatusOK || !strings.Contains(r.Body, "<ReceiveMessageResult/>") {
		t.Errorf("nothing to receive: %d %s", r.Status, r.Body)
	}
	for _, name := range []string{"q", "other"} {
		want := map[string]string{"q": q, "other": other}[name]
		r := get(q+"?Action=GetQueueUrl&QueueOwnerAWSAccountId=000000000000&QueueName="+name, "")
		wantXML(t, r, "GetQueueUrl", xmlOf("QueueUrl", want))
	}
	for _, action := range []string{"CreateQueue&QueueName=n", "ListQueues"} {
		if r := get(q+"?Action="+action, ""); r.Status != http.StatusBadRequest || !strings.Contains(r.Body, "<Code>InvalidAction</Code>") {
			t.Errorf("%s at a queue: %d %s", action, r.Status, r.Body)
		}
	}
	for _, at := range []string{q, endpoint + "/queue/eu-west-1/000000000000/q"} {
		for _, accept := range []string{"", "application/json"} {
			if r := get(at, accept); r.Status != http.StatusNotFound || r.Body != "<UnknownOperationException/>" || r.Header.Get("Content-Type") != "text/xml" {
				t.Errorf("a GET of %s: %d %s %s", at, r.Status, r.Header.Get("Content-Type"), r.Body)
			}
		}
	}
	if r := get(endpoint+"/", ""); !strings.Contains(r.Body, "<Code>MissingAction</Code>") {
		t.Errorf("a GET of /: %d %s", r.Status, r.Body)
	}
}

// A request without a signature has no region but that of the URL it is sent to.
func TestRegionOfUnsignedRequests(t *testing.T) {
	endpoint := startOpen(t)
	here, there := createQueue(t, client(endpoint), "q"), createQueue(t, clientOf(endpoint, "eu-west-1", "test"), "q")
	for _, q := range []string{here, there} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, q+"?Action=GetQueueUrl&QueueName=q", nil)
		if err != nil {
			t.Fatal(err)
		}
		wantXML(t, do(t, req), "GetQueueUrl", xmlOf("QueueUrl", q))
	}
}

func TestFaultsOfSends(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	q := createQueue(t, c, "q", "MaximumMessageSize", "1024")

	r := callJSON(t, endpoint, "SendMessageBatch", `{"QueueUrl":"`+q+`","Entries":[{"Id":"1","MessageBody":"b"}]}`)
	if strings.Contains(r.Body, "Failed") {
		t.Errorf("nothing failed: %s", r.Body)
	}
	var all []types.SendMessageBatchRequestEntry
	for i := range 10 {
		all = append(all, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String("b")})
	}
	all[9].MessageBody = aws.String("\x01")
	out := must(c.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &q, Entries: all}))(t)
	if len(out.Successful) != 9 || len(out.Failed) != 1 || aws.ToString(out.Failed[0].Code) != "InvalidMessageContents" {
		t.Errorf("forbidden characters: %+v", out)
	}
	x := callQuery(t, endpoint, "SendMessageBatch", "QueueUrl", q, "SendMessageBatchRequestEntry.1.Id", "1", "SendMessageBatchRequestEntry.1.MessageBody", "\x01")
	equal(t, "the code in Query", "InvalidMessageContents", element(t, x.Body, "Code", 0))
	x = callQuery(t, endpoint, "SendMessage", "QueueUrl", q, "MessageBody", "b", "MessageAttribute.1.Name", "a",
		"MessageAttribute.1.Value.DataType", "String", "MessageAttribute.1.Value.StringValue", "\b\v")
	equal(t, "of an attribute in Query", "InvalidParameterValue", element(t, x.Body, "Code", 0))

	all = all[:2]
	all[0].MessageBody, all[1].MessageBody = aws.String(strings.Repeat("x", 1024)), aws.String(strings.Repeat("x", 1025))
	out = must(c.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &q, Entries: all}))(t)
	equal(t, "failed", []types.BatchResultErrorEntry{{
		Id: aws.String("1"), Code: aws.String("InvalidParameterValue"), SenderFault: true,
		Message: aws.String("One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."),
	}}, out.Failed)
	_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: all[1].MessageBody})
	refused(t, err, "InvalidParameterValue", 400, "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.")

	x = callQuery(t, endpoint, "SendMessageBatch", "QueueUrl", q, "SendMessageBatchRequestEntry.1.Id", "1", "SendMessageBatchRequestEntry.1.MessageBody", *all[1].MessageBody)
	equal(t, "in Query", "InvalidParameterValue One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes.",
		element(t, x.Body, "Code", 0)+" "+element(t, x.Body, "Message", 0))

	// A large body is a fault of the message, not of the request.
	wide := createQueue(t, c, "wide")
	huge := strings.Repeat("x", 2_400_000)
	_, err = c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &wide, MessageBody: &huge})
	refused(t, err, "InvalidParameterValue", 400, "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.")
	wantXMLError(t, callQuery(t, endpoint, "SendMessage", "QueueUrl", wide, "MessageBody", huge),
		invalid("One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."))
	// Neither is one that takes three times as much in a form.
	if r := callQuery(t, endpoint, "SendMessage", "QueueUrl", wide, "MessageBody", strings.Repeat("é", 1<<19)); r.Status != http.StatusOK {
		t.Errorf("a message of 1 MiB in a form: %d %.200s", r.Status, r.Body)
	}
}

func TestMessageAttributesBeyondASCII(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	q := createQueue(t, c, "q")
	ask := func(name, kind, value string) error {
		_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("b"), MessageAttributes: map[string]types.MessageAttributeValue{
			name: {DataType: &kind, StringValue: &value},
		}})
		return err
	}
	if err := ask("attr.1øßä", "String", "v"); err != nil {
		t.Error(err)
	}
	long := strings.Repeat("x", 257)
	for _, name := range []string{"a!", `a"`, "a§", "a(", "a?", ".a", "aWs.a", "AMAZON.a", "a.", long, "a\ufffdb"} {
		if err := ask(name, "String", "v"); !isType[*types.InvalidMessageContents](err) && !strings.Contains(fmt.Sprint(err), "InvalidParameterValue") {
			t.Errorf("an attribute named %.20q: %v", name, err)
		}
	}
	for _, kind := range []string{"Invalid", "Number." + strings.Repeat("x", 256)} {
		if err := ask("a", kind, "1"); !strings.Contains(fmt.Sprint(err), "InvalidParameterValue") {
			t.Errorf("type %.20q: %v", kind, err)
		}
	}
	refused(t, ask("a", "String", "\b\v"), "InvalidParameterValue", 400,
		"Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")
}

func TestReceiptHandlesThatAreNone(t *testing.T) {
	inForms(t, func(t *testing.T, s *script, refuse func(string, members, failure)) {
		q := s.url("q")
		s.call("CreateQueue", members{"QueueName": "q"}, members{"QueueUrl": q})
		const words = `The input receipt handle "garbage" is not a valid receipt handle.`
		none := failure{sqsNS + "ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 400, words, ""}
		refuse("DeleteMessage", members{"QueueUrl": q, "ReceiptHandle": "garbage"}, none)
		refuse("ChangeMessageVisibility", members{"QueueUrl": q, "ReceiptHandle": "garbage", "VisibilityTimeout": 1}, none)
		s.ask("SendMessage", members{"QueueUrl": q, "MessageBody": "b"})
		got, _ := s.ask("ReceiveMessage", members{"QueueUrl": q})["Messages"].(list)
		handle := got[0].(members)["ReceiptHandle"]
		s.call("DeleteMessageBatch", members{"QueueUrl": q, "Entries": list{members{"Id": "1", "ReceiptHandle": "garbage"}, members{"Id": "2", "ReceiptHandle": handle}}},
			members{"Successful": list{members{"Id": "2"}}, "Failed": list{members{"Id": "1", "Code": "ReceiptHandleIsInvalid", "Message": words, "SenderFault": "true"}}})
	})
}

// Whose sequence number it is shows in the number.
func TestSequenceNumbersOfTheirOwn(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	dead := createFIFO(t, c, "dead.fifo")
	q := createFIFO(t, c, "q.fifo", "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead.fifo")+`","maxReceiveCount":1}`)
	other := createFIFO(t, c, "other.fifo")
	numbers := map[string]bool{}
	note := func(number *string) string {
		t.Helper()
		n := aws.ToString(number)
		if len(n) != 20 || numbers[n] || strings.Contains(n, "000000000000") {
			t.Errorf("the sequence number %s", n)
		}
		numbers[n] = true
		return n
	}
	first := note(sendTo(t, c, q, "g", "1").SequenceNumber)
	note(sendTo(t, c, other, "g", "1").SequenceNumber)
	if second := note(sendTo(t, c, q, "g", "2").SequenceNumber); second <= first {
		t.Errorf("%s comes behind %s", second, first)
	}
	equal(t, "that of a duplicate", first, aws.ToString(sendTo(t, c, q, "g", "1").SequenceNumber))
	in := &sqs.ReceiveMessageInput{QueueUrl: &q, VisibilityTimeout: 1, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"SequenceNumber"}}
	equal(t, "that of the message", first, must(c.ReceiveMessage(t.Context(), in))(t).Messages[0].Attributes["SequenceNumber"])
	advance(t, endpoint, "2s")
	must(c.ReceiveMessage(t.Context(), in))(t) // it is a dead letter now
	in.QueueUrl = &dead
	got := must(c.ReceiveMessage(t.Context(), in))(t).Messages
	if len(got) != 1 {
		t.Fatalf("dead letters: %v", order(got))
	}
	note(aws.String(got[0].Attributes["SequenceNumber"]))

	// A queue that is created again begins elsewhere, one that is purged continues.
	must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &other}))(t)
	note(sendTo(t, c, other, "g", "2").SequenceNumber)
	must(c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &other}))(t)
	note(sendTo(t, c, createFIFO(t, c, "other.fifo"), "g", "1").SequenceNumber)
}

func TestPurgeForgetsWhatWasSent(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	q := createFIFO(t, c, "q.fifo")
	for _, body := range []string{"1", "2", "3"} {
		sendTo(t, c, q, "g", body, "D")
		sendTo(t, c, q, "g", "a duplicate", "D")
		want(t, receive(t, c, q, 10), body)
		must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &q}))(t)
	}
}

func TestDeduplicationScopeChangesLater(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	byGroup := map[string]string{"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}
	byQueue := map[string]string{"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"}
	set := func(q string, attributes map[string]string) {
		t.Helper()
		must(c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &q, Attributes: attributes}))(t)
		for name, value := range attributes {
			equal(t, name, value, attributesOf(t, c, q)[name])
		}
	}
	q := createFIFO(t, c, "q.fifo")
	take := func(group, id string, comes bool) {
		t.Helper()
		sendTo(t, c, q, group, group+id, id)
		if got := receive(t, c, q, 10); comes {
			remove(t, c, q, want(t, got, group+id)...)
		} else {
			want(t, got)
		}
	}
	take("1", "D", true)
	take("2", "D", false)
	set(q, byGroup)
	want(t, receive(t, c, q, 10))
	take("3", "D", false)
	take("4", "E", true)
	take("5", "E", false) // of an id that is new since, too
	advance(t, endpoint, "61s")
	take("4", "F", true)
	take("5", "F", true)

	q = createFIFO(t, c, "r.fifo", "DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId")
	take("1", "D", true)
	take("2", "D", true)
	set(q, byQueue)
	take("3", "D", true)
	set(q, byGroup) // the change before never came into force
	take("4", "D", true)
	set(q, byQueue)
	advance(t, endpoint, "61s")
	take("1", "E", true)
	take("2", "E", false)
}

func TestHandlesOfMoveTasks(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	createQueue(t, c, "q")
	handle := func(arn string) string {
		return base64.StdEncoding.EncodeToString([]byte(`{"taskId":"6f1a0d9c-3ea1-4a5c-9d4e-000000000001","sourceArn":"` + arn + `"}`))
	}
	const noSource = "The resource that you specified for the SourceArn parameter doesn't exist."
	for handle, want := range map[string][2]string{
		handle("arn:aws:sqs:us-east-1:111111111111:q"): {"ResourceNotFoundException", noSource},
		handle(queueARN("none")):                       {"ResourceNotFoundException", noSource},
		handle(queueARN("q")):                          {"ResourceNotFoundException", "Task does not exist."},
		"foobared":                                     {"InvalidParameterValue", "Value for parameter TaskHandle is invalid."},
	} {
		_, err := c.CancelMessageMoveTask(t.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: &handle})
		status := map[string]int{"ResourceNotFoundException": 404, "InvalidParameterValue": 400}[want[0]]
		refused(t, err, want[0], status, want[1])
		r := callQuery(t, endpoint, "CancelMessageMoveTask", "TaskHandle", handle)
		if r.Status != status || !strings.Contains(r.Body, "<Code>"+want[0]+"</Code>") {
			t.Errorf("in Query: %d %s", r.Status, r.Body)
		}
	}
}

// A client that leaves its old handle aside can do without it, and so can one that
// keeps it.
func TestOldHandlesChangeVisibility(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	change := func(q string, m types.Message, seconds int32) {
		t.Helper()
		must(c.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &q, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds}))(t)
	}
	take := func(q string, hidden int32) types.Message {
		t.Helper()
		got := must(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q, VisibilityTimeout: hidden}))(t).Messages
		return want(t, got, "m")[0]
	}
	q := createQueue(t, c, "q", "VisibilityTimeout", "0") // the SDK leaves a zero out
	send(t, c, q, "m")
	first := take(q, 0)
	take(q, 3)
	want(t, receive(t, c, q, 1))
	change(q, first, 0)
	want(t, receive(t, c, q, 1), "m")

	q = createQueue(t, c, "r", "VisibilityTimeout", "1")
	send(t, c, q, "m")
	first = take(q, 1)
	advance(t, endpoint, "1100ms")
	take(q, 1)
	change(q, first, 100)
	change(q, first, 100)
	advance(t, endpoint, "1200ms")
	want(t, receive(t, c, q, 1))
	advance(t, endpoint, "99s")
	want(t, receive(t, c, q, 1), "m")
	// Also when it has come back meanwhile.
	advance(t, endpoint, "2s")
	change(q, first, 10)
	want(t, receive(t, c, q, 1))
}

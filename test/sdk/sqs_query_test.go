package sdk_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
)

// xmlAnswer is the whole answer of an operation in XML, with the members
// written as they stand.
func xmlAnswer(requestID, operation, members string) string {
	result := ""
	if members != "" {
		result = "<" + operation + "Result>" + members + "</" + operation + "Result>"
	}
	return `<?xml version="1.0"?><` + operation + `Response xmlns="http://queue.amazonaws.com/doc/2012-11-05/">` + result +
		`<ResponseMetadata><RequestId>` + requestID + `</RequestId></ResponseMetadata></` + operation + `Response>`
}

// wantXML compares an answer with the members that it should have.
func wantXML(t *testing.T, r response, operation, members string) {
	t.Helper()
	id := r.Header.Get("x-amzn-RequestId")
	if r.Status != http.StatusOK || r.Header.Get("Content-Type") != "text/xml" || !uuidForm.MatchString(id) {
		t.Errorf("%s: status %d, type %q, request id %q", operation, r.Status, r.Header.Get("Content-Type"), id)
	}
	if diff := cmp.Diff(xmlAnswer(id, operation, members), r.Body); diff != "" {
		t.Errorf("%s (-want +got):\n%s", operation, diff)
	}
}

// element is the text of the nth element of that name, from 0.
func element(t *testing.T, body, name string, n int) string {
	t.Helper()
	all := regexp.MustCompile("<"+name+">([^<]*)</"+name+">").FindAllStringSubmatch(body, -1)
	if len(all) <= n {
		t.Fatalf("no <%s> number %d in %s", name, n, body)
	}
	return all[n][1]
}

func xmlOf(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString("<" + pairs[i] + ">" + pairs[i+1] + "</" + pairs[i] + ">")
	}
	return b.String()
}

func xmlAttribute(name, value string) string {
	return "<Attribute>" + xmlOf("Name", name, "Value", value) + "</Attribute>"
}

func TestQueryOperations(t *testing.T) {
	endpoint := start(t)
	q := endpoint + "/000000000000/q"

	wantXML(t, callQuery(t, endpoint, "CreateQueue", "QueueName", "q", "Attribute.1.Name", "VisibilityTimeout", "Attribute.1.Value", "45",
		"Attribute.2.Name", "Policy", "Attribute.2.Value", `{"Statement":`+allowAll("sqs:*")+`}`, "Tag.1.Key", "team", "Tag.1.Value", "rental"),
		"CreateQueue", xmlOf("QueueUrl", q))
	wantXML(t, callQuery(t, endpoint, "CreateQueue", "QueueName", "r"), "CreateQueue", xmlOf("QueueUrl", endpoint+"/000000000000/r"))
	wantXML(t, callQuery(t, endpoint, "GetQueueUrl", "QueueName", "q"), "GetQueueUrl", xmlOf("QueueUrl", q))
	wantXML(t, callQuery(t, endpoint, "ListQueues"), "ListQueues", xmlOf("QueueUrl", q, "QueueUrl", endpoint+"/000000000000/r"))
	page := callQuery(t, endpoint, "ListQueues", "MaxResults", "1")
	token := element(t, page.Body, "NextToken", 0)
	wantXML(t, page, "ListQueues", xmlOf("QueueUrl", q, "NextToken", token))
	wantXML(t, callQuery(t, endpoint, "ListQueues", "MaxResults", "1", "NextToken", token), "ListQueues", xmlOf("QueueUrl", endpoint+"/000000000000/r"))

	// What is done to a queue may go to its URL.
	wantXML(t, callQuery(t, q, "SetQueueAttributes", "Attribute.1.Name", "DelaySeconds", "Attribute.1.Value", "0"), "SetQueueAttributes", "")
	r := callQuery(t, q, "GetQueueAttributes", "AttributeName.1", "VisibilityTimeout", "AttributeName.2", "Policy", "AttributeName.3", "QueueArn")
	for _, a := range []string{
		xmlAttribute("VisibilityTimeout", "45"), xmlAttribute("Policy", strings.ReplaceAll(`{"Statement":`+allowAll("sqs:*")+`}`, `"`, "&quot;")),
		xmlAttribute("QueueArn", "arn:aws:sqs:us-east-1:000000000000:q"),
	} {
		if strings.Count(r.Body, a) != 1 || strings.Count(r.Body, "<Attribute>") != 3 {
			t.Errorf("GetQueueAttributes lacks %s: %s", a, r.Body)
		}
	}

	r = callQuery(t, endpoint, "SendMessage", "QueueUrl", q, "MessageBody", "a<b>&\"c\"\r\n",
		"MessageAttribute.1.Name", "status", "MessageAttribute.1.Value.DataType", "String", "MessageAttribute.1.Value.StringValue", "new",
		"MessageSystemAttribute.1.Name", "AWSTraceHeader", "MessageSystemAttribute.1.Value.DataType", "String", "MessageSystemAttribute.1.Value.StringValue", "Root=1")
	sent := element(t, r.Body, "MessageId", 0)
	wantXML(t, r, "SendMessage", xmlOf("MD5OfMessageBody", aws.ToString(md5Of("a<b>&\"c\"\r\n")),
		"MD5OfMessageAttributes", aws.ToString(attributesMD5(text("status", "new"))),
		"MD5OfMessageSystemAttributes", aws.ToString(attributesMD5(text("AWSTraceHeader", "Root=1"))), "MessageId", sent))

	r = callQuery(t, q, "ReceiveMessage", "AttributeName.1", "ApproximateReceiveCount", "MessageSystemAttributeName.1", "AWSTraceHeader", "MessageAttributeName.1", "All")
	handle := element(t, r.Body, "ReceiptHandle", 0)
	wantXML(t, r, "ReceiveMessage", "<Message>"+xmlOf("MessageId", sent, "ReceiptHandle", handle,
		"MD5OfBody", aws.ToString(md5Of("a<b>&\"c\"\r\n")), "Body", "a&lt;b&gt;&amp;&quot;c&quot;&#xD;\n")+
		xmlAttribute("ApproximateReceiveCount", "1")+xmlAttribute("AWSTraceHeader", "Root=1")+
		xmlOf("MD5OfMessageAttributes", aws.ToString(attributesMD5(text("status", "new"))))+
		"<MessageAttribute>"+xmlOf("Name", "status", "Value", xmlOf("StringValue", "new", "DataType", "String"))+"</MessageAttribute></Message>")

	wantXML(t, callQuery(t, q, "ChangeMessageVisibility", "ReceiptHandle", handle, "VisibilityTimeout", "600"), "ChangeMessageVisibility", "")
	wantXML(t, callQuery(t, q, "DeleteMessage", "ReceiptHandle", handle), "DeleteMessage", "")

	r = callQuery(t, q, "SendMessageBatch", "SendMessageBatchRequestEntry.1.Id", "a", "SendMessageBatchRequestEntry.1.MessageBody", "one",
		"SendMessageBatchRequestEntry.2.Id", "b", "SendMessageBatchRequestEntry.2.MessageBody", "two", "SendMessageBatchRequestEntry.2.DelaySeconds", "901")
	wantXML(t, r, "SendMessageBatch",
		"<SendMessageBatchResultEntry>"+xmlOf("Id", "a", "MessageId", element(t, r.Body, "MessageId", 0), "MD5OfMessageBody", aws.ToString(md5Of("one")))+"</SendMessageBatchResultEntry>"+
			"<BatchResultErrorEntry>"+xmlOf("Id", "b", "SenderFault", "true", "Code", "InvalidParameterValue", "Message", "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be &gt;= 0 and &lt;= 900.")+"</BatchResultErrorEntry>")

	handle = element(t, callQuery(t, q, "ReceiveMessage").Body, "ReceiptHandle", 0)
	wantXML(t, callQuery(t, q, "DeleteMessageBatch", "DeleteMessageBatchRequestEntry.1.Id", "a", "DeleteMessageBatchRequestEntry.1.ReceiptHandle", handle,
		"DeleteMessageBatchRequestEntry.2.Id", "b", "DeleteMessageBatchRequestEntry.2.ReceiptHandle", "garbage"), "DeleteMessageBatch",
		"<DeleteMessageBatchResultEntry><Id>a</Id></DeleteMessageBatchResultEntry>"+
			"<BatchResultErrorEntry>"+xmlOf("Id", "b", "SenderFault", "true", "Code", "ReceiptHandleIsInvalid", "Message", "The input receipt handle &quot;garbage&quot; is not a valid receipt handle.")+"</BatchResultErrorEntry>")
	r = callQuery(t, q, "ReceiveMessage")
	if diff := cmp.Diff(strings.Replace(xmlAnswer(r.Header.Get("x-amzn-RequestId"), "ReceiveMessage", "x"), ">x</ReceiveMessageResult>", "/>", 1), r.Body); diff != "" {
		t.Errorf("an empty ReceiveMessage (-want +got):\n%s", diff)
	}

	wantXML(t, callQuery(t, endpoint, "DeleteQueue", "QueueUrl", q), "DeleteQueue", "")
	wantXML(t, callQuery(t, endpoint, "ListQueues"), "ListQueues", xmlOf("QueueUrl", endpoint+"/000000000000/r"))
}

// A Query request may be a GET, at a queue's URL too, and may ask for JSON.
func TestQueryByGetAndAsJSON(t *testing.T) {
	endpoint := start(t)
	q := endpoint + "/000000000000/q"
	get := func(at, accept string, parameters url.Values) response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"?"+parameters.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if accept != "" {
			req.Header.Set("Accept", accept)
		}
		return do(t, req)
	}
	wantXML(t, get(endpoint, "", url.Values{"Action": {"CreateQueue"}, "QueueName": {"q"}}), "CreateQueue", xmlOf("QueueUrl", q))
	r := get(q, "", url.Values{"Action": {"SendMessage"}, "MessageBody": {"hello"}})
	wantXML(t, r, "SendMessage", xmlOf("MD5OfMessageBody", aws.ToString(md5Of("hello")), "MessageId", element(t, r.Body, "MessageId", 0)))

	r = get(endpoint, "application/json", url.Values{"Action": {"GetQueueUrl"}, "QueueName": {"q"}})
	want := `{"GetQueueUrlResponse":{"GetQueueUrlResult":{"QueueUrl":"` + q + `"},"ResponseMetadata":{"RequestId":"` + r.Header.Get("x-amzn-RequestId") + `"}}}`
	if r.Status != http.StatusOK || r.Header.Get("Content-Type") != "application/json" || r.Body != want {
		t.Errorf("as JSON: %d %s %s\nwant %s", r.Status, r.Header.Get("Content-Type"), r.Body, want)
	}
	r = get(endpoint, "application/json", url.Values{"Action": {"GetQueueUrl"}, "QueueName": {"none"}})
	want = `{"Error":{"Type":"Sender","Code":"AWS.SimpleQueueService.NonExistentQueue","Message":"The specified queue does not exist for this wsdl version."},"RequestId":"` + r.Header.Get("x-amzn-RequestId") + `"}`
	if r.Status != http.StatusBadRequest || r.Body != want {
		t.Errorf("error as JSON: %d %s\nwant %s", r.Status, r.Body, want)
	}
}

package sdk_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/queue/message"
)

func text(name, value string) message.Attribute {
	return message.Attribute{Name: name, Type: "String", Value: []byte(value)}
}

// failure is how an error looks in both protocols.
type failure struct {
	Type, Code string // JSON's and Query's
	Status     int
	Text       string
	QueryText  string // where it differs
}

const (
	coral  = "com.amazon.coral.service#"
	sqsNS  = "com.amazonaws.sqs#"
	prefix = "AWS.SimpleQueueService."
)

var (
	noQueue = failure{
		sqsNS + "QueueDoesNotExist", prefix + "NonExistentQueue", 400,
		"The specified queue does not exist.", "The specified queue does not exist for this wsdl version.",
	}
	badHandle = failure{Type: sqsNS + "ReceiptHandleIsInvalid", Code: "ReceiptHandleIsInvalid", Status: 400, Text: `The input receipt handle "h" is not a valid receipt handle.`}
)

func missing(member string) failure {
	return failure{
		Type: coral + "MissingRequiredParameterException", Code: "MissingParameter", Status: 400,
		Text: "The request must contain the parameter " + member + ".",
	}
}

func invalid(text string) failure {
	return failure{Type: coral + "InvalidParameterValueException", Code: "InvalidParameterValue", Status: 400, Text: text}
}

func attributeName(text string) failure {
	return failure{Type: sqsNS + "InvalidAttributeName", Code: "InvalidAttributeName", Status: 400, Text: text}
}

func attributeValue(name string) failure {
	return failure{
		Type: sqsNS + "InvalidAttributeValue", Code: "InvalidAttributeValue", Status: 400,
		Text: "Invalid value for the parameter " + name + ".",
	}
}

func batch(name, text string) failure {
	return failure{Type: sqsNS + name, Code: prefix + name, Status: 400, Text: text}
}

// entries writes a batch's entries for both protocols: each is an id, or
// several members as id|member=value|….
func entries(kind string, all ...string) (list []any, parameters []string) {
	list = []any{}
	for i, e := range all {
		fields := strings.Split(e, "|")
		key := kind + "RequestEntry." + strconv.Itoa(i+1) + "."
		one := map[string]any{"Id": fields[0]}
		parameters = append(parameters, key+"Id", fields[0])
		for _, f := range fields[1:] {
			name, value, _ := strings.Cut(f, "=")
			one[name] = value
			parameters = append(parameters, key+name, value)
		}
		list = append(list, one)
	}
	return list, parameters
}

// sqsRefusal is a request that is refused.
type sqsRefusal struct {
	operation string
	json      members
	query     []string // nil: the JSON's members, which are then all scalars
	want      failure
}

const (
	badName = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
	badID   = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."
)

func refusedBatch(operation, url string, want failure, all ...string) sqsRefusal {
	list, parameters := entries(operation, all...)
	return sqsRefusal{operation, members{"QueueUrl": url, "Entries": list}, append(parameters, "QueueUrl", url), want}
}

// refusedAttributes sets an attribute of a queue that is given by its target, a URL or a name.
func refusedAttributes(operation, target, value, name, to string, want failure) sqsRefusal {
	return sqsRefusal{
		operation,
		members{target: value, "Attributes": members{name: to}},
		[]string{target, value, "Attribute.1.Name", name, "Attribute.1.Value", to},
		want,
	}
}

// refusedAttribute sends a message with an attribute.
func refusedAttribute(url, name, kind, value string, want failure) sqsRefusal {
	return sqsRefusal{
		"SendMessage",
		members{"QueueUrl": url, "MessageBody": "b", "MessageAttributes": members{name: members{"DataType": kind, "StringValue": value}}},
		[]string{"QueueUrl", url, "MessageBody", "b", "MessageAttribute.1.Name", name, "MessageAttribute.1.Value.DataType", kind, "MessageAttribute.1.Value.StringValue", value},
		want,
	}
}

func refusedTag(url, key, value string, want failure) sqsRefusal {
	return sqsRefusal{"TagQueue", members{"QueueUrl": url, "Tags": members{key: value}}, []string{"QueueUrl", url, "Tag.1.Key", key, "Tag.1.Value", value}, want}
}

func refusedPermission(url, label, account string, want failure, actions ...string) sqsRefusal {
	query := []string{"QueueUrl", url, "Label", label, "AWSAccountId.1", account}
	list := []any{}
	for i, a := range actions {
		list = append(list, a)
		query = append(query, "ActionName."+strconv.Itoa(i+1), a)
	}
	return sqsRefusal{"AddPermission", members{"QueueUrl": url, "Label": label, "AWSAccountIds": []any{account}, "Actions": list}, query, want}
}

// queueRefusals are the refusals of requests about queues and their attributes. There is a queue at
// url, and none at none, as in what follows.
func queueRefusals(url, none string) []sqsRefusal {
	redrive := func(arn string) string { return `{"deadLetterTargetArn":"` + arn + `","maxReceiveCount":3}` }
	manyActions := `{"Statement":[{"Action":["` + strings.Repeat(`SQS:SendMessage","`, 7) + `SQS:*"]}]}`
	tooManyActions := failure{
		sqsNS + "OverLimit", "OverLimit", 403,
		"8 actions were found in a statement from the submitted policy, max allowed is 7", "",
	}
	return []sqsRefusal{
		{"CreateQueue", members{}, nil, invalid("Value for parameter QueueName is invalid. Reason: Must specify a queue name.")},
		{"CreateQueue", members{"QueueName": "a b"}, nil, invalid(badName)},
		{"CreateQueue", members{"QueueName": strings.Repeat("q", 81)}, nil, invalid(badName)},
		{"CreateQueue", members{"QueueName": "new.fifo"}, nil, invalid(badName)},
		refusedAttributes("CreateQueue", "QueueName", "q", "VisibilityTimeout", "46", failure{
			sqsNS + "QueueNameExists", "QueueAlreadyExists", 400,
			"A queue already exists with the same name and a different value for attribute VisibilityTimeout", "",
		}),
		refusedAttributes("CreateQueue", "QueueName", "new", "VisibilityTimeout", "43201", attributeValue("VisibilityTimeout")),
		refusedAttributes("CreateQueue", "QueueName", "new", "Colour", "red", attributeName("Unknown Attribute Colour.")),
		refusedAttributes("CreateQueue", "QueueName", "new", "QueueArn", "x", attributeName("Unknown Attribute QueueArn.")),
		refusedAttributes("CreateQueue", "QueueName", "new", "FifoQueue", "false", attributeName("Unknown Attribute FifoQueue.")),
		refusedAttributes("CreateQueue", "QueueName", "new", "DeduplicationScope", "queue", attributeName("You can specify the DeduplicationScope only when FifoQueue is set to true.")),
		refusedAttributes("CreateQueue", "QueueName", "new", "RedrivePolicy", redrive("arn:aws:sqs:us-east-1:000000000000:none"),
			invalid("Value "+redrive("arn:aws:sqs:us-east-1:000000000000:none")+" for parameter RedrivePolicy is invalid. Reason: Dead letter target does not exist.")),

		{"GetQueueUrl", members{}, nil, missing("QueueName")},
		{"GetQueueUrl", members{"QueueName": "none"}, nil, noQueue},
		{"GetQueueUrl", members{"QueueName": "q", "QueueOwnerAWSAccountId": "111111111111"}, nil, noQueue},
		{"ListQueues", members{"MaxResults": 0}, nil, invalid("Value 0 for parameter MaxResults is invalid. Reason: Must be between 1 and 1000, if provided.")},
		{"ListQueues", members{"MaxResults": 1001}, nil, invalid("Value 1001 for parameter MaxResults is invalid. Reason: Must be between 1 and 1000, if provided.")},
		{"ListQueues", members{"NextToken": "bm9uc2Vuc2Ugbm9uc2Vuc2U="}, nil, invalid("Invalid or expired next token.")},
		{"DeleteQueue", members{}, nil, missing("QueueUrl")},
		{"DeleteQueue", members{"QueueUrl": none}, nil, noQueue},
		{"DeleteQueue", members{"QueueUrl": "http://q"}, nil, noQueue},

		{"PurgeQueue", members{}, nil, missing("QueueUrl")},
		{"PurgeQueue", members{"QueueUrl": none}, nil, noQueue},
		{"PurgeQueue", members{"QueueUrl": "http://q"}, nil, noQueue},

		{"ListDeadLetterSourceQueues", members{}, nil, missing("QueueUrl")},
		{"ListDeadLetterSourceQueues", members{"QueueUrl": none}, nil, noQueue},
		{"ListDeadLetterSourceQueues", members{"QueueUrl": url, "MaxResults": 1001}, nil, invalid("Value 1001 for parameter MaxResults is invalid. Reason: Must be between 1 and 1000, if provided.")},
		{"ListDeadLetterSourceQueues", members{"QueueUrl": url, "NextToken": "bm9uc2Vuc2Ugbm9uc2Vuc2U="}, nil, invalid("Invalid or expired next token.")},

		{"GetQueueAttributes", members{"QueueUrl": none}, nil, noQueue},
		{"GetQueueAttributes", members{"QueueUrl": url, "AttributeNames": []any{"All", "Colour"}}, []string{"QueueUrl", url, "AttributeName.1", "All", "AttributeName.2", "Colour"}, attributeName("Unknown Attribute Colour.")},
		{"SetQueueAttributes", members{"QueueUrl": url}, nil, missing("Attribute.Name")},
		refusedAttributes("SetQueueAttributes", "QueueUrl", none, "DelaySeconds", "x", noQueue),
		refusedAttributes("SetQueueAttributes", "QueueUrl", url, "DelaySeconds", "901", attributeValue("DelaySeconds")),
		refusedAttributes("SetQueueAttributes", "QueueUrl", url, "DelaySeconds", "", attributeValue("DelaySeconds")),
		refusedAttributes("SetQueueAttributes", "QueueUrl", url, "FifoQueue", "true", attributeName("Unknown Attribute FifoQueue.")),
		refusedAttributes("SetQueueAttributes", "QueueUrl", url, "ApproximateNumberOfMessages", "0", attributeName("Unknown Attribute ApproximateNumberOfMessages.")),
		refusedAttributes("SetQueueAttributes", "QueueUrl", url, "Policy", manyActions, tooManyActions),
		refusedAttributes("CreateQueue", "QueueName", "new", "Policy", manyActions, tooManyActions),
		refusedAttributes("SetQueueAttributes", "QueueUrl", url, "Policy", `{"Id":"`+strings.Repeat("x", 8192)+`"}`,
			failure{sqsNS + "OverLimit", "OverLimit", 403, "Submitted policy is over max allowed size.", ""}),
		refusedAttributes("SetQueueAttributes", "QueueUrl", url, "RedrivePolicy", "[]",
			invalid("Value [] for parameter RedrivePolicy is invalid. Reason: Redrive policy is not a valid JSON map.")),
		{
			"SetQueueAttributes",
			members{"QueueUrl": url, "Attributes": members{"DelaySeconds": "5", "VisibilityTimeout": "x"}},
			[]string{"QueueUrl", url, "Attribute.1.Name", "DelaySeconds", "Attribute.1.Value", "5", "Attribute.2.Name", "VisibilityTimeout", "Attribute.2.Value", "x"},
			attributeValue("VisibilityTimeout"),
		},
		{
			"SetQueueAttributes",
			members{"QueueUrl": url, "Attributes": members{"KmsMasterKeyId": "k", "SqsManagedSseEnabled": "true"}},
			[]string{"QueueUrl", url, "Attribute.1.Name", "KmsMasterKeyId", "Attribute.1.Value", "k", "Attribute.2.Name", "SqsManagedSseEnabled", "Attribute.2.Value", "true"},
			attributeName("You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."),
		},
	}
}

// tagRefusals are the refusals of requests about tags.
func tagRefusals(url, none string) []sqsRefusal {
	return []sqsRefusal{
		{"TagQueue", members{"QueueUrl": url}, nil, missing("Tags")},
		refusedTag(none, "k", "v", noQueue),
		refusedTag(url, strings.Repeat("k", 129), "v", invalid("Tag keys must be between 1 and 128 characters in length.")),
		refusedTag(url, "k", strings.Repeat("v", 257), invalid("Tag values must be between 0 and 256 characters in length.")),
		refusedTag(url, "k", "a\x01", invalid("Tag keys and values can only include letters, digits, whitespace and the characters _ . : / = + - @")),
		refusedTag(url, "a\x02", "v", invalid("Tag keys and values can only include letters, digits, whitespace and the characters _ . : / = + - @")),
		refusedTag(url, "aws:k", "v", invalid("Tag keys and values must not begin with aws:, which is reserved.")),
		refusedTag(url, "k", "AWS:v", invalid("Tag keys and values must not begin with aws:, which is reserved.")),
		{"UntagQueue", members{"QueueUrl": url}, nil, missing("TagKeys")},
		{"UntagQueue", members{"QueueUrl": none, "TagKeys": []any{"k"}}, []string{"QueueUrl", none, "TagKey.1", "k"}, noQueue},
		{"ListQueueTags", members{}, nil, missing("QueueUrl")},
		{"ListQueueTags", members{"QueueUrl": none}, nil, noQueue},
	}
}

// permissionRefusals are the refusals of requests about permissions.
func permissionRefusals(url, none string) []sqsRefusal {
	return []sqsRefusal{
		{"AddPermission", members{"QueueUrl": url}, nil, missing("Label")},
		refusedPermission(none, "l", "111111111111", noQueue, "SendMessage"),
		refusedPermission(url, "a b", "111111111111", invalid("Value a b for parameter Label is invalid. Reason: Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length."), "SendMessage"),
		refusedPermission(url, "l", "1", invalid("Value [1] for parameter PrincipalId is invalid. Reason: Unable to verify."), "SendMessage"),
		refusedPermission(url, "l", "111111111111", failure{sqsNS + "OverLimit", "OverLimit", 403, "8 Actions were found, maximum allowed is 7.", ""},
			"*", "ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl", "PurgeQueue", "ReceiveMessage", "SendMessage"),
		refusedPermission(url, "l", "111111111111", invalid("Value SQS:DeleteQueue for parameter ActionName is invalid. Reason: Only the queue owner is allowed to invoke this action."), "SendMessage", "DeleteQueue"),
		refusedPermission(url, "l", "111111111111", invalid("Value SQS:Dance for parameter ActionName is invalid. Reason: Please refer to the appropriate WSDL for a list of valid actions."), "Dance"),
		{"RemovePermission", members{"QueueUrl": none, "Label": "l"}, nil, noQueue},
		{"RemovePermission", members{"QueueUrl": url, "Label": "l"}, nil, invalid("Value l for parameter Label is invalid. Reason: can't find label.")},
	}
}

// moveTaskRefusals are the refusals of requests about message move tasks.
func moveTaskRefusals() []sqsRefusal {
	const (
		noSource = "The resource that you specified for the SourceArn parameter doesn't exist."
		badForm  = "You must use this format to specify the SourceArn: arn:<partition>:<service>:<region>:<account-id>:<resource-id>"
	)
	noResource := func(text string) failure {
		return failure{Type: sqsNS + "ResourceNotFoundException", Code: "ResourceNotFoundException", Status: 404, Text: text}
	}
	noTask := base64.StdEncoding.EncodeToString([]byte(`{"taskId":"00000000-0000-4000-8000-000000000000","sourceArn":"` + queueARN("dead") + `"}`))
	return []sqsRefusal{
		{"StartMessageMoveTask", members{}, nil, missing("SourceArn")},
		{"StartMessageMoveTask", members{"SourceArn": "q"}, nil, invalid(badForm)},
		{"StartMessageMoveTask", members{"SourceArn": topicARN("q")}, nil, invalid(badForm)},
		{"StartMessageMoveTask", members{"SourceArn": queueARN("none")}, nil, noResource(noSource)},
		{"StartMessageMoveTask", members{"SourceArn": "arn:aws:sqs:eu-west-1:000000000000:q"}, nil, noResource(noSource)},
		{"StartMessageMoveTask", members{"SourceArn": queueARN("q")}, nil, invalid("Source queue must be configured as a Dead Letter Queue.")},
		{"StartMessageMoveTask", members{"SourceArn": queueARN("dead"), "DestinationArn": queueARN("none")}, nil, noResource("The resource that you specified for the DestinationArn parameter doesn't exist.")},
		{"StartMessageMoveTask", members{"SourceArn": queueARN("dead"), "DestinationArn": queueARN("dead")}, nil, invalid("Source queue arn and destination queue arn cannot be the same.")},
		{"StartMessageMoveTask", members{"SourceArn": queueARN("dead"), "MaxNumberOfMessagesPerSecond": 0}, nil, invalid("Value 0 for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: Must be between 1 and 500.")},
		{"StartMessageMoveTask", members{"SourceArn": queueARN("dead"), "MaxNumberOfMessagesPerSecond": 501}, nil, invalid("Value 501 for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: Must be between 1 and 500.")},
		{"ListMessageMoveTasks", members{}, nil, missing("SourceArn")},
		{"ListMessageMoveTasks", members{"SourceArn": queueARN("none")}, nil, noResource(noSource)},
		{"ListMessageMoveTasks", members{"SourceArn": queueARN("dead"), "MaxResults": 11}, nil, invalid("Value 11 for parameter MaxResults is invalid. Reason: Must be between 1 and 10, if provided.")},
		{"CancelMessageMoveTask", members{}, nil, missing("TaskHandle")},
		{"CancelMessageMoveTask", members{"TaskHandle": "h"}, nil, invalid("Value for parameter TaskHandle is invalid.")},
		{"CancelMessageMoveTask", members{"TaskHandle": "e30="}, nil, invalid("Value for parameter TaskHandle is invalid.")},
		{"CancelMessageMoveTask", members{"TaskHandle": noTask}, nil, noResource("Task does not exist.")},
	}
}

// sendRefusals are the refusals of requests that send.
func sendRefusals(url, none string) []sqsRefusal {
	const (
		badText = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
		badKind = "The request include parameter that is not valid for this queue type."
		tooLong = "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."
	)
	half := strings.Repeat("x", 1<<19)
	return []sqsRefusal{
		{"SendMessage", members{"MessageBody": "b"}, nil, missing("QueueUrl")},
		{"SendMessage", members{"QueueUrl": url}, nil, missing("MessageBody")},
		{"SendMessage", members{"QueueUrl": url, "MessageBody": ""}, nil, missing("MessageBody")},
		{"SendMessage", members{"QueueUrl": none, "MessageBody": "b"}, nil, noQueue},
		{"SendMessage", members{"QueueUrl": url, "MessageBody": "\x01"}, nil, failure{sqsNS + "InvalidMessageContents", "InvalidMessageContents", 400, badText, ""}},
		{"SendMessage", members{"QueueUrl": url, "MessageBody": "b", "DelaySeconds": 901}, nil, invalid("Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.")},
		{"SendMessage", members{"QueueUrl": url, "MessageBody": "b", "DelaySeconds": -1}, nil, invalid("Value -1 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.")},
		{"SendMessage", members{"QueueUrl": url, "MessageBody": half + half + "x"}, nil, invalid(tooLong)},
		{"SendMessage", members{"QueueUrl": url, "MessageBody": "b", "MessageDeduplicationId": "d"}, nil, invalid("Value d for parameter MessageDeduplicationId is invalid. Reason: " + badKind)},
		refusedAttribute(url, "a", "Text", "x", invalid("The type of message (user) attribute 'a' is invalid. You must use only the following supported type prefixes: Binary, Number, String.")),
		refusedAttribute(url, "AWS.a", "String", "x", invalid("You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These strings are reserved for internal use.")),
		refusedAttribute(url, "a..b", "String", "x", invalid("Message (user) attribute name must not have successive '.' characters.")),
		refusedAttribute(url, "a", "Number", "x", invalid("Can't cast the value of message (user) attribute 'a' to a number.")),
		refusedAttribute(url, "a", "String", "", invalid("Message (user) attribute 'a' must contain a non-empty value of type 'String'.")),

		{
			"SendMessage",
			members{"QueueUrl": url, "MessageBody": "b", "MessageAttributes": members{"a": members{"DataType": "String", "StringListValues": []any{"x"}}}},
			[]string{"QueueUrl", url, "MessageBody", "b", "MessageAttribute.1.Name", "a", "MessageAttribute.1.Value.DataType", "String", "MessageAttribute.1.Value.StringListValue.1", "x"},
			batch("UnsupportedOperation", "Message attribute list values in SendMessage operation are not supported."),
		},

		refusedBatch("SendMessageBatch", none, noQueue),
		refusedBatch("SendMessageBatch", url, batch("EmptyBatchRequest", "There should be at least one SendMessageBatchRequestEntry in the request.")),
		refusedBatch("SendMessageBatch", url, batch("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent 11."), strings.Fields("1 2 3 4 5 6 7 8 9 10 11")...),
		refusedBatch("SendMessageBatch", url, batch("BatchEntryIdsNotDistinct", "Id id_2 repeated."), "id_1|MessageBody=b", "id_2|MessageBody=b", "id_2|MessageBody=b", "id_1|MessageBody=b"),
		refusedBatch("SendMessageBatch", url, batch("InvalidBatchEntryId", badID), "a|MessageBody=b", "b c|MessageBody=b"),
		refusedBatch("SendMessageBatch", url, batch("BatchRequestTooLong", "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes."), "a|MessageBody="+half, "b|MessageBody="+half+"x"),
	}
}

// receiveRefusals are the refusals of requests that receive, and about what was received.
func receiveRefusals(url, none string) []sqsRefusal {
	return []sqsRefusal{
		{"ReceiveMessage", members{}, nil, missing("QueueUrl")},
		{"ReceiveMessage", members{"QueueUrl": none}, nil, noQueue},
		{"ReceiveMessage", members{"QueueUrl": url, "MaxNumberOfMessages": 0}, nil, invalid("Value 0 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.")},
		{"ReceiveMessage", members{"QueueUrl": url, "MaxNumberOfMessages": 11}, nil, invalid("Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.")},
		{"ReceiveMessage", members{"QueueUrl": url, "WaitTimeSeconds": 21}, nil, invalid("Value 21 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.")},
		{"ReceiveMessage", members{"QueueUrl": url, "VisibilityTimeout": 43201}, nil, invalid("Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200, if provided.")},
		{"ReceiveMessage", members{"QueueUrl": url, "AttributeNames": []any{"Policy", "Colour"}}, []string{"QueueUrl", url, "AttributeName.1", "Policy", "AttributeName.2", "Colour"}, attributeName("Unknown Attribute Colour.")},
		{"ReceiveMessage", members{"QueueUrl": url, "MessageSystemAttributeNames": []any{"Colour"}}, []string{"QueueUrl", url, "MessageSystemAttributeName.1", "Colour"}, attributeName("Unknown Attribute Colour.")},

		{"DeleteMessage", members{"QueueUrl": url}, nil, missing("ReceiptHandle")},
		{"DeleteMessage", members{"QueueUrl": none, "ReceiptHandle": "h"}, nil, noQueue},
		{"DeleteMessage", members{"QueueUrl": url, "ReceiptHandle": "h"}, nil, badHandle},
		refusedBatch("DeleteMessageBatch", none, noQueue),
		refusedBatch("DeleteMessageBatch", url, batch("EmptyBatchRequest", "There should be at least one DeleteMessageBatchRequestEntry in the request.")),
		refusedBatch("DeleteMessageBatch", url, batch("BatchEntryIdsNotDistinct", "Id a repeated."), "a|ReceiptHandle=h", "a|ReceiptHandle=h"),
		refusedBatch("DeleteMessageBatch", url, batch("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent 11."), strings.Fields("1 2 3 4 5 6 7 8 9 10 11")...),
		refusedBatch("DeleteMessageBatch", url, batch("InvalidBatchEntryId", badID), "a|ReceiptHandle=h", strings.Repeat("b", 81)+"|ReceiptHandle=h"),

		{"ChangeMessageVisibility", members{"QueueUrl": url, "ReceiptHandle": "h"}, nil, missing("VisibilityTimeout")},
		{"ChangeMessageVisibility", members{"QueueUrl": none, "ReceiptHandle": "h", "VisibilityTimeout": 1}, nil, noQueue},
		{"ChangeMessageVisibility", members{"QueueUrl": url, "ReceiptHandle": "h", "VisibilityTimeout": 43201}, nil, invalid("Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200, if provided.")},
		{"ChangeMessageVisibility", members{"QueueUrl": url, "ReceiptHandle": "h", "VisibilityTimeout": 1}, nil, badHandle},

		refusedBatch("ChangeMessageVisibilityBatch", none, noQueue),
		refusedBatch("ChangeMessageVisibilityBatch", url, batch("EmptyBatchRequest", "There should be at least one ChangeMessageVisibilityBatchRequestEntry in the request.")),
		refusedBatch("ChangeMessageVisibilityBatch", url, batch("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent 11."), strings.Fields("1 2 3 4 5 6 7 8 9 10 11")...),
		refusedBatch("ChangeMessageVisibilityBatch", url, batch("BatchEntryIdsNotDistinct", "Id a repeated."), "a|ReceiptHandle=h", "a|ReceiptHandle=h"),
		refusedBatch("ChangeMessageVisibilityBatch", url, batch("InvalidBatchEntryId", badID), "a b|ReceiptHandle=h"),
	}
}

// Every refusal looks as AWS's in both protocols, and leaves everything as it
// was.
func TestErrors(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q", "VisibilityTimeout", "45")
	none := endpoint + "/000000000000/none"
	send(t, c, url, "a message")
	dead := createQueue(t, c, "dead")
	source := createQueue(t, c, "source", "RedrivePolicy", redriveTo("dead"))
	before := attributesOf(t, c, url)

	for _, tt := range slices.Concat(
		queueRefusals(url, none), tagRefusals(url, none), permissionRefusals(url, none), moveTaskRefusals(),
		sendRefusals(url, none), receiveRefusals(url, none),
	) {
		t.Run(tt.operation+"/"+tt.want.Code, func(t *testing.T) {
			body, err := json.Marshal(tt.json)
			if err != nil {
				t.Fatal(err)
			}
			wantJSONError(t, callJSON(t, endpoint, tt.operation, string(body)), tt.want)
			query := tt.query
			if query == nil {
				query = scalars(t, tt.json)
			}
			wantXMLError(t, callQuery(t, endpoint, tt.operation, query...), tt.want)
		})
	}

	equal(t, "the queue after all that", before, attributesOf(t, c, url))
	equal(t, "the queues after all that", []string{dead, url, source}, must(c.ListQueues(t.Context(), &sqs.ListQueuesInput{}))(t).QueueUrls)
	equal(t, "the messages after all that", []string{"a message"}, bodies(receive(t, c, url, 10)))
}

// scalars are the parameters of Query for members that are strings and numbers.
func scalars(t *testing.T, of members) (query []string) {
	t.Helper()
	for name, v := range of {
		switch v := v.(type) {
		case string:
			query = append(query, name, v)
		case int:
			query = append(query, name, strconv.Itoa(v))
		default:
			t.Fatalf("%s is no scalar", name)
		}
	}
	return query
}

func wantJSONError(t *testing.T, r response, want failure) {
	t.Helper()
	var body struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
		t.Fatalf("JSON: %d %s: %v", r.Status, r.Body, err)
	}
	got := failure{Type: body.Type, Status: r.Status, Text: body.Message, QueryText: want.QueryText}
	code, fault, _ := strings.Cut(r.Header.Get("x-amzn-query-error"), ";")
	got.Code = code
	if diff := cmp.Diff(want, got); diff != "" || fault != "Sender" {
		t.Errorf("JSON, fault %q (-want +got):\n%s", fault, diff)
	}
	if kind := r.Header.Get("Content-Type"); kind != "application/x-amz-json-1.0" || !uuidForm.MatchString(r.Header.Get("x-amzn-RequestId")) {
		t.Errorf("JSON: headers %v", r.Header)
	}
}

func wantXMLError(t *testing.T, r response, want failure) {
	t.Helper()
	message := want.Text
	if want.QueryText != "" {
		message = want.QueryText
	}
	id := r.Header.Get("x-amzn-RequestId")
	// Whichever way quotes are escaped, they read the same.
	wantBody := `<?xml version="1.0"?><ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type><Code>` +
		want.Code + `</Code><Message>` + message + `</Message><Detail/></Error><RequestId>` + id + `</RequestId></ErrorResponse>`
	if diff := cmp.Diff(wantBody, html.UnescapeString(r.Body)); diff != "" || r.Status != want.Status {
		t.Errorf("XML, status %d, want %d (-want +got):\n%s", r.Status, want.Status, diff)
	}
	if kind := r.Header.Get("Content-Type"); kind != "text/xml" || !uuidForm.MatchString(id) {
		t.Errorf("XML: headers %v", r.Header)
	}
}

// Requests that are no request of SQS at all.
func TestMalformedRequests(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	url := createQueue(t, c, "q")
	for name, tt := range map[string]struct {
		r      response
		status int
		part   string
	}{
		"unknown action, JSON":  {callJSON(t, endpoint, "Dance", "{}"), 400, "UnknownOperationException"},
		"unknown action, Query": {callQuery(t, endpoint, "Dance"), 400, "<Code>InvalidAction</Code>"},
		"no JSON":               {callJSON(t, endpoint, "SendMessage", "{"), 400, "SerializationException"},
		"JSON of another type":  {callJSON(t, endpoint, "SendMessage", `{"QueueUrl":7}`), 400, "SerializationException"},
		"a list of numbers":     {callJSON(t, endpoint, "ReceiveMessage", `{"QueueUrl":"`+url+`","AttributeNames":[1]}`), 400, "SerializationException"},
		"a word for a number":   {callQuery(t, endpoint, "ReceiveMessage", "QueueUrl", url, "MaxNumberOfMessages", "ten"), 400, "<Type>Sender</Type>"},
		"over 8 MiB":            {callJSON(t, endpoint, "SendMessage", `{"QueueUrl":"`+url+`","MessageBody":"`+strings.Repeat("x", 8<<20)+`"}`), http.StatusRequestEntityTooLarge, ""},
	} {
		if tt.r.Status != tt.status || !strings.Contains(tt.r.Body, tt.part) {
			t.Errorf("%s: %d %s; want %d with %s", name, tt.r.Status, tt.r.Body, tt.status, tt.part)
		}
	}
	equal(t, "counts", [3]string{"0", "0", "0"}, counts(t, c, url))
}

// The SDK makes its own error types of ours.
func TestErrorsThroughTheSDK(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	_, err := c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("none")})
	if gone, ok := errors.AsType[*types.QueueDoesNotExist](err); !ok || gone.ErrorMessage() != "The specified queue does not exist." {
		t.Errorf("GetQueueUrl: %v", err)
	}
	url := createQueue(t, c, "q", "DelaySeconds", "1")
	_, err = c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q"), Attributes: map[string]string{"DelaySeconds": "2"}})
	if _, ok := errors.AsType[*types.QueueNameExists](err); !ok {
		t.Errorf("CreateQueue: %v", err)
	}
	_, err = c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: aws.String("h")})
	if _, ok := errors.AsType[*types.ReceiptHandleIsInvalid](err); !ok {
		t.Errorf("DeleteMessage: %v", err)
	}
	_, err = c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("b"), DelaySeconds: 901})
	if e, ok := errors.AsType[smithy.APIError](err); !ok || e.ErrorCode() != "InvalidParameterValue" || e.ErrorFault() != smithy.FaultClient && e.ErrorFault() != smithy.FaultUnknown {
		t.Errorf("SendMessage: %v", err)
	}
}

package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// schema is the version of OpenTelemetry's semantic conventions that defines the names of
// attributes.
const schema = semconv.SchemaURL

// resourceOf describes the server; it is sent with all spans.
func resourceOf(version string) *resource.Resource {
	own := resource.NewWithAttributes(schema, semconv.ServiceName("godwit"), semconv.ServiceVersion(version))
	// The environment's override ours. Invalid ones are ignored.
	given, _ := resource.New(nowhere, resource.WithFromEnv(), resource.WithTelemetrySDK())
	merged, err := resource.Merge(own, given)
	if err != nil {
		return own
	}
	return merged
}

// Messaging systems.
var (
	SNS = semconv.MessagingSystemAWSSNS
	SQS = semconv.MessagingSystemAWSSQS
)

// Operations on messages.
var (
	Sends     = semconv.MessagingOperationTypeSend
	Receives  = semconv.MessagingOperationTypeReceive
	Settles   = semconv.MessagingOperationTypeSettle
	Processes = semconv.MessagingOperationTypeProcess
)

// Operation is the messaging system's name of the operation.
func Operation(name string) Attribute { return semconv.MessagingOperationName(name) }

// Destination is the name of a queue or topic.
func Destination(name string) Attribute { return semconv.MessagingDestinationName(name) }

// Subscription is the ARN of a subscription.
func Subscription(arn string) Attribute {
	return semconv.MessagingDestinationSubscriptionName(arn)
}

// MessageID is the id of the single message of a span.
func MessageID(id string) Attribute { return semconv.MessagingMessageID(id) }

// Messages is the number of messages of a span, if there may be several.
func Messages(n int) Attribute { return semconv.MessagingBatchMessageCount(n) }

// BodySize is the size of the message's body, in bytes.
func BodySize(n int) Attribute { return semconv.MessagingMessageBodySize(n) }

// Method is the HTTP method of a request.
func Method(name string) Attribute {
	return attribute.String(string(semconv.HTTPRequestMethodKey), name)
}

// Status is the HTTP status of an answer.
func Status(n int) Attribute { return semconv.HTTPResponseStatusCode(n) }

// Call names the operation of an AWS API, as sqs/SendMessage.
func Call(name string) Attribute { return semconv.RPCMethod(name) }

// AWS is the protocol family of such an operation.
var AWS = attribute.String(string(semconv.RPCSystemNameKey), "aws-api")

// RequestID is the caller's id of such an operation.
func RequestID(id string) Attribute { return semconv.AWSRequestID(id) }

// Host is the server of a request, as host and port; never more of an address.
func Host(name string) Attribute { return semconv.ServerAddress(name) }

// ErrorType is the kind of an error, in a word.
func ErrorType(word string) Attribute { return semconv.ErrorTypeKey.String(word) }

// Function is the name of a function that is run, and Region its region.
func Function(name string) Attribute { return semconv.FaaSInvokedName(name) }

// Region is the region of a function that is run.
func Region(name string) Attribute { return semconv.FaaSInvokedRegion(name) }

// Invocation is the id of an invocation of a function.
func Invocation(id string) Attribute { return semconv.FaaSInvocationID(id) }

// Account is the AWS account of a span.
func Account(number string) Attribute { return semconv.CloudAccountID(number) }

// Attempt counts the attempts at a delivery or an event, from 1.
func Attempt(n int) Attribute { return attribute.Int("godwit.attempt", n) }

// Outcome is the result of an attempt or a transfer.
func Outcome(word string) Attribute { return attribute.String("godwit.outcome", word) }

// DeadLetters is the name of the dead-letter queue of a transfer.
func DeadLetters(queue string) Attribute { return attribute.String("godwit.dead_letter_queue", queue) }

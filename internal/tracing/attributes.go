package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// schema is the version of OpenTelemetry's semantic conventions that the names of
// attributes are of.
const schema = semconv.SchemaURL

// resourceOf describes the server; it is sent with all spans.
func resourceOf(version string) *resource.Resource {
	own := resource.NewWithAttributes(schema, semconv.ServiceName("godwit"), semconv.ServiceVersion(version))
	// The environment's go before ours. What cannot be read of it is left out.
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

// What is done with messages.
var (
	Sends     = semconv.MessagingOperationTypeSend
	Receives  = semconv.MessagingOperationTypeReceive
	Settles   = semconv.MessagingOperationTypeSettle
	Processes = semconv.MessagingOperationTypeProcess
)

// Operation names what is done as the messaging system does.
func Operation(name string) Attribute { return semconv.MessagingOperationName(name) }

// Destination is the name of a queue or topic.
func Destination(name string) Attribute { return semconv.MessagingDestinationName(name) }

// Subscription is the ARN of a subscription.
func Subscription(arn string) Attribute {
	return semconv.MessagingDestinationSubscriptionName(arn)
}

// MessageID is the id of the one message that a span is about.
func MessageID(id string) Attribute { return semconv.MessagingMessageID(id) }

// Messages is how many messages a span is about, where there may be several.
func Messages(n int) Attribute { return semconv.MessagingBatchMessageCount(n) }

// BodySize is the size of the message's body, in bytes.
func BodySize(n int) Attribute { return semconv.MessagingMessageBodySize(n) }

// Method is a request's method of HTTP, and Status what it was answered.
func Method(name string) Attribute {
	return attribute.String(string(semconv.HTTPRequestMethodKey), name)
}

// Status is the status of an answer, of HTTP.
func Status(n int) Attribute { return semconv.HTTPResponseStatusCode(n) }

// Call names the operation of an AWS API, as sqs/SendMessage.
func Call(name string) Attribute { return semconv.RPCMethod(name) }

// AWS is the protocol family of such an operation.
var AWS = attribute.String(string(semconv.RPCSystemNameKey), "aws-api")

// RequestID is what the caller of such an operation knows it by.
func RequestID(id string) Attribute { return semconv.AWSRequestID(id) }

// Host is who is asked, as host and port; never more of an address.
func Host(name string) Attribute { return semconv.ServerAddress(name) }

// ErrorType says in a word how something failed.
func ErrorType(word string) Attribute { return semconv.ErrorTypeKey.String(word) }

// Function is the name of a function that is run, and Region where.
func Function(name string) Attribute { return semconv.FaaSInvokedName(name) }

// Region is where a function is run.
func Region(name string) Attribute { return semconv.FaaSInvokedRegion(name) }

// Invocation is the id of a run of a function.
func Invocation(id string) Attribute { return semconv.FaaSInvocationID(id) }

// Account is the AWS account that a span is about.
func Account(number string) Attribute { return semconv.CloudAccountID(number) }

// Attempt counts the attempts at a delivery or an event, from 1.
func Attempt(n int) Attribute { return attribute.Int("godwit.attempt", n) }

// Outcome is what an attempt or a hand-over came to.
func Outcome(word string) Attribute { return attribute.String("godwit.outcome", word) }

// DeadLetters is the name of the queue that something is handed over to.
func DeadLetters(queue string) Attribute { return attribute.String("godwit.dead_letter_queue", queue) }

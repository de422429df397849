// Package sqs answers the API of Amazon SQS.
package sqs

import "godwit.dev/godwit/internal/api"

// The shapes of the operations. Fields are AWS's members. The tag `wire` has a member's name
// in the Query protocol's XML and in its JSON, where these differ, and marks required
// members. In inputs nil means absent; in outputs nil and the empty string are omitted.

// CreateQueueInput is the request of CreateQueue.
type CreateQueueInput struct {
	QueueName  *string           `wire:"required"`
	Attributes map[string]string `wire:"name=Attribute,flat,key=Name,value=Value"`
	Tags       map[string]string `json:"tags" wire:"name=Tag,also=Tags,flat,key=Key,value=Value"`
}

// CreateQueueOutput is the answer of CreateQueue.
type CreateQueueOutput struct {
	QueueUrl string
}

// GetQueueUrlInput is the request of GetQueueUrl.
type GetQueueUrlInput struct {
	QueueName              string `wire:"required"`
	QueueOwnerAWSAccountId *string
}

// GetQueueUrlOutput is the answer of GetQueueUrl.
type GetQueueUrlOutput struct {
	QueueUrl string
}

// ListQueuesInput is the request of ListQueues.
type ListQueuesInput struct {
	QueueNamePrefix *string
	NextToken       *string
	MaxResults      *int
}

// ListQueuesOutput is the answer of ListQueues.
type ListQueuesOutput struct {
	QueueUrls []string `wire:"name=QueueUrl,flat,old=queueUrls"`
	NextToken string
}

// DeleteQueueInput is the request of DeleteQueue.
type DeleteQueueInput struct {
	QueueUrl string `wire:"required"`
}

// DeleteQueueOutput is the empty answer of DeleteQueue.
type DeleteQueueOutput struct{}

// PurgeQueueInput is the request of PurgeQueue.
type PurgeQueueInput struct {
	QueueUrl string `wire:"required"`
}

// PurgeQueueOutput is the empty answer of PurgeQueue.
type PurgeQueueOutput struct{}

// GetQueueAttributesInput is the request of GetQueueAttributes.
type GetQueueAttributesInput struct {
	QueueUrl       string   `wire:"required"`
	AttributeNames []string `wire:"name=AttributeName,flat"`
}

// GetQueueAttributesOutput is the answer of GetQueueAttributes.
type GetQueueAttributesOutput struct {
	Attributes map[string]string `wire:"name=Attribute,flat,key=Name,value=Value"`
}

// SetQueueAttributesInput is the request of SetQueueAttributes.
type SetQueueAttributesInput struct {
	QueueUrl   string            `wire:"required"`
	Attributes map[string]string `wire:"name=Attribute,flat,key=Name,value=Value,required"`
}

// SetQueueAttributesOutput is the empty answer of SetQueueAttributes.
type SetQueueAttributesOutput struct{}

// MessageAttributeValue is a user attribute of a message, or, in a send, a system attribute.
// AWS's model has the list values, but the service does not implement them.
type MessageAttributeValue struct {
	StringValue      *string
	BinaryValue      []byte
	StringListValues []string `wire:"name=StringListValue,flat"`
	BinaryListValues [][]byte `wire:"name=BinaryListValue,flat"`
	DataType         string
}

// SendMessageInput is the request of SendMessage.
type SendMessageInput struct {
	QueueUrl                string `wire:"required"`
	MessageBody             string `wire:"required"`
	DelaySeconds            *int
	MessageAttributes       map[string]MessageAttributeValue `wire:"name=MessageAttribute,flat,key=Name,value=Value"`
	MessageSystemAttributes map[string]MessageAttributeValue `wire:"name=MessageSystemAttribute,flat,key=Name,value=Value"`
	MessageDeduplicationId  *string
	MessageGroupId          *string
}

// SendMessageOutput is the answer of SendMessage.
type SendMessageOutput struct {
	MD5OfMessageBody             string
	MD5OfMessageAttributes       string
	MD5OfMessageSystemAttributes string
	MessageId                    string
	SequenceNumber               string
}

// SendMessageBatchInput is the request of SendMessageBatch.
type SendMessageBatchInput struct {
	QueueUrl string                         `wire:"required"`
	Entries  []SendMessageBatchRequestEntry `wire:"name=SendMessageBatchRequestEntry,flat"`
}

// SendMessageBatchRequestEntry is one message of a SendMessageBatch.
type SendMessageBatchRequestEntry struct {
	Id                      string
	MessageBody             string
	DelaySeconds            *int
	MessageAttributes       map[string]MessageAttributeValue `wire:"name=MessageAttribute,flat,key=Name,value=Value"`
	MessageSystemAttributes map[string]MessageAttributeValue `wire:"name=MessageSystemAttribute,flat,key=Name,value=Value"`
	MessageDeduplicationId  *string
	MessageGroupId          *string
}

// SendMessageBatchOutput is the answer of SendMessageBatch.
type SendMessageBatchOutput struct {
	Successful []SendMessageBatchResultEntry `wire:"name=SendMessageBatchResultEntry,flat"`
	Failed     []BatchResultErrorEntry       `wire:"name=BatchResultErrorEntry,flat"`
}

// SendMessageBatchResultEntry is one accepted message of a SendMessageBatch.
type SendMessageBatchResultEntry struct {
	Id                           string
	MessageId                    string
	MD5OfMessageBody             string
	MD5OfMessageAttributes       string
	MD5OfMessageSystemAttributes string
	SequenceNumber               string
}

// BatchResultErrorEntry is one failed entry of any batch.
type BatchResultErrorEntry struct {
	Id          string
	SenderFault bool
	Code        string
	Message     string
}

// ReceiveMessageInput is the request of ReceiveMessage.
type ReceiveMessageInput struct {
	QueueUrl                    string   `wire:"required"`
	AttributeNames              []string `wire:"name=AttributeName,flat"`
	MessageSystemAttributeNames []string `wire:"name=MessageSystemAttributeName,flat"`
	MessageAttributeNames       []string `wire:"name=MessageAttributeName,flat"`
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
	ReceiveRequestAttemptId     *string
}

// ReceiveMessageOutput is the answer of ReceiveMessage.
type ReceiveMessageOutput struct {
	Messages []Message `wire:"name=Message,flat,old=messages"`
}

// Message is a received message.
type Message struct {
	MessageId              string
	ReceiptHandle          string
	MD5OfBody              string
	Body                   string
	Attributes             api.Pairs `wire:"name=Attribute,flat,key=Name,value=Value"`
	MD5OfMessageAttributes string
	MessageAttributes      map[string]MessageAttributeValue `wire:"name=MessageAttribute,flat,key=Name,value=Value"`
}

// DeleteMessageInput is the request of DeleteMessage.
type DeleteMessageInput struct {
	QueueUrl      string `wire:"required"`
	ReceiptHandle string `wire:"required"`
}

// DeleteMessageOutput is the empty answer of DeleteMessage.
type DeleteMessageOutput struct{}

// DeleteMessageBatchInput is the request of DeleteMessageBatch.
type DeleteMessageBatchInput struct {
	QueueUrl string                           `wire:"required"`
	Entries  []DeleteMessageBatchRequestEntry `wire:"name=DeleteMessageBatchRequestEntry,flat"`
}

// DeleteMessageBatchRequestEntry is one message of a DeleteMessageBatch.
type DeleteMessageBatchRequestEntry struct {
	Id            string
	ReceiptHandle string
}

// DeleteMessageBatchOutput is the answer of DeleteMessageBatch.
type DeleteMessageBatchOutput struct {
	Successful []DeleteMessageBatchResultEntry `wire:"name=DeleteMessageBatchResultEntry,flat"`
	Failed     []BatchResultErrorEntry         `wire:"name=BatchResultErrorEntry,flat"`
}

// DeleteMessageBatchResultEntry is one deleted message of a DeleteMessageBatch.
type DeleteMessageBatchResultEntry struct {
	Id string
}

// ChangeMessageVisibilityInput is the request of ChangeMessageVisibility.
type ChangeMessageVisibilityInput struct {
	QueueUrl          string `wire:"required"`
	ReceiptHandle     string `wire:"required"`
	VisibilityTimeout *int   `wire:"required"`
}

// ChangeMessageVisibilityOutput is the empty answer of ChangeMessageVisibility.
type ChangeMessageVisibilityOutput struct{}

// ChangeMessageVisibilityBatchInput is the request of
// ChangeMessageVisibilityBatch.
type ChangeMessageVisibilityBatchInput struct {
	QueueUrl string                                     `wire:"required"`
	Entries  []ChangeMessageVisibilityBatchRequestEntry `wire:"name=ChangeMessageVisibilityBatchRequestEntry,flat"`
}

// ChangeMessageVisibilityBatchRequestEntry is one message of a
// ChangeMessageVisibilityBatch.
type ChangeMessageVisibilityBatchRequestEntry struct {
	Id                string
	ReceiptHandle     string
	VisibilityTimeout *int
}

// ChangeMessageVisibilityBatchOutput is the answer of
// ChangeMessageVisibilityBatch.
type ChangeMessageVisibilityBatchOutput struct {
	Successful []ChangeMessageVisibilityBatchResultEntry `wire:"name=ChangeMessageVisibilityBatchResultEntry,flat"`
	Failed     []BatchResultErrorEntry                   `wire:"name=BatchResultErrorEntry,flat"`
}

// ChangeMessageVisibilityBatchResultEntry is one changed message of a
// ChangeMessageVisibilityBatch.
type ChangeMessageVisibilityBatchResultEntry struct {
	Id string
}

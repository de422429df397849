// Package sns answers the API of Amazon SNS.
package sns

// The shapes of the operations. Fields are AWS's members. The tag `wire` has a member's name
// in the Query protocol where that differs, and marks required members. In inputs nil means
// absent; in outputs nil and the empty string are omitted.

// CreateTopicInput is the request of CreateTopic.
type CreateTopicInput struct {
	Name                 *string `wire:"required"`
	Attributes           map[string]string
	Tags                 []Tag
	DataProtectionPolicy *string
}

// Tag is a tag of a topic.
type Tag struct {
	Key   string
	Value *string // never omitted in answers, as it may be empty
}

// CreateTopicOutput is the answer of CreateTopic.
type CreateTopicOutput struct {
	TopicArn string
}

// DeleteTopicInput is the request of DeleteTopic.
type DeleteTopicInput struct {
	TopicArn string `wire:"required"`
}

// DeleteTopicOutput is the empty answer of DeleteTopic.
type DeleteTopicOutput struct{}

// ListTopicsInput is the request of ListTopics.
type ListTopicsInput struct {
	NextToken *string
}

// ListTopicsOutput is the answer of ListTopics.
type ListTopicsOutput struct {
	Topics    []Topic
	NextToken string
}

// Topic is one topic of a list.
type Topic struct {
	TopicArn string
}

// GetTopicAttributesInput is the request of GetTopicAttributes.
type GetTopicAttributesInput struct {
	TopicArn string `wire:"required"`
}

// GetTopicAttributesOutput is the answer of GetTopicAttributes.
type GetTopicAttributesOutput struct {
	Attributes map[string]string
}

// SetTopicAttributesInput is the request of SetTopicAttributes.
type SetTopicAttributesInput struct {
	TopicArn       string `wire:"required"`
	AttributeName  string `wire:"required"`
	AttributeValue *string
}

// SetTopicAttributesOutput is the empty answer of SetTopicAttributes.
type SetTopicAttributesOutput struct{}

// AddPermissionInput is the request of AddPermission.
type AddPermissionInput struct {
	TopicArn     string   `wire:"required"`
	Label        string   `wire:"required"`
	AWSAccountId []string `wire:"required"`
	ActionName   []string `wire:"required"`
}

// AddPermissionOutput is the empty answer of AddPermission.
type AddPermissionOutput struct{}

// RemovePermissionInput is the request of RemovePermission.
type RemovePermissionInput struct {
	TopicArn string `wire:"required"`
	Label    string `wire:"required"`
}

// RemovePermissionOutput is the empty answer of RemovePermission.
type RemovePermissionOutput struct{}

// SubscribeInput is the request of Subscribe.
type SubscribeInput struct {
	TopicArn              string `wire:"required"`
	Protocol              string `wire:"required"`
	Endpoint              *string
	Attributes            map[string]string
	ReturnSubscriptionArn bool
}

// SubscribeOutput is the answer of Subscribe.
type SubscribeOutput struct {
	SubscriptionArn string // or "pending confirmation"
}

// ConfirmSubscriptionInput is the request of ConfirmSubscription.
type ConfirmSubscriptionInput struct {
	TopicArn                  string  `wire:"required"`
	Token                     string  `wire:"required"`
	AuthenticateOnUnsubscribe *string // "true" or "false"
}

// ConfirmSubscriptionOutput is the answer of ConfirmSubscription.
type ConfirmSubscriptionOutput struct {
	SubscriptionArn string
}

// UnsubscribeInput is the request of Unsubscribe.
type UnsubscribeInput struct {
	SubscriptionArn string `wire:"required"`
}

// UnsubscribeOutput is the empty answer of Unsubscribe.
type UnsubscribeOutput struct{}

// ListSubscriptionsInput is the request of ListSubscriptions.
type ListSubscriptionsInput struct {
	NextToken *string
}

// ListSubscriptionsOutput is the answer of ListSubscriptions.
type ListSubscriptionsOutput struct {
	Subscriptions []Subscription
	NextToken     string
}

// Subscription is one subscription of a list.
type Subscription struct {
	SubscriptionArn string // or "PendingConfirmation"
	Owner           string
	Protocol        string
	Endpoint        string
	TopicArn        string
}

// ListSubscriptionsByTopicInput is the request of ListSubscriptionsByTopic.
type ListSubscriptionsByTopicInput struct {
	TopicArn  string `wire:"required"`
	NextToken *string
}

// ListSubscriptionsByTopicOutput is the answer of ListSubscriptionsByTopic.
type ListSubscriptionsByTopicOutput struct {
	Subscriptions []Subscription
	NextToken     string
}

// GetSubscriptionAttributesInput is the request of GetSubscriptionAttributes.
type GetSubscriptionAttributesInput struct {
	SubscriptionArn string `wire:"required"`
}

// GetSubscriptionAttributesOutput is the answer of GetSubscriptionAttributes.
type GetSubscriptionAttributesOutput struct {
	Attributes map[string]string
}

// SetSubscriptionAttributesInput is the request of SetSubscriptionAttributes.
type SetSubscriptionAttributesInput struct {
	SubscriptionArn string `wire:"required"`
	AttributeName   string `wire:"required"`
	AttributeValue  *string
}

// SetSubscriptionAttributesOutput is the empty answer of
// SetSubscriptionAttributes.
type SetSubscriptionAttributesOutput struct{}

// PublishInput is the request of Publish.
type PublishInput struct {
	TopicArn               *string
	TargetArn              *string
	PhoneNumber            *string
	Message                *string // not marked required: AWS misses a target first
	Subject                *string
	MessageStructure       *string
	MessageAttributes      map[string]MessageAttributeValue `wire:"key=Name,value=Value"`
	MessageDeduplicationId *string
	MessageGroupId         *string
}

// MessageAttributeValue is an attribute of a published message.
type MessageAttributeValue struct {
	DataType    *string // see untyped
	StringValue *string
	BinaryValue []byte
}

// PublishOutput is the answer of Publish.
type PublishOutput struct {
	MessageId      string
	SequenceNumber string
}

// PublishBatchInput is the request of PublishBatch.
type PublishBatchInput struct {
	TopicArn                   string `wire:"required"`
	PublishBatchRequestEntries []PublishBatchRequestEntry
}

// PublishBatchRequestEntry is one message of a batch.
type PublishBatchRequestEntry struct {
	Id                     string
	Message                *string
	Subject                *string
	MessageStructure       *string
	MessageAttributes      map[string]MessageAttributeValue `wire:"key=Name,value=Value"`
	MessageDeduplicationId *string
	MessageGroupId         *string
}

// PublishBatchOutput is the answer of PublishBatch.
type PublishBatchOutput struct {
	Successful []PublishBatchResultEntry
	Failed     []BatchResultErrorEntry
}

// PublishBatchResultEntry is one message that was accepted.
type PublishBatchResultEntry struct {
	Id             string
	MessageId      string
	SequenceNumber string
}

// BatchResultErrorEntry is one message that was not accepted.
type BatchResultErrorEntry struct {
	Id          string
	Code        string
	Message     string
	SenderFault bool
}

// TagResourceInput is the request of TagResource.
type TagResourceInput struct {
	ResourceArn string `wire:"required"`
	Tags        []Tag  `wire:"required"`
}

// TagResourceOutput is the empty answer of TagResource.
type TagResourceOutput struct{}

// UntagResourceInput is the request of UntagResource.
type UntagResourceInput struct {
	ResourceArn string   `wire:"required"`
	TagKeys     []string `wire:"required"`
}

// UntagResourceOutput is the empty answer of UntagResource.
type UntagResourceOutput struct{}

// ListTagsForResourceInput is the request of ListTagsForResource.
type ListTagsForResourceInput struct {
	ResourceArn string `wire:"required"`
}

// ListTagsForResourceOutput is the answer of ListTagsForResource.
type ListTagsForResourceOutput struct {
	Tags []Tag
}

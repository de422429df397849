package sqs

// TagQueueInput is the request of TagQueue.
type TagQueueInput struct {
	QueueUrl string            `wire:"required"`
	Tags     map[string]string `wire:"name=Tag,also=Tags,flat,key=Key,value=Value,required"` // the SDK for Java says Tags
}

// TagQueueOutput is the empty answer of TagQueue.
type TagQueueOutput struct{}

// UntagQueueInput is the request of UntagQueue.
type UntagQueueInput struct {
	QueueUrl string   `wire:"required"`
	TagKeys  []string `wire:"name=TagKey,also=TagKeys,flat,required"`
}

// UntagQueueOutput is the empty answer of UntagQueue.
type UntagQueueOutput struct{}

// ListQueueTagsInput is the request of ListQueueTags.
type ListQueueTagsInput struct {
	QueueUrl string `wire:"required"`
}

// ListQueueTagsOutput is the answer of ListQueueTags.
type ListQueueTagsOutput struct {
	Tags map[string]string `wire:"name=Tag,flat,key=Key,value=Value"`
}

// AddPermissionInput is the request of AddPermission.
type AddPermissionInput struct {
	QueueUrl      string   `wire:"required"`
	Label         string   `wire:"required"`
	AWSAccountIds []string `wire:"name=AWSAccountId,flat,required"`
	Actions       []string `wire:"name=ActionName,flat,required"`
}

// AddPermissionOutput is the empty answer of AddPermission.
type AddPermissionOutput struct{}

// RemovePermissionInput is the request of RemovePermission.
type RemovePermissionInput struct {
	QueueUrl string `wire:"required"`
	Label    string `wire:"required"`
}

// RemovePermissionOutput is the empty answer of RemovePermission.
type RemovePermissionOutput struct{}

// ListDeadLetterSourceQueuesInput is the request of ListDeadLetterSourceQueues.
type ListDeadLetterSourceQueuesInput struct {
	QueueUrl   string `wire:"required"`
	NextToken  *string
	MaxResults *int
}

// ListDeadLetterSourceQueuesOutput is the answer of ListDeadLetterSourceQueues.
type ListDeadLetterSourceQueuesOutput struct {
	QueueUrls []string `json:"queueUrls" wire:"name=QueueUrl,flat"`
	NextToken string
}

// StartMessageMoveTaskInput is the request of StartMessageMoveTask.
type StartMessageMoveTaskInput struct {
	SourceArn                    string `wire:"required"`
	DestinationArn               *string
	MaxNumberOfMessagesPerSecond *int
}

// StartMessageMoveTaskOutput is the answer of StartMessageMoveTask.
type StartMessageMoveTaskOutput struct {
	TaskHandle string
}

// ListMessageMoveTasksInput is the request of ListMessageMoveTasks.
type ListMessageMoveTasksInput struct {
	SourceArn  string `wire:"required"`
	MaxResults *int
}

// ListMessageMoveTasksOutput is the answer of ListMessageMoveTasks.
type ListMessageMoveTasksOutput struct {
	Results []ListMessageMoveTasksResultEntry `wire:"name=ListMessageMoveTasksResultEntry,flat"`
}

// ListMessageMoveTasksResultEntry is one task of a ListMessageMoveTasks.
type ListMessageMoveTasksResultEntry struct {
	TaskHandle                        string
	Status                            string
	SourceArn                         string
	DestinationArn                    string
	MaxNumberOfMessagesPerSecond      *int
	ApproximateNumberOfMessagesMoved  int
	ApproximateNumberOfMessagesToMove *int
	FailureReason                     string
	StartedTimestamp                  int
}

// CancelMessageMoveTaskInput is the request of CancelMessageMoveTask.
type CancelMessageMoveTaskInput struct {
	TaskHandle string `wire:"required"`
}

// CancelMessageMoveTaskOutput is the answer of CancelMessageMoveTask.
type CancelMessageMoveTaskOutput struct {
	ApproximateNumberOfMessagesMoved int
}

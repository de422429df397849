package refusal

import (
	"godwit.dev/godwit/internal/ingest"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/jobs"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/queues/queuepolicy"
	"godwit.dev/godwit/internal/shard/sources"
	"godwit.dev/godwit/internal/shard/transfer"
)

const (
	badRedrive = "Value %s for parameter RedrivePolicy is invalid. Reason: "
	badAllow   = "Value %s for parameter RedriveAllowPolicy is invalid. Reason: Amazon SQS can't create the redrive allow policy"
)

var sqs = sentences{
	queues.ErrNoQueue:         "The specified queue does not exist.",
	queues.ErrNameTaken:       "A queue already exists with the same name and a different value for attribute %s",
	queues.ErrDeletedRecently: "You must wait 60 seconds after deleting a queue before you can create another with the same name.",
	queues.ErrPurging:         "Only one PurgeQueue operation on %s is allowed every 60 seconds.",
	queues.ErrTooManyTags:     "Too many tags added for queue %s.",
	queuepolicy.ErrLabelTaken: "Value %s for parameter Label is invalid. Reason: Already exists.",
	queuepolicy.ErrNoLabel:    "Value %s for parameter Label is invalid. Reason: can't find label.",
	queuepolicy.ErrTooMany:    "%d Statements were found, maximum allowed is %d.",
	queues.ErrForbidden:       "The queue's policy does not let the topic send to it.",
	queues.ErrInFlight:        "Too many messages in flight: at most 120,000 can be received and not yet deleted.",
	queues.ErrInClear:         "The queue has just begun to encrypt its messages. Try again.",
	queues.ErrHandle:          "The input receipt handle \"%s\" is not a valid receipt handle.",
	queues.ErrHandleExpired:   "Value %s for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.",
	queues.ErrMessageGone:     "Value %s for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.",
	queues.ErrNotInFlight:     "",
	queues.ErrVisibility:      "Value %d for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]",
	queues.ErrInFlightAgain:   "Too many messages in flight.",
	backlog.ErrTooLong:        "The message is longer than the queue's %d bytes.",

	transfer.ErrMoveResource:   "The resource that you specified for the %s parameter doesn't exist.",
	transfer.ErrMoveRunning:    "There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
	transfer.ErrMoveSource:     "Source queue must be configured as a Dead Letter Queue.",
	transfer.ErrMoveToItself:   "Source queue arn and destination queue arn cannot be the same.",
	jobs.ErrNone:               "There is no such job, or not any more.",
	jobs.ErrBusy:               "A job is running on the resource: wait for it, or cancel it.",
	jobs.ErrTooMany:            "As many jobs are running as may at once.",
	jobs.ErrEnded:              "The job has ended.",
	ingest.ErrInvalid:          "%s: %s",
	sources.ErrNone:            "There is no such source.",
	sources.ErrTooMany:         "There are as many sources as there may be: %d.",
	transfer.ErrPicked:         "The message is in flight.",
	transfer.ErrNoMessage:      "The message does not exist any more.",
	transfer.ErrQueueMadeAgain: "The message does not exist any more.",
	transfer.ErrNoOrigin:       "The message does not tell which queue or subscription it came from.",
	transfer.ErrMoveType:       "The source queue and destination queue must be of the same queue type.",
	transfer.ErrNoTask:         "Task does not exist.",

	attribute.ErrUnknown:           "Unknown Attribute %s.",
	attribute.ErrFIFOOnly:          "You can specify the %s only when FifoQueue is set to true.",
	attribute.ErrValue:             "Invalid value for the parameter %s.",
	attribute.ErrKind:              "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.",
	attribute.ErrTwoEncryptions:    "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.",
	attribute.ErrLimitPerGroup:     "The perMessageGroupId value is allowed only when the value for DeduplicationScope is messageGroup.",
	attribute.ErrPolicyTooLong:     "Submitted policy is over max allowed size.",
	attribute.ErrTooManyStatements: "%d statements were found in the submitted policy, max allowed is %d",
	attribute.ErrTooManyActions:    "%d actions were found in a statement from the submitted policy, max allowed is %d",
	attribute.ErrTooManyPrincipals: "%d Principals were found, maximum allowed is %d.",
	attribute.ErrRedriveDocument:   badRedrive + "Redrive policy is not a valid JSON map.",
	attribute.ErrRedriveMember:     badRedrive + "Only following attributes are supported: [deadLetterTargetArn, maxReceiveCount].",
	attribute.ErrRedriveLacks:      badRedrive + "Redrive policy does not contain mandatory attribute: %s.",
	attribute.ErrRedriveTarget:     badRedrive + "Invalid value for deadLetterTargetArn.",
	attribute.ErrRedriveService:    badRedrive + "Only SQS queues are valid resources for deadLetterTargetArn.",
	attribute.ErrRedriveCount:      badRedrive + "Invalid value for maxReceiveCount: %s, valid values are from 1 to %d both inclusive.",
	attribute.ErrRedriveAccount:    badRedrive + "Dead-letter target owner should be same as the source.",
	attribute.ErrRedriveRegion:     badRedrive + "Dead-letter target must be in same region as the source.",
	attribute.ErrRedriveType:       badRedrive + "Dead-letter queue must be same type of queue as the source.",
	attribute.ErrAllowDocument:     badAllow + ", as it’s in an unsupported format.",
	attribute.ErrAllowSources:      badAllow + ". To specify one or more source queue ARNs, you must set redrivePermission to byQueue.",
	attribute.ErrAllowNoSources:    badAllow + ". When you specify the byQueue permission type, you must also specify one or more sourceQueueArns values.",
	attribute.ErrAllowTooMany:      badAllow + ". You can specify up to %d source queue ARNs.",
	attribute.ErrAllowSource:       badAllow + ". A sourceQueueArns value is not the ARN of a queue.",
}

package refusal

import "godwit.dev/godwit/internal/queue/attribute"

const (
	badRedrive = "Value %s for parameter RedrivePolicy is invalid. Reason: "
	badAllow   = "Value %s for parameter RedriveAllowPolicy is invalid. Reason: Amazon SQS can't create the redrive allow policy"
)

var sqs = sentences{
	attribute.ErrUnknown:           "Unknown Attribute %s.",
	attribute.ErrFIFOOnly:          "You can specify the %s only when FifoQueue is set to true.",
	attribute.ErrValue:             "Invalid value for the parameter %s.",
	attribute.ErrTwoEncryptions:    "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.",
	attribute.ErrLimitPerGroup:     "The perMessageGroupId value is allowed only when the value for DeduplicationScope is messageGroup.",
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

package wire

import (
	"net/http"

	"godwit.dev/godwit/internal/fault"
)

const sqsType = "com.amazonaws.sqs#"

// sqsErrors are the faults of SQS. Codes: the service's Query model; types: its
// JSON model. The kinds of other services cannot happen here and stand for the
// next best that SQS has.
var sqsErrors = with(map[fault.Kind]errorShape{
	fault.Internal:         {Type: coral + "InternalFailure", Code: "InternalError", Status: http.StatusInternalServerError, Server: true, Text: internalText},
	fault.MissingParameter: {Type: coral + "MissingRequiredParameterException", Code: "MissingParameter", Status: http.StatusBadRequest, Text: "A required parameter is missing."},
	fault.InvalidParameter: {Type: coral + "InvalidParameterValueException", Code: "InvalidParameterValue", Status: http.StatusBadRequest, Text: "One or more parameters are invalid."},
	fault.AccessDenied:     {Type: coral + "AccessDeniedException", Code: "AccessDenied", Status: http.StatusForbidden, Text: "Access to the resource is denied."},
	fault.Throttled:        {Type: sqsType + "RequestThrottled", Code: "RequestThrottled", Status: http.StatusBadRequest, Text: "Request is throttled."},

	fault.QueueDoesNotExist: {
		Type: sqsType + "QueueDoesNotExist", Code: "AWS.SimpleQueueService.NonExistentQueue", Status: http.StatusBadRequest,
		Text:  "The specified queue does not exist.",
		Query: "The specified queue does not exist for this wsdl version.",
	},
	fault.QueueNameExists:        {Type: sqsType + "QueueNameExists", Code: "QueueAlreadyExists", Status: http.StatusBadRequest, Text: "A queue already exists with the same name and a different value for an attribute."},
	fault.QueueDeletedRecently:   {Type: sqsType + "QueueDeletedRecently", Code: "AWS.SimpleQueueService.QueueDeletedRecently", Status: http.StatusBadRequest, Text: "You must wait 60 seconds after deleting a queue before you can create another with the same name."},
	fault.PurgeQueueInProgress:   {Type: sqsType + "PurgeQueueInProgress", Code: "AWS.SimpleQueueService.PurgeQueueInProgress", Status: http.StatusForbidden, Text: "Only one PurgeQueue operation is allowed every 60 seconds."},
	fault.InvalidAttributeName:   {Type: sqsType + "InvalidAttributeName", Code: "InvalidAttributeName", Status: http.StatusBadRequest, Text: "The specified attribute is not valid."},
	fault.InvalidAttributeValue:  {Type: sqsType + "InvalidAttributeValue", Code: "InvalidAttributeValue", Status: http.StatusBadRequest, Text: "The value of an attribute is not valid."},
	fault.InvalidMessageContents: {Type: sqsType + "InvalidMessageContents", Code: "InvalidMessageContents", Status: http.StatusBadRequest, Text: "The message contains characters outside the allowed set."},
	fault.ReceiptHandleIsInvalid: {Type: sqsType + "ReceiptHandleIsInvalid", Code: "ReceiptHandleIsInvalid", Status: http.StatusBadRequest, Text: "The input receipt handle is invalid."},
	fault.MessageNotInflight:     {Type: sqsType + "MessageNotInflight", Code: "AWS.SimpleQueueService.MessageNotInflight", Status: http.StatusBadRequest, Text: "The specified message isn't in flight."},
	fault.OverLimit:              {Type: sqsType + "OverLimit", Code: "OverLimit", Status: http.StatusForbidden, Text: "A limit has been reached."},
	fault.EmptyBatchRequest:      {Type: sqsType + "EmptyBatchRequest", Code: "AWS.SimpleQueueService.EmptyBatchRequest", Status: http.StatusBadRequest, Text: "The batch request doesn't contain any entries."},
	fault.TooManyEntriesInBatchRequest: {
		Type: sqsType + "TooManyEntriesInBatchRequest", Code: "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", Status: http.StatusBadRequest,
		Text: "The batch request contains more entries than permissible.",
	},
	fault.BatchEntryIdsNotDistinct: {Type: sqsType + "BatchEntryIdsNotDistinct", Code: "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", Status: http.StatusBadRequest, Text: "Two or more batch entries in the request have the same Id."},
	fault.InvalidBatchEntryID: {
		Type: sqsType + "InvalidBatchEntryId", Code: "AWS.SimpleQueueService.InvalidBatchEntryId", Status: http.StatusBadRequest,
		Text: "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.",
	},
	fault.BatchRequestTooLong:  {Type: sqsType + "BatchRequestTooLong", Code: "AWS.SimpleQueueService.BatchRequestTooLong", Status: http.StatusBadRequest, Text: "The length of all the messages put together is more than the limit."},
	fault.UnsupportedOperation: {Type: sqsType + "UnsupportedOperation", Code: "AWS.SimpleQueueService.UnsupportedOperation", Status: http.StatusBadRequest, Text: "The operation is not supported."},
	fault.InvalidAddress:       {Type: sqsType + "InvalidAddress", Code: "InvalidAddress", Status: http.StatusBadRequest, Text: "The specified queue URL is not valid."},
	fault.InvalidSecurity:      {Type: sqsType + "InvalidSecurity", Code: "InvalidSecurity", Status: http.StatusBadRequest, Text: "The request was not made over HTTPS or did not use SigV4 for signing."},
	fault.KMSNotFound:          {Type: sqsType + "KmsNotFound", Code: "KMS.NotFoundException", Status: http.StatusBadRequest, Text: "The key does not exist."},
	fault.KMSAccessDenied:      {Type: sqsType + "KmsAccessDenied", Code: "KMS.AccessDeniedException", Status: http.StatusBadRequest, Text: "The caller does not have the required KMS access."},
	fault.KMSDisabled:          {Type: sqsType + "KmsDisabled", Code: "KMS.DisabledException", Status: http.StatusBadRequest, Text: "The key is disabled."},
	fault.KMSInvalidState:      {Type: sqsType + "KmsInvalidState", Code: "KMS.InvalidStateException", Status: http.StatusBadRequest, Text: "The state of the key forbids it."},
	fault.KMSInvalidKeyUsage:   {Type: sqsType + "KmsInvalidKeyUsage", Code: "KMS.InvalidKeyUsageException", Status: http.StatusBadRequest, Text: "The key is for another use."},
	fault.ResourceNotFound:     {Type: sqsType + "ResourceNotFoundException", Code: "ResourceNotFoundException", Status: http.StatusNotFound, Text: "The specified resource does not exist."},

	fault.NotFound:                    {Type: sqsType + "ResourceNotFoundException", Code: "ResourceNotFoundException", Status: http.StatusNotFound, Text: "The specified resource does not exist."},
	fault.ParameterValueInvalid:       {Type: coral + "InvalidParameterValueException", Code: "InvalidParameterValue", Status: http.StatusBadRequest, Text: "One or more parameters are invalid."},
	fault.SubscriptionLimitExceeded:   {Type: sqsType + "OverLimit", Code: "OverLimit", Status: http.StatusForbidden, Text: "A limit has been reached."},
	fault.TopicLimitExceeded:          {Type: sqsType + "OverLimit", Code: "OverLimit", Status: http.StatusForbidden, Text: "A limit has been reached."},
	fault.FilterPolicyLimitExceeded:   {Type: sqsType + "OverLimit", Code: "OverLimit", Status: http.StatusForbidden, Text: "A limit has been reached."},
	fault.TagLimitExceeded:            {Type: sqsType + "OverLimit", Code: "OverLimit", Status: http.StatusForbidden, Text: "A limit has been reached."},
	fault.InvalidState:                {Type: sqsType + "UnsupportedOperation", Code: "AWS.SimpleQueueService.UnsupportedOperation", Status: http.StatusBadRequest, Text: "The operation is not supported."},
	fault.ReplayLimitExceeded:         {Type: sqsType + "OverLimit", Code: "OverLimit", Status: http.StatusForbidden, Text: "A limit has been reached."},
	fault.PlatformApplicationDisabled: {Type: sqsType + "UnsupportedOperation", Code: "AWS.SimpleQueueService.UnsupportedOperation", Status: http.StatusBadRequest, Text: "The platform application is disabled."},
	fault.EndpointDisabled:            {Type: sqsType + "UnsupportedOperation", Code: "AWS.SimpleQueueService.UnsupportedOperation", Status: http.StatusBadRequest, Text: "The endpoint is disabled."},
})

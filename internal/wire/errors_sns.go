package wire

import (
	"net/http"

	"godwit.dev/godwit/internal/fault"
)

const snsType = "com.amazonaws.sns#"

var snsInvalid = errorShape{Type: snsType + "InvalidParameterException", Code: "InvalidParameter", Status: http.StatusBadRequest, Text: "Invalid parameter"}

// snsErrors are the faults of SNS, with the codes and statuses of its model.
// The kinds of SQS that a topic cannot meet are invalid parameters.
var snsErrors = with(map[fault.Kind]errorShape{
	fault.Internal:         {Type: snsType + "InternalErrorException", Code: "InternalError", Status: http.StatusInternalServerError, Server: true, Text: internalText},
	fault.MissingParameter: {Type: snsType + "ValidationException", Code: "ValidationError", Status: http.StatusBadRequest, Text: "A required parameter is missing."},
	fault.InvalidParameter: snsInvalid,
	fault.AccessDenied:     {Type: snsType + "AuthorizationErrorException", Code: "AuthorizationError", Status: http.StatusForbidden, Text: "Access to the resource is denied."},
	fault.Throttled:        {Type: snsType + "ThrottledException", Code: "Throttled", Status: http.StatusTooManyRequests, Text: "Rate exceeded"},

	fault.NotFound:                  {Type: snsType + "NotFoundException", Code: "NotFound", Status: http.StatusNotFound, Text: "Topic does not exist"},
	fault.ParameterValueInvalid:     {Type: snsType + "InvalidParameterValueException", Code: "ParameterValueInvalid", Status: http.StatusBadRequest, Text: "The message attribute is not valid."},
	fault.SubscriptionLimitExceeded: {Type: snsType + "SubscriptionLimitExceededException", Code: "SubscriptionLimitExceeded", Status: http.StatusForbidden, Text: "The account has as many subscriptions as it may have."},
	fault.TopicLimitExceeded:        {Type: snsType + "TopicLimitExceededException", Code: "TopicLimitExceeded", Status: http.StatusForbidden, Text: "The account has as many topics as it may have."},
	fault.FilterPolicyLimitExceeded: {Type: snsType + "FilterPolicyLimitExceededException", Code: "FilterPolicyLimitExceeded", Status: http.StatusForbidden, Text: "The account has as many filter policies as it may have."},
	fault.EndpointDisabled:          {Type: snsType + "EndpointDisabledException", Code: "EndpointDisabled", Status: http.StatusBadRequest, Text: "Endpoint is disabled"},
	fault.PlatformApplicationDisabled: {
		Type: snsType + "PlatformApplicationDisabledException", Code: "PlatformApplicationDisabled", Status: http.StatusBadRequest, Text: "Platform application is disabled",
	},
	fault.TagLimitExceeded:    {Type: snsType + "TagLimitExceededException", Code: "TagLimitExceeded", Status: http.StatusBadRequest, Text: "Can't add more than 50 tags to a topic."},
	fault.InvalidState:        {Type: snsType + "InvalidStateException", Code: "InvalidState", Status: http.StatusBadRequest, Text: "Invalid state"},
	fault.ReplayLimitExceeded: {Type: snsType + "ReplayLimitExceededException", Code: "ReplayLimitExceeded", Status: http.StatusForbidden, Text: "The topic has as many replays under way as it may have."},
	fault.OptedOut:            {Type: snsType + "OptedOutException", Code: "OptedOut", Status: http.StatusBadRequest, Text: "The phone number is opted out."},
	fault.UserError:           {Type: snsType + "UserErrorException", Code: "UserError", Status: http.StatusBadRequest, Text: "The request does not go with the number's state."},
	fault.Verification:        {Type: snsType + "VerificationException", Code: "VerificationException", Status: http.StatusBadRequest, Text: "The one-time password is not valid."},
	fault.InvalidSecurity:     {Type: snsType + "InvalidSecurityException", Code: "InvalidSecurity", Status: http.StatusForbidden, Text: "The credential signature isn't valid."},
	fault.KMSNotFound:         {Type: snsType + "KMSNotFoundException", Code: "KMSNotFound", Status: http.StatusBadRequest, Text: "The key does not exist."},
	fault.KMSAccessDenied:     {Type: snsType + "KMSAccessDeniedException", Code: "KMSAccessDenied", Status: http.StatusBadRequest, Text: "The caller does not have the required KMS access."},
	fault.KMSDisabled:         {Type: snsType + "KMSDisabledException", Code: "KMSDisabled", Status: http.StatusBadRequest, Text: "The key is disabled."},
	fault.KMSInvalidState:     {Type: snsType + "KMSInvalidStateException", Code: "KMSInvalidState", Status: http.StatusBadRequest, Text: "The state of the key forbids it."},
	fault.KMSInvalidKeyUsage:  {Type: snsType + "KMSInvalidStateException", Code: "KMSInvalidState", Status: http.StatusBadRequest, Text: "The key is for another use."},
	fault.ResourceNotFound:    {Type: snsType + "ResourceNotFoundException", Code: "ResourceNotFound", Status: http.StatusNotFound, Text: "Resource does not exist"},

	fault.EmptyBatchRequest: {Type: snsType + "EmptyBatchRequestException", Code: "EmptyBatchRequest", Status: http.StatusBadRequest, Text: "The batch request doesn't contain any entries."},
	fault.TooManyEntriesInBatchRequest: {
		Type: snsType + "TooManyEntriesInBatchRequestException", Code: "TooManyEntriesInBatchRequest", Status: http.StatusBadRequest,
		Text: "The batch request contains more entries than permissible.",
	},
	fault.BatchEntryIdsNotDistinct: {Type: snsType + "BatchEntryIdsNotDistinctException", Code: "BatchEntryIdsNotDistinct", Status: http.StatusBadRequest, Text: "Two or more batch entries in the request have the same Id."},
	fault.InvalidBatchEntryID:      {Type: snsType + "InvalidBatchEntryIdException", Code: "InvalidBatchEntryId", Status: http.StatusBadRequest, Text: "The Id of a batch entry in a batch request doesn't abide by the specification."},
	fault.BatchRequestTooLong:      {Type: snsType + "BatchRequestTooLongException", Code: "BatchRequestTooLong", Status: http.StatusBadRequest, Text: "The length of all the messages put together is more than the limit."},

	fault.QueueDoesNotExist:      snsInvalid,
	fault.QueueNameExists:        snsInvalid,
	fault.QueueDeletedRecently:   snsInvalid,
	fault.PurgeQueueInProgress:   snsInvalid,
	fault.InvalidAttributeName:   snsInvalid,
	fault.InvalidAttributeValue:  snsInvalid,
	fault.InvalidMessageContents: snsInvalid,
	fault.ReceiptHandleIsInvalid: snsInvalid,
	fault.MessageNotInflight:     snsInvalid,
	fault.OverLimit:              snsInvalid,
	fault.UnsupportedOperation:   snsInvalid,
	fault.InvalidAddress:         snsInvalid,
})

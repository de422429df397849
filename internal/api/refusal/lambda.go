package refusal

import (
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/layer"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/shard/functions"
)

// untyped are the errors of Lambda without a type (the member that says whose fault it is).
var untyped = []*fault.Rule{function.ErrRoutingOfLatest, functions.ErrReserved}

var lambda = sentences{
	function.ErrNotFound: "Function not found: %s",
	function.ErrExists:   "Function already exist: %s",
	function.ErrPending:  "The operation cannot be performed at this time. The function is currently in the following state: Pending",
	function.ErrUpdating: "The operation cannot be performed at this time. An update is in progress for resource: %s",
	function.ErrRevisionOutdated: "The Revision Id provided does not match the latest Revision Id. " +
		"Call the GetFunction/GetAlias API to retrieve the latest Revision Id",
	function.ErrCodeDiffers: "CodeSHA256 (%s) is different from current CodeSHA256 in $LATEST (%s). " +
		"Please try again with the CodeSHA256 in $LATEST.",
	function.ErrLatestIsPermanent:   "$LATEST version cannot be deleted without deleting the function.",
	function.ErrNotAVersion:         "Deletion of aliases is not currently supported.",
	function.ErrVersionHasAliases:   "Unable to delete version because the following aliases reference it: [%s]",
	function.ErrAliasExists:         "Alias already exists: %s",
	function.ErrAliasNotFound:       "Cannot find alias arn: %s",
	function.ErrAliasUnknown:        "Alias not found: %s",
	function.ErrRoutingOfLatest:     "$LATEST is not supported for an alias pointing to more than 1 version",
	function.ErrRoutingToItself:     "Invalid function version %s. Function version %s is already included in routing configuration.",
	function.ErrStatementExists:     "The statement id (%s) provided already exists. Please provide a new statement id, or remove the existing statement.",
	function.ErrStatementNotFound:   "Statement %s is not found in resource policy.",
	function.ErrPolicyTooLong:       "The final policy size (%d) is bigger than the limit (%d).",
	function.ErrPolicyOfLatest:      "We currently do not support adding policies for $LATEST.",
	function.ErrNoPolicy:            "No policy is associated with the given resource.",
	function.ErrPolicyNotFound:      "The resource you requested does not exist.",
	function.ErrPolicyOutdated:      "The Revision Id provided does not match the latest Revision Id. Call the GetPolicy API to retrieve the latest Revision Id",
	function.ErrTooManyTags:         "Number of tags exceeds resource tag limit.",
	function.ErrEventInvokeEmpty:    "You must specify at least one of error handling or destination setting.",
	function.ErrEventInvokeToSelf:   "You can't specify the function as a destination for itself.",
	function.ErrEventInvokeTarget:   "The provided destination config DestinationConfig(onSuccess=%s, onFailure=%s) is invalid.",
	function.ErrEventInvokeNoTarget: "The destination ARN %s is invalid.",
	function.ErrEventInvokeAbsent:   "The function %s doesn't have an EventInvokeConfig",
	function.ErrURLOfNothing:        "Function does not exist",
	function.ErrURLExists:           "Failed to create function url config for [functionArn = %s]. Error message:  FunctionUrlConfig exists for this Lambda function",
	function.ErrURLTooLarge:         "The Cors of all URLs of a function can have %d bytes together.",
	function.ErrURLAbsent:           "The resource you requested does not exist.",
	function.ErrLayersTooLarge:      "Layers consume more than the available size of %d bytes",
	function.ErrCodeAndLayers:       "Function code combined with layers exceeds the maximum allowed size of %d bytes. The actual size is %d bytes.",
	function.ErrEventInvokeUnknown:  "The function doesn't exist.",

	layer.ErrNotFound:          "The resource you requested does not exist.",
	layer.ErrVersionUnknown:    "Layer version %s does not exist.",
	layer.ErrNoPolicy:          "No policy is associated with the given resource.",
	layer.ErrStatementExists:   "The statement id (%s) provided already exists. Please provide a new statement id, or remove the existing statement.",
	layer.ErrStatementNotFound: "Statement %s is not found in resource policy.",
	layer.ErrPolicyTooLong:     "The final policy size (%d) is bigger than the limit (%d).",
	layer.ErrPolicyOutdated:    "The Revision Id provided does not match the latest Revision Id. Call the GetLayerPolicy API to retrieve the latest Revision Id",

	functions.ErrCodeStorage:    "Code storage limit exceeded.",
	functions.ErrReserved:       "Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its minimum value of [%d].",
	functions.ErrPrincipal:      "The provided principal was invalid. Please check the principal and try again.",
	functions.ErrNotPermitted:   "%s is not authorized to perform: %s on resource: %s because no resource-based policy allows the %s action",
	functions.ErrFIFOQueue:      "The queue is a FIFO queue.",
	functions.ErrLayerNotFound:  "Layer version %s does not exist.",
	functions.ErrNoCode:         "The function's code is not there any more.",
	functions.ErrMappedFunction: "Function does not exist",
	functions.ErrMappedQueue: "Error occurred while ReceiveMessage. SQS Error Code: AWS.SimpleQueueService.NonExistentQueue. " +
		"SQS Error Message: The specified queue does not exist.",
	functions.ErrMappedTimeout:    "Queue visibility timeout: %d seconds is less than Function timeout: %d seconds",
	functions.ErrWindowOfFIFO:     "Batching window is not supported for FIFO queues",
	functions.ErrBatchNeedsWindow: "Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than %d",
	functions.ErrMappingExists: "An event source mapping with SQS arn (\" %s \") and function (\" %s \") already exists. " +
		"Please update or delete the existing mapping with UUID %s",

	mapping.ErrNotFound:    "The resource you requested does not exist.",
	mapping.ErrInUse:       "Cannot %s the event source mapping because it is in use.",
	mapping.ErrUntaggable:  "Event source mapping not found: %s",
	mapping.ErrTooManyTags: "Number of tags exceeds resource tag limit.",
}

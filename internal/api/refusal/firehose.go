package refusal

import "godwit.dev/godwit/internal/deliverystream"

// deliveryStreams are Firehose's messages.
var deliveryStreams = sentences{
	deliverystream.ErrNoStream: "Firehose %s under account %s not found.",
	deliverystream.ErrTaken:    "Firehose %s under accountId %s already exists",
	deliverystream.ErrMany:     "You have already consumed your firehose quota of %d hoses.",
	deliverystream.ErrVersion:  "Cannot update firehose: the current version is %s and not %s.",
	deliverystream.ErrTags:     "A delivery stream cannot have more than %d tags.",
	deliverystream.ErrNoSuch:   "Destination Id %s not found",
	deliverystream.ErrFull:     "Slow down.",

	deliverystream.ErrExpression:  "Prefix expression is not valid: %s",
	deliverystream.ErrErrorPrefix: "ErrorOutputPrefix must be specified when Prefix contains expressions.",
	deliverystream.ErrErrorType:   "ErrorOutputPrefix must contain at least one instance of !{firehose:error-output-type}.",
	deliverystream.ErrTypeOutside: "Prefix cannot contain !{firehose:error-output-type}.",
}

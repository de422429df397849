package refusal

import "godwit.dev/godwit/internal/stream"

// deliveryStreams are Firehose's messages.
var deliveryStreams = sentences{
	stream.ErrNoStream: "Firehose %s under account %s not found.",
	stream.ErrTaken:    "Firehose %s under accountId %s already exists",
	stream.ErrMany:     "You have already consumed your firehose quota of %d hoses.",
	stream.ErrVersion:  "Cannot update firehose: the current version is %s and not %s.",
	stream.ErrTags:     "A delivery stream cannot have more than %d tags.",
	stream.ErrNoSuch:   "Destination Id %s not found",
	stream.ErrFull:     "Slow down.",

	stream.ErrExpression:  "Prefix expression is not valid: %s",
	stream.ErrErrorPrefix: "ErrorOutputPrefix must be specified when Prefix contains expressions.",
	stream.ErrErrorType:   "ErrorOutputPrefix must contain at least one instance of !{firehose:error-output-type}.",
	stream.ErrTypeOutside: "Prefix cannot contain !{firehose:error-output-type}.",
}

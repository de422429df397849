package refusal

import (
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/logs"
)

var monitor = sentences{
	alarms.ErrTooMany:  "The maximum number of alarms, %d, has been reached.",
	alarms.ErrNotFound: "",
	alarms.ErrUntagged: "",

	logs.ErrNoGroup:      "The specified log group does not exist.",
	logs.ErrNoStream:     "The specified log stream does not exist.",
	logs.ErrGroupExists:  "The specified log group already exists",
	logs.ErrStreamExists: "The specified log stream already exists",
	logs.ErrProtected:    "The log group is protected from deletion. Disable its deletion protection first.",
	logs.ErrTooManyTags:  "A resource can have no more than %d tags.",
	logs.ErrSpan:         "The batch of log events in a single PutLogEvents request cannot span more than 24 hours.",
	logs.ErrToken:        "The specified nextToken is invalid.",
	logs.ErrFull:         "",
}

package refusal

import (
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/invoke/async"
	"godwit.dev/godwit/internal/invoke/eventsource"
	"godwit.dev/godwit/internal/invoke/process"
	"godwit.dev/godwit/internal/invoke/remote"
)

// reasons are the values of the member Reason in Lambda's errors.
var reasons = map[*fault.Rule]string{
	invoke.ErrReserved:    "ReservedFunctionConcurrentInvocationLimitExceeded",
	invoke.ErrConcurrency: "ConcurrentInvocationLimitExceeded",
	remote.ErrThrottled:   "CallerRateLimitExceeded",
}

var invocations = sentences{
	invoke.ErrStopping:    "",
	invoke.ErrReserved:    "Rate Exceeded.",
	invoke.ErrConcurrency: "Rate Exceeded.",
	invoke.ErrRole:        "The role defined for the function cannot be assumed by Lambda.",

	eventsource.ErrRole: "The function execution role does not have permissions to call %s on SQS",

	async.ErrFIFO:    "The target is a FIFO queue or topic.",
	async.ErrEmpty:   "The message is empty.",
	async.ErrTooLong: "The message is too long.",

	remote.ErrURL:         "The function's URL is not http://… or https://….",
	remote.ErrOwnAddress:  "The function's address is this server's own.",
	remote.ErrNotPublic:   "The function's address is not public, and the server does not allow that.",
	remote.ErrUnreachable: "The function's server cannot be reached.",
	remote.ErrNoAnswer:    "The function's server does not answer.",
	remote.ErrStatus:      "The function's server answered with status %d.",
	remote.ErrThrottled:   "Rate Exceeded.",
	remote.ErrClosed:      "",

	process.ErrRuntime:      "The runtime %s cannot run on this server.",
	process.ErrNotInstalled: "The runtime %s needs %s in the PATH, which is not installed on this server.",
	process.ErrPlatform:     "Functions from zips do not run on %s, isolated or not. Run them elsewhere, as remote functions; docs/functions.md tells how.",
	process.ErrIsolation: "Functions cannot be isolated on this machine (%s). Where that is acceptable, " +
		"start the server with %s: they then run as its user, among its files. docs/functions.md lists what gives isolation.",
	process.ErrZip:          "Could not unzip uploaded file. Please check your file, then try to upload again.",
	process.ErrUnzippedSize: "Unzipped size must be smaller than %d bytes",
	process.ErrClosed:       "",
}

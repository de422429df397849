package refusal

import (
	"godwit.dev/godwit/internal/key"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/limit/accounts"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues/faults"
	"godwit.dev/godwit/internal/shard/transfer"
)

// everywhere are the messages that all services share.
var everywhere = sentences{
	key.ErrNoAlias: "Alias %s is not found.",
	key.ErrNoKey:   "Key '%s' does not exist",

	accounts.ErrRequests: "",
	accounts.ErrBytes:    "",
	accounts.ErrQueues:   "The account has as many queues as it may have: %d.",
	accounts.ErrTopics:   "The account has as many topics as it may have: %d.",
	accounts.ErrStorage:  "The messages of the account take as many bytes as they may: %d.",

	limit.ErrFull:        "The server holds as much as it may for other requests. Try again later.",
	kernel.ErrFull:       "The disk has too little free space to accept messages. Receives and deletes go on; free space, or move the data directory.",
	transfer.ErrDiskFull: "The disk has too little free space.",

	faults.ErrUnavailable: "The service is unavailable.",
	faults.ErrThrottled:   "Rate exceeded.",
	faults.ErrDenied:      "The caller is not authorized to perform this action, because no identity-based policy allows it.",
	faults.ErrInternal:    "",
	faults.ErrName:        "fault must be unavailable, throttled or none, or, for all of a service, internal or denied, not %q",
}

package queues

// What tests of the package from outside know of it.
const (
	EmptiedKept   = emptiedKept
	ReceiveRounds = receiveRounds
	RecordWeight  = recordWeight
)

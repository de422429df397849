package queues

// What tests of the package from outside know of it.
const (
	EmptiedKept   = emptiedKept
	FormerKept    = formerKept
	ReceiveRounds = receiveRounds
	RecordWeight  = recordWeight
)

// Unsynced is how many commits of its messages are kept in memory, as they may not be
// durable yet.
func (qs *Queue) Unsynced() int { return len(qs.unsynced.pending) }

func (sh *Shard) WriteQueue(qs *Queue) { sh.writeQueue(qs) }

// Remembers is of how many minutes a FIFO queue has in memory what it has accepted.
func (qs *Queue) Remembers() int { return qs.dedup.Len() }

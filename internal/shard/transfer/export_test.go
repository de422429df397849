package transfer

import (
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard/queues"
)

// What tests of the package from outside know of it.
const ReasonNoQueue = reasonNoQueue

type (
	RunningMove = runningMove
	TransferID  = transferID
)

func (sh *Shard) AddMove(t *RunningMove)              { sh.addMove(t) }
func (sh *Shard) WriteMove(t *RunningMove)            { sh.writeMove(t) }
func (sh *Shard) WorkOn(t *RunningMove)               { sh.workOn(t) }
func (sh *Shard) RetryMove(t *RunningMove, now int64) { sh.retryMove(t, now) }

func (sh *Shard) NextStep(t *RunningMove) (*queues.Queue, []queue.Lease) { return sh.nextStep(t) }

func (sh *Shard) LeaseForMove(qs *queues.Queue, now int64, n int) ([]queue.Lease, error) {
	return sh.leaseForMove(qs, now, n)
}

func (e *Transfers) MoveOne(sh *Shard, t *RunningMove, qs *queues.Queue, l queue.Lease) (*journal.Commit, error) {
	return e.moveOne(sh, t, qs, l)
}

// TakenIn notes a transfer as taken in, and not known to be acknowledged.
func (sh *Shard) TakenIn(id TransferID) { sh.marks = map[TransferID]struct{}{id: {}} }

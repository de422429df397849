package transfer

import (
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard/queues"
)

// What tests of the package from outside know of it.
const ReasonNoQueue = reasonNoQueue

type (
	RunningTask = runningTask
	TransferID  = transferID
)

func (sh *Shard) AddTask(t *RunningTask)              { sh.addTask(t) }
func (sh *Shard) WriteTask(t *RunningTask)            { sh.writeTask(t) }
func (sh *Shard) WorkOn(t *RunningTask)               { sh.workOn(t) }
func (sh *Shard) RetryTask(t *RunningTask, now int64) { sh.retryTask(t, now) }

func (sh *Shard) NextStep(t *RunningTask) (*queues.Queue, []queue.Lease) { return sh.nextStep(t) }

func (sh *Shard) LeaseForMove(qs *queues.Queue, now int64, n int) ([]queue.Lease, error) {
	return sh.leaseForMove(qs, now, n)
}

func (e *Transfers) MoveOne(sh *Shard, t *RunningTask, qs *queues.Queue, l queue.Lease) (*journal.Commit, error) {
	return e.moveOne(sh, t, qs, l)
}

// TakenIn notes a transfer as taken in, and not known to be acknowledged.
func (sh *Shard) TakenIn(id TransferID) { sh.marks = map[TransferID]struct{}{id: {}} }

package transfer

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/store"
)

// A move task moves the messages of a dead-letter queue to another queue, or each to its source
// queue. Its record is in the shard of the dead-letter queue, and is written in the commit that
// removes a message there, so that it continues after a restart. moving.go does the work.

// MoveStatus is the state of a move task.
type MoveStatus string

// The states of a move task.
const (
	MoveRunning    MoveStatus = "RUNNING"
	MoveCancelling MoveStatus = "CANCELLING"
	MoveCompleted  MoveStatus = "COMPLETED"
	MoveCancelled  MoveStatus = "CANCELLED"
	MoveFailed     MoveStatus = "FAILED"
)

// Why a move task failed, in AWS's words.
const (
	reasonNoQueue        = "AWS.SimpleQueueService.NonExistentQueue"
	reasonNoSource       = "CouldNotDetermineMessageSource"
	reasonNoSubscription = "SubscriptionDoesNotExist" // beyond AWS
)

// MoveTasksKept is how many of a queue's tasks, the latest, are kept.
const MoveTasksKept = 10

// MoveTaskSpec asks for a move task.
type MoveTaskSpec struct {
	ID          string // chosen by the caller, unique
	Source      arn.ARN
	Destination arn.ARN // zero: each message to the queue that it came from
	Rate        int     // messages a second, 1–500; 0: as fast as they go
	// By is the requester, whose permissions are checked with each message; nil: they are not.
	By *caller.Caller
}

// MoveTask describes a move task.
type MoveTask struct {
	MoveTaskSpec
	Status  MoveStatus
	Moved   int64
	ToMove  int64 // visible messages when it started
	Started time.Time
	Reason  string // of a failed one
}

// MoveRecord is the persisted form of a task: JSON behind a version byte.
type MoveRecord struct {
	ID          string     `json:"id"`
	Destination string     `json:"destination,omitempty"`
	Rate        int        `json:"rate,omitempty"`
	Status      MoveStatus `json:"status"`
	Started     int64      `json:"started"` // epoch milliseconds
	Moved       int64      `json:"moved"`
	ToMove      int64      `json:"toMove"`
	Reason      string     `json:"reason,omitempty"`
	// The rate is kept since PacedAt (epoch milliseconds), when PacedFrom messages had been
	// moved.
	PacedAt   int64 `json:"pacedAt,omitempty"`
	PacedFrom int64 `json:"pacedFrom,omitempty"`
	// By is the requester, without the access key.
	By *caller.Caller `json:"by,omitempty"`
}

const moveRecordVersion = 1

// runningTask is a task with its state in memory, guarded by the shard's lock.
type runningTask struct {
	MoveRecord
	Number  uint64 // grows with each task of the queue
	From    arn.ARN
	To      arn.ARN
	Working bool // a goroutine works on it
	held    bool // it goes on once the operator who looks at what was restored lets it
	Picks   bool // it is no task, but one message that an operator picked, which is not leased
	timer   clock.Timer
	Tries   int // since a message was last moved
}

func taskPrefix(shard uint16) []byte { return keyspace.Shard(shard, keyspace.MoveTasks) }

// tasksOf is the prefix of the keys of a queue's tasks.
func tasksOf(shard uint16, a arn.ARN) []byte {
	key := append(append(taskPrefix(shard), a.Account...), 0)
	key = append(append(key, a.Region...), 0)
	return append(append(key, a.Resource...), 0)
}

func (sh *Shard) taskKey(t *runningTask) []byte {
	return binary.BigEndian.AppendUint64(tasksOf(sh.ID, t.From), t.Number)
}

// writeTask adds a task's record to the batch of the command.
func (sh *Shard) writeTask(t *runningTask) {
	sh.Batch.Set(sh.taskKey(t), keyspace.EncodeJSON(moveRecordVersion, &t.MoveRecord))
}

// loadTasks reads the tasks of the shard's queues.
func (sh *Shard) loadTasks() error {
	return store.EachOf(sh.module.Store, keyspace.KindMoveTask, keyspace.Prefix(taskPrefix(sh.ID)), func(k *keyspace.Key, value []byte) (err error) {
		t := &runningTask{}
		t.Number, _ = k.Number(keyspace.PartCount)
		account, region, name := k.Named()
		t.From = arn.Queue(region, account, name)
		if t.MoveRecord, err = DecodeMove(value); err != nil {
			return err
		}
		if t.Destination != "" {
			if t.To, err = arn.Parse(t.Destination); err != nil {
				return err
			}
		}
		sh.addTask(t)
		return nil
	})
}

// addTask adds a task to those of its queue.
func (sh *Shard) addTask(t *runningTask) {
	if sh.tasks == nil {
		sh.tasks = map[arn.ARN][]*runningTask{}
	}
	sh.tasks[t.From] = append(sh.tasks[t.From], t)
}

// activeTask is the running or cancelling task of a queue; nil: there is none.
func (sh *Shard) activeTask(a arn.ARN) *runningTask {
	tasks := sh.tasks[a]
	if len(tasks) == 0 {
		return nil
	}
	t := tasks[len(tasks)-1]
	if t.Status != MoveRunning && t.Status != MoveCancelling {
		return nil
	}
	return t
}

// StartMoveTask begins to move the messages that are visible in a dead-letter queue, in their
// order. Errors: ResourceNotFound, InvalidParameter.
func (e *Transfers) StartMoveTask(ctx context.Context, spec MoveTaskSpec) error {
	if err := e.checkTask(ctx, spec); err != nil {
		return err
	}
	return e.WithCatalog(ctx, spec.Source, func(sh *Shard) error {
		qs, err := sh.Lookup(spec.Source)
		switch {
		case err != nil:
			return moveResource(err, "SourceArn")
		case sh.activeTask(spec.Source) != nil:
			return ErrMoveRunning
		case e.Full():
			return kernel.ErrFull
		}
		now := sh.Now()
		t := &runningTask{From: spec.Source, To: spec.Destination, Number: 1, MoveRecord: MoveRecord{
			ID: spec.ID, Destination: spec.Destination.String(), Rate: spec.Rate, Status: MoveRunning,
			Started: now, PacedAt: now, By: spec.By.WithoutKey(), ToMove: sh.Counts(qs, now).Visible,
		}}
		if tasks := sh.tasks[spec.Source]; len(tasks) > 0 {
			t.Number = tasks[len(tasks)-1].Number + 1
			if len(tasks) == MoveTasksKept {
				sh.Batch.Delete(sh.taskKey(tasks[0]))
				sh.tasks[spec.Source] = slices.Delete(tasks, 0, 1)
			}
		}
		sh.addTask(t)
		sh.writeTask(t)
		sh.workOn(t)
		return nil
	})
}

// moveResource is the error of an operation on tasks whose queue, named by a parameter, is refused.
func moveResource(err error, parameter string) error {
	if fault.KindOf(err) == fault.QueueDoesNotExist {
		return ErrMoveResource.With(parameter)
	}
	return err
}

// checkTask checks the rules that involve other queues than the source.
func (e *Transfers) checkTask(ctx context.Context, spec MoveTaskSpec) error {
	sources, _, err := e.DeadLetterSources(ctx, spec.Source, "", 1)
	switch {
	case err != nil:
		return moveResource(err, "SourceArn")
	case len(sources) == 0 && !e.TakesOthers(spec.Source):
		return ErrMoveSource
	case spec.Destination.IsZero():
		return nil
	case spec.Destination == spec.Source:
		return ErrMoveToItself
	}
	_, err = e.QueueConfig(ctx, spec.Destination)
	switch {
	case err != nil:
		return moveResource(err, "DestinationArn")
	case spec.Destination.FIFO() != spec.Source.FIFO():
		return ErrMoveType
	}
	return nil
}

// MoveTasks lists the latest tasks of a queue, latest first, at most limit.
// Errors: ResourceNotFound.
func (e *Transfers) MoveTasks(ctx context.Context, source arn.ARN, limit int) (tasks []MoveTask, err error) {
	var last *journal.Commit
	err = e.ReadCatalog(ctx, source, func(sh *Shard) error {
		if _, err := sh.Lookup(source); err != nil {
			return moveResource(err, "SourceArn")
		}
		last = sh.Stream.Last()
		for _, t := range slices.Backward(sh.tasks[source]) {
			if len(tasks) == limit {
				break
			}
			tasks = append(tasks, MoveTask{
				MoveTaskSpec: MoveTaskSpec{ID: t.ID, Source: source, Destination: t.To, Rate: t.Rate},
				Status:       t.Status, Moved: t.Moved, ToMove: t.ToMove,
				Started: clock.Time(t.Started), Reason: t.Reason,
			})
		}
		return nil
	})
	last.Wait()
	return tasks, err
}

// CancelMoveTask cancels a running task and returns how many messages it has moved; these are
// not moved back. Errors: ResourceNotFound, for the queue or the task.
func (e *Transfers) CancelMoveTask(ctx context.Context, source arn.ARN, id string) (moved int64, err error) {
	err = e.WithCatalog(ctx, source, func(sh *Shard) error {
		if _, err := sh.Lookup(source); err != nil {
			return moveResource(err, "SourceArn")
		}
		t := sh.activeTask(source)
		if t == nil || t.ID != id || t.Status != MoveRunning {
			return ErrNoTask
		}
		t.Status, moved = MoveCancelling, t.Moved
		sh.writeTask(t)
		sh.workOn(t)
		return nil
	})
	return moved, err
}

// endTasks completes the running task of a queue that was purged.
func (sh *Shard) endTasks(a arn.ARN) {
	if t := sh.activeTask(a); t != nil {
		t.stop()
		t.Status = MoveCompleted
		sh.writeTask(t)
	}
}

// dropTasks forgets the tasks of a queue that is deleted.
func (sh *Shard) dropTasks(a arn.ARN) {
	tasks := sh.tasks[a]
	if len(tasks) == 0 {
		return
	}
	for _, t := range tasks {
		t.stop()
	}
	delete(sh.tasks, a)
	span := keyspace.Prefix(tasksOf(sh.ID, a))
	sh.Batch.DeleteRange(span.Lower, span.Upper)
}

// stopTasks stops the timers of all tasks.
func (sh *Shard) stopTasks() {
	for _, tasks := range sh.tasks {
		for _, t := range tasks {
			t.stop()
		}
	}
}

func (t *runningTask) stop() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

// countMove counts a message that a task has moved, as part of the command that removes it.
func (sh *Shard) countMove(qs *queues.Queue, sequence uint64) {
	if l, _ := qs.Machine.Leased(sequence); !l.Task {
		return
	}
	if t := sh.activeTask(qs.ARN); t != nil {
		t.Moved++
		sh.writeTask(t)
	}
}

// moveRefused is the reason for which a task fails by a refusal; empty: the refusal is
// temporary.
func moveRefused(err error) (reason string) {
	switch {
	case errors.Is(err, errNoMoveSource):
		return reasonNoSource
	case fault.KindOf(err) == fault.NotFound:
		return reasonNoSubscription
	case fault.KindOf(err) == fault.QueueDoesNotExist:
		return reasonNoQueue
	case fault.KindOf(err) == fault.AccessDenied:
		return "AccessDenied"
	}
	return ""
}

var errNoMoveSource = errors.New("transfer: the message does not tell which queue it came from")

// paceStep is the resolution at which a task keeps its rate, in milliseconds.
const paceStep = 10

// due is how many messages the rate allows now, up to limit, and when it allows the next one.
func (t *runningTask) due(now int64, limit int) (n int, next int64) {
	if t.Rate == 0 {
		return limit, now
	}
	rate := int64(t.Rate)
	since := t.Moved - t.PacedFrom
	behind := (now-t.PacedAt)/paceStep*paceStep*rate/1000 - since
	if behind > rate { // it was delayed by over a second: it does not catch up
		t.PacedAt, t.PacedFrom = now, t.Moved
		behind, since = 0, 0
	}
	// The first step at which one more is allowed.
	wait := ((since+1)*1000 + rate - 1) / rate
	return int(min(behind, int64(limit))), t.PacedAt + (wait+paceStep-1)/paceStep*paceStep
}

// retryIn is the backoff after a temporary refusal, in milliseconds: 1 s, doubling up to five
// minutes.
func (t *runningTask) retryIn() int64 {
	const longest = 5 * 60 * 1000
	return min(int64(1000)<<min(t.Tries, 20), longest)
}

// DecodeMove reads a move task's record.
func DecodeMove(value []byte) (r MoveRecord, err error) {
	return r, keyspace.DecodeJSON(moveRecordVersion, value, &r)
}

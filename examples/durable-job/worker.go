package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// A worker takes jobs from a queue, one after the other in each of its
// goroutines, and loses none, whatever dies and whenever.
type worker struct {
	sqs         *sqs.Client
	queue       string // URL
	ledger      *ledger
	work        func(ctx context.Context, id, body string) (receipt string, err error)
	concurrency int
	lease       time.Duration // whole seconds, up to 12 h: the visibility timeout while a job is worked on
	rest        rest          // between two attempts
	log         *slog.Logger
}

// run works until ctx ends, and then finishes the jobs that it has in hand.
func (w *worker) run(ctx context.Context) {
	var all sync.WaitGroup
	for range w.concurrency {
		all.Go(func() {
			for ctx.Err() == nil {
				message, err := w.receive(ctx)
				switch {
				case ctx.Err() != nil:
				case err != nil:
					w.log.Warn("receive", "error", err)
					pause(ctx, time.Second)
				case message != nil:
					w.handle(context.WithoutCancel(ctx), message)
				}
			}
		})
	}
	all.Wait()
}

// receive is step 1. The message stays in the queue, hidden from others for
// the time of the lease: if this process dies now, another gets it then. It
// waits up to 20 s for one, and returns nil if none comes.
func (w *worker) receive(ctx context.Context) (*types.Message, error) {
	out, err := w.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:                    &w.queue,
		MaxNumberOfMessages:         1, // a second one would wait while its lease runs
		WaitTimeSeconds:             20,
		VisibilityTimeout:           seconds(w.lease),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
	})
	if err != nil || len(out.Messages) == 0 {
		return nil, err
	}
	return &out.Messages[0], nil
}

// handle makes one attempt at a job. Where it returns early the message is
// still in the queue, and comes again when the lease has run out.
func (w *worker) handle(ctx context.Context, message *types.Message) {
	id := *message.MessageId
	receives, err := strconv.Atoi(message.Attributes["ApproximateReceiveCount"])
	if err != nil {
		w.log.Error("a message without ApproximateReceiveCount", "id", id)
		return
	}
	log := w.log.With("id", id, "receives", receives)

	// A message may come again after it was done: somebody died between steps
	// 2 and 6, or the queue delivered it twice. The ledger knows.
	attempt, err := w.ledger.begin(ctx, id, receives)
	switch {
	case err != nil:
		log.Error("ledger", "error", err)
		return
	case attempt == 0:
		log.Info("was done before")
		w.delete(ctx, log, message)
		return
	}
	log = log.With("attempt", attempt)

	held, release := w.hold(ctx, log, message)
	receipt, err := w.work(held, id, *message.Body) // step 2
	release()

	if err != nil {
		log.Warn("failed", "error", err)
		if err := w.ledger.fail(ctx, id, attempt, err); err != nil {
			log.Error("ledger", "error", err)
		}
		w.requeue(ctx, log, message, receives)
		return
	}
	if err := w.ledger.finish(ctx, id, attempt, receipt); err != nil {
		log.Error("ledger", "error", err)
		return // the work will be repeated, under the same key
	}
	log.Info("done")
	w.delete(ctx, log, message)
}

var errLeaseLost = errors.New("the lease could not be renewed in time")

// hold is step 3, the heartbeat: until release is called it renews the lease
// whenever a third of it has passed. If that fails until the lease is over,
// another worker may have the job, and held ends. (SQS ends every lease 12
// hours after the receive: a longer job has to be cut into several.)
func (w *worker) hold(ctx context.Context, log *slog.Logger, message *types.Message) (held context.Context, release func()) {
	held, cancel := context.WithCancelCause(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		beat := time.NewTicker(w.lease / 3)
		defer beat.Stop()
		for end := time.Now().Add(w.lease); ; {
			select {
			case <-held.Done():
				return
			case <-beat.C:
			}
			asked := time.Now()
			inTime, done := context.WithDeadline(held, end)
			err := w.hide(inTime, message, w.lease)
			done()
			switch {
			case err == nil:
				end = asked.Add(w.lease)
			case held.Err() != nil: // released meanwhile
			case !time.Now().Before(end):
				cancel(errLeaseLost)
			default:
				log.Warn("heartbeat", "error", err)
			}
		}
	}()
	// A late heartbeat would undo the visibility timeout of step 4.
	return held, func() { cancel(nil); <-stopped }
}

// requeue is step 4: the message becomes visible again after a rest that grows
// with the number of receives. Step 5 is the queue's own: when a message has
// been received as often as its RedrivePolicy allows, the next receive finds
// it in the dead-letter queue instead.
func (w *worker) requeue(ctx context.Context, log *slog.Logger, message *types.Message, receives int) {
	if err := w.hide(ctx, message, w.rest.after(receives, rand.Float64())); err != nil {
		log.Warn("put back", "error", err) // it comes again when the lease has run out
	}
}

// delete is step 6, the only thing that takes a message out of the queue for
// good. Whoever dies before it finds the message in the ledger next time.
func (w *worker) delete(ctx context.Context, log *slog.Logger, message *types.Message) {
	_, err := w.sqs.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &w.queue, ReceiptHandle: message.ReceiptHandle})
	if err != nil {
		log.Warn("delete", "error", err) // it will be found done
	}
}

// hide makes a message visible again after d, counted from now.
func (w *worker) hide(ctx context.Context, message *types.Message, d time.Duration) error {
	_, err := w.sqs.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &w.queue, ReceiptHandle: message.ReceiptHandle, VisibilityTimeout: seconds(d),
	})
	return err
}

// rest is the time between two attempts at a job: base, doubled with each
// receive, at most the limit.
type rest struct{ base, limit time.Duration }

// after returns the rest that follows the n-th receive (from 1), less up to a
// half: jobs that failed together should not come back together. jitter is in
// [0, 1).
func (r rest) after(n int, jitter float64) time.Duration {
	d := r.base
	for i := 1; i < n && d < r.limit; i++ {
		d *= 2
	}
	d = min(d, r.limit)
	return d - time.Duration(jitter/2*float64(d))
}

// seconds is d in whole seconds, rounded up.
func seconds(d time.Duration) int32 { return int32((d + time.Second - 1) / time.Second) }

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

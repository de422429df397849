// Package inspect reads queues and backlogs for operators: their sizes, and their messages. It
// changes nothing: neither receive counts, nor the order, nor visibility. The caller bounds the
// cost of a scan.
package inspect

import (
	"cmp"
	"container/heap"
	"context"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/functions"
	"godwit.dev/godwit/internal/shard/queues"
)

// Inspector reads the queues and backlogs of a node.
type Inspector struct {
	queues    *queues.Queues
	functions *functions.Functions
	backlogs  *backlog.Backlogs
	scans     chan struct{} // has one element for each Scan in progress
}

// New makes an inspector of the queues, and of the backlogs of subscriptions and functions.
func New(q *queues.Queues, f *functions.Functions) *Inspector {
	return &Inspector{queues: q, functions: f, backlogs: f.Backlogs, scans: make(chan struct{}, MaxScans)}
}

// Holding is a queue or a backlog with messages.
type Holding struct {
	Name   arn.ARN // the queue, or the subscription, function or other owner of the backlog
	Counts queue.Counts
	Paused bool
}

func (h *Holding) messages() int64 { return total(h.Counts) }

func total(c queue.Counts) int64 { return c.Visible + c.InFlight + c.Delayed }

// Census is a count of everything at a moment.
type Census struct {
	Queues, Topics, Subscriptions, Pending int          // Pending: of the subscriptions, unconfirmed ones
	InQueues, InBacklogs                   queue.Counts // InBacklogs: of subscriptions
	InEvents                               queue.Counts // of functions
	// Holdings are the queues and backlogs with the most messages, in descending order.
	Holdings []Holding
	// ByTopic counts the undelivered messages of the subscriptions of topics that have any.
	ByTopic map[arn.ARN]int64
	// DeadLetterQueues are the dead-letter queues of queues and functions, the failure
	// destinations of functions' events that are queues, and the dead-letter queues of the
	// first 100,000 subscriptions.
	DeadLetterQueues map[arn.ARN]bool
}

// maxRedrives bounds the subscriptions that a census reads.
const maxRedrives = 100_000

// Census counts everything, and finds up to limit queues and backlogs with the most messages.
// Its cost grows with the queues and backlogs that have messages, and with the topics. It may
// show changes that are not durable yet.
func (i *Inspector) Census(ctx context.Context, limit int) (*Census, error) {
	c := &Census{ByTopic: map[arn.ARN]int64{}, DeadLetterQueues: map[arn.ARN]bool{}}
	top, looked := &worst{}, 0
	for id, sh := range i.queues.Shards {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		bsh := i.backlogs.Shards[id]
		sh.View(func() {
			now := sh.Now()
			c.Queues += sh.Known()
			topics, subscriptions, pending := bsh.Topics.Totals()
			c.Topics += topics
			c.Subscriptions += subscriptions
			c.Pending += pending
			sh.EachLoaded(func(qs *queues.Queue) {
				h := Holding{Name: qs.ARN, Counts: qs.Machine.Counts(now)}
				add(&c.InQueues, h.Counts)
				top.offer(h, limit)
			})
			sh.EachSource(func(deadLetter arn.ARN, _ []string) bool {
				c.DeadLetterQueues[deadLetter] = true
				return true
			})
			for sub := range bsh.Topics.AllDeliverable() {
				if looked++; looked > maxRedrives {
					break
				}
				if sub.Redrive != nil {
					c.DeadLetterQueues[*sub.Redrive] = true
				}
			}
			for target := range i.functions.Shards[id].Functions.FailureTargets() {
				if target.Service == "sqs" {
					c.DeadLetterQueues[target] = true
				}
			}
			for _, qs := range sh.Backlogs {
				if qs.Ended() || qs.Machine.Empty() {
					continue
				}
				h := Holding{Name: qs.ARN, Counts: qs.Machine.Counts(now), Paused: qs.Consumption.Paused}
				if qs.ARN.Service == "lambda" {
					add(&c.InEvents, h.Counts)
				} else {
					add(&c.InBacklogs, h.Counts)
				}
				if t, _, ok := qs.ARN.SplitSubscription(); ok {
					c.ByTopic[t] += h.messages()
				}
				top.offer(h, limit)
			}
		})
	}
	c.Holdings = slices.SortedFunc(slices.Values(top.all), func(a, b Holding) int {
		return cmp.Or(cmp.Compare(b.messages(), a.messages()), cmp.Compare(a.Name.String(), b.Name.String()))
	})
	return c, nil
}

func add(to *queue.Counts, c queue.Counts) {
	to.Visible += c.Visible
	to.InFlight += c.InFlight
	to.Delayed += c.Delayed
}

// worst has the holdings with the most messages, the smallest first.
type worst struct{ all []Holding }

func (w *worst) offer(h Holding, limit int) {
	switch {
	case h.messages() == 0:
	case len(w.all) < limit:
		heap.Push(w, h)
	case limit > 0 && w.all[0].messages() < h.messages():
		w.all[0] = h
		heap.Fix(w, 0)
	}
}

func (w *worst) Len() int           { return len(w.all) }
func (w *worst) Less(i, j int) bool { return w.all[i].messages() < w.all[j].messages() }
func (w *worst) Swap(i, j int)      { w.all[i], w.all[j] = w.all[j], w.all[i] }
func (w *worst) Push(x any)         { w.all = append(w.all, x.(Holding)) }

// Pop implements heap.Interface.
func (w *worst) Pop() any {
	last := w.all[len(w.all)-1]
	w.all = w.all[:len(w.all)-1]
	return last
}

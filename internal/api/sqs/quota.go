package sqs

import (
	"context"
	"sync"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/attribute"
)

// highThroughput is the FifoThroughputLimit of queues without a quota.
const highThroughput = "perMessageGroupId"

// quota bounds the calls of each action on each FIFO queue per second of the server's clock.
// A batch counts as one call, whatever its size.
type quota struct {
	perSecond int

	mu     sync.Mutex
	second int64            // the second that calls counts, in epoch seconds
	calls  map[quotaKey]int // of that second only, so that idle queues use no memory
}

type quotaKey struct {
	queue  arn.ARN
	action string
}

// take counts a call at a time in epoch seconds, and reports whether it is within the quota.
// If the clock goes back, the count starts over.
func (q *quota) take(second int64, key quotaKey) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.second != second || q.calls == nil {
		q.second, q.calls = second, make(map[quotaKey]int)
	}
	if q.calls[key] >= q.perSecond {
		return false
	}
	q.calls[key]++
	return true
}

// withQuota declares an operation on messages with the service's quota for FIFO queues, if there
// is one. url returns the URL of the queue.
func withQuota[In, Out any](s *Service, name string, url func(in *In) string, handle func(context.Context, *api.Call, *In) (*Out, error)) api.Operation {
	if s.fifo.perSecond == 0 {
		return api.Op(name, handle)
	}
	return api.Op(name, func(ctx context.Context, call *api.Call, in *In) (*Out, error) {
		if !s.within(ctx, call, url(in)) {
			return nil, fault.New(fault.Throttled, "")
		}
		return handle(ctx, call, in)
	})
}

// within reports whether the call is within the quota of its queue. It is true for a queue
// without a quota: a standard queue, one with high throughput, or one that does not exist.
func (s *Service) within(ctx context.Context, call *api.Call, url string) bool {
	q, err := queueOf(call, url)
	if err != nil || !q.FIFO() {
		return true
	}
	info, err := s.engine.QueueInfo(ctx, q)
	if err != nil || info.Attributes[attribute.FifoThroughputLimit] == highThroughput {
		return true
	}
	return s.fifo.take(call.Time.Unix(), quotaKey{q, call.Operation})
}

package main

import (
	"cmp"
	"container/heap"
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// memory is a set of queues that know sends with a delay, receives with a long
// poll, and deletes. A received message comes back only when the receive asked
// for a visibility timeout of 0, and then at once.
type memory struct {
	mu     sync.RWMutex
	queues map[string]*memoryQueue // by URL
}

type memoryQueue struct {
	mu      sync.Mutex
	ready   []memoryMessage
	head    int // messages before it have been taken
	delayed delayHeap
	leased  map[string]memoryMessage // by receipt handle
	waiting []chan struct{}          // long polls; closing one wakes it
	handles uint64
}

type memoryMessage struct {
	body     string
	receives int
	due      int64 // ns since the epoch; only while delayed
}

type delayHeap []memoryMessage

func (h delayHeap) Len() int           { return len(h) }
func (h delayHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h delayHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *delayHeap) Push(x any)        { *h = append(*h, x.(memoryMessage)) }
func (h *delayHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func newMemory() *memory { return &memory{queues: map[string]*memoryQueue{}} }

func (m *memory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	action, in, err := decode(r)
	if err != nil {
		refuse(w, "SerializationException", err.Error())
		return
	}
	if action == "CreateQueue" {
		url := queueURL(r, in.QueueName)
		m.mu.Lock()
		if m.queues[url] == nil {
			m.queues[url] = &memoryQueue{leased: map[string]memoryMessage{}}
		}
		m.mu.Unlock()
		answer(w, http.StatusOK, map[string]string{"QueueUrl": url})
		return
	}
	m.mu.RLock()
	q := m.queues[in.QueueUrl]
	m.mu.RUnlock()
	if q == nil {
		refuse(w, "QueueDoesNotExist", "The specified queue does not exist.")
		return
	}
	switch action {
	case "DeleteQueue":
		m.mu.Lock()
		delete(m.queues, in.QueueUrl)
		m.mu.Unlock()
		answer(w, http.StatusOK, struct{}{})
	case "SendMessage":
		out := sent{MD5OfMessageBody: digest(in.MessageBody), MessageId: fixedID}
		q.put(entry{MessageBody: in.MessageBody, DelaySeconds: in.DelaySeconds})
		answer(w, http.StatusOK, out)
	case "SendMessageBatch":
		var out batchResult
		for _, e := range in.Entries {
			out.Successful = append(out.Successful, sentEntry{e.Id, digest(e.MessageBody), fixedID})
		}
		q.put(in.Entries...)
		answer(w, http.StatusOK, out)
	case "ReceiveMessage":
		answer(w, http.StatusOK, q.receive(r.Context(), in))
	case "DeleteMessage":
		q.remove(entry{ReceiptHandle: in.ReceiptHandle})
		answer(w, http.StatusOK, struct{}{})
	case "DeleteMessageBatch":
		out := struct{ Successful []map[string]string }{}
		for _, e := range in.Entries {
			out.Successful = append(out.Successful, map[string]string{"Id": e.Id})
		}
		q.remove(in.Entries...)
		answer(w, http.StatusOK, out)
	case "GetQueueAttributes":
		answer(w, http.StatusOK, map[string]any{"Attributes": q.attributes()})
	default:
		refuse(w, "InvalidAction", "the memory reference does not know "+action)
	}
}

func (q *memoryQueue) put(entries ...entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range entries {
		if e.DelaySeconds > 0 {
			due := time.Now().Add(time.Duration(e.DelaySeconds) * time.Second)
			heap.Push(&q.delayed, memoryMessage{body: e.MessageBody, due: due.UnixNano()})
			continue
		}
		q.ready = append(q.ready, memoryMessage{body: e.MessageBody})
	}
	for n := min(len(entries), len(q.waiting)); n > 0; n-- {
		close(q.waiting[0])
		q.waiting = q.waiting[1:]
	}
}

func (q *memoryQueue) remove(entries ...entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range entries {
		delete(q.leased, e.ReceiptHandle)
	}
}

type received struct {
	Messages []receivedMessage `json:",omitempty"`
}

type receivedMessage struct {
	MessageId     string
	ReceiptHandle string
	MD5OfBody     string
	Body          string
	Attributes    map[string]string `json:",omitempty"`
}

func (q *memoryQueue) receive(ctx context.Context, in *request) received {
	// The queue does not watch its delayed messages while it waits: the
	// benchmark polls for none of them.
	ctx, cancel := context.WithTimeout(ctx, time.Duration(in.WaitTimeSeconds)*time.Second)
	defer cancel()
	for {
		q.mu.Lock()
		out := q.take(in)
		if len(out.Messages) > 0 || ctx.Err() != nil {
			q.mu.Unlock()
			return out
		}
		wake := make(chan struct{})
		q.waiting = append(q.waiting, wake)
		q.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			q.mu.Lock()
			q.waiting = slices.DeleteFunc(q.waiting, func(c chan struct{}) bool { return c == wake })
			q.mu.Unlock()
		}
	}
}

// take leases what can be had now. The caller holds the lock.
func (q *memoryQueue) take(in *request) (out received) {
	if len(q.delayed) > 0 {
		for now := time.Now().UnixNano(); len(q.delayed) > 0 && q.delayed[0].due <= now; {
			q.ready = append(q.ready, heap.Pop(&q.delayed).(memoryMessage))
		}
	}
	for range cmp.Or(in.MaxNumberOfMessages, 1) {
		if q.head == len(q.ready) {
			break
		}
		m := q.ready[q.head]
		q.ready[q.head] = memoryMessage{}
		q.head++
		m.receives++
		q.handles++
		got := receivedMessage{
			MessageId:     fixedID,
			ReceiptHandle: strconv.FormatUint(q.handles, 36) + "-" + fixedID,
			MD5OfBody:     digest(m.body),
			Body:          m.body,
		}
		if slices.Contains(in.MessageSystemAttributeNames, "ApproximateReceiveCount") {
			got.Attributes = map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.receives)}
		}
		out.Messages = append(out.Messages, got)
		if in.VisibilityTimeout != nil && *in.VisibilityTimeout == 0 {
			q.ready = append(q.ready, m)
		} else {
			q.leased[got.ReceiptHandle] = m
		}
	}
	if q.head > 1024 && 2*q.head > len(q.ready) {
		kept := copy(q.ready, q.ready[q.head:])
		clear(q.ready[kept:])
		q.ready, q.head = q.ready[:kept], 0
	}
	return out
}

func (q *memoryQueue) attributes() map[string]string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return map[string]string{
		"ApproximateNumberOfMessages":           strconv.Itoa(len(q.ready) - q.head),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(len(q.delayed)),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(len(q.leased)),
	}
}

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const fifoGroups = 6

// fifoSiege is the load of a FIFO queue on a server that is killed again and again.
// Every group has a sender that numbers its messages, and repeats each until it is
// acknowledged; consumers delete some of what they receive. No group's message is
// received before an earlier one was, none comes again after its deletion was
// acknowledged, and none is lost or there twice.
type fifoSiege struct {
	*server
	queue string
	next  [fifoGroups]int // the number of the message that was not acknowledged yet
	round int

	mu      sync.Mutex
	acked   [fifoGroups]map[int]string // by number: the sequence number
	seen    [fifoGroups]map[int]bool
	deleted [fifoGroups]map[int]time.Time // when the deletion was acknowledged
	faults  []string
}

func newFIFOSiege(on *server) *fifoSiege {
	s := &fifoSiege{server: on}
	for g := range fifoGroups {
		s.acked[g], s.seen[g], s.deleted[g] = map[int]string{}, map[int]bool{}, map[int]time.Time{}
	}
	return s
}

func (s *fifoSiege) prepare(t *testing.T) {
	s.queue = s.p.createQueue(t, "line.fifo", "FifoQueue", "true", "VisibilityTimeout", seconds)
}

func (s *fifoSiege) attack(ctx context.Context, clients *sync.WaitGroup) {
	for g := range fifoGroups {
		clients.Go(func() { s.next[g] = s.send(ctx, g, s.next[g]) })
	}
	s.round++
	all := s.round%2 == 1
	for range 3 {
		clients.Go(func() {
			for ctx.Err() == nil && s.consume(ctx, all) == nil {
			}
		})
	}
}

func (s *fifoSiege) check(t *testing.T) {
	for g := range fifoGroups { // the last of each group may be in doubt
		s.sendOne(t.Context(), g, s.next[g])
	}
	eventually(t, "the FIFO queue is empty", func() (bool, error) {
		if err := s.consume(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		counts := s.p.counts(t, s.queue)
		return counts == [3]int{}, fmt.Errorf("%v messages", counts)
	})
	total := 0
	for g := range fifoGroups {
		total += len(s.acked[g])
		for n := range s.acked[g] {
			if !s.seen[g][n] {
				t.Errorf("message %d of group %d is lost", n, g)
			}
		}
	}
	for _, f := range s.faults {
		t.Error(f)
	}
	t.Logf("%d messages in order", total)
}

func (s *fifoSiege) worked(lives int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for g := range fifoGroups {
		total += len(s.acked[g])
	}
	if total < 4*lives {
		return fmt.Errorf("%d messages in order, in %d lives", total, lives)
	}
	return nil
}

// send sends a group's messages from number n on, and returns the first one
// that was not acknowledged.
func (s *fifoSiege) send(ctx context.Context, g, n int) int {
	for ctx.Err() == nil && s.sendOne(ctx, g, n) {
		n++
	}
	return n
}

// sendOne sends a message, again if it was in doubt: it is there once.
func (s *fifoSiege) sendOne(ctx context.Context, g, n int) bool {
	var out struct{ SequenceNumber string }
	err := s.p.sqs(ctx, "SendMessage", object{
		"QueueUrl": s.queue, "MessageBody": fmt.Sprint(g, " ", n), "MessageGroupId": fmt.Sprint("group-", g), "MessageDeduplicationId": fmt.Sprint(g, "-", n),
	}, &out)
	if err != nil {
		s.explain(err)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.acked[g][n-1]; before >= out.SequenceNumber {
		s.faults = append(s.faults, fmt.Sprintf("group %d: number %s follows %s", g, out.SequenceNumber, before))
	}
	s.acked[g][n] = out.SequenceNumber
	return true
}

func (s *fifoSiege) explain(err error) {
	if r, ok := errors.AsType[*refusal](err); ok && !strings.Contains(r.message, "expired") {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = append(s.faults, "refused: "+r.Error())
	}
}

// consume receives once and deletes what it got, or half of it.
func (s *fifoSiege) consume(ctx context.Context, all bool) error {
	began := time.Now()
	got, err := s.p.receive(ctx, s.queue, 1)
	if err != nil {
		s.explain(err)
		return err
	}
	for _, m := range got {
		s.note(m, began)
	}
	for _, m := range got {
		g, n := numbered(m.Body)
		if !all && n%2 == 0 && len(got) > 1 {
			continue
		}
		if err := s.p.sqs(ctx, "DeleteMessage", object{"QueueUrl": s.queue, "ReceiptHandle": m.ReceiptHandle}, nil); err != nil {
			s.explain(err)
			if _, refused := errors.AsType[*refusal](err); !refused {
				return err
			}
			continue
		}
		s.mu.Lock()
		s.deleted[g][n] = time.Now()
		s.mu.Unlock()
	}
	return nil
}

// note takes down what a receive gave that began at some time.
func (s *fifoSiege) note(m message, began time.Time) {
	g, n := numbered(m.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.deleted[g][n]; !at.IsZero() && began.After(at) {
		s.faults = append(s.faults, fmt.Sprintf("message %d of group %d comes after its deletion", n, g))
	}
	if n > 0 && !s.seen[g][n-1] {
		s.faults = append(s.faults, fmt.Sprintf("message %d of group %d comes before the one before it", n, g))
	}
	s.seen[g][n] = true
}

func numbered(body string) (g, n int) {
	a, b, _ := strings.Cut(body, " ")
	g, _ = strconv.Atoi(a)
	n, _ = strconv.Atoi(b)
	return g, n
}

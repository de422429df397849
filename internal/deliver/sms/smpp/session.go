package smpp

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// How long the SMSC may be silent: before it is asked whether it is there, and until it
// answers that, or a bind.
const (
	silence     = 30 * time.Second
	linkTimeout = 10 * time.Second
	// answerWithin is how long a submit waits for its answer, and windowWithin for a place in the
	// window.
	answerWithin = 15 * time.Second
	windowWithin = 5 * time.Minute
)

var (
	errEnded   = errors.New("smpp: the session has ended")
	errTimeout = errors.New("smpp: no time was left")
)

// session is a bind, from which messages are submitted, up to a window of them unanswered.
type session struct {
	conn    net.Conn
	window  chan struct{}
	deliver func(d delivered)
	ended   chan struct{} // closed with conn

	write sync.Mutex // held for a write

	mu       sync.Mutex
	next     uint32
	waiting  map[uint32]chan answered // by sequences
	over     bool
	heard    bool // since the link was looked at
	enquired bool
	timer    clock.Timer
}

// answered is what the SMSC has said to a submit.
type answered struct {
	status uint32
	id     string // by which it has taken the part
}

func newSession(conn net.Conn, window int, deliver func(d delivered)) *session {
	return &session{
		conn: conn, window: make(chan struct{}, window), deliver: deliver, ended: make(chan struct{}), waiting: map[uint32]chan answered{},
	}
}

// run reads until the session ends.
func (s *session) run(in *bufio.Reader) {
	s.watch()
	defer s.end()
	for {
		p, err := readPDU(in)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.heard = true
		s.mu.Unlock()
		switch p.command {
		case enquireLink:
			err = s.send(pdu{command: enquireLink | answer, sequence: p.sequence})
		case deliverSM:
			if d, ok := readDelivered(p.body); ok {
				s.deliver(d)
			}
			err = s.send(pdu{command: deliverSM | answer, sequence: p.sequence, body: []byte{0}})
		case unbind:
			_ = s.send(pdu{command: unbind | answer, sequence: p.sequence})
			return
		case submit | answer, genericNack:
			s.answered(p)
		case enquireLink | answer, bindTransceiver | answer:
		case unbind | answer:
			return
		default:
			if p.command&answer == 0 {
				err = s.send(pdu{command: genericNack, status: statusInvalidCommand, sequence: p.sequence})
			}
		}
		if err != nil {
			return
		}
	}
}

// watch asks from time to time whether the SMSC is still there, and ends the session where
// it says nothing.
func (s *session) watch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	wait := silence
	if len(s.waiting) > 0 || s.enquired {
		wait = linkTimeout
	}
	s.timer = clock.System.AfterFunc(wait, s.checkIdle)
}

func (s *session) checkIdle() {
	s.mu.Lock()
	heard, enquired := s.heard, s.enquired
	s.heard, s.enquired = false, !heard
	s.next++
	sequence := s.next
	s.mu.Unlock()
	switch {
	case !heard && enquired:
		s.end()
		return
	case !heard:
		if s.send(pdu{command: enquireLink, sequence: sequence}) != nil {
			s.end()
			return
		}
	}
	s.watch()
}

// send writes a PDU that nobody waits for.
func (s *session) send(p pdu) error {
	_, err := s.put(p)
	return err
}

// put writes a PDU. whole says that all of it has left.
func (s *session) put(p pdu) (whole bool, err error) {
	b := p.append(nil)
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.conn.SetWriteDeadline(clock.System.Now().Add(linkTimeout)); err != nil {
		return false, err
	}
	n, err := s.conn.Write(b)
	return n == len(b), err
}

// submit sends a message's part and waits for its answer. unknown says that it was sent
// and that there is no answer. Errors: errEnded, errTimeout.
func (s *session) submit(ctx context.Context, body []byte) (a answered, unknown bool, err error) {
	select {
	case s.window <- struct{}{}:
	case <-s.ended:
		return a, false, errEnded
	case <-ctx.Done():
		return a, false, errTimeout
	}
	defer func() { <-s.window }()
	if ctx.Err() != nil {
		return a, false, errTimeout
	}
	// The time of an answer begins now: what is given up behind the submit may come twice.
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	came := make(chan answered, 1)
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return a, false, errEnded
	}
	s.next++
	sequence := s.next
	s.waiting[sequence] = came
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, sequence)
		s.mu.Unlock()
	}()

	if whole, err := s.put(pdu{command: submit, sequence: sequence, body: body}); err != nil {
		s.end()
		if !whole {
			return a, false, errEnded
		}
	}
	select {
	case a := <-came:
		return a, false, nil
	case <-s.ended:
		select {
		case a := <-came: // just before
			return a, false, nil
		default:
			return a, true, errEnded
		}
	case <-ctx.Done():
		return a, true, errTimeout
	}
}

func (s *session) answered(p pdu) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if came, ok := s.waiting[p.sequence]; ok {
		delete(s.waiting, p.sequence)
		status := p.status
		if p.command == genericNack && status == statusOK {
			status = statusInvalidCommand
		}
		came <- answered{status, messageID(p.body)}
	}
}

// end ends the session.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
	close(s.ended)
	_ = s.conn.Close() // nothing is written any more
}

// leave unbinds from the SMSC, and ends the session.
func (s *session) leave() {
	s.mu.Lock()
	s.next++
	sequence := s.next
	s.mu.Unlock()
	_ = s.send(pdu{command: unbind, sequence: sequence})
	s.end()
}

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

// Timeouts of a silent SMSC: before an enquire_link, and for the answer to that, or to a
// bind.
const (
	silence     = 30 * time.Second
	linkTimeout = 10 * time.Second
	// answerWithin is the timeout of a submit's answer, and windowWithin of a slot in the
	// window.
	answerWithin = 15 * time.Second
	windowWithin = 5 * time.Minute
)

var (
	errEnded   = errors.New("smpp: the session has ended")
	errTimeout = errors.New("smpp: no time was left")
)

// session is a bind, with a window of unanswered submits.
type session struct {
	conn    net.Conn
	window  chan struct{}
	deliver func(d delivered)
	ended   chan struct{} // closed with conn

	write sync.Mutex // held for a write

	mu       sync.Mutex
	next     uint32
	waiting  map[uint32]chan answered // by sequence number
	over     bool
	heard    bool // since the last check of the link
	enquired bool
	timer    clock.Timer
}

// answered is the answer to a submit.
type answered struct {
	status uint32
	id     string // the SMSC's id of the part
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

// watch checks the link at intervals, and ends the session if the SMSC is silent.
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

// send writes a PDU without waiting for an answer.
func (s *session) send(p pdu) error {
	_, err := s.put(p)
	return err
}

// put writes a PDU. whole says that all of it was written.
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

// submit submits a part and waits for its answer. unknown says that it was sent, but not
// answered. Errors: errEnded, errTimeout.
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
	// The timeout begins after the submit was written: a part that times out may be
	// duplicated.
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
		case a := <-came: // it came just before
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
	_ = s.conn.Close() // there are no more writes
}

// leave unbinds, and ends the session.
func (s *session) leave() {
	s.mu.Lock()
	s.next++
	sequence := s.next
	s.mu.Unlock()
	_ = s.send(pdu{command: unbind, sequence: sequence})
	s.end()
}

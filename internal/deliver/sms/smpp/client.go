// Package smpp sends text messages to an SMSC, by SMPP 3.4, over one transceiver bind with
// many messages in flight. A lost bind is made again.
//
// A part without an answer may have been accepted: it is reported as unknown, and the next
// attempt sends it again. Nothing else is sent twice.
package smpp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	smssender "godwit.dev/godwit/internal/deliver/sms"
)

// Options are the dependencies and settings of a Client.
type Options struct {
	Address            string // HOST:PORT
	SystemID, Password string
	// Window bounds the unanswered parts; the default is 100.
	Window int
	// TLS has the authorities for the SMSC's certificate; nil: no TLS.
	TLS *tls.Config
	// Received is called for messages from phones, and Receipt for receipts of accepted
	// messages: DELIVRD, UNDELIV, …, with the SMSC's id. Both may be nil, and must be quick.
	Received func(from, text string)
	Receipt  func(id, state string)
}

// again is the delay before the next bind after a failed one.
const again = time.Second

// Client implements smssender.Carrier.
type Client struct {
	options Options

	mu      sync.Mutex
	session *session
	binding chan struct{} // closed when the current bind has ended; nil: there is none
	failure error         // of the last bind
	failed  time.Time
	closed  bool
}

var _ smssender.Carrier = (*Client)(nil)

// New makes a client. It binds for the first message.
func New(o Options) *Client {
	if o.Window == 0 {
		o.Window = 100
	}
	return &Client{options: o}
}

// Host names the SMSC.
func (c *Client) Host() string { return c.options.Address }

// Close ends the session.
func (c *Client) Close() {
	c.mu.Lock()
	s := c.session
	c.session, c.closed = nil, true
	c.mu.Unlock()
	if s != nil {
		s.leave()
	}
}

// permanent are the statuses of permanent refusals.
var permanent = map[uint32]string{
	0x01: "Message body is invalid", 0x0a: "Message body is invalid", 0x0b: "Invalid phone number",
	0x45: "Phone carrier has blocked this message", 0x50: "Message body is invalid", 0x51: "Invalid phone number",
}

// AttemptTimeout bounds an attempt, which may wait for the window.
func (c *Client) AttemptTimeout() time.Duration { return windowWithin + answerWithin }

// Deliver makes one attempt.
func (c *Client) Deliver(ctx context.Context, t *smssender.Text) smssender.Result {
	s, err := c.bound(ctx)
	if err != nil {
		return smssender.Result{Outcome: deliver.Outcome{Detail: err.Error()}, Sent: t.Sent}
	}
	type part struct {
		number int
		answered
		unknown bool
		err     error
	}
	answers := make(chan part, len(t.Parts))
	n := 0
	for i := range t.Parts {
		if t.Taken(i) {
			continue
		}
		n++
		one := func() {
			a, unknown, err := s.submit(ctx, submitBody(t, i))
			answers <- part{i, a, unknown, err}
		}
		if len(t.Parts) == 1 {
			one()
		} else {
			go one()
		}
	}
	result := smssender.Result{Outcome: deliver.Outcome{Class: deliver.Success}, Sent: make([]bool, len(t.Parts))}
	copy(result.Sent, t.Sent)
	for range n {
		switch p := <-answers; {
		case p.err != nil:
			if p.unknown {
				result.Unknown++
			}
			if result.Class != deliver.ClientError {
				result.Class, result.Detail = deliver.ServerError, words(p.err, p.unknown)
			}
		case p.status == statusOK:
			result.Sent[p.number] = true
			if p.id != "" {
				result.IDs = append(result.IDs, p.id)
			}
		default:
			response, forGood := permanent[p.status]
			detail := fmt.Sprintf("the SMSC refused the message: 0x%08X", p.status)
			switch {
			case forGood:
				result.Class, result.Detail, result.Response = deliver.ClientError, detail, response
			case result.Class != deliver.ClientError:
				result.Class, result.Detail = deliver.ServerError, detail
			}
		}
	}
	return result
}

func words(err error, unknown bool) string {
	switch {
	case unknown:
		return "the SMSC did not answer, and may have taken the message"
	case errors.Is(err, errTimeout):
		return "the SMSC did not take the message in time"
	default:
		return "the connection to the SMSC was lost"
	}
}

// The errors of a bind. They contain no text of the SMSC.
var (
	errClosed  = errors.New("the connection to the SMSC has been closed")
	errDial    = errors.New("the SMSC cannot be reached")
	errBinding = errors.New("the SMSC did not answer in time")
	errGarbage = errors.New("the SMSC does not speak SMPP")
)

// bound returns the session, and makes one if necessary.
func (c *Client) bound(ctx context.Context) (*session, error) {
	c.mu.Lock()
	for {
		if s := c.session; s != nil {
			select {
			case <-s.ended:
				c.session = nil
			default:
				c.mu.Unlock()
				return s, nil
			}
		}
		switch {
		case c.closed:
			c.mu.Unlock()
			return nil, errClosed
		case c.binding == nil && c.failure != nil && clock.System.Now().Sub(c.failed) < again:
			defer c.mu.Unlock()
			return nil, c.failure
		case c.binding == nil:
			c.binding = make(chan struct{})
			go c.bind(c.binding)
		}
		done := c.binding
		c.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return nil, errBinding
		}
		c.mu.Lock()
		if c.session == nil && c.failure != nil {
			defer c.mu.Unlock()
			return nil, c.failure
		}
	}
}

// bind makes a session, and wakes all that wait for it.
func (c *Client) bind(done chan struct{}) {
	s, in, err := c.dial()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.binding = nil
	close(done)
	c.failure, c.failed = err, clock.System.Now()
	if err != nil {
		return
	}
	if c.closed {
		s.end()
		return
	}
	c.session = s
	go s.run(in)
}

func (c *Client) dial() (*session, *bufio.Reader, error) {
	ctx, cancel := context.WithTimeout(context.Background(), linkTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.options.Address)
	if err != nil {
		return nil, nil, errDial
	}
	deadline := clock.System.Now().Add(linkTimeout)
	_ = conn.SetDeadline(deadline) // without a deadline, the connection will fail soon enough
	if c.options.TLS != nil {
		cfg := c.options.TLS.Clone()
		if cfg.ServerName == "" {
			cfg.ServerName, _, _ = net.SplitHostPort(c.options.Address)
		}
		secure := tls.Client(conn, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, nil, errors.New("no TLS connection to the SMSC can be made")
		}
		conn = secure
	}
	s := newSession(conn, c.options.Window, c.delivered)
	in := bufio.NewReader(conn)
	s.next++
	if err = s.send(pdu{command: bindTransceiver, sequence: s.next, body: bindBody(c.options.SystemID, c.options.Password)}); err == nil {
		err = bindAnswer(in)
	}
	if err != nil {
		s.end()
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return s, in, nil
}

// bindAnswer waits for the answer to a bind.
func bindAnswer(in *bufio.Reader) error {
	for {
		p, err := readPDU(in)
		var network net.Error
		switch {
		case errors.Is(err, errPDU):
			return errGarbage
		case errors.As(err, &network) && network.Timeout():
			return errBinding
		case err != nil:
			return errDial
		case p.command == bindTransceiver|answer || p.command == genericNack:
			if p.status != statusOK || p.command == genericNack {
				return fmt.Errorf("the SMSC refused the bind: 0x%08X", p.status)
			}
			return nil
		}
	}
}

// delivered handles a deliver_sm of the SMSC.
func (c *Client) delivered(d delivered) {
	switch {
	case d.receipt && c.options.Receipt != nil:
		c.options.Receipt(receiptOf(d))
	case !d.receipt && c.options.Received != nil:
		c.options.Received(d.from, d.text)
	}
}

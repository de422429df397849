package mailsender

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
)

// RelayOptions are the settings of a Relay.
type RelayOptions struct {
	Address string // HOST:PORT
	// Security is how the connection is encrypted.
	Security Security
	// User and Password are for AUTH PLAIN; an empty User: none.
	User, Password string
	// Name is this machine's name in EHLO; empty: localhost.
	Name string
	// TLS has the authorities for the relay's certificate; nil: the system's.
	TLS *tls.Config
	// Connections bounds the open connections, and Kept the idle ones. The defaults are 8 and
	// 4.
	Connections, Kept int
	// Answer is the timeout of an attempt up to the final dot, from when it has a connection;
	// the default is 15 s.
	Answer time.Duration
}

// Security is how a connection to a relay is encrypted.
type Security int

// The kinds of encryption. With StartTLS, a relay without STARTTLS is not used.
const (
	StartTLS Security = iota // by an SMTP command, before all others
	ImplicitTLS
	Plain // for a relay on the same machine
)

// The lifetime of an idle connection, and the delay before a mail is retried that a relay did
// not confirm. It may have been accepted: relays have ten minutes to confirm (RFC 5321,
// 4.5.3.2.6).
const (
	keptFor   = 30 * time.Second
	lostAfter = 10 * time.Minute
)

// Relay sends mails to an SMTP server. It implements Transport.
type Relay struct {
	options RelayOptions
	slots   chan struct{}

	mu     sync.Mutex
	kept   []*connection // the most recently used last
	closed bool
}

// NewRelay makes a relay. It connects for the first mail.
func NewRelay(o RelayOptions) *Relay {
	if o.Connections == 0 {
		o.Connections = 8
	}
	if o.Kept == 0 {
		o.Kept = 4
	}
	if o.Answer == 0 {
		o.Answer = answerWithin
	}
	if o.Name == "" {
		o.Name = "localhost"
	}
	return &Relay{options: o, slots: make(chan struct{}, o.Connections)}
}

// connection is a connection to a relay, after EHLO.
type connection struct {
	*smtp.Client
	conn  net.Conn
	since time.Time // since when it is idle
}

// stage is the stage of an attempt.
type stage int

const (
	connecting stage = iota
	naming           // MAIL
	addressing       // RCPT
	beginning        // DATA
	sending          // the mail
	ending           // the final dot
)

var stages = [...]string{
	connecting: "the connection", naming: "the sender", addressing: "the recipient", beginning: "a mail", sending: "the mail", ending: "the mail",
}

// errTooLarge is the error for a mail above the relay's limit.
var errTooLarge = errors.New("mail: too large for the relay")

// Host implements Transport.
func (r *Relay) Host() string { return r.options.Address }

// Close closes the idle connections, and those in use when they are done.
func (r *Relay) Close() {
	r.mu.Lock()
	kept := r.kept
	r.kept, r.closed = nil, true
	r.mu.Unlock()
	for _, c := range kept {
		_ = c.conn.Close()
	}
}

// Deliver sends a mail.
func (r *Relay) Deliver(ctx context.Context, m *Mail) deliver.Outcome {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return deliver.Outcome{Class: deliver.ServerError, Detail: "all connections to the relay are busy"}
	}
	c := r.take()
	at, late, err := r.attempt(ctx, c, m)
	if c != nil && at == naming && isStale(err) && !late {
		// The relay has closed the idle connection, before any command of this mail.
		at, late, err = r.attempt(ctx, nil, m)
	}
	return outcome(at, err, late)
}

// attempt sends a mail over an idle connection, or else a new one. It returns the stage, and
// whether the attempt timed out. The timeout starts here, when the attempt has its slot: a
// mail that times out after the final dot may be delivered twice.
func (r *Relay) attempt(ctx context.Context, c *connection, m *Mail) (at stage, late bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := clock.System.AfterFunc(r.options.Answer, cancel)
	defer func() { limit.Stop() }()
	if c == nil {
		if c, err = r.connect(ctx); err != nil {
			return connecting, ctx.Err() != nil, err
		}
	}
	release := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	at, err = c.send(m, func() {
		if limit.Stop() {
			limit = clock.System.AfterFunc(confirmWithin, cancel)
		}
	})
	if !release() { // it was closed
		return at, true, err
	}
	if reply, ok := errors.AsType[*smtp.SMTPError](err); ok && reply.Code != goingAway || errors.Is(err, errTooLarge) {
		// The connection is in order, and is reused.
		c.CommandTimeout = resetWithin
		if c.Reset() == nil {
			c.CommandTimeout = unlimited
			r.keep(c)
			return at, false, err
		}
	}
	if err != nil {
		_ = c.conn.Close()
		return at, false, err
	}
	r.keep(c)
	return at, false, nil
}

const (
	goingAway   = 421 // the reply of a relay that closes the connection
	resetWithin = time.Second
	unlimited   = time.Hour // the attempt's context ends it earlier

	answerWithin  = 15 * time.Second // up to the final dot
	confirmWithin = 10 * time.Minute // after it. Source: RFC 5321, 4.5.3.2.6
)

// send sends a mail. It calls ends before the final dot.
func (c *connection) send(m *Mail, ends func()) (stage, error) {
	if most, ok := c.MaxMessageSize(); ok && most > 0 && len(m.Message) > most {
		return naming, errTooLarge
	}
	if err := c.Mail(m.From, nil); err != nil {
		return naming, err
	}
	if err := c.Rcpt(m.To, nil); err != nil {
		return addressing, err
	}
	w, err := c.Data()
	if err != nil {
		return beginning, err
	}
	if _, err := w.Write(m.Message); err != nil {
		return sending, err
	}
	ends()
	return ending, w.Close()
}

// connect opens a connection, up to EHLO and authentication.
func (r *Relay) connect(ctx context.Context) (*connection, error) {
	o := &r.options
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", o.Address)
	if err != nil {
		return nil, err
	}
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	client, err := r.greet(&quiet{Conn: conn})
	if !release() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	// The context has the timeout.
	client.CommandTimeout, client.SubmissionTimeout = unlimited, unlimited
	return &connection{Client: client, conn: conn}, nil
}

// maxReplies bounds a relay's replies between two commands, in bytes: the length of a
// multi-line reply is not limited otherwise.
const maxReplies = 64 << 10

var errTalk = errors.New("mail: the relay does not stop to answer")

// quiet is a connection that bounds the replies of the relay.
type quiet struct {
	net.Conn
	said atomic.Int64 // bytes received since the last write
}

func (q *quiet) Read(b []byte) (int, error) {
	if q.said.Load() > maxReplies {
		return 0, errTalk
	}
	n, err := q.Conn.Read(b)
	q.said.Add(int64(n))
	return n, err
}

func (q *quiet) Write(b []byte) (int, error) {
	q.said.Store(0)
	return q.Conn.Write(b)
}

func (r *Relay) greet(conn net.Conn) (client *smtp.Client, err error) {
	o := &r.options
	secured := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		secured = o.TLS.Clone()
	}
	if secured.ServerName == "" {
		secured.ServerName, _, _ = net.SplitHostPort(o.Address)
	}
	switch o.Security {
	case StartTLS:
		if client, err = smtp.NewClientStartTLS(conn, secured); err != nil {
			return nil, err
		}
	case ImplicitTLS:
		client = smtp.NewClient(tls.Client(conn, secured))
	default:
		client = smtp.NewClient(conn)
	}
	if err := client.Hello(o.Name); err != nil {
		return nil, err
	}
	if o.User != "" {
		return client, client.Auth(sasl.NewPlainClient("", o.User, o.Password))
	}
	return client, nil
}

// take returns an idle connection; nil: there is none.
func (r *Relay) take() *connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) == 0 {
		return nil
	}
	last := len(r.kept) - 1
	c := r.kept[last]
	r.kept = r.kept[:last]
	return c
}

// keep keeps a connection idle for a while.
func (r *Relay) keep(c *connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.kept) >= r.options.Kept {
		_ = c.conn.Close()
		return
	}
	c.since = clock.System.Now()
	r.kept = append(r.kept, c)
	clock.System.AfterFunc(keptFor, r.expire)
}

// expire closes connections that have been idle for too long.
func (r *Relay) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := clock.System.Now()
	r.kept = slices.DeleteFunc(r.kept, func(c *connection) bool {
		old := now.Sub(c.since) >= keptFor
		if old {
			_ = c.conn.Close()
		}
		return old
	})
}

// isStale reports whether an idle connection was closed before it was reused.
func isStale(err error) bool {
	if err == nil || errors.Is(err, errTooLarge) {
		return false
	}
	reply, ok := errors.AsType[*smtp.SMTPError](err)
	return !ok || reply.Code == goingAway
}

// outcome is the outcome of a failure. A permanent refusal of a mail is client-side; a
// refusal of the connection is server-side, because the operator can correct it. Only the
// codes of a reply are reported: its text may contain the address.
func outcome(at stage, err error, late bool) deliver.Outcome {
	reply, refused := errors.AsType[*smtp.SMTPError](err)
	switch {
	case err == nil:
		return deliver.Outcome{Class: deliver.Success}
	case errors.Is(err, errTooLarge):
		return deliver.Outcome{Class: deliver.ClientError, Detail: "the mail is larger than the relay takes"}
	case refused:
		o := deliver.Outcome{Class: deliver.ServerError, Detail: fmt.Sprintf("the relay refused %s: %s", stages[at], codes(reply))}
		if reply.Code/100 == 5 && at > connecting {
			o.Class = deliver.ClientError
		}
		return o
	case at == ending:
		return deliver.Outcome{
			Class: deliver.ServerError, RetryAfter: lostAfter, Detail: "the relay did not confirm the mail, and may have taken it",
		}
	case late:
		return deliver.Outcome{Class: deliver.ServerError, Detail: "the relay did not answer in time"}
	default:
		return deliver.Outcome{Class: deliver.ServerError, Detail: "the connection to the relay failed"}
	}
}

func codes(e *smtp.SMTPError) string {
	if e.EnhancedCode == smtp.NoEnhancedCode || e.EnhancedCode == smtp.EnhancedCodeNotSet {
		return fmt.Sprint(e.Code)
	}
	return fmt.Sprintf("%d %d.%d.%d", e.Code, e.EnhancedCode[0], e.EnhancedCode[1], e.EnhancedCode[2])
}

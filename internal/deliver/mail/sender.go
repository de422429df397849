package mailsender

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"fmt"
	"strings"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/topic"
)

// Mail is one that is to be sent.
type Mail struct {
	From, To string // addresses, of the envelope
	Message  []byte // with its head; lines end with CR LF
}

// Transport takes mails further. It may be used concurrently.
type Transport interface {
	// Host names who answers for all mails.
	Host() string
	// Deliver makes one attempt. When ctx ends it returns without delay. No outcome
	// shows an address, or what a relay has said beyond its codes.
	Deliver(ctx context.Context, m *Mail) deliver.Outcome
}

// DKIM signs mails for the domain that they come from.
type DKIM struct {
	Selector string
	Key      crypto.Signer
}

// Options are what a Sender is made of.
type Options struct {
	From string // the address that mails come from; empty: DefaultFrom
	// Transport takes mails further; nil: every attempt fails, and is made again later.
	Transport Transport
	DKIM      *DKIM // nil: mails are not signed
	// Injected is the outage that an operator has asked for, of the mails of an account and
	// region, which are arn.Direct's of email; may be nil.
	Injected func(a arn.ARN) error
}

// Sender composes and sends mails. It implements deliver.Sender.
type Sender struct {
	Options
}

var _ deliver.Sender = (*Sender)(nil)

// New makes a sender.
func New(o Options) *Sender {
	o.From = cmp.Or(o.From, DefaultFrom)
	return &Sender{o}
}

// DefaultFrom is an address that mails come from where no other one is set. Nobody has it.
const DefaultFrom = "no-reply@godwit.localhost"

// Host is whoever takes all mails.
func (s *Sender) Host(string) string {
	if s.Transport == nil {
		return "mail"
	}
	return s.Transport.Host()
}

// Local is false: mails leave this process.
func (s *Sender) Local() bool { return false }

// AttemptTimeout implements deliver.Timed: a relay may take ten minutes to confirm a mail, and
// mails wait for their turn at it. Source: RFC 5321, 4.5.3.2.
func (s *Sender) AttemptTimeout() time.Duration { return 2 * confirmWithin }

// Send makes one attempt.
func (s *Sender) Send(ctx context.Context, r *deliver.Request) deliver.Outcome {
	if s.Transport == nil {
		return deliver.Outcome{Detail: "there is no mail relay"}
	}
	if ctx.Err() != nil {
		return deliver.Outcome{Detail: "no time was left"}
	}
	if of := r.Subscription.ARN; s.Injected != nil && s.Injected(arn.Direct(of.Region, of.Account, topic.Email.String())) != nil {
		return deliver.Outcome{Detail: "mails fail on purpose"}
	}
	body, err := compose(r, s.From)
	if err == nil {
		body, err = s.sign(body)
	}
	if err != nil {
		return deliver.Outcome{Class: deliver.ClientError, Detail: "no mail can be made of the message"}
	}
	began := clock.System.Now()
	out := s.Transport.Deliver(ctx, &Mail{From: s.From, To: r.Subscription.Endpoint, Message: body})
	out.Latency = clock.System.Now().Sub(began)
	return out
}

// signed are the headers that a signature covers: all that a reader is shown, or acts by.
var signed = []string{
	"From", "To", "Subject", "Date", "Message-Id", "Mime-Version", "Content-Type", "Content-Transfer-Encoding",
	"List-Unsubscribe", "List-Unsubscribe-Post",
}

func (s *Sender) sign(mail []byte) ([]byte, error) {
	if s.DKIM == nil {
		return mail, nil
	}
	var b bytes.Buffer
	err := dkim.Sign(&b, bytes.NewReader(mail), &dkim.SignOptions{
		Domain: s.From[strings.LastIndexByte(s.From, '@')+1:], Selector: s.DKIM.Selector, Signer: s.DKIM.Key,
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed, HeaderKeys: signed,
	})
	if err != nil {
		return nil, fmt.Errorf("mail: signing: %w", err)
	}
	return b.Bytes(), nil
}

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

// Mail is a mail to be sent.
type Mail struct {
	From, To string // of the envelope
	Message  []byte // with its headers; lines end with CR LF
}

// Transport sends mails. It may be used concurrently.
type Transport interface {
	// Host names the host of all mails.
	Host() string
	// Deliver makes one attempt. When ctx ends it returns without delay. No outcome contains
	// an address, or a relay's reply beyond its codes.
	Deliver(ctx context.Context, m *Mail) deliver.Outcome
}

// DKIM signs mails for the domain of their sender.
type DKIM struct {
	Selector string
	Key      crypto.Signer
}

// Options are the dependencies and settings of a Sender.
type Options struct {
	From string // the sender's address; empty: DefaultFrom
	// Transport sends mails; nil: every attempt fails, and is retried.
	Transport Transport
	DKIM      *DKIM // nil: mails are not signed
	// Injected returns the injected fault for mails of an account and region, by arn.Direct
	// of email; may be nil.
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

// DefaultFrom is the default address of the sender. Nobody has it.
const DefaultFrom = "no-reply@godwit.localhost"

// Host is the transport's host.
func (s *Sender) Host(string) string {
	if s.Transport == nil {
		return "mail"
	}
	return s.Transport.Host()
}

// Local is false: mails leave this process.
func (s *Sender) Local() bool { return false }

// AttemptTimeout implements deliver.Timed: a relay may take ten minutes to confirm a mail,
// and mails wait for a slot. Source: RFC 5321, 4.5.3.2.
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

// signed are the headers that a signature covers: those that are displayed, or acted on.
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

// Package smssender delivers text messages. It decides whether a message may be sent, renders
// it and splits it into parts; a Carrier sends it: an SMSC, a provider's HTTP API, or the
// outbox of development, which only stores messages.
package smssender

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/sms"
	"godwit.dev/godwit/internal/topic"
)

// The attributes for text messages. Source: the SNS developer guide, "Publishing to a mobile
// phone".
const (
	SenderIDAttribute    = "AWS.SNS.SMS.SenderID"
	MaxPriceAttribute    = "AWS.SNS.SMS.MaxPrice"
	TypeAttribute        = "AWS.SNS.SMS.SMSType"
	OriginationAttribute = "AWS.MM.SMS.OriginationNumber"
)

// Text is a text message to be sent.
type Text struct {
	To   string // international, without separators
	From string // a name or a number; empty: the carrier's default
	Body string
	sms.Text
	Type string // Promotional or Transactional
	// ID is the same for each attempt at a message.
	ID [16]byte
	// Sent says which parts earlier attempts have sent; nil: none.
	Sent []bool
}

// Reference is the concatenation reference of a message's parts.
func (t *Text) Reference() byte { return t.ID[0] }

// Taken reports whether a part was already sent.
func (t *Text) Taken(part int) bool { return part < len(t.Sent) && t.Sent[part] }

func (t *Text) unsent() (n int) {
	for i := range t.Parts {
		if !t.Taken(i) {
			n++
		}
	}
	return n
}

// Result is the result of an attempt.
type Result struct {
	deliver.Outcome
	// Sent says which parts were accepted, by this or earlier attempts; ignored with a
	// success.
	Sent []bool
	// Response is for the delivery status log; empty: the default of the class.
	Response string
	// IDs are the carrier's ids of the parts that it has accepted with this attempt, which
	// its receipts have; nil: there are none.
	IDs []string
	// Unknown is the number of parts that were sent without an answer: they may be
	// duplicated.
	Unknown int
	// OptedOut says that the number has opted out, according to the carrier.
	OptedOut bool
}

// Carrier sends texts. It may be used concurrently.
type Carrier interface {
	// Host names the host of all texts.
	Host() string
	// Deliver makes one attempt. When ctx ends it returns without delay. No outcome contains
	// a number, a text or a secret.
	Deliver(ctx context.Context, t *Text) Result
}

// Ledger checks opt-outs, the sandbox and spending limits; *texts.Module implements it.
type Ledger interface {
	Reserve(c texts.Charge) (texts.Terms, sms.Refusal)
	Spend(c texts.Charge, spent sms.MicroUSD) (month sms.MicroUSD)
	OptOutEverywhere(number string)
}

// Options are the dependencies and settings of a Sender.
type Options struct {
	// Carrier sends texts; nil: every attempt fails, and is retried.
	Carrier Carrier
	Ledger  Ledger
	Price   sms.MicroUSD // of a part
	From    string       // the default sender; empty: the carrier's
	// Injected returns the injected fault for an account's messages; may be nil.
	Injected func(p texts.Place) error
}

// Sender sends text messages. It implements deliver.Sender.
type Sender struct{ Options }

var _ deliver.Sender = (*Sender)(nil)

// New makes a sender.
func New(o Options) *Sender { return &Sender{o} }

// Host is the carrier's host.
func (s *Sender) Host(string) string {
	if s.Carrier == nil {
		return "sms"
	}
	return s.Carrier.Host()
}

// Local is false: texts leave this process.
func (s *Sender) Local() bool { return false }

// AttemptTimeout implements deliver.Timed: the carrier's timeout, if texts wait for slots
// there.
func (s *Sender) AttemptTimeout() time.Duration {
	if timed, ok := s.Carrier.(deliver.Timed); ok {
		return timed.AttemptTimeout()
	}
	return sendWithin
}

// sendWithin is the timeout of attempts with other carriers.
const sendWithin = 15 * time.Second

// Exempt is the group of the server's own messages, which the sandbox does not restrict.
const Exempt = "sandbox"

// Send makes one attempt.
func (s *Sender) Send(ctx context.Context, r *deliver.Request) deliver.Outcome {
	if s.Carrier == nil {
		return deliver.Outcome{Detail: "there is nobody who takes text messages"}
	}
	if ctx.Err() != nil {
		return deliver.Outcome{Detail: "no time was left"}
	}
	place := texts.Place{Account: r.Subscription.ARN.Account, Region: r.Subscription.ARN.Region}
	if s.Injected != nil && s.Injected(place) != nil {
		return deliver.Outcome{Detail: "text messages fail on purpose"}
	}
	t := &Text{Body: bodyOf(r), ID: idOf(r), Sent: kept(r.Kept)}
	wishes := wishesOf(r.Message.Attributes)
	cut, fits := sms.Cut(t.Body)
	number, valid := sms.Number(r.Subscription.Endpoint)
	t.Text, t.To = cut, number
	charge := texts.Charge{
		Place: place, Number: number, Cost: s.Price * sms.MicroUSD(t.unsent()), Most: wishes.MaxPrice,
		Exempt: r.Message.Notice.Topic == "" && r.Message.Group == Exempt,
	}
	terms, refused := s.Ledger.Reserve(charge)
	t.From, t.Type = cmp.Or(wishes.from(terms.SenderID), s.From), cmp.Or(wishes.Type, terms.Type)
	report := &deliver.TextReport{
		Parts: len(t.Parts), Price: (s.Price * sms.MicroUSD(len(t.Parts))).USD(), Type: t.Type,
		Feedback: topic.Feedback{
			Success: terms.LogRole != "", Failure: terms.LogRole != "", Rate: terms.Percent, SuccessRole: terms.LogRole, FailureRole: terms.LogRole,
		},
	}
	if refused == "" && (!valid || !fits) {
		s.Ledger.Spend(charge, 0)
		if refused = sms.TooLongRefusal; !valid {
			refused = sms.BadNumberRefusal
		}
	}
	if refused != "" {
		report.Response = string(refused)
		return deliver.Outcome{Class: deliver.ClientError, Detail: report.Response, Text: report}
	}

	before := t.unsent()
	began := clock.System.Now()
	result := s.Carrier.Deliver(ctx, t)
	out := result.Outcome
	out.Text, out.Latency = report, clock.System.Now().Sub(began)
	report.Response = cmp.Or(result.Response, responses[out.Class])
	taken := before
	if out.Class != deliver.Success {
		t.Sent = result.Sent
		taken = before - t.unsent()
		out.Kept = keep(t.Sent)
	}
	report.MonthSpent = s.Ledger.Spend(charge, s.Price*sms.MicroUSD(taken+result.Unknown)).USD()
	report.Unknown, report.IDs = result.Unknown, result.IDs
	if result.OptedOut {
		s.Ledger.OptOutEverywhere(t.To)
	}
	return out
}

// responses are the default responses for a delivery status log. Source: the SNS developer
// guide, "SMS delivery status".
var responses = map[deliver.Class]string{
	deliver.Success:     "Message has been accepted by phone carrier",
	deliver.ClientError: "Unknown error attempting to reach phone",
	deliver.ServerError: "Phone carrier is currently unreachable/unavailable",
}

// displayed is the number of characters of a topic's display name at the beginning of a
// message. Source: the SNS developer guide, "Creating an Amazon SNS topic".
const displayed = 10

func bodyOf(r *deliver.Request) string {
	body := string(r.Message.Body)
	if name := []rune(r.DisplayName); len(name) > 0 {
		return string(name[:min(displayed, len(name))]) + "> " + body
	}
	return body
}

// idOf is the same for each attempt at a delivery.
func idOf(r *deliver.Request) [16]byte {
	return uuid.NewSHA1(uuid.UUID(r.Message.ID), []byte(r.Message.Notice.Subscription))
}

// Wishes are the attributes of a message for text messages.
type Wishes struct {
	SenderID, Origination, Type string       // empty: not set
	MaxPrice                    sms.MicroUSD // negative: not set
}

// wishesOf reads the attributes of a message. Invalid ones are ignored.
func wishesOf(all []message.Attribute) Wishes {
	w := Wishes{MaxPrice: -1}
	for i := range all {
		value := string(all[i].Value)
		switch all[i].Name {
		case SenderIDAttribute:
			if sms.ValidSenderID(value) {
				w.SenderID = value
			}
		case OriginationAttribute:
			if sms.ValidOrigination(value) {
				w.Origination = value
			}
		case TypeAttribute:
			if sms.ValidType(value) {
				w.Type = value
			}
		case MaxPriceAttribute:
			if price, ok := sms.ParseUSD(value); ok {
				w.MaxPrice = price
			}
		}
	}
	return w
}

func (w *Wishes) from(sender string) string { return cmp.Or(w.Origination, w.SenderID, sender) }

// keep and kept encode and decode which parts were sent, as Outcome.Kept.
func keep(sent []bool) []byte {
	if !slices.Contains(sent, true) {
		return nil
	}
	b := []byte{keptVersion}
	for _, done := range sent {
		if done {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}

const keptVersion = 1

func kept(b []byte) (sent []bool) {
	if len(b) == 0 || b[0] != keptVersion {
		return nil
	}
	for _, done := range b[1:] {
		sent = append(sent, done == 1)
	}
	return sent
}

// Package smssender delivers text messages. Whether one may be sent, what it says and how
// it is cut into parts is decided here, once; a Carrier takes it further: an SMSC, a
// provider's HTTP API, or the outbox of development, which keeps messages and sends none.
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

// The attributes of a message that are about its text message. Source: the SNS developer
// guide, "Publishing to a mobile phone".
const (
	SenderIDAttribute    = "AWS.SNS.SMS.SenderID"
	MaxPriceAttribute    = "AWS.SNS.SMS.MaxPrice"
	TypeAttribute        = "AWS.SNS.SMS.SMSType"
	OriginationAttribute = "AWS.MM.SMS.OriginationNumber"
)

// Text is a text message that is to be sent.
type Text struct {
	To   string // in international form, without separators
	From string // a name or a number; empty: the carrier's own
	Body string
	sms.Text
	Type string // Promotional or Transactional
	// ID is the same for each attempt at a message.
	ID [16]byte
	// Sent says which parts a carrier has taken already, in earlier attempts; nil: none.
	Sent []bool
}

// Reference identifies the parts of a message among those of others to the same phone.
func (t *Text) Reference() byte { return t.ID[0] }

// Taken reports that a part needs not be sent any more.
func (t *Text) Taken(part int) bool { return part < len(t.Sent) && t.Sent[part] }

func (t *Text) unsent() (n int) {
	for i := range t.Parts {
		if !t.Taken(i) {
			n++
		}
	}
	return n
}

// Result is what came of an attempt at a text.
type Result struct {
	deliver.Outcome
	// Sent says which parts have been taken, now or before; it does not matter with a
	// success.
	Sent []bool
	// Response is what a delivery status log says; empty: what it says of the class.
	Response string
	// IDs are the carrier's own of the parts that it has taken now, by which its receipts
	// name them; nil: it gives none.
	IDs []string
	// Unknown is how many parts were sent, and the answer was lost: they may come twice.
	Unknown int
	// OptedOut says that the carrier knows that the number wants no messages.
	OptedOut bool
}

// Carrier takes texts further. It may be used concurrently.
type Carrier interface {
	// Host names who answers for all texts.
	Host() string
	// Deliver makes one attempt. When ctx ends it returns without delay. No outcome names
	// a number, a text or a secret.
	Deliver(ctx context.Context, t *Text) Result
}

// Ledger says who may get messages, and what they may cost: *texts.Module.
type Ledger interface {
	Reserve(c texts.Charge) (texts.Terms, sms.Refusal)
	Spend(c texts.Charge, spent sms.MicroUSD) (month sms.MicroUSD)
	OptOutEverywhere(number string)
}

// Options are what a Sender is made of.
type Options struct {
	// Carrier takes texts further; nil: every attempt fails, and is made again later.
	Carrier Carrier
	Ledger  Ledger
	Price   sms.MicroUSD // of a part
	From    string       // whom messages are from that name nobody; empty: the carrier's own
	// Injected is the outage of an account's messages that an operator has asked for; may
	// be nil.
	Injected func(p texts.Place) error
}

// Sender sends text messages. It implements deliver.Sender.
type Sender struct{ Options }

var _ deliver.Sender = (*Sender)(nil)

// New makes a sender.
func New(o Options) *Sender { return &Sender{o} }

// Host is whoever takes all texts.
func (s *Sender) Host(string) string {
	if s.Carrier == nil {
		return "sms"
	}
	return s.Carrier.Host()
}

// Local is false: texts leave this process.
func (s *Sender) Local() bool { return false }

// AttemptTimeout implements deliver.Timed: where texts wait for their turn at a carrier, it says
// for how long.
func (s *Sender) AttemptTimeout() time.Duration {
	if timed, ok := s.Carrier.(deliver.Timed); ok {
		return timed.AttemptTimeout()
	}
	return sendWithin
}

// sendWithin bounds an attempt at other carriers.
const sendWithin = 15 * time.Second

// Exempt is the group of messages that the server itself sends, whatever the sandbox says.
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
	t := &Text{Body: bodyOf(r), ID: idOf(r), Sent: kept(r.Kept())}
	wishes := WishesOf(r.Message.Attributes)
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

// responses are what a delivery status log says of attempts, unless the carrier knows
// better. Source: the SNS developer guide, "SMS delivery status".
var responses = map[deliver.Class]string{
	deliver.Success:     "Message has been accepted by phone carrier",
	deliver.ClientError: "Unknown error attempting to reach phone",
	deliver.ServerError: "Phone carrier is currently unreachable/unavailable",
}

// displayed is how much of a topic's name a message begins with, in characters. Source:
// the SNS developer guide, "Creating an Amazon SNS topic".
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

// Wishes are what a message's attributes say of its text message.
type Wishes struct {
	SenderID, Origination, Type string       // empty: nothing
	MaxPrice                    sms.MicroUSD // negative: nothing
}

// WishesOf reads the attributes of a message. What is not valid is not there.
func WishesOf(all []message.Attribute) Wishes {
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

// keep and kept write and read which parts have been taken, as what is kept of an attempt.
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

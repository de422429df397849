package smssender_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/deliver/sendertest"
	smssender "godwit.dev/godwit/internal/deliver/sms"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/sms"
	"godwit.dev/godwit/internal/topic"
)

// book is a ledger that notes what it is asked for.
type book struct {
	terms    texts.Terms
	refusal  sms.Refusal
	charges  []texts.Charge
	spent    []sms.MicroUSD
	optedOut []string
}

func (b *book) Reserve(c texts.Charge) (texts.Terms, sms.Refusal) {
	b.charges = append(b.charges, c)
	return b.terms, b.refusal
}

func (b *book) Spend(_ texts.Charge, spent sms.MicroUSD) sms.MicroUSD {
	b.spent = append(b.spent, spent)
	return 7
}

func (b *book) OptOutEverywhere(number string) { b.optedOut = append(b.optedOut, number) }

// carrier answers as a test says, and keeps the last text.
type carrier struct {
	result smssender.Result
	text   smssender.Text
	calls  int
}

func (c *carrier) Host() string { return "carrier" }

func (c *carrier) Deliver(_ context.Context, t *smssender.Text) smssender.Result {
	c.text, c.calls = *t, c.calls+1
	return c.result
}

func request(body string, change func(r *deliver.Request)) *deliver.Request {
	r := sendertest.Request(sendertest.Target{Protocol: topic.SMS, Endpoint: "+15/55-123.4567"})
	r.Message.Body = []byte(body)
	if change != nil {
		change(r)
	}
	return r
}

// What was taken of a message is kept with the attempt, is not sent again, and is paid for
// once; what was sent and not answered is paid for, too.
func TestParts(t *testing.T) {
	b := &book{}
	c := &carrier{result: smssender.Result{Outcome: deliver.Outcome{Detail: "busy"}, Sent: []bool{true, false, false}, Unknown: 1}}
	s := smssender.New(smssender.Options{Carrier: c, Ledger: b, Price: 10})
	long := strings.Repeat("a word ", 60)
	first := s.Send(t.Context(), request(long, nil))
	if first.Class != deliver.ServerError || first.Text.Parts != 3 || first.Text.Unknown != 1 || first.Text.MonthSpent == 0 {
		t.Fatalf("%+v", first)
	}
	c.result = smssender.Result{Outcome: deliver.Outcome{Class: deliver.Success}}
	second := s.Send(t.Context(), request(long, func(r *deliver.Request) { r.Kept, r.Attempt = first.Kept, 2 }))
	if second.Class != deliver.Success || second.Kept != nil {
		t.Fatalf("%+v", second)
	}
	if !c.text.Taken(0) || c.text.Taken(1) || c.text.Taken(2) {
		t.Errorf("the second attempt knows %v", c.text.Sent)
	}
	want := []sms.MicroUSD{20, 20}
	if d := cmp.Diff(want, b.spent); d != "" || b.charges[0].Cost != 30 || b.charges[1].Cost != 20 {
		t.Errorf("spent %v of %+v", b.spent, b.charges)
	}
	if b.charges[0].Number != "+15551234567" || b.charges[0].Place != (texts.Place{Account: "000000000000", Region: "us-east-1"}) {
		t.Errorf("%+v", b.charges[0])
	}
}

// A message says whom it is from and what it may cost; what is not valid of that counts for
// nothing.
func TestWishes(t *testing.T) {
	attribute := func(name, value string) message.Attribute {
		return message.Attribute{Name: name, Type: "String", Value: []byte(value)}
	}
	for _, tt := range []struct {
		name       string
		attributes []message.Attribute
		from, kind string
		most       sms.MicroUSD
	}{
		{"nothing", nil, "Default", "Promotional", -1},
		{"a name", []message.Attribute{attribute(smssender.SenderIDAttribute, "Shop")}, "Shop", "Promotional", -1},
		{"a number", []message.Attribute{attribute(smssender.OriginationAttribute, "12345"), attribute(smssender.SenderIDAttribute, "Shop")}, "12345", "Promotional", -1},
		{"all else", []message.Attribute{attribute(smssender.TypeAttribute, "Transactional"), attribute(smssender.MaxPriceAttribute, "0.50")}, "Default", "Transactional", 500_000},
		{"rubbish", []message.Attribute{
			attribute(smssender.TypeAttribute, "x"), attribute(smssender.MaxPriceAttribute, "x"), attribute(smssender.SenderIDAttribute, "x"),
			attribute(smssender.OriginationAttribute, "x"),
		}, "Default", "Promotional", -1},
	} {
		b, c := &book{terms: texts.Terms{SenderID: "Default", Type: sms.Promotional}}, &carrier{result: smssender.Result{Outcome: deliver.Outcome{Class: deliver.Success}}}
		s := smssender.New(smssender.Options{Carrier: c, Ledger: b, From: "Operator"})
		s.Send(t.Context(), request("m", func(r *deliver.Request) { r.Message.Attributes = tt.attributes }))
		if c.text.From != tt.from || c.text.Type != tt.kind || b.charges[0].Most != tt.most {
			t.Errorf("%s: %+v, %+v", tt.name, c.text, b.charges[0])
		}
	}
}

// What is refused is not sent, and goes nowhere again.
func TestRefusals(t *testing.T) {
	b, c := &book{refusal: sms.OptedOutRefusal}, &carrier{}
	s := smssender.New(smssender.Options{Carrier: c, Ledger: b})
	if out := s.Send(t.Context(), request("m", nil)); out.Class != deliver.ClientError || out.Detail != "Phone number is opted out" {
		t.Errorf("%+v", out)
	}
	b.refusal = ""
	if out := s.Send(t.Context(), request(strings.Repeat("x", 1601), nil)); out.Class != deliver.ClientError || out.Text.Response != "Message body is invalid" {
		t.Errorf("%+v", out)
	}
	if out := s.Send(t.Context(), request("m", func(r *deliver.Request) { r.Subscription.Endpoint = "x" })); out.Class != deliver.ClientError {
		t.Errorf("%+v", out)
	}
	if c.calls != 0 {
		t.Errorf("%d were sent", c.calls)
	}
	// The sandbox's own messages are reported by their group where there is no topic, and only
	// there: others choose their groups themselves.
	s.Send(t.Context(), request("m", func(r *deliver.Request) { r.Message.Group = smssender.Exempt }))
	s.Send(t.Context(), request("m", func(r *deliver.Request) { r.Message.Group, r.Message.Notice.Topic = smssender.Exempt, "" }))
	if n := len(b.charges); b.charges[n-2].Exempt || !b.charges[n-1].Exempt {
		t.Errorf("%+v", b.charges)
	}
	c.result = smssender.Result{Outcome: deliver.Outcome{Class: deliver.ClientError, Detail: "no"}, OptedOut: true}
	s.Send(t.Context(), request("m", nil))
	if d := cmp.Diff([]string{"+15551234567"}, b.optedOut); d != "" {
		t.Error(d)
	}
	s = smssender.New(smssender.Options{Carrier: c, Ledger: b, Injected: func(texts.Place) error { return context.Canceled }})
	if out := s.Send(t.Context(), request("m", nil)); out.Class != deliver.ServerError {
		t.Errorf("%+v", out)
	}
}

// An outbox in a directory is the same behind a restart, and one in memory answers alike.
func TestOutbox(t *testing.T) {
	start := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "outbox", "sms")} {
		now := clock.NewVirtual(start)
		box, err := smssender.OpenOutbox(dir, now)
		if err != nil {
			t.Fatal(err)
		}
		sender := smssender.New(smssender.Options{Carrier: box, Ledger: &book{}})
		for i := range 3 {
			out := sender.Send(t.Context(), request(fmt.Sprint("text ", i), func(r *deliver.Request) { r.Subscription.Endpoint = fmt.Sprint("+1555000000", i%2) }))
			if out.Class != deliver.Success {
				t.Fatalf("%+v", out)
			}
			if _, err := now.Advance(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if dir != "" {
			if box, err = smssender.OpenOutbox(dir, now); err != nil {
				t.Fatal(err)
			}
		}
		all, err := box.List("", 2)
		if err != nil || len(all) != 2 || all[0].Text != "text 2" || all[1].To != "+15550000001" || !all[0].At.Equal(start.Add(2*time.Second)) {
			t.Errorf("%q: %+v, %v", dir, all, err)
		}
		if mine, err := box.List("+15550000000", 10); err != nil || len(mine) != 2 {
			t.Errorf("%q: %+v, %v", dir, mine, err)
		}
	}
}

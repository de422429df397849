package sim

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"godwit.dev/godwit/internal/deliver"
	mailsender "godwit.dev/godwit/internal/deliver/mail"
)

// reader is who gets what is published to post.
const reader = "ada@mail.sim"

// post is a mail.
type post struct {
	accepted truth
	tries    int
	sent     bool // it was taken, and the server knows
	crashes  int  // at that time
	perhaps  bool // it was taken, and the server may not know
}

// relay takes mails for a machine that may die. It implements mailsender.Transport.
type relay struct {
	w    *world
	dead func() bool
}

func (relay) Host() string { return "mail.sim" }

var postToken = regexp.MustCompile(`epost[0-9]+`)

// badTries is how often a mail may fail: later retries are hours apart.
const badTries = 3

// hangTime is how long a mail hangs.
const hangTime = 20 * time.Second

func (r relay) Deliver(ctx context.Context, m *mailsender.Mail) deliver.Outcome {
	failed := deliver.Outcome{Class: deliver.ServerError, Detail: "simulated"}
	if r.dead() {
		return failed
	}
	w := r.w
	tok := postToken.FindString(string(m.Message))
	w.mu.Lock()
	p := w.posts[tok]
	if p == nil || m.To != reader {
		w.ledger.fail("%s was sent a mail that nobody published: %q", m.To, tok)
		w.mu.Unlock()
		return deliver.Outcome{Class: deliver.Success}
	}
	if p.accepted == no {
		w.ledger.fail("%s was refused, and is sent by mail", tok)
	}
	if p.sent && p.crashes == w.crashes {
		w.ledger.fail("%s is sent by mail again", tok)
	}
	p.tries++
	try := p.tries
	w.mu.Unlock()

	drawn := w.network.draw("mail", tok, try)
	f := arrives
	if try <= badTries && drawn%2 == 0 {
		f = []fate{fails, hangs, loses}[drawn/2%3]
	}
	time.Sleep(time.Duration(drawn>>20%uint64(40*time.Millisecond)) + time.Duration(try))
	if f == hangs {
		select {
		case <-ctx.Done():
		case <-time.After(hangTime):
		}
	}
	if r.dead() {
		f = perishes
	}
	w.log("  a mail with %s for the %d. time: %s", tok, try, f)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count["mail that "+f.String()]++
	switch f {
	case arrives:
		p.sent, p.crashes = true, w.crashes
		return deliver.Outcome{Class: deliver.Success}
	case loses, perishes:
		p.perhaps = true
	default:
	}
	return failed
}

// mail publishes to whoever reads by mail.
func (w *world) mail() {
	tok := w.token("epost")
	p := &post{accepted: maybe}
	w.mu.Lock()
	w.posts[tok] = p
	w.mu.Unlock()
	low := w.disk.isLow()
	w.begin("publish "+tok+" to post", topicRequest("Publish", "TopicArn", topicARN("post"), "Message", tok+w.padding()), func(a *answer) {
		switch {
		case a.ok():
			p.accepted = yes
		case a.refused():
			p.accepted = no
			if !low && !w.disk.isLow() {
				w.ledger.fail("%s was refused: %s", tok, a.body)
			}
		}
	})
}

// settleMails checks that every mail was sent.
func (w *world) settleMails() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := range w.tokens {
		tok := fmt.Sprint("epost", n+1)
		if p := w.posts[tok]; p != nil && p.accepted == yes && !p.sent && !p.perhaps {
			w.ledger.fail("%s is lost on its way to a reader, after %d tries", tok, p.tries)
		}
	}
}

// confirming takes the token out of the mail that asks a reader to confirm.
type confirming struct{ token chan string }

func (confirming) Host() string { return "mail.sim" }

var confirmationToken = regexp.MustCompile(`Token=([0-9A-Za-z]+)`)

func (c confirming) Deliver(_ context.Context, m *mailsender.Mail) deliver.Outcome {
	text := strings.NewReplacer("=\r\n", "", "=3D", "=").Replace(string(m.Message))
	if found := confirmationToken.FindStringSubmatch(text); found != nil {
		select {
		case c.token <- found[1]:
		default:
		}
	}
	return deliver.Outcome{Class: deliver.Success}
}

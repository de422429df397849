// Package texting makes the sender of text messages that the settings ask for.
package texting

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/deliver"
	smssender "godwit.dev/godwit/internal/deliver/sms"
	"godwit.dev/godwit/internal/deliver/sms/gateway"
	"godwit.dev/godwit/internal/deliver/sms/smpp"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/server/secret"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/sms"
	"godwit.dev/godwit/internal/topic"
)

// Options are what Open needs.
type Options struct {
	Config config.Config
	Clock  clock.Clock
	Ledger *texts.Module
	// Injected is the outage of a resource that an operator has asked for.
	Injected func(a arn.ARN) error
	// Trust is whose certificates an SMSC or a provider may have; nil: as the system does.
	Trust *tls.Config
	Own   publicnet.Ports // the ports that this server listens at
	// Receipt is called with what became of messages that were taken, in the words of SMPP; may be
	// nil. Ended is called for the same as events of deliveries.
	Receipt func(state string)
	Ended   func(*deliver.Event)
	// PublicURL is what the address begins with at which a provider calls.
	PublicURL string
}

// Texting sends text messages, or keeps them.
type Texting struct {
	Sender *smssender.Sender
	Outbox *smssender.Outbox // nil: they are sent, or there is nobody who takes them
	Book   *smssender.Book   // has to be called for deliveries
	called *gateway.Gateway  // nil: no provider calls
	ledger *texts.Module
	config config.SMS
	dev    bool
	close  func()
}

// Open makes it.
func Open(o Options) (*Texting, error) {
	c := o.Config
	price, _ := sms.ParseUSD(c.SMS.Price) // it was checked
	t := &Texting{Book: smssender.NewBook(o.Clock, o.Ended), ledger: o.Ledger, config: c.SMS, dev: !c.Production, close: func() {}}
	so := smssender.Options{Ledger: o.Ledger, Price: price, From: c.SMS.From}
	so.Injected = func(p texts.Place) error { return o.Injected(arn.Direct(p.Region, p.Account, topic.SMS.String())) }
	var err error
	switch {
	case c.SMS.SMSC != "":
		so.Carrier, err = t.openSMSC(o)
	case c.SMS.HTTP != "":
		so.Carrier, err = t.openGateway(o)
	case !c.Production:
		dir := ""
		if c.Store != config.MemoryStore {
			dir = filepath.Join(c.DevFiles(), "outbox", "sms")
		}
		if t.Outbox, err = smssender.OpenOutbox(dir, o.Clock); err != nil {
			return nil, fmt.Errorf("the outbox cannot be opened: %w", err)
		}
		so.Carrier = t.Outbox
	}
	if err != nil {
		return nil, err
	}
	t.Sender = smssender.New(so)
	return t, nil
}

// openSMSC makes the client of an SMSC.
func (t *Texting) openSMSC(o Options) (smssender.Carrier, error) {
	server, err := config.ParseSMSC(o.Config.SMS.SMSC)
	if err != nil {
		return nil, fmt.Errorf("--sms-smsc: %w", err)
	}
	password, err := secret.Read(o.Config, o.Config.SMS.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("--sms-password-file: %w", err)
	}
	so := smpp.Options{
		Address: server.Address, SystemID: server.SystemID, Password: strings.TrimRight(string(password), "\r\n"), Window: o.Config.SMS.Window,
		Received: func(from, text string) { t.Received(from, text) },
		Receipt:  func(id, state string) { t.receipt(o, smppReceipt(id, state), state) },
	}
	if server.TLS {
		so.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		if o.Trust != nil {
			so.TLS = o.Trust.Clone()
		}
	}
	client := smpp.New(so)
	t.close = client.Close
	return client, nil
}

// openGateway makes the client of a provider's HTTP API.
func (t *Texting) openGateway(o Options) (smssender.Carrier, error) {
	text, err := secret.Read(o.Config, o.Config.SMS.HTTP)
	if err != nil {
		return nil, fmt.Errorf("--sms-http: %w", err)
	}
	template, err := gateway.ReadTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("--sms-http: %s: %w", o.Config.SMS.HTTP, err)
	}
	g, err := gateway.New(gateway.Options{
		Template: template, TLS: o.Trust, Guard: publicnet.Guard{AllowPrivate: o.Config.AllowPrivateEndpoints, Own: o.Own},
		PublicURL: o.PublicURL, Received: func(from, text string) { t.Received(from, text) },
		Receipt: func(r smssender.Receipt, state string) { t.receipt(o, r, state) },
	})
	if err != nil {
		return nil, fmt.Errorf("--sms-http: %w", err)
	}
	t.close = g.Close
	if g.Path() != "" {
		t.called = g
	}
	return g, nil
}

// receipt counts what became of a message, and tells it.
func (t *Texting) receipt(o Options, r smssender.Receipt, state string) {
	if o.Receipt != nil {
		o.Receipt(state)
	}
	if state == "ENROUTE" || state == "ACCEPTD" || state == "" { // no end of it
		return
	}
	t.Book.Receipt(r)
}

// smppReasons are what a delivery status log says of what an SMSC's receipt does.
var smppReasons = map[string]string{
	"EXPIRED": smssender.PhoneUnreachable, "UNDELIV": smssender.PhoneUnreachable, "REJECTD": smssender.CarrierBlocked,
}

func smppReceipt(id, state string) smssender.Receipt {
	return smssender.Receipt{ID: id, Delivered: state == "DELIVRD", Response: smppReasons[state]}
}

// Callbacks answers a provider that calls, and hands everything else on.
func (t *Texting) Callbacks(next http.Handler) http.Handler {
	if t.called == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t.called.Called(r.URL.Path) {
			t.called.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Sends reports that text messages go somewhere.
func (t *Texting) Sends() bool { return t.Sender.Carrier != nil }

// Origins are the numbers that messages are from.
func (t *Texting) Origins() []string {
	if t.config.From == "" || !sms.ValidOrigination(t.config.From) {
		return nil
	}
	return []string{"+" + strings.TrimPrefix(t.config.From, "+")}
}

// Handler answers operators who look into the outbox.
func (t *Texting) Handler() http.Handler {
	if t.Outbox == nil {
		return admin.ListTexts(nil)
	}
	return admin.ListTexts(t.Outbox)
}

// Receiver takes what a phone is made to send, in development.
func (t *Texting) Receiver() http.Handler {
	if !t.dev {
		return admin.ReceiveText(nil)
	}
	return admin.ReceiveText(t.Received)
}

// Received notes what a phone has sent: a word such as STOP opts it out.
func (t *Texting) Received(from, text string) (optedOut bool) {
	number, ok := sms.Number(from)
	if !ok || !sms.IsOptOut(text) {
		return false
	}
	t.ledger.OptOutEverywhere(number)
	return true
}

// Close ends connections.
func (t *Texting) Close() { t.close() }

// Package texts has the accounts' settings for text messages, the opted-out and sandbox
// numbers, and the spending. It is the module over the pure rules of package sms, with its own
// lock and stream of the journal.
package texts

import (
	"cmp"
	"context"
	"strings"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/sms"
	"godwit.dev/godwit/internal/store"
)

// Place is an account in a region, with its own settings, numbers and spending.
type Place struct{ Account, Region string }

// Options configure a Module.
type Options struct {
	// Sandbox restricts messages to verified numbers.
	Sandbox bool
	// Sealer seals one-time passwords in the store, for Purpose; nil: they are in clear.
	Sealer *seal.Sealer
}

// Module has the accounts. It is a module of the kernel, with its own shard.
type Module struct {
	kernel.NopLifecycle
	kernel   *kernel.Kernel
	shard    *kernel.Shard // whose lock guards what follows
	options  Options
	accounts map[Place]*sms.Account
}

// New adds the module to a kernel.
func New(k *kernel.Kernel, o Options) *Module {
	m := &Module{kernel: k, shard: k.OwnShard(keyspace.SMSStream), options: o, accounts: map[Place]*sms.Account{}}
	m.shard.Add(m)
	return m
}

// Sandboxed reports that messages are restricted to verified numbers.
func (m *Module) Sandboxed() bool { return m.options.Sandbox }

// key is the key of a record: of an account, or of one of its numbers.
func key(tag byte, p Place, rest ...string) []byte {
	k := append([]byte{keyspace.SMSSpace, tag}, p.Account+"\x00"+p.Region+"\x00"...)
	for _, number := range rest {
		k = append(k, number...)
	}
	return k
}

const version = 1

func decode(value []byte, v any) error { return keyspace.DecodeJSON(version, value, v) }

func (m *Module) put(key []byte, v any) {
	m.shard.Batch.Set(key, encode(v))
}

// Load implements kernel.Lifecycle. An unreadable record is an error: without it a message could
// be sent to a number that has opted out.
func (m *Module) Load() error {
	return store.EachParsed(m.shard.Stream.Reader(), keyspace.Prefix([]byte{keyspace.SMSSpace}), m.load)
}

func (m *Module) load(k *keyspace.Key, value []byte) (err error) {
	account, region, _ := k.Named()
	number, _ := k.Text(keyspace.PartNumber)
	a := m.account(Place{account, region})
	switch k.ID {
	case keyspace.KindSMSAttributes:
		return decode(value, &a.Attributes)
	case keyspace.KindSMSConsent:
		var c sms.Consent
		err = decode(value, &c)
		a.Consents[number] = c
	case keyspace.KindSMSDestination:
		var d sms.Destination
		d, err = openDestination(k.Encoded(), value, m.options.Sealer)
		a.Sandbox[number] = d
	case keyspace.KindSMSSpending:
		err = decode(value, &a.Spending)
	default:
	}
	return err
}

// CheckRecord reports whether the value of one of this package's records can be read.
func CheckRecord(id keyspace.ID, value []byte) error {
	switch id {
	case keyspace.KindSMSAttributes:
		return decode(value, &map[string]string{})
	case keyspace.KindSMSConsent:
		return decode(value, &sms.Consent{})
	case keyspace.KindSMSDestination:
		return decode(value, &destination{})
	case keyspace.KindSMSSpending:
		return decode(value, &sms.Spending{})
	default:
		return nil
	}
}

// account finds or makes an account.
func (m *Module) account(p Place) *sms.Account {
	a := m.accounts[p]
	if a == nil {
		a = sms.NewAccount()
		m.accounts[Place{strings.Clone(p.Account), strings.Clone(p.Region)}] = a
	}
	return a
}

// change runs a command on an account, and returns once all that it read and changed is
// durable. A command that fails changes nothing except what it has written.
func (m *Module) change(ctx context.Context, p Place, grows bool, command func(a *sms.Account, now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if grows && m.kernel.Full() {
		return kernel.ErrFull
	}
	return m.shard.RunDurableReads(func(*kernel.Tx) error {
		return command(m.account(p), clock.Time(m.shard.Now()))
	})
}

// view calls f with an account, whose state is durable when view returns.
func (m *Module) view(p Place, f func(a *sms.Account)) {
	_ = m.shard.RunDurableReads(func(*kernel.Tx) error {
		a := m.accounts[p]
		if a == nil {
			a = sms.NewAccount()
		}
		f(a)
		return nil
	})
}

// Attributes are the attributes of an account.
func (m *Module) Attributes(p Place) (all map[string]string) {
	m.view(p, func(a *sms.Account) { all = a.Get() })
	return all
}

// SetAttributes changes attributes of an account. Errors: InvalidParameter.
func (m *Module) SetAttributes(ctx context.Context, p Place, attributes map[string]string) error {
	return m.change(ctx, p, true, func(a *sms.Account, _ time.Time) error {
		if err := a.Set(attributes); err != nil {
			return err
		}
		m.put(key(keyspace.SMSAttributes, p), a.Attributes)
		return nil
	})
}

// IsOptedOut reports whether a number has opted out of an account's messages.
func (m *Module) IsOptedOut(p Place, number string) (out bool) {
	m.view(p, func(a *sms.Account) { out = a.Consents[number].OptedOut })
	return out
}

// OptedOut lists the numbers that have opted out of an account's messages, in order, after a
// number.
func (m *Module) OptedOut(p Place, after string, limit int) (page []string, more bool) {
	m.view(p, func(a *sms.Account) { page, more = a.OptedOut(after, limit) })
	return page, more
}

// OptIn lets a number get messages again. Errors: InvalidParameter.
func (m *Module) OptIn(ctx context.Context, p Place, number string) error {
	return m.change(ctx, p, false, func(a *sms.Account, now time.Time) error {
		changed, err := a.OptIn(number, now)
		if changed {
			m.put(key(keyspace.SMSConsents, p, number), a.Consents[number])
		}
		return err
	})
}

// OptOutEverywhere opts a number out of the messages of all accounts that send messages, as it
// is not known whose message it has replied to. It is durable on return, also if it was done
// before.
func (m *Module) OptOutEverywhere(number string) {
	_ = m.shard.RunDurableReads(func(*kernel.Tx) error {
		for p, a := range m.accounts {
			m.optOut(p, a, number)
		}
		return nil
	})
}

func (m *Module) optOut(p Place, a *sms.Account, number string) {
	number = strings.Clone(number)
	if a.OptOut(number) {
		m.put(key(keyspace.SMSConsents, p, number), a.Consents[number])
	}
}

// AddDestination adds a number, which is sent a one-time password, to the sandbox. Errors:
// OptedOut, UserError.
func (m *Module) AddDestination(ctx context.Context, p Place, number, password string) error {
	number, password = strings.Clone(number), strings.Clone(password)
	return m.change(ctx, p, true, func(a *sms.Account, now time.Time) error {
		if err := a.AddDestination(number, password, now); err != nil {
			return err
		}
		return m.putDestination(p, number, a.Sandbox[number])
	})
}

// Verify verifies a number by its one-time password. Errors: ResourceNotFound, Verification.
func (m *Module) Verify(ctx context.Context, p Place, number, password string) error {
	return m.change(ctx, p, false, func(a *sms.Account, now time.Time) error {
		changed, err := a.Verify(number, password, now)
		if changed {
			err = cmp.Or(err, m.putDestination(p, number, a.Sandbox[number]))
		}
		return err
	})
}

// RemoveDestination removes a number from the sandbox. Errors: ResourceNotFound, UserError.
func (m *Module) RemoveDestination(ctx context.Context, p Place, number string) error {
	return m.change(ctx, p, false, func(a *sms.Account, now time.Time) error {
		if err := a.RemoveDestination(number, now); err != nil {
			return err
		}
		m.shard.Batch.Delete(key(keyspace.SMSDestinations, p, number))
		return nil
	})
}

// Listed is a number in the sandbox.
type Listed struct {
	Number   string
	Verified bool
}

// Destinations lists the numbers in the sandbox, in order, after a number.
func (m *Module) Destinations(p Place, after string, limit int) (page []Listed, more bool) {
	m.view(p, func(a *sms.Account) {
		var numbers []string
		numbers, more = a.Destinations(after, limit)
		for _, n := range numbers {
			page = append(page, Listed{n, a.Sandbox[n].Verified})
		}
	})
	return page, more
}

// Charge is a message to be sent.
type Charge struct {
	Place  Place
	Number string
	Cost   sms.MicroUSD
	Most   sms.MicroUSD // the highest price that it may have; negative: any
	// Exempt says that the sandbox does not apply: the message has a one-time password.
	Exempt bool
}

// Terms are an account's settings for its messages.
type Terms struct {
	SenderID string // the default of messages; empty: none
	Type     string
	// LogRole is the role that logs failed deliveries and Percent percent of the others; empty:
	// nothing is logged.
	LogRole string
	Percent int
}

// Reserve admits a message, and reserves its cost until Spend, which must not be called for a
// refused message. It does not wait for the disk.
func (m *Module) Reserve(c Charge) (t Terms, refused sms.Refusal) {
	m.shard.RunLazy(func() {
		a := m.account(c.Place)
		t.Percent, t.LogRole = a.Sampling()
		t.SenderID, t.Type = a.Attributes[sms.DefaultSenderID], a.Attributes[sms.DefaultSMSType]
		if t.Type == "" {
			t.Type = sms.Promotional
		}
		refused = a.Reserve(c.Number, c.Cost, c.Most, m.options.Sandbox && !c.Exempt, clock.Time(m.shard.Now()))
	})
	return t, refused
}

// Spent is what an account has spent this month.
func (m *Module) Spent(p Place) (month sms.MicroUSD) {
	m.view(p, func(a *sms.Account) { month = a.SpentIn(clock.Time(m.shard.Now())) })
	return month
}

// Spend ends the reservation of a message, which has cost spent. That is durable no later than
// what its caller writes afterwards.
func (m *Module) Spend(c Charge, spent sms.MicroUSD) (month sms.MicroUSD) {
	m.shard.RunLazy(func() {
		a, now := m.account(c.Place), clock.Time(m.shard.Now())
		a.Spend(c.Cost, spent, now)
		month = a.SpentIn(now)
		if spent > 0 {
			m.put(key(keyspace.SMSSpending, c.Place), a.Spending)
		}
	})
	return month
}

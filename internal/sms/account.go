package sms

import (
	"crypto/subtle"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/decimal"
	"godwit.dev/godwit/internal/fault"
)

// The errors of commands, with the fields of each.
var (
	ErrAttribute      = fault.NewRule(fault.InvalidParameter, "sms: no such attribute") // its name
	ErrAttributeValue = fault.NewRule(fault.InvalidParameter, "sms: no such value")     // the attribute
	ErrOptInAgain     = fault.NewRule(fault.InvalidParameter, "sms: opted in less than 30 days ago")
	ErrOptedOut       = fault.NewRule(fault.OptedOut, "sms: the number is opted out")
	ErrVerified       = fault.NewRule(fault.UserError, "sms: the number is verified already")
	ErrTooManyNumbers = fault.NewRule(fault.UserError, "sms: too many numbers in the sandbox")
	ErrTooSoon        = fault.NewRule(fault.UserError, "sms: verified less than 24 hours ago")
	ErrNoNumber       = fault.NewRule(fault.ResourceNotFound, "sms: the number is not in the sandbox")
	ErrPassword       = fault.NewRule(fault.Verification, "sms: the one-time password is wrong")
)

// Attributes of an account. Source: SetSMSAttributes in the SNS API reference.
const (
	MonthlySpendLimit = "MonthlySpendLimit"
	StatusRole        = "DeliveryStatusIAMRole"
	SamplingRate      = "DeliveryStatusSuccessSamplingRate"
	DefaultSenderID   = "DefaultSenderID"
	DefaultSMSType    = "DefaultSMSType"
	UsageReportBucket = "UsageReportS3Bucket"
)

// The types of messages.
const (
	Promotional   = "Promotional"
	Transactional = "Transactional"
)

const (
	defaultLimit = "1" // USD
	maxSandbox   = 10  // numbers of an account
	optInGap     = 30 * 24 * time.Hour
	sandboxStay  = 24 * time.Hour // of a number that was verified
	passwordLife = 24 * time.Hour
	maxTries     = 5 // at a one-time password
)

// MicroUSD is an amount of money: a millionth of a US dollar.
type MicroUSD int64

// ParseUSD parses an amount in dollars. It fails for a negative or invalid one.
func ParseUSD(text string) (MicroUSD, bool) {
	f, ok := decimal.Parse(text)
	if !ok || f < 0 || f > 1e9 {
		return 0, false
	}
	return MicroUSD(f*1e6 + 0.5), true
}

// USD is the amount in dollars.
func (m MicroUSD) USD() float64 { return float64(m) / 1e6 }

// senderID is the form of an alphabetic sender. Source: the SNS developer guide, "Sender IDs".
var (
	senderID    = regexp.MustCompile(`^[A-Za-z0-9 _-]{1,11}$`)
	letter      = regexp.MustCompile(`[A-Za-z]`)
	origination = regexp.MustCompile(`^(\+?[0-9]{3,15})$`)
	bucket      = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
)

// ValidSenderID reports whether a sender id is valid: 3 to 11 letters and digits, with at least
// one letter.
func ValidSenderID(name string) bool {
	return len(name) >= 3 && senderID.MatchString(name) && letter.MatchString(name)
}

// ValidOrigination reports whether an origination number is valid: a long or a short code.
func ValidOrigination(number string) bool { return origination.MatchString(number) }

// ValidType reports whether a type of messages exists.
func ValidType(name string) bool { return name == Promotional || name == Transactional }

// checks are the attributes, and the checks of their values. The empty value restores the
// default.
var checks = map[string]func(value string) bool{
	MonthlySpendLimit: func(v string) bool { _, ok := ParseUSD(v); return ok },
	StatusRole:        func(v string) bool { return strings.HasPrefix(v, "arn:") && strings.Contains(v, ":role/") },
	SamplingRate:      func(v string) bool { n, err := strconv.Atoi(v); return err == nil && n >= 0 && n <= 100 },
	DefaultSenderID:   ValidSenderID,
	DefaultSMSType:    ValidType,
	UsageReportBucket: bucket.MatchString,
}

// IsAttribute reports whether an account has such an attribute.
func IsAttribute(name string) bool { return checks[name] != nil }

// Account is the state of an account in a region. Only commands change it; a failed command
// changes nothing.
type Account struct {
	Attributes map[string]string // those that were set
	Consents   map[string]Consent
	Sandbox    map[string]Destination
	Spending   Spending
	reserved   MicroUSD // by messages that are being sent
}

// NewAccount makes an unused account.
func NewAccount() *Account {
	return &Account{Attributes: map[string]string{}, Consents: map[string]Consent{}, Sandbox: map[string]Destination{}}
}

// Consent is whether a number has opted out, if it ever did.
type Consent struct {
	OptedOut bool      `json:"optedOut,omitempty"`
	OptedIn  time.Time `json:"optedIn,omitzero"` // the latest time that it was opted in again
}

// Destination is a number in the sandbox.
type Destination struct {
	Verified bool      `json:"verified,omitempty"`
	At       time.Time `json:"at"` // verified, or sent a password
	Password string    `json:"password,omitempty"`
	Tries    int       `json:"tries,omitempty"`
}

// Spending is what an account has spent in a month.
type Spending struct {
	Month string   `json:"month"` // as 2006-01, UTC
	Spent MicroUSD `json:"spent"`
}

// Set changes attributes.
func (a *Account) Set(attributes map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		check, ok := checks[name]
		if !ok {
			return ErrAttribute.With(name)
		}
		if v := attributes[name]; v != "" && !check(v) {
			return ErrAttributeValue.With(name)
		}
	}
	for name, v := range attributes {
		if v == "" {
			delete(a.Attributes, name)
		} else {
			a.Attributes[name] = v
		}
	}
	return nil
}

// Get returns the attributes that are set, and those with a default.
func (a *Account) Get() map[string]string {
	all := maps.Clone(a.Attributes)
	if all[MonthlySpendLimit] == "" {
		all[MonthlySpendLimit] = defaultLimit
	}
	return all
}

// Sampling says which deliveries are logged: the share of successful ones, in percent, and the
// role that logs them; empty: none are.
func (a *Account) Sampling() (percent int, role string) {
	percent, _ = strconv.Atoi(a.Attributes[SamplingRate]) // checked when it was set; 0 unless it was
	return percent, a.Attributes[StatusRole]
}

// OptOut opts a number out; changed is false if it was already.
func (a *Account) OptOut(number string) (changed bool) {
	c := a.Consents[number]
	if c.OptedOut {
		return false
	}
	c.OptedOut = true
	a.Consents[number] = c
	return true
}

// OptIn opts a number in again; changed is false if it was not opted out.
func (a *Account) OptIn(number string, now time.Time) (changed bool, err error) {
	c := a.Consents[number]
	if !c.OptedOut {
		return false, nil
	}
	if !c.OptedIn.IsZero() && now.Before(c.OptedIn.Add(optInGap)) {
		return false, ErrOptInAgain
	}
	a.Consents[number] = Consent{OptedIn: now}
	return true, nil
}

// OptedOut lists opted-out numbers after a number, in order, at most limit. more says that
// there are others.
func (a *Account) OptedOut(after string, limit int) (page []string, more bool) {
	for number, c := range a.Consents {
		if c.OptedOut && number > after {
			page = append(page, number)
		}
	}
	slices.Sort(page)
	if more = len(page) > limit; more {
		page = page[:limit]
	}
	return page, more
}

// AddDestination adds a number, which is sent a one-time password, to the sandbox. An existing
// one gets a new password.
func (a *Account) AddDestination(number, password string, now time.Time) error {
	d, there := a.Sandbox[number]
	switch {
	case a.Consents[number].OptedOut:
		return ErrOptedOut
	case d.Verified:
		return ErrVerified
	case !there && len(a.Sandbox) >= maxSandbox:
		return ErrTooManyNumbers
	}
	a.Sandbox[number] = Destination{At: now, Password: password}
	return nil
}

// Verify verifies a number by its one-time password. A wrong one is counted: changed says that
// the state must be stored even with an error.
func (a *Account) Verify(number, password string, now time.Time) (changed bool, err error) {
	d, ok := a.Sandbox[number]
	switch {
	case !ok:
		return false, ErrNoNumber
	case d.Verified:
		return false, nil
	case now.After(d.At.Add(passwordLife)) || d.Tries >= maxTries:
		return false, ErrPassword
	case d.Password == "" || subtle.ConstantTimeCompare([]byte(d.Password), []byte(password)) == 0:
		d.Tries++
		a.Sandbox[number] = d
		return true, ErrPassword
	}
	a.Sandbox[number] = Destination{Verified: true, At: now}
	return true, nil
}

// RemoveDestination removes a number from the sandbox.
func (a *Account) RemoveDestination(number string, now time.Time) error {
	d, ok := a.Sandbox[number]
	switch {
	case !ok:
		return ErrNoNumber
	case d.Verified && now.Before(d.At.Add(sandboxStay)):
		return ErrTooSoon
	}
	delete(a.Sandbox, number)
	return nil
}

// Destinations lists the numbers in the sandbox after a number, like OptedOut.
func (a *Account) Destinations(after string, limit int) (page []string, more bool) {
	for number := range a.Sandbox {
		if number > after {
			page = append(page, number)
		}
	}
	slices.Sort(page)
	if more = len(page) > limit; more {
		page = page[:limit]
	}
	return page, more
}

// Refusal is why a message is not sent, in the words of delivery status logs; empty: it is
// sent. Source: the SNS developer guide, "SMS delivery status".
type Refusal string

// The refusals.
const (
	OptedOutRefusal  Refusal = "Phone number is opted out"
	SandboxRefusal   Refusal = "Phone number is not verified in the SMS sandbox"
	PriceRefusal     Refusal = "This delivery would exceed max price"
	SpendingRefusal  Refusal = "This delivery would exceed the monthly spend limit"
	TooLongRefusal   Refusal = "Message body is invalid"
	BadNumberRefusal Refusal = "Invalid phone number"
)

// Reserve admits a message to a number, and reserves its cost until Spend. maxPrice is the highest
// price that the message may have; negative: any. sandboxed restricts messages to numbers in
// the sandbox.
func (a *Account) Reserve(number string, cost, maxPrice MicroUSD, sandboxed bool, now time.Time) Refusal {
	limit, _ := ParseUSD(a.Get()[MonthlySpendLimit]) // checked when it was set
	switch {
	case a.Consents[number].OptedOut:
		return OptedOutRefusal
	case sandboxed && !a.Sandbox[number].Verified:
		return SandboxRefusal
	case maxPrice >= 0 && cost > maxPrice:
		return PriceRefusal
	case a.SpentIn(now)+a.reserved+cost > limit:
		return SpendingRefusal
	}
	a.reserved += cost
	return ""
}

// Spend ends a reservation, and adds spent to the spending.
func (a *Account) Spend(reserved, spent MicroUSD, now time.Time) {
	a.reserved -= reserved
	if spent > 0 {
		a.Spending = Spending{Month: month(now), Spent: a.SpentIn(now) + spent}
	}
}

// SpentIn is the spending in the month of a time, until then.
func (a *Account) SpentIn(now time.Time) MicroUSD {
	if a.Spending.Month != month(now) {
		return 0
	}
	return a.Spending.Spent
}

func month(t time.Time) string { return t.UTC().Format("2006-01") }

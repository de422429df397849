// Package confirmations bounds the mails that ask to confirm a subscription.
package confirmations

import (
	"strings"
	"sync"
	"time"

	"godwit.dev/godwit/internal/topic"
)

// The bounds on mails that ask to confirm a subscription: whoever asks for one need not
// own the mail box that it goes to. An address that has not answered the last one gets the
// next after topic.MailConfirmationGap, of whatever topic it is, and as many may wait for
// that as come within ahead; an account causes so many in an hour.
const (
	ahead   = 24 * time.Hour
	perHour = 1000
	// keptAddresses is how many addresses are kept before those that may be asked again
	// are forgotten.
	keptAddresses = 16_384
)

// Counts are of the mails that ask for a confirmation. They are in memory: a restart
// forgets what was asked, but not what waits. The zero value is of none; it may be used from
// several goroutines.
type Counts struct {
	mu        sync.Mutex
	next      map[string]time.Time // when an address may be asked again
	hour      time.Time            // that sources are of
	bySources map[string]int       // by accounts
}

// Admit fails with topic.ErrConfirmations if an account may not cause another mail to an
// address now.
func (c *Counts) Admit(account, address string, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next[mailBox(address)].Sub(now) >= ahead || c.hour.Equal(now.Truncate(time.Hour)) && c.bySources[account] >= perHour {
		return topic.ErrConfirmations
	}
	return nil
}

// Reserve counts a mail, and returns when it may be sent.
func (c *Counts) Reserve(account, address string, now time.Time) (due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if hour := now.Truncate(time.Hour); !c.hour.Equal(hour) {
		c.hour, c.bySources = hour, map[string]int{}
	}
	c.bySources[strings.Clone(account)]++
	if c.next == nil {
		c.next = map[string]time.Time{}
	}
	if len(c.next) >= keptAddresses {
		for kept, at := range c.next {
			if !at.After(now) {
				delete(c.next, kept)
			}
		}
	}
	box := mailBox(address)
	due = now
	if next := c.next[box]; next.After(now) {
		due = next
	}
	c.next[box] = due.Add(topic.MailConfirmationGap)
	return due
}

// Answered notes that an address has confirmed: it wants its mails.
func (c *Counts) Answered(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.next, mailBox(address))
}

// mailBox is an address without what most servers make no difference by.
func mailBox(address string) string { return strings.ToLower(address) }

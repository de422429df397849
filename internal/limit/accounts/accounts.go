// Package accounts bounds the rates and the storage of accounts. Storage is counted as it
// changes, and never searched for: a limit costs the same however many queues there are.
// Without limits storage is counted all the same, so that one may be set at any time.
package accounts

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/limit/rates"
)

// Limits are the limits of an account in all regions; 0 of any means no limit.
type Limits struct {
	Requests int // of AWS's APIs, a second
	Bytes    int // of messages sent and published, a second
	Queues   int
	Topics   int
	Storage  int64 // bytes of messages in queues and backlogs
}

// ByName are the limits by their names, as in Refused.
func (l Limits) ByName() map[string]int64 {
	return map[string]int64{
		kindNames[Requests]: int64(l.Requests), kindNames[Bytes]: int64(l.Bytes), kindNames[Queues]: int64(l.Queues),
		kindNames[Topics]: int64(l.Topics), kindNames[Storage]: l.Storage,
	}
}

// The errors of exceeded limits.
var (
	ErrRequests = fault.NewRule(fault.Throttled, "accounts: requests come too fast")
	ErrBytes    = fault.NewRule(fault.Throttled, "accounts: bytes of messages come too fast")
	ErrQueues   = fault.NewRule(fault.OverLimit, "accounts: as many queues as there may be")          // how many
	ErrTopics   = fault.NewRule(fault.TopicLimitExceeded, "accounts: as many topics as there may be") // how many
	ErrStorage  = fault.NewRule(fault.Throttled, "accounts: messages hold as many bytes as they may") // how many
)

// Kind is the kind of a limit.
type Kind uint8

// The kinds of limits.
const (
	Requests Kind = iota
	Bytes
	Queues
	Topics
	Storage
	kinds
)

var kindNames = [kinds]string{"requests", "bytes", "queues", "topics", "storage"}

// Accounts are the accounts of a server.
type Accounts struct {
	limits          func() Limits
	requests, bytes *rates.Rates
	refused         [kinds]atomic.Int64

	mu   sync.RWMutex
	held map[string]*Held
}

// New makes Accounts; limits returns the current limits of each; nil: none. now is the time by
// which seconds are counted.
func New(limits func() Limits, now func() time.Time) *Accounts {
	if limits == nil {
		limits = func() Limits { return Limits{} }
	}
	return &Accounts{
		limits:   limits,
		requests: rates.New(func() int { return limits().Requests }, now),
		bytes:    rates.New(func() int { return limits().Bytes }, now),
		held:     map[string]*Held{},
	}
}

// Request counts a request of an account. It fails with ErrRequests.
func (a *Accounts) Request(account string) error {
	if a.requests.Take(account) {
		return nil
	}
	a.refused[Requests].Add(1)
	return ErrRequests
}

// Send counts bytes of messages that an account sends or publishes. It fails with ErrBytes, and
// then counts none.
func (a *Accounts) Send(account string, bytes int) error {
	if a.bytes.TakeAll(account, int64(bytes)) {
		return nil
	}
	a.refused[Bytes].Add(1)
	return ErrBytes
}

// Of is the count of an account's resources.
func (a *Accounts) Of(account string) *Held {
	a.mu.RLock()
	h := a.held[account]
	a.mu.RUnlock()
	if h != nil {
		return h
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if h = a.held[account]; h == nil {
		h = &Held{of: a}
		a.held[string([]byte(account))] = h // a copy: it may be a part of a request
	}
	return h
}

// CheckStorage fails with ErrStorage if more bytes would exceed the storage quota of an account.
// Concurrent sends may exceed it together.
func (a *Accounts) CheckStorage(account string, more int) error {
	most := a.limits().Storage
	if most <= 0 {
		return nil
	}
	a.mu.RLock()
	h := a.held[account]
	a.mu.RUnlock()
	if h.Bytes()+int64(more) <= most {
		return nil
	}
	a.refused[Storage].Add(1)
	return ErrStorage.With(most)
}

// Usage is what an account holds at a moment.
type Usage struct {
	Account               string
	Queues, Topics, Bytes int64
}

// Usage reports the resources of accounts, by the number of bytes, those with the most first.
// Accounts without any are left out.
func (a *Accounts) Usage() (all []Usage) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, account := range slices.Sorted(maps.Keys(a.held)) {
		h := a.held[account]
		if u := (Usage{account, h.queues.Load(), h.topics.Load(), h.Bytes()}); u.Queues+u.Topics+u.Bytes > 0 {
			all = append(all, u)
		}
	}
	slices.SortStableFunc(all, func(x, y Usage) int { return cmp.Compare(y.Bytes, x.Bytes) })
	return all
}

// Refused reports how many requests were refused since the start, by the name of the limit.
func (a *Accounts) Refused() map[string]int64 {
	all := make(map[string]int64, kinds)
	for k, name := range kindNames {
		all[name] = a.refused[k].Load()
	}
	return all
}

// Limits are the current limits of accounts.
func (a *Accounts) Limits() Limits { return a.limits() }

// Held counts the resources of an account.
type Held struct {
	of                    *Accounts
	queues, topics, bytes atomic.Int64
}

// Bytes is the size of the account's messages; 0 of nil.
func (h *Held) Bytes() int64 {
	if h == nil {
		return 0
	}
	return h.bytes.Load()
}

// AddBytes adds to the size of messages; n may be negative.
func (h *Held) AddBytes(n int64) { h.bytes.Add(n) }

// AddQueue counts a queue that is about to be made. It fails with ErrQueues, and then does not
// count it.
func (h *Held) AddQueue() error { return h.add(Queues, &h.queues, h.of.limits().Queues, ErrQueues) }

// AddTopic is as AddQueue, with ErrTopics.
func (h *Held) AddTopic() error { return h.add(Topics, &h.topics, h.of.limits().Topics, ErrTopics) }

func (h *Held) add(k Kind, n *atomic.Int64, limit int, full *fault.Rule) error {
	if n.Add(1) <= int64(limit) || limit <= 0 {
		return nil
	}
	n.Add(-1)
	h.of.refused[k].Add(1)
	return full.With(limit)
}

// LoadQueue counts an existing queue, whatever the limit.
func (h *Held) LoadQueue() { h.queues.Add(1) }

// LoadTopic counts an existing topic, whatever the limit.
func (h *Held) LoadTopic() { h.topics.Add(1) }

// DropQueue stops counting a queue.
func (h *Held) DropQueue() { h.queues.Add(-1) }

// DropTopic stops counting a topic.
func (h *Held) DropTopic() { h.topics.Add(-1) }

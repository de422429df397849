package config

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
)

// Accounts are the quotas of each account, in all regions. They take effect when they are
// reloaded.
type Accounts struct {
	MaxRequests int   `name:"account-max-requests" default:"0" placeholder:"N" help:"Requests of AWS's APIs a second that an account may make; beyond it they are refused as AWS throttles. 0 is any number (${default})."`
	MaxBytes    int64 `name:"account-max-bytes-per-second" default:"0" type:"bytes" placeholder:"BYTES" help:"Bytes of messages a second that an account may send and publish; beyond it they are refused as AWS throttles. 0 is any number (${default})."`
	MaxQueues   int   `name:"account-max-queues" default:"0" placeholder:"N" help:"Queues of an account, beyond which none is made; 0 is any number (${default})."`
	MaxTopics   int   `name:"account-max-topics" default:"0" placeholder:"N" help:"Topics of an account, beyond which none is made; 0 is any number (${default})."`
	MaxStorage  int64 `name:"account-max-storage" default:"0" type:"bytes" placeholder:"BYTES" help:"What the messages of an account may take, in its queues and waiting for its subscriptions and functions; beyond it sends and publishes are refused as AWS throttles. 0 is any amount (${default})."`
}

func (a *Accounts) check(check checkFunc) {
	for flag, n := range sorted(map[string]int64{
		"account-max-requests": int64(a.MaxRequests), "account-max-bytes-per-second": a.MaxBytes,
		"account-max-queues": int64(a.MaxQueues), "account-max-topics": int64(a.MaxTopics), "account-max-storage": a.MaxStorage,
	}) {
		check(n >= 0, flag, "want 0 or more, have %d", n)
	}
}

// LiveFlags are the flags of settings that take effect when they are reloaded.
func LiveFlags() []string {
	flags := []string{"log-level"}
	for f := range reflect.TypeFor[Accounts]().Fields() {
		flags = append(flags, f.Tag.Get("name"))
	}
	return flags
}

// Live are the reloadable settings of a running server.
type Live struct {
	accounts atomic.Pointer[Accounts]

	mu    sync.Mutex
	files []func()
}

// OnReload has a function called with each reload, which reads anew the files that settings name.
func (l *Live) OnReload(read func()) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = append(l.files, read)
}

// Reload reads anew the files that settings name.
func (l *Live) Reload() {
	l.mu.Lock()
	all := slices.Clone(l.files)
	l.mu.Unlock()
	for _, read := range all {
		read()
	}
}

// NewLive begins with the settings of c.
func NewLive(c *Config) *Live {
	l := &Live{}
	l.Take(c)
	return l
}

// Take replaces them by the settings of c.
func (l *Live) Take(c *Config) {
	now := c.Accounts
	l.accounts.Store(&now)
}

// OfAccounts are the current quotas of accounts.
func (c *Config) OfAccounts() Accounts {
	if c.Live == nil {
		return c.Accounts
	}
	return *c.Live.accounts.Load()
}

// Package shard owns the state. It runs the pure machines of ring 1 over a store: commands of
// one shard run in order, many callers' commands share one commit, and a reply waits until all
// that it depends on is durable. Invariants:
//   - What an answer reports is durable when it is given: the change itself, and
//     every commit that the command read from. Only leases, deletes and visibility
//     timeouts of standard queues are answered before their own commit, which
//     follows within 10 ms.
//   - A message that moves between queues is in exactly one of them in every
//     commit; if the two do not share a commit, the receiving shard knows the
//     transfer and accepts it once.
//   - A failed commit ends the process; the store is the truth at the next start.
package shard

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/limit/accounts"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/direct"
	"godwit.dev/godwit/internal/shard/functions"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/platforms"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/queues/encryption"
	"godwit.dev/godwit/internal/shard/signing"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/shard/transfer"
	"godwit.dev/godwit/internal/topic"
)

// Options configure an Engine.
type Options struct {
	// Kernel may have modules already, which Open also loads; nil: a kernel is made of the
	// fields below, which otherwise are the kernel's.
	Kernel  *kernel.Kernel
	Journal *journal.Journal
	Clock   clock.Clock
	Logger  *slog.Logger
	// Full reports that the disk is short of space: sends are refused. Nil
	// means never.
	Full func() bool
	// Cooldowns refuses to create a queue within 60 s of its deletion, and to
	// purge one within 60 s of its last purge.
	Cooldowns bool
	// Strict requires the permission of a queue's policy for deliveries from topics, also
	// within an account.
	Strict bool
	// History is how long finished deliveries stay visible; default one hour.
	History time.Duration
	// TwoStep makes every transfer between shards in the two steps that are used without a
	// shared commit: accepted there first, removed here after.
	TwoStep bool
	// MayMove checks the permissions of the requester of a move task; see transfer.Transfers.
	MayMove func(by *caller.Caller, from, to arn.ARN) error
	// Begin has move tasks of an earlier process wait; see transfer.Transfers.
	Begin func(start func())
	// Render and NewID make the messages for subscribed queues that a publish delivers by its
	// own commit. Without them no publish does.
	Render topics.Renderer
	NewID  func() message.ID
	// Events is called with events of the messages of SQS queues. It is called after the commit
	// and without locks; it must be quick. May be nil.
	Events func(queues.QueueEvent)
	// Sign puts the signature into the body of a message that is Unsigned. It is called without
	// any lock. It is needed if messages are rendered unsigned.
	Sign func(body []byte, u *message.Unsigned) error
	// Accepted is called for every event that a function is to be invoked with, if it is not
	// nil. It is called after the commit and without locks, and must be quick.
	Accepted func(function arn.ARN, qualifier string, at time.Time)
	// Published is called for every publish, if it is not nil. It may be called
	// concurrently, and must be quick.
	Published func(*topics.Published)
	// Audited is as in topics.Options.
	Audited func(*topics.Audited)
	// TopicLimits are the quotas of every topic.
	TopicLimits topic.Limits
	// MaxTopics is how many topics an account may have in a region; 0: any
	// number.
	MaxTopics int
	// Accounts bound the storage of accounts in all regions; nil: there is no bound.
	Accounts *accounts.Accounts
	// FunctionLimits are the quotas of functions.
	FunctionLimits functions.FunctionLimits
	// FunctionUpdates is how long the creation or an update of a function takes.
	FunctionUpdates time.Duration
	// Draw returns random numbers in [0, 1), by which invocations are routed to versions.
	// Without it the first version gets all.
	Draw func() float64
	// Sealing are the keys that seal secrets on the disk; nil: they are in clear, as tests may
	// have them.
	Sealing *seal.Keys
	// Encryption is for encrypted queues; nil: there are none.
	Encryption encryption.Keys
	// Fatal ends the process after a failure of the store. It must not return
	// to a caller that could answer a request.
	Fatal func(error)
}

// The purposes of sealed fields in records of topics and functions.
const (
	endpointsPurpose    = "endpoints"
	environmentsPurpose = "environments"
	credentialsPurpose  = "platform credentials"
)

// sealer is the sealer of a purpose; nil without keys.
func (o *Options) sealer(purpose string) *seal.Sealer {
	if o.Sealing == nil {
		return nil
	}
	return o.Sealing.Sealer(purpose)
}

// Engine is the state of a node: the shards and their modules.
type Engine struct {
	*kernel.Kernel
	*queues.Queues
	*transfer.Transfers
	*backlog.Backlogs
	Direct *direct.Publishing
	*topics.Topics
	*functions.Functions
	*platforms.Platforms
	*signing.Keys
}

// Open loads the state in the store and takes it over.
func Open(o Options) (*Engine, error) {
	if o.Fatal == nil {
		o.Fatal = func(err error) { panic(fmt.Sprintf("godwit: the store failed: %v", err)) }
	}
	o.History = cmp.Or(o.History, time.Hour)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	k := o.Kernel
	if k == nil {
		k = kernel.New(kernel.Options{Journal: o.Journal, Clock: o.Clock, Logger: o.Logger, Full: o.Full, Fatal: o.Fatal})
	}
	ofQueues := queues.New(k, queues.Options{Cooldowns: o.Cooldowns, Strict: o.Strict, Events: o.Events, Sign: o.Sign, Sealer: o.sealer("receipt handles"), Encryption: o.Encryption, Accounts: o.Accounts})
	ofTransfers := transfer.New(ofQueues, o.TwoStep)
	ofTransfers.MayMove, ofTransfers.Begin = o.MayMove, o.Begin
	ofBacklogs := backlog.New(ofTransfers, o.History, o.TopicLimits)
	ofDirect := direct.New(ofBacklogs)
	ofTopics := topics.New(ofBacklogs, topics.Options{Render: o.Render, NewID: o.NewID, Published: o.Published, Audited: o.Audited, MaxTopics: o.MaxTopics})
	ofFunctions := functions.New(ofBacklogs, functions.Options{
		Accepted: o.Accepted, Limits: o.FunctionLimits, Updates: o.FunctionUpdates, Draw: o.Draw, Sign: o.Sign,
	})
	toEndpoints := platforms.Options{NewID: o.NewID, Published: o.Published}
	if o.Sealing != nil {
		toEndpoints.Sealer = o.Sealing.Sealer(credentialsPurpose)
	}
	e := &Engine{
		Platforms: platforms.New(ofBacklogs, toEndpoints),
		Kernel:    k, Queues: ofQueues, Transfers: ofTransfers, Backlogs: ofBacklogs, Direct: ofDirect, Topics: ofTopics,
		Functions: ofFunctions, Keys: signing.New(k, o.sealer("signing keys")),
	}
	if o.Sealing != nil {
		for id := range k.All {
			ofBacklogs.Shards[id].Topics.SealWith(o.Sealing.Sealer(endpointsPurpose))
			ofFunctions.Shards[id].Functions.SealWith(o.Sealing.Sealer(environmentsPurpose))
		}
	}
	topics.NewDeletedTopicGC(ofTopics)
	if err := k.Load(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the store: %w", err), e.Close())
	}
	return e, nil
}

// Package shardtest is what the tests of package shard and of its modules share: an
// engine on a store that can crash, and the names and messages that it is given.
package shardtest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/internal/topic"
)

// Whose the queues, topics and functions of tests are.
const (
	Region  = "us-east-1"
	Account = "000000000000"
)

// Start is when virtual clocks begin.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// QueueARN is that of a queue of Account.
func QueueARN(name string) arn.ARN { return arn.Queue(Region, Account, name) }

// TopicARN is that of a topic of Account.
func TopicARN(name string) arn.ARN { return arn.Topic(Region, Account, name) }

// FunctionARN is that of a function of Account.
func FunctionARN(name string) arn.ARN { return arn.Function(Region, Account, name) }

// OpenStore opens a Pebble store on a file system that can be crashed.
func OpenStore(t testing.TB, fs vfs.FS) store.Store {
	t.Helper()
	s, err := pebble.Open("data", pebble.Options{FS: fs, CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// NewStore is an empty store for what does not crash: one of Pebble, or one in memory under
// the race detector, with which Pebble checks itself, which takes twenty times as long.
func NewStore(t testing.TB) store.Store {
	t.Helper()
	if raced {
		return memory.New()
	}
	return OpenStore(t, vfs.NewMem())
}

// JournalOf opens a journal on a store for as long as the test runs. observe may be nil.
func JournalOf(t testing.TB, s store.Store, observe func(sealed []byte)) *journal.Journal {
	t.Helper()
	j := journal.Open(journal.Options{Store: s, Observe: observe})
	t.Cleanup(j.Close)
	return j
}

// Open opens an engine, which is closed before its journal when the test ends: a timer that
// fires in between would find the journal closed. Without a logger of its own, any error that it
// logs fails the test.
func Open(t testing.TB, o shard.Options) *shard.Engine {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(refuse{t}, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	e, err := shard.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // again without effect, if the test has closed it
	return e
}

// refuse fails the test on whatever is written.
type refuse struct{ t testing.TB }

func (w refuse) Write(p []byte) (int, error) {
	w.t.Errorf("logged: %s", p)
	return len(p), nil
}

// NewMessage is a sealed message of Account.
func NewMessage(id int, body string) *message.Message {
	m := &message.Message{ID: MessageID(id), Sender: Account, Body: []byte(body)}
	m.Seal()
	return m
}

// MessageID is an id of a message; a greater one has more digits, or greater ones.
func MessageID(id int) (out message.ID) {
	copy(out[:], fmt.Sprintf("%016d", id))
	return out
}

// SubscriptionID is an id of a subscription, in the order of the numbers.
func SubscriptionID(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }

// Subscribe subscribes a queue to a topic, both of Account.
func Subscribe(t testing.TB, e *shard.Engine, topicName, queueName, id string) arn.ARN {
	t.Helper()
	sub, err := e.Subscribe(context.Background(), topic.Subscribe{
		Topic: TopicARN(topicName), Owner: Account, Protocol: "sqs", Endpoint: QueueARN(queueName).String(), ID: id, Token: "token-" + id,
	})
	if err != nil {
		t.Fatal(err)
	}
	return sub.ARN
}

// ReceiveAll receives until a queue has nothing more to give.
func ReceiveAll(t testing.TB, e *shard.Engine, q arn.ARN, visibility time.Duration) iter.Seq[queues.Received] {
	return func(yield func(queues.Received) bool) {
		for {
			got, err := e.Receive(context.Background(), queues.ReceiveRequest{Queue: q, Max: 10, Visibility: visibility})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 {
				return
			}
			for _, m := range got {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// functionConfig is what a function of tests is made of.
func functionConfig() function.Config {
	return function.Config{
		Package: "Zip", Runtime: "provided.al2023", Handler: "bootstrap", Role: "arn:aws:iam::000000000000:role/r",
		TimeoutS: 3, MemoryMB: 128, EphemeralMB: 512, Tracing: "PassThrough", Architecture: "x86_64",
		Logging: function.Logging{Format: "Text", Group: "/aws/lambda/f"},
	}
}

// CreateFunction is the command that creates a function of Account.
func CreateFunction(name string, zip []byte) function.Create {
	return function.Create{
		ARN: FunctionARN(name), Config: functionConfig(), Code: function.Code{SHA256: sha256.Sum256(zip)},
		Revision: "created", ReadyRevision: "active",
	}
}

// CountKeys counts the keys of a space of all shards, and of one kind in it; 0: of any.
func CountKeys(t *testing.T, s store.Reader, space, kind byte) (n int) {
	t.Helper()
	for key := range storetest.Dump(t, s) {
		if key[2] == space && (kind == 0 || key[11] == kind) {
			n++
		}
	}
	return n
}

package shard_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/deliverystreams"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/jobs"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/keys"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/sources"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/internal/topic"
)

// keyIn is a store with a single key.
func keyIn(t *testing.T, key string) store.Store {
	t.Helper()
	s := memory.New()
	var b mutation.Batch
	b.Set([]byte(key), []byte("12345678"))
	if err := s.Apply(store.Sync, &b); err != nil {
		t.Fatal(err)
	}
	return s
}

// A start reports a key that cannot be read as damage, as it does with a record.
func TestUnreadableKeys(t *testing.T) {
	for name, of := range map[string]struct {
		prefix string // behind the space, and in most the shard
		err    error
	}{
		"counters":                 {"\x00\x03" + string(keyspace.Counters), keyspace.ErrKey},
		"queue":                    {"\x00\x03" + string(keyspace.Queues), keyspace.ErrKey},
		"mark of a transfer":       {"\x00\x03" + string(keyspace.Transfers), keyspace.ErrKey},
		"move task":                {"\x00\x03" + string(keyspace.MoveTasks), keyspace.ErrKey},
		"publication":              {"\x00\x03" + string(keyspace.Fanouts), keyspace.ErrKey},
		"sequence of a FIFO topic": {"\x00\x03" + string(keyspace.TopicSequences), keyspace.ErrKey},
		"confirmation":             {"\x00\x03" + string(keyspace.Confirmations), keyspace.ErrKey},
		"direct publishes":         {"\x00\x03" + string(keyspace.Directs), keyspace.ErrKey},
		"topic":                    {"\x00\x03" + string(keyspace.Topics), topic.ErrRecord},
		"subscription":             {"\x00\x03" + string(keyspace.Subscriptions), topic.ErrRecord},
		"function":                 {"\x00\x03" + string([]byte{keyspace.Functions, keyspace.FunctionRecords}), function.ErrRecord},
		"version of a function":    {"\x00\x03" + string([]byte{keyspace.Functions, keyspace.FunctionVersions}), function.ErrRecord},
		"alias of a function":      {"\x00\x03" + string([]byte{keyspace.Functions, keyspace.FunctionAliases}), function.ErrRecord},
		"mapping":                  {"\x00\x03" + string([]byte{keyspace.Functions, keyspace.FunctionMappings}), mapping.ErrRecord},
		"code":                     {string(keyspace.CodeSpace) + "\x00\x03", keyspace.ErrKey},
		"application":              {"\x00\x03" + string([]byte{keyspace.Platforms, keyspace.PlatformApplications}), keyspace.ErrKey},
	} {
		for _, rest := range []string{"", "short", "a\x00", "longer than any number that a key may hold"} {
			j := journal.Open(journal.Options{Store: keyIn(t, of.prefix+rest)})
			_, err := shard.Open(shard.Options{Journal: j, Clock: clock.NewVirtual(shardtest.Start)})
			if !errors.Is(err, of.err) {
				t.Errorf("%s: %q: %v", name, rest, err)
			}
			j.Close()
		}
	}
}

// So do the modules with a shard of their own. Those whose records are of several kinds know no
// kind for such a key.
func TestUnreadableKeysOfOwnShards(t *testing.T) {
	sealing, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	const long = "longer than any number that a key may hold"
	short := []string{"", "short", long}
	for _, c := range []struct {
		name   string
		open   func(k *kernel.Kernel)
		prefix []byte
		rests  []string
		err    error
	}{
		{"identities", func(k *kernel.Kernel) { identity.New(k, identity.Options{}) }, []byte{keyspace.IdentitySpace}, []string{"", "?", "e", "eaccount", "e1\x00", "k1", "ttoo long"}, keyspace.ErrUnknown},
		{"text messages", func(k *kernel.Kernel) { texts.New(k, texts.Options{}) }, []byte{keyspace.SMSSpace}, []string{"", "?", "a1", "a1\x00region", "a1\x00region\x00more", "c1\x00region"}, keyspace.ErrUnknown},
		{"keys", func(k *kernel.Kernel) { keys.New(k, sealing) }, []byte{keyspace.KMSSpace}, []string{"", "?", "a1", "g1\x00region\x00", "k1\x00region"}, keyspace.ErrUnknown},
		{"jobs", func(k *kernel.Kernel) { jobs.New(k, nil) }, []byte{keyspace.JobSpace}, []string{"", "?1"}, keyspace.ErrKey},
		{"sources", func(k *kernel.Kernel) { sources.New(k, sealing.Sealer("sources")) }, []byte{keyspace.SourceSpace}, []string{"", "?1"}, keyspace.ErrKey},
		{"stacks", func(k *kernel.Kernel) { stacks.New(k, nil, refusal.Text) }, []byte{keyspace.StackSpace, keyspace.StackRecords}, short, keyspace.ErrKey},
		{"resources", func(k *kernel.Kernel) { stacks.New(k, nil, refusal.Text) }, []byte{keyspace.StackSpace, keyspace.StackResources}, short[:2], keyspace.ErrKey},
		{"change sets", func(k *kernel.Kernel) { stacks.New(k, nil, refusal.Text) }, []byte{keyspace.StackSpace, keyspace.StackChanges}, short, keyspace.ErrKey},
		{"delivery streams", func(k *kernel.Kernel) { deliverystreams.New(k, sealing, deliverystreams.Options{}) }, []byte{keyspace.FirehoseSpace, keyspace.DeliveryStreams}, []string{"", "1", "1\x00region"}, keyspace.ErrKey},
		{"batches", func(k *kernel.Kernel) { deliverystreams.New(k, sealing, deliverystreams.Options{}) }, []byte{keyspace.FirehoseSpace, keyspace.FirehoseBatches}, short, keyspace.ErrKey},
		{"chunks", func(k *kernel.Kernel) { deliverystreams.New(k, sealing, deliverystreams.Options{}) }, []byte{keyspace.FirehoseSpace, keyspace.FirehoseChunks}, short, keyspace.ErrKey},
	} {
		for _, rest := range c.rests {
			j := journal.Open(journal.Options{Store: keyIn(t, string(c.prefix)+rest)})
			k := kernel.New(kernel.Options{Journal: j, Clock: clock.NewVirtual(shardtest.Start)})
			c.open(k)
			if err := k.Load(); !errors.Is(err, c.err) {
				t.Errorf("%s: %q: %v", c.name, rest, err)
			}
			j.Close()
		}
	}
}

// A key that is damaged among those that sign envelopes, or where earlier versions had them, is not
// taken for one of them, nor for none.
func TestUnreadableSigningKey(t *testing.T) {
	for tag, want := range map[byte]error{keyspace.SigningKeys: keyspace.ErrKey, keyspace.Replays: keyspace.ErrUnknown} {
		for _, rest := range []string{"", "short", strings.Repeat("k", 17)} {
			e := shardtest.Open(t, shard.Options{
				Journal: shardtest.JournalOf(t, keyIn(t, "\x00\x00"+string(tag)+rest), nil), Clock: clock.NewVirtual(shardtest.Start),
			})
			if all, err := e.SigningKeys(); !errors.Is(err, want) {
				t.Errorf("%c%q: %v, %v", tag, rest, all, err)
			}
		}
	}
}

// What is only read later is no less an error: it does not end in a panic, and is not taken for
// another record.
func TestUnreadableKeysOfWhatIsReadLater(t *testing.T) {
	ctx, fifo := t.Context(), shardtest.TopicARN("t.fifo")
	shop := arn.PlatformApplication(shardtest.Region, shardtest.Account, platform.FCM, "shop")
	publish := func(e *shard.Engine, dedup ...string) error {
		var all []shard.Publication
		for i, id := range dedup {
			all = append(all, shard.Publication{ID: shardtest.MessageID(i), Body: []byte("x"), Group: "g", Dedup: id})
		}
		_, err := e.Publish(ctx, fifo, all...)
		return err
	}
	for id, later := range map[keyspace.ID]func(e *shard.Engine) error{
		keyspace.KindArchive:          nil,
		keyspace.KindPlatformEndpoint: func(e *shard.Engine) error { _, _, err := e.ListEndpoints(ctx, shop, "", 10); return err },
		keyspace.KindDuplicate:        func(e *shard.Engine) error { return publish(e, "new") },
		keyspace.KindDuplicateBatch:   func(e *shard.Engine) error { return publish(e, "new") },
	} {
		s := memory.New()
		sealing, _, err := seal.NewKeys(seal.NewRoot())
		if err != nil {
			t.Fatal(err)
		}
		var fatal error
		o := shard.Options{
			Clock: clock.NewVirtual(shardtest.Start), Sealing: sealing, Logger: slog.New(slog.DiscardHandler),
			Fatal: func(err error) { fatal = err },
		}
		o.Journal = journal.Open(journal.Options{Store: s})
		e := shardtest.Open(t, o)
		if err := e.CreateApplication(ctx, shop, map[string]string{platform.AttrCredential: "c"}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.CreateEndpoint(ctx, shop, "token", nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: fifo, Attributes: map[string]string{
			"FifoTopic": "true", "ArchivePolicy": `{"MessageRetentionPeriod":"1"}`,
		}}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(publish(e, "1"), publish(e, "2", "3")); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		o.Journal.Close()
		var damage mutation.Batch
		for key, value := range storetest.Dump(t, s) {
			if k, err := keyspace.Parse(key); err == nil && k.ID == id {
				damage.Set(key[:len(key)-1], value)
			}
		}
		if err := s.Apply(store.Sync, &damage); err != nil || damage.Len() == 0 {
			t.Fatal(damage.Len(), err)
		}
		o.Journal = journal.Open(journal.Options{Store: s})
		e, err = shard.Open(o)
		if err == nil && later != nil {
			err = errors.Join(later(e), fatal)
		}
		if !errors.Is(err, keyspace.ErrKey) {
			t.Errorf("%s: %v", keyspace.Table[id].Name, err)
		}
		if e != nil {
			_ = e.Close()
		}
		o.Journal.Close()
	}
}

package topics_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/soak"
)

// TestConfirmationsOutliveTheServer: what is on the disk when an address has been subscribed
// bounds the mails to it, also where the server is killed behind each.
func TestConfirmationsOutliveTheServer(t *testing.T) {
	ctx := context.Background()
	fs := vfs.NewCrashableMem()
	c := clock.NewVirtual(shardtest.Start)
	taken := 0
	var err error
	for err == nil && taken < 100 {
		s := shardtest.OpenStore(t, fs)
		e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
		for range soak.Size(8, 1) { // else it is killed behind every eighth
			name := fmt.Sprint("t", taken)
			if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN(name)}); err != nil {
				t.Fatal(err)
			}
			_, err = e.Subscribe(ctx, topic.Subscribe{
				Topic: shardtest.TopicARN(name), Owner: shardtest.Account, Protocol: "email", Endpoint: "a@example.com", ID: shardtest.SubscriptionID(taken), Token: name,
			})
			if taken++; err != nil {
				break
			}
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{})
		e.Close()
		_ = s.Close() // of a disk that is not looked at again
		fs = crashed
	}
	if taken != 25 || !errors.Is(err, topic.ErrConfirmations) {
		t.Errorf("%d were asked for, then %v", taken, err)
	}
}

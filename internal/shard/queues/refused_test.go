package queues_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// keyOff is an encryption under two keys, of which the one of some messages may be disabled.
type keyOff struct {
	shardtest.Encryption
	off    bool
	denied bool // and only to the receiver
}

var errKeyOff, errDenied = fault.New(fault.KMSDisabled, "the key is disabled"), fault.New(fault.KMSAccessDenied, "nothing allows it")

func (k *keyOff) Decrypt(cfg queue.Config, who *caller.Caller, m *message.Message) error {
	sealed := *m
	if err := k.Encryption.Decrypt(cfg, who, m); err != nil {
		return err
	}
	if k.off && strings.HasPrefix(string(m.Body), "old") {
		if *m = sealed; k.denied {
			return errDenied
		}
		return errKeyOff
	}
	return nil
}

// TestRefusedKeyBlocksNobody: messages whose key is disabled, or refused to the caller, do not hide
// the others of their queue, are not counted as received, and keep their place in their group.
func TestRefusedKeyBlocksNobody(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		queue  string
		most   int
		denied bool
		want   string // of each receive while the key is off
	}{
		{"q", 10, false, "new3 new4, "},
		{"q", 1, false, "refused, refused, new3, new4, "},
		{"q.fifo", 10, false, "new3, "},
		{"q.fifo", 1, false, "refused, new3, "},
		// What one caller may not decrypt is there for others: it is not hidden from them.
		{"q", 10, true, "new3 new4, refused"},
		{"q", 1, true, "refused, refused"},
		{"q.fifo", 10, true, "new3, refused"},
		{"q.fifo", 1, true, "refused, new3, refused"},
	} {
		t.Run(fmt.Sprint(tt.queue, tt.most, tt.denied), func(t *testing.T) {
			k, c, q := &keyOff{denied: tt.denied}, clock.NewVirtual(shardtest.Start), shardtest.QueueARN(tt.queue)
			e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: c, Encryption: k})
			defer e.Close()
			spec := queues.QueueSpec{ARN: q, Attributes: map[string]string{"VisibilityTimeout": "60"}}
			if q.FIFO() {
				spec.Attributes["FifoQueue"] = "true"
			}
			if err := e.CreateQueue(ctx, spec); err != nil {
				t.Fatal(err)
			}
			for i, body := range []string{"old1", "old2", "new3", "new4"} {
				m := shardtest.NewMessage(i, body)
				if q.FIFO() {
					m.Group, m.Dedup = []string{"a", "a", "b", "a"}[i], body
				}
				if err := e.Encrypt(q, queue.Config{}, nil, q, m); err != nil {
					t.Fatal(err)
				}
				if _, err := e.Send(ctx, q, []queues.SendEntry{{Message: m}}); err != nil {
					t.Fatal(err)
				}
			}
			receive := func() string {
				got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: q, Max: tt.most, Visibility: 12 * time.Hour})
				if fault.Is(err) {
					return "refused"
				}
				if err != nil {
					t.Fatal(err)
				}
				var all []string
				for _, m := range got {
					if m.Receives != 1 && strings.HasPrefix(string(m.Body), "old") {
						t.Errorf("%s was received %d times", m.Body, m.Receives)
					}
					all = append(all, string(m.Body))
				}
				return strings.Join(all, " ")
			}
			k.off = true
			var got []string
			for range strings.SplitSeq(tt.want, ", ") {
				got = append(got, receive())
			}
			if all := strings.Join(got, ", "); all != tt.want {
				t.Errorf("received %q, want %q", all, tt.want)
			}
			k.off = false
			if _, err := c.Advance(ctx, time.Minute); err != nil {
				t.Fatal(err)
			}
			if all := receive(); !strings.HasPrefix(all, "old1") {
				t.Errorf("once it is enabled %q is received", all)
			}
		})
	}
}

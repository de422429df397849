package topics_test

import (
	"strings"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/protect"
)

// protected opens an engine with two topics: plain, and guarded by a policy.
func protected(t testing.TB) *shard.Engine {
	t.Helper()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.System})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	policy, err := protect.Parse(`{"Name":"p","Version":"2021-06-01","Statement":[{"DataDirection":"Inbound","Principal":["*"],
		"DataIdentifier":["arn:aws:dataprotection::aws:data-identifier/EmailAddress"],"Operation":{"Deidentify":{"RedactConfig":{}}}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*protect.Policy{"plain": nil, "guarded": policy} {
		if err := e.CreateTopic(t.Context(), topic.CreateTopic{ARN: shardtest.TopicARN(name), Protection: p}); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// A topic without a data protection policy pays nothing for there being such policies: the
// message is neither copied nor looked at.
func TestNoProtectionCostsNothing(t *testing.T) {
	e := protected(t)
	body := []byte(strings.Repeat("to a@example.com ", 1000))
	name := shardtest.TopicARN("plain")
	p := shard.Publication{ID: shardtest.MessageID(1), Sender: "s", Body: body}
	if n := testing.AllocsPerRun(100, func() {
		one := p
		if err := e.Protect(name, &one); err != nil || &one.Body[0] != &body[0] {
			t.Errorf("%v, or another body", err)
		}
	}); n > 1 { // of the name, by which its shard is found
		t.Errorf("%v allocations", n)
	}
	if err := e.Protect(shardtest.TopicARN("guarded"), &p); err != nil || strings.Contains(string(p.Body), "@") {
		t.Errorf("%v: %.40s", err, p.Body)
	}
}

// BenchmarkProtect is what a policy costs a publish of 1 KiB, and none.
func BenchmarkProtect(b *testing.B) {
	e := protected(b)
	body := []byte(strings.Repeat("an order of 3 ", 73))
	for _, name := range []string{"plain", "guarded"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			t := shardtest.TopicARN(name)
			for b.Loop() {
				p := shard.Publication{ID: shardtest.MessageID(1), Sender: "s", Body: body}
				if err := e.Protect(t, &p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

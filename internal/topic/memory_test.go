package topic

import (
	"fmt"
	"runtime"
	"testing"
)

// heapGrowth is by how many bytes f grows the live heap.
func heapGrowth(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return after.HeapAlloc - before.HeapAlloc
}

// Memory is spent on records, not on indexes of indexes.
func TestBytesPerSubscription(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory")
	}
	const n = 10_000
	for name, policy := range map[string]string{ // %d: differs
		"the same filter": `{"order-status":["confirmed","canceled"]}`,
		"a filter":        `{"order-status":["confirmed","canceled"],"customer":["c-%d"]}`,
		"a range":         `{"price":[{"numeric":[">=",%d,"<",%[1]d.5]}]}`,
		"a key":           `{"customer-%d":[{"prefix":"x"}]}`,
	} {
		w := newWorld()
		topic := mustCreate(t, w, "Orders")
		per := heapGrowth(func() {
			for i := range n {
				mustSubscribe(t, w, Subscribe{
					Topic: topic, Protocol: "sqs", Endpoint: queue(i),
					Attributes: map[string]string{
						"FilterPolicy":  policyOf(policy, i),
						"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":"%s"}`, queue(i)),
					},
				})
				w.batch.Reset()
			}
		}) / n
		t.Logf("%d bytes per subscription with %s and a dead-letter queue", per, name)
		if per > 1000 {
			t.Errorf("%d bytes per subscription with %s", per, name)
		}
		if gone, err := w.DeleteTopic(topic, &w.batch); err != nil || len(gone.Backlogs()) != n || !gone.Gone() {
			t.Errorf("the topic went with %d backlogs, %v", len(gone.Backlogs()), err)
		}
	}
}

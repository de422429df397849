package queues

import (
	"time"

	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
)

// oldestAge is the age of the oldest message of a queue that does not belong to one
// of the given tenants; 0: there is none.
func (sh *Shard) oldestAge(qs *Queue, now int64, without []layout.Lane) time.Duration {
	r, _ := sh.doUntouched(qs, now, queue.Oldest{Without: without})
	if r.Sent == 0 {
		return 0
	}
	return time.Duration(max(now-r.Sent, 0)) * time.Millisecond
}

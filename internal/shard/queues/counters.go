package queues

import (
	"godwit.dev/godwit/internal/mutation"
)

// Room implements touched.
func (qs *Queue) Room() int { return qs.Machine.SaveRoom() }

// Finish writes the counters of a queue, once a commit.
func (qs *Queue) Finish(commit uint64, b *mutation.Batch) {
	if !qs.Ended() {
		qs.Machine.Save(b, commit, &qs.told.saved)
	}
}

package queues

import (
	"godwit.dev/godwit/internal/mutation"
)

// FinishBytes implements kernel.Dirty.
func (qs *Queue) FinishBytes() int { return qs.Machine.SaveBytes() }

// Finish writes the counters of a queue, once a commit.
func (qs *Queue) Finish(commit uint64, b *mutation.Batch) {
	if !qs.Ended() {
		qs.Machine.Save(b, commit, &qs.reported.saved)
	}
}

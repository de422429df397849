package shard

import (
	"godwit.dev/godwit/internal/mutation"
)

// room implements touched.
func (qs *queueState) room() int { return qs.machine.SaveRoom() }

// finish writes the counters of a queue, once a commit.
func (qs *queueState) finish(commit uint64, b *mutation.Batch) {
	if !qs.ended() {
		qs.machine.Save(b, commit, &qs.saved)
	}
}

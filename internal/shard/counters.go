package shard

import (
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
)

// seal ends the writing of a command: what it changed is the part of a commit.
func (sh *shard) seal() journal.Part {
	room := 0
	for _, qs := range sh.dirty {
		room += qs.machine.SaveRoom()
	}
	return journal.Part{Stream: sh.log, Batch: &sh.batch, State: sh.meta, Room: room}
}

// count writes the counters of the queues that the command under way has touched
// behind what it wrote, once a commit. Its caller is the journal, with the shard's lock held.
func (sh *shard) count(commit uint64, b *mutation.Batch) {
	for _, qs := range sh.dirty {
		if !qs.ended() {
			qs.machine.Save(b, commit, &qs.saved)
		}
	}
}

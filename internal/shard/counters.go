package shard

import (
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
)

// countersRoom bounds what the counters of a queue take in a batch, in bytes.
const countersRoom = 128

// tenantRoom bounds what the record of a tenant takes.
const tenantRoom = 64

// seal ends the writing of a command: what it changed is the part of a commit.
func (sh *shard) seal() journal.Part {
	room := countersRoom * len(sh.dirty)
	for _, qs := range sh.dirty {
		room += tenantRoom * qs.machine.ChangedTenants()
	}
	return journal.Part{Stream: sh.log, Batch: &sh.batch, State: sh.meta, Room: room}
}

// count writes the counters of the queues that the command under way has touched
// behind what it wrote. Its caller is the journal, with the shard's lock held.
func (sh *shard) count(commit uint64, b *mutation.Batch) {
	for _, qs := range sh.dirty {
		qs.count(commit, b)
	}
}

// count writes the counters of a queue: once a commit, as they are after its last
// command. What its tenants have waiting is written as often as it changes.
func (qs *queueState) count(commit uint64, b *mutation.Batch) {
	if qs.ended() {
		return
	}
	qs.machine.PutTenants(b)
	var buf [countersRoom]byte
	value := qs.machine.AppendCounters(buf[:0])
	if qs.countedIn == commit && int(qs.countedLen) == len(value) {
		b.Overwrite(int(qs.countedEnd), value)
		return
	}
	b.Set(qs.machine.Keys().Counters(), value)
	qs.countedIn, qs.countedEnd, qs.countedLen = commit, uint32(b.Size()), uint8(len(value))
}

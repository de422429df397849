package shard

import (
	"godwit.dev/godwit/internal/mutation"
)

// countersRoom bounds what the counters of a queue take in a batch, in bytes.
const countersRoom = 128

// tenantRoom bounds what the record of a tenant takes.
const tenantRoom = 64

// room implements touched.
func (qs *queueState) room() int { return countersRoom + tenantRoom*qs.machine.ChangedTenants() }

// finish writes the counters of a queue: once a commit, as they are after its last
// command. What its tenants have waiting is written as often as it changes.
func (qs *queueState) finish(commit uint64, b *mutation.Batch) {
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

package queues

import (
	"slices"

	"godwit.dev/godwit/internal/journal"
)

// unsynced has the sequence up to which messages are durable, and the commits that make the
// later ones durable.
type unsynced struct {
	newest  uint64 // the last message that the command has added
	durable uint64 // messages up to it are durable; 0: not known of any
	pending []pendingAppend
}

// pendingAppend is the commit that makes the messages up to a sequence durable.
type pendingAppend struct {
	sequence uint64
	commit   *journal.Commit
}

// Appended implements kernel.Dirty.
func (qs *Queue) Appended(c *journal.Commit) {
	if qs.unsynced.newest != 0 {
		qs.noteCommit(qs.unsynced.newest, c)
		qs.unsynced.newest = 0
	}
}

// noteCommit notes the commit that makes the messages up to a sequence durable.
func (qs *Queue) noteCommit(sequence uint64, c *journal.Commit) {
	qs.forgetDurable()
	if n := len(qs.unsynced.pending); n > 0 && qs.unsynced.pending[n-1].commit == c {
		qs.unsynced.pending[n-1].sequence = sequence
		return
	}
	qs.unsynced.pending = append(qs.unsynced.pending, pendingAppend{sequence: sequence, commit: c})
}

// forgetDurable drops the commits that are durable.
func (qs *Queue) forgetDurable() {
	i := 0
	for i < len(qs.unsynced.pending) && qs.unsynced.pending[i].commit.Durable() {
		qs.unsynced.durable = qs.unsynced.pending[i].sequence
		i++
	}
	if qs.unsynced.pending = slices.Delete(qs.unsynced.pending, 0, i); len(qs.unsynced.pending) == 0 && !qs.Emptied {
		qs.unsynced.pending = nil
	}
}

// commitOf is the commit that makes a message durable; nil: it is durable.
func (qs *Queue) commitOf(sequence uint64) *journal.Commit {
	if sequence <= qs.unsynced.durable {
		return nil
	}
	for i := range qs.unsynced.pending {
		if p := &qs.unsynced.pending[i]; p.sequence >= sequence {
			if p.commit.Durable() {
				return nil
			}
			return p.commit
		}
	}
	return nil
}

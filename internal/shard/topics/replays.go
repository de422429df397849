package topics

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/filter"
)

// A replay walks the archive of its topic and puts what matches the subscription's filter
// policy into its backlog, step by step; its cursor moves in the same commits. Meanwhile the
// subscription gets no new publications from the fan-out: they are in the archive, too. At the
// end of the archive the replay ends, and the subscription gets the next publish as usual.

const (
	replayStep = 256 // messages of the archive that one commit looks at
	// replayAhead bounds the messages of a replay that wait in the backlog. Below half of
	// it the next step follows.
	replayAhead = 1024
	// replayWait is how long a replay waits for space on the disk.
	replayWait = 20 * time.Second
)

// pendingReplay is one that is under way.
type pendingReplay struct {
	sub         arn.ARN
	incarnation layout.Incarnation // of the backlog
	next        archivePlace       // the first place of the archive that it has not looked at
	after       uint64             // fan-outs up to this number come first
	queued      bool               // it is in replayQueue
}

func replayPrefix(shard uint16) []byte { return keyspace.Shard(shard, keyspace.Replays) }

func replayKey(shard uint16, inc layout.Incarnation) []byte {
	return binary.BigEndian.AppendUint64(replayPrefix(shard), uint64(inc))
}

// replayChanged begins the replay that a subscription's policy asks for, in the
// place of the one under way if there is one. It is part of the command that
// changes the policy.
func (sh *Shard) replayChanged(sub *topic.Subscription) {
	inc := layout.Incarnation(sub.Incarnation)
	sh.dropReplay(inc)
	if !sub.Replaying() {
		return
	}
	r := &pendingReplay{sub: sub.ARN, incarnation: inc, next: archivePlace{sent: sub.Replay.Start.UnixMilli()}, after: sh.nextFan}
	if sub.Replay.Start.Nanosecond()%1e6 > 0 {
		r.next.sent++
	}
	sh.Batch.Set(replayKey(sh.ID, inc), r.next.appendTo(nil))
	sh.replays[inc] = r
	sh.enqueueReplay(r)
}

// dropSubscription removes the backlog of a subscription that is gone, and its replay.
func (sh *Shard) dropSubscription(inc layout.Incarnation) {
	sh.dropReplay(inc)
	sh.DropBacklog(inc)
}

// dropReplay forgets the replay of a subscription, if there is one.
func (sh *Shard) dropReplay(inc layout.Incarnation) {
	if _, ok := sh.replays[inc]; ok {
		delete(sh.replays, inc)
		sh.Batch.Delete(replayKey(sh.ID, inc))
	}
}

// loadReplays finds the replays that were under way when the process before ended.
func (sh *Shard) loadReplays() (err error) {
	sh.Topics.Replays(func(sub *topic.Subscription) {
		inc := layout.Incarnation(sub.Incarnation)
		value, ok, e := sh.engine.Store.Get(nil, replayKey(sh.ID, inc))
		if e == nil && (!ok || len(value) != ArchivePlaceSize) {
			e = fmt.Errorf("the replay of %s has no place in the archive", sub.ARN)
		}
		if e != nil {
			err = cmp.Or(err, e)
			return
		}
		sh.replays[inc] = &pendingReplay{sub: sub.ARN, incarnation: inc, next: archivePlaceOf(value), after: sh.nextFan}
	})
	return err
}

// resumeReplays lines up the replays that wait for something.
func (sh *Shard) resumeReplays() {
	for _, inc := range slices.Sorted(maps.Keys(sh.replays)) {
		sh.enqueueReplay(sh.replays[inc])
	}
}

// delivered lets the replay into a backlog continue that has been waiting for
// deliveries.
func (sh *Shard) delivered(qs *queues.Queue) {
	if len(sh.replays) == 0 {
		return
	}
	if r, ok := sh.replays[qs.Incarnation]; ok && !r.queued && qs.Machine.Len() <= replayAhead/2 {
		sh.enqueueReplay(r)
	}
}

// enqueueReplay has a replay continue in the background, one step at a time, round robin
// with others.
func (sh *Shard) enqueueReplay(r *pendingReplay) {
	if !r.queued {
		r.queued = true
		sh.replayQueue = append(sh.replayQueue, r)
	}
	if sh.replaying {
		return
	}
	sh.replaying = true
	sh.engine.InSteps(sh.replayOnce)
}

// enqueueReplayLater has a replay continue after a while.
func (sh *Shard) enqueueReplayLater(r *pendingReplay) {
	sh.engine.Clock.AfterFunc(replayWait, func() {
		sh.View(func() {
			if !sh.Closed && sh.replays[r.incarnation] == r {
				sh.enqueueReplay(r)
			}
		})
	})
}

// replayOnce makes a step of the next replay in the queue; false if there is none.
func (sh *Shard) replayOnce() (more bool) {
	var part *archivePart
	sh.View(func() {
		if part, more = sh.nextReplay(); part != nil && !part.encrypted {
			sh.stepReplay(part)
			part = nil
		}
	})
	if part == nil {
		return more
	}
	part.found = slices.DeleteFunc(part.found, func(f *fanout) bool {
		err := f.Open(sh.engine.OpenWaiting)
		if err != nil {
			sh.engine.Logger.Error("a message of an archive cannot be decrypted, and is left out of a replay",
				"topic", f.Topic.String(), "message", f.P.ID.String(), "error", err)
		}
		return err != nil
	})
	sh.View(func() {
		if !sh.Closed {
			sh.stepReplay(part)
		}
	})
	return true
}

// archivePart is the part of an archive that a replay's next step delivers.
type archivePart struct {
	replay    *pendingReplay
	from      archivePlace // where the replay is before it, and after it
	next      archivePlace
	found     []*fanout
	encrypted bool   // they have to be opened
	over      bool   // it is the last one
	end       uint64 // the sequence of the topic's next message
}

// nextReplay reads what the next replay in the queue delivers; nil if that can do nothing
// now. more says that there may be others.
func (sh *Shard) nextReplay() (part *archivePart, more bool) {
	if len(sh.replayQueue) == 0 || sh.Closed {
		sh.replaying = false
		return nil, false
	}
	r := sh.replayQueue[0]
	sh.replayQueue = sh.replayQueue[1:]
	r.queued = false
	sub, ok := sh.Topics.Subscription(r.sub)
	if !ok || sh.replays[r.incarnation] != r {
		return nil, true
	}
	if len(sh.fanouts) > 0 && sh.fanouts[0].n <= r.after {
		return nil, true // it continues after these fan-outs
	}
	if qs := sh.BacklogOf(sub); qs != nil && qs.Machine.Len() > replayAhead {
		return nil, true // it continues when these are delivered
	}
	if sh.engine.Full() {
		sh.enqueueReplayLater(r)
		return nil, true
	}
	return sh.nextOfArchive(r, sub), true
}

// stepReplay delivers a part of an archive, unless the replay, or what follows the last
// part, is not the same any more: then it is read again.
func (sh *Shard) stepReplay(part *archivePart) {
	r := part.replay
	sub, ok := sh.Topics.Subscription(r.sub)
	if !ok || sh.replays[r.incarnation] != r {
		return
	}
	if r.next != part.from || part.over && part.end != sh.fifoState(sub.Topic()).next {
		sh.enqueueReplay(r)
		return
	}
	r.next = part.next
	now := sh.Now()
	for _, f := range part.found {
		if sh.Topics.Verdict(sub, f.Message()) == filter.Match {
			sh.replayTo(f, sub, now)
		}
	}
	if part.over {
		sh.dropReplay(r.incarnation)
		sh.Topics.EndReplay(sub, topic.ReplayCompleted, sh.fifoState(sub.Topic()).next, &sh.Batch)
		sh.CatalogChanged(sh.Commit(true)) // the subscription gets what is published again
		return
	}
	sh.Batch.Set(replayKey(sh.ID, r.incarnation), r.next.appendTo(nil))
	begins := sub.Progress().Status == topic.ReplayPending
	sh.Topics.ContinueReplay(sub, &sh.Batch)
	if g := sh.Commit(begins); begins {
		sh.LastCatalogCommit = g
	}
	sh.enqueueReplay(r)
}

// nextOfArchive reads what a replay's next step looks at.
func (sh *Shard) nextOfArchive(r *pendingReplay, sub *topic.Subscription) *archivePart {
	sh.FlushAppended()
	t := sub.Topic()
	inc := layout.Incarnation(t.Incarnation)
	if begins, _ := t.ArchiveBegins(clock.Time(sh.Now())); r.next.sent < begins.UnixMilli() {
		r.next = archivePlace{sent: begins.UnixMilli()}
	}
	span := keyspace.Prefix(archivePrefix(sh.ID, inc))
	span.Lower = archiveKey(sh.ID, inc, r.next)
	part := &archivePart{replay: r, from: r.next, next: r.next, over: true, end: sh.fifoState(t).next}
	n, size := 0, 0
	var failed error
	err := store.Each(sh.engine.Store, span, func(key, value []byte) bool {
		at := archivePlaceOf(key)
		if end := sub.Replay.End; !end.IsZero() && at.sent > end.UnixMilli() {
			return false
		}
		if n == replayStep || size > fanoutBytes {
			part.over = false
			return false
		}
		n++
		size += len(value)
		part.next = archivePlace{at.sent, at.sequence + 1}
		f := new(fanout)
		if f.Record, failed = publication.Decode(bytes.Clone(value)); failed != nil {
			return false
		}
		part.found, part.encrypted = append(part.found, f), part.encrypted || f.P.Encrypted()
		return true
	})
	if err = cmp.Or(failed, err); err != nil {
		sh.engine.Fatal(err)
	}
	return part
}

// replayTo puts a message of the archive into a subscription's backlog. One that
// was published before the replay is marked, and has a deduplication id of its
// own: a queue that still remembers the first delivery takes it all the same.
func (sh *Shard) replayTo(f *fanout, sub *topic.Subscription, now int64) {
	if f.Sequence < sub.Progress().From {
		f.Replayed = true
		name := fmt.Appendf(nil, "%s %d %d", sub.ARN, sub.Progress().Number, f.Sequence)
		f.P.Dedup = message.ID(uuid.NewSHA1(uuid.NameSpaceOID, name)).String()
	}
	sh.enqueueFor(f, sub, now)
}

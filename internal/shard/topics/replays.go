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
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/filter"
)

// A replay reads the archive of its topic and puts the messages that match the subscription's
// filter policy into its backlog, step by step; its cursor moves in the same commits. Meanwhile
// the subscription gets no new publications from the fan-out: they are in the archive, too. At
// the end of the archive the replay ends, and the subscription gets the next publish as usual.

const (
	replayStep = 256 // archived messages that one commit reads
	// replayAhead bounds the messages of a replay that wait in the backlog. The next step is
	// made when they are below half of it.
	replayAhead = 1024
	// replayWait is how long a replay waits for disk space.
	replayWait = 20 * time.Second
)

// pendingReplay is a replay in progress.
type pendingReplay struct {
	sub         arn.ARN
	incarnation layout.Incarnation // of the backlog
	next        archivePlace       // the position in the archive at which it continues
	after       uint64             // fan-outs up to this number are delivered before
	queued      bool               // it is in replayQueue
}

func replayPrefix(shard uint16) []byte { return keyspace.Shard(shard, keyspace.Replays) }

func replayKey(shard uint16, inc layout.Incarnation) []byte {
	return binary.BigEndian.AppendUint64(replayPrefix(shard), uint64(inc))
}

// replayChanged begins the replay that a subscription's policy asks for, and ends a replay in
// progress. It is part of the command that changes the policy.
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

// dropSubscription removes the backlog of a deleted subscription, and its replay.
func (sh *Shard) dropSubscription(inc layout.Incarnation) {
	sh.dropReplay(inc)
	sh.DropBacklog(inc)
}

// dropReplay removes the replay of a subscription, if there is one.
func (sh *Shard) dropReplay(inc layout.Incarnation) {
	if _, ok := sh.replays[inc]; ok {
		delete(sh.replays, inc)
		sh.Batch.Delete(replayKey(sh.ID, inc))
	}
}

// loadReplays finds the replays that were in progress when the last process ended.
func (sh *Shard) loadReplays() (err error) {
	sh.Topics.Replays(func(sub *topic.Subscription) {
		inc := layout.Incarnation(sub.Incarnation)
		value, ok, e := sh.module.Store.Get(nil, replayKey(sh.ID, inc))
		if e == nil && (!ok || len(value) != ArchivePlaceSize) {
			e = fmt.Errorf("the replay of %s has no place in the archive", sub.ARN)
		}
		if e != nil {
			err = cmp.Or(err, e)
			return
		}
		sh.replays[inc] = &pendingReplay{sub: sub.ARN, incarnation: inc, next: decodeArchivePlace(value), after: sh.nextFan}
	})
	return err
}

// resumeReplays enqueues the replays that can continue.
func (sh *Shard) resumeReplays() {
	for _, inc := range slices.Sorted(maps.Keys(sh.replays)) {
		sh.enqueueReplay(sh.replays[inc])
	}
}

// delivered continues a replay that has been waiting for deliveries from its backlog.
func (sh *Shard) delivered(qs *queues.Queue) {
	if len(sh.replays) == 0 {
		return
	}
	if r, ok := sh.replays[qs.Incarnation]; ok && !r.queued && qs.Machine.Len() <= replayAhead/2 {
		sh.enqueueReplay(r)
	}
}

// enqueueReplay schedules the next step of a replay in the background, round robin with others.
func (sh *Shard) enqueueReplay(r *pendingReplay) {
	if !r.queued {
		r.queued = true
		sh.replayQueue = append(sh.replayQueue, r)
	}
	if sh.replaying {
		return
	}
	sh.replaying = true
	sh.module.InSteps(sh.replayOnce)
}

// enqueueReplayLater schedules the next step of a replay after replayWait.
func (sh *Shard) enqueueReplayLater(r *pendingReplay) {
	sh.module.Clock.AfterFunc(replayWait, func() {
		sh.RunLazy(func() {
			if !sh.Closed && sh.replays[r.incarnation] == r {
				sh.enqueueReplay(r)
			}
		})
	})
}

// replayOnce makes a step of the next replay in the queue; false if there is none.
func (sh *Shard) replayOnce() (more bool) {
	var part *archivePart
	sh.RunLazy(func() {
		if part, more = sh.nextReplay(); part != nil && !part.encrypted {
			sh.stepReplay(part)
			part = nil
		}
	})
	if part == nil {
		return more
	}
	part.found = slices.DeleteFunc(part.found, func(f *fanout) bool {
		err := f.Open(sh.module.OpenWaiting)
		if err != nil {
			sh.module.Logger.Error("a message of an archive cannot be decrypted, and is left out of a replay",
				"topic", f.Topic.String(), "message", f.P.ID.String(), "error", err)
		}
		return err != nil
	})
	sh.RunLazy(func() {
		if !sh.Closed {
			sh.stepReplay(part)
		}
	})
	return true
}

// archivePart is the part of an archive that a replay's next step delivers.
type archivePart struct {
	replay    *pendingReplay
	from      archivePlace // the position of the replay before and after it
	next      archivePlace
	found     []*fanout
	encrypted bool   // the messages have to be decrypted
	over      bool   // it is the last part
	end       uint64 // the sequence of the topic's next message
}

// nextReplay reads the part that the next replay in the queue delivers; nil if that replay
// cannot continue now. more says that there may be others.
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
	if sh.module.Full() {
		sh.enqueueReplayLater(r)
		return nil, true
	}
	return sh.nextOfArchive(r, sub), true
}

// stepReplay delivers a part of an archive, unless the replay, or the end of the archive, has
// changed since: then it is read again.
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
		sh.CatalogChanged(sh.Append(journal.Eager)) // the subscription gets new publications again
		return
	}
	sh.Batch.Set(replayKey(sh.ID, r.incarnation), r.next.appendTo(nil))
	begins := sub.Progress().Status == topic.ReplayPending
	sh.Topics.ContinueReplay(sub, &sh.Batch)
	if g := sh.Append(journal.EagerIf(begins)); begins {
		sh.LastCatalogCommit = g
	}
	sh.enqueueReplay(r)
}

// nextOfArchive reads the part of the archive for a replay's next step.
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
	err := store.EachOf(sh.module.Store, keyspace.KindArchive, span, func(k *keyspace.Key, value []byte) error {
		at := placeInArchive(k)
		if end := sub.Replay.End; !end.IsZero() && at.sent > end.UnixMilli() {
			return store.ErrStop
		}
		if n == replayStep || size > fanoutBytes {
			part.over = false
			return store.ErrStop
		}
		n++
		size += len(value)
		part.next = archivePlace{at.sent, at.sequence + 1}
		record, err := publication.Decode(bytes.Clone(value))
		if err != nil {
			return err
		}
		f := &fanout{Record: record}
		part.found, part.encrypted = append(part.found, f), part.encrypted || f.P.Encrypted()
		return nil
	})
	if err != nil {
		sh.module.Fatal(err)
	}
	return part
}

// replayTo puts a message of the archive into a subscription's backlog. A message that was
// published before the replay is marked, and gets its own deduplication id, so that a queue
// that remembers the first delivery accepts it.
func (sh *Shard) replayTo(f *fanout, sub *topic.Subscription, now int64) {
	if f.Sequence < sub.Progress().From {
		f.Replayed = true
		name := fmt.Appendf(nil, "%s %d %d", sub.ARN, sub.Progress().Number, f.Sequence)
		f.P.Dedup = message.ID(uuid.NewSHA1(uuid.NameSpaceOID, name)).String()
	}
	sh.enqueueFor(f, sub, now)
}

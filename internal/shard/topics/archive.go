package topics

import (
	"encoding/binary"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// A FIFO topic with an archive policy keeps its publications, ordered by time and sequence, in
// the form of a fan-out that has not begun. Expired ones are removed as one range, an hour late
// at most; until then they are hidden.

const (
	archiveRest = int64(time.Hour / time.Millisecond) // between two sweeps
	archiveStep = 64                                  // topics whose archives one sweep shortens
)

func archivePrefix(shard uint16, inc layout.Incarnation) []byte {
	return binary.BigEndian.AppendUint64(keyspace.Shard(shard, keyspace.Archives), uint64(inc))
}

// archivePlace is a position in an archive: a time in epoch milliseconds, and a sequence.
type archivePlace struct {
	sent     int64
	sequence uint64
}

// ArchivePlaceSize is the encoded size of a position in an archive.
const ArchivePlaceSize = 8 + 8

func (p archivePlace) appendTo(buf []byte) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(p.sent))
	return binary.BigEndian.AppendUint64(buf, p.sequence)
}

// decodeArchivePlace reads a position of ArchivePlaceSize bytes.
func decodeArchivePlace(p []byte) archivePlace {
	return archivePlace{sent: int64(binary.BigEndian.Uint64(p)), sequence: binary.BigEndian.Uint64(p[8:])}
}

// placeInArchive is the position of a message of an archive.
func placeInArchive(k *keyspace.Key) archivePlace {
	sent, _ := k.Number(keyspace.PartSent)
	sequence, _ := k.Number(keyspace.PartSequence)
	return archivePlace{sent: int64(sent), sequence: sequence}
}

// oldestInArchive is when the first message in a span of an archive was sent; 0: there is none.
func (sh *Shard) oldestInArchive(span keyspace.Span) (sent int64, err error) {
	err = store.EachOf(sh.module.Store, keyspace.KindArchive, span, func(k *keyspace.Key, _ []byte) error {
		sent = placeInArchive(k).sent
		return store.ErrStop
	})
	return sent, err
}

func archiveKey(shard uint16, inc layout.Incarnation, at archivePlace) []byte {
	return at.appendTo(archivePrefix(shard, inc))
}

// archive stores a message that its topic accepts, as part of the current command.
func (sh *Shard) archive(t *topic.Topic, s *fifoState, f *fanout) {
	if t.Retention == 0 {
		return
	}
	sh.Batch.Set(archiveKey(sh.ID, s.incarnation, archivePlace{f.Sent, f.Sequence}), f.Encode())
	if s.oldest == 0 {
		s.oldest = f.Sent
		sh.archivesBy(f.Sent + t.Retention.Milliseconds())
	}
}

// archivesBy schedules the next sweep of the archives for at, or earlier.
func (sh *Shard) archivesBy(at int64) {
	if sh.archivesAt == 0 || at < sh.archivesAt {
		sh.archivesAt = at
	}
}

// policyChanged applies a change of a topic's archive policy; before is its old retention.
func (sh *Shard) policyChanged(t *topic.Topic, before time.Duration) {
	switch s := sh.fifoState(t); {
	case t.Retention == 0 && before > 0:
		span := keyspace.Prefix(archivePrefix(sh.ID, s.incarnation))
		sh.Batch.DeleteRange(span.Lower, span.Upper)
		s.oldest = 0
		for _, sub := range sh.Topics.FailReplays(t, s.next, &sh.Batch) {
			sh.dropReplay(layout.Incarnation(sub.Incarnation))
		}
	case t.Retention < before:
		sh.archivesBy(sh.Now())
	}
}

// loadArchives finds the oldest message of each archive.
func (sh *Shard) loadArchives() error {
	for t := range sh.Topics.Archives() {
		s := sh.fifoState(t)
		var err error
		if s.oldest, err = sh.oldestInArchive(keyspace.Prefix(archivePrefix(sh.ID, s.incarnation))); err != nil {
			return err
		}
		if s.oldest != 0 {
			sh.archivesBy(s.oldest + t.Retention.Milliseconds())
		}
	}
	return nil
}

// sweepArchives removes expired messages from archives.
func (sh *Shard) sweepArchives() {
	now := sh.Now()
	if sh.archivesAt == 0 || now < sh.archivesAt {
		return
	}
	sh.archivesAt = 0
	shortened := 0
	for t := range sh.Topics.Archives() {
		s := sh.fifoState(t)
		begins, _ := t.ArchiveBegins(clock.Time(sh.Now()))
		cutoff := begins.UnixMilli()
		switch {
		case s.oldest == 0:
			continue
		case s.oldest < cutoff && shortened == archiveStep:
			sh.archivesBy(now + 1) // others come first
			return
		case s.oldest < cutoff:
			shortened++
			sh.shorten(s, cutoff)
		}
		if s.oldest != 0 {
			sh.archivesBy(max(s.oldest+t.Retention.Milliseconds()+1, now+archiveRest))
		}
	}
}

// shorten removes the messages from before cutoff from an archive.
func (sh *Shard) shorten(s *fifoState, cutoff int64) {
	sh.FlushAppended()
	span := keyspace.Prefix(archivePrefix(sh.ID, s.incarnation))
	from := archiveKey(sh.ID, s.incarnation, archivePlace{sent: cutoff})
	var err error
	if s.oldest, err = sh.oldestInArchive(keyspace.Span{Lower: from, Upper: span.Upper}); err != nil {
		sh.module.Fatal(err)
	}
	sh.Batch.DeleteRange(span.Lower, from)
	sh.Append(journal.Lazy)
}

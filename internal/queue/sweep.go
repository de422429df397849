package queue

import (
	"cmp"
	"errors"
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/leases"
	"godwit.dev/godwit/internal/queue/message"
)

// SweepSize is about how many messages one Sweep removes at most.
const SweepSize = 512

// expired is a message past its retention.
type expired struct {
	lane     layout.Lane
	sequence uint64
	sent     int64 // 0: as its record says
}

// sweeping is a sweep under way.
type sweeping struct {
	cutoff           int64 // messages sent at that time or before have expired
	found            []expired
	removed          int
	lowMain, lowLate uint64 // where the next sweep of the main and the delayed lane begins
	oldest           int64  // send time of the oldest message that has not expired; 0: none was found
	more             bool   // the bounds ended it before the end
}

// pastRetention reports that a message has expired. If its send time is not known, it has not.
func (q *Machine) pastRetention(sent, now int64) bool {
	return sent != 0 && !q.kind.Backlog && q.cfg.Value().Retention > 0 && sent+q.cfg.Value().Retention.Milliseconds() <= now
}

// sweep first needs the expired messages to be found, then removes them. Their records may
// be unreadable.
func (q *Machine) sweep(b *mutation.Batch, now int64) (removed int, need Need) {
	if q.sweeping == nil {
		if q.sweepAt == 0 || q.sweepAt > now || q.Empty() || q.kind.Backlog || q.cfg.Value().Retention == 0 {
			return 0, Need{}
		}
		q.sweeping = &sweeping{cutoff: now - q.cfg.Value().Retention.Milliseconds()}
		return 0, Need{kind: needExpired}
	}
	s := q.sweeping
	for ; s.removed < len(s.found); s.removed++ {
		// A message that was deleted meanwhile counts as removed.
		if need, _ := q.remove(b, now, s.found[s.removed]); !need.Nothing() {
			return 0, need
		}
	}
	q.sweeping = nil
	q.counters.LowMain = max(q.counters.LowMain, s.lowMain)
	q.counters.LowDelayed = max(q.counters.LowDelayed, s.lowLate)
	switch {
	case s.more:
		q.sweepAt = now
	case s.oldest == 0:
		q.sweepAt = 0
	default:
		q.sweepAt = s.oldest + q.cfg.Value().Retention.Milliseconds()
	}
	return s.removed, Need{}
}

// firstSequences are lower bounds of the messages in the main and the delayed lane.
func (q *Machine) firstSequences() (mainLane, delayed uint64) {
	if q.due.Count > 0 {
		return q.counters.LowMain, q.counters.LowDelayed
	}
	// No message is scheduled, so each is leased or fresh: tombstones can be skipped.
	low := q.leases.Lowest(q.head())
	return max(low, q.counters.LowMain), max(low, q.counters.LowDelayed)
}

// findExpired finds expired messages: it scans the main and the delayed lane from their lower
// bounds, then the index of expiries.
func (q *Machine) findExpired(r Reader) error {
	s := q.sweeping
	s.lowMain, s.lowLate = q.firstSequences()
	err := s.lane(r, &q.keys, layout.MainLane, &s.lowMain)
	if err == nil && !s.more {
		err = s.lane(r, &q.keys, layout.DelayedLane, &s.lowLate)
	}
	if err == nil && !s.more && q.heldAges() {
		err = q.findExpiredGroups(r)
	}
	if err != nil || s.more {
		return err
	}
	found := len(s.found)
	err = r.Scan(q.keys.Of(layout.TagExpiry), func(key, value []byte) bool {
		sent := layout.KeyTime(key)
		if sent > s.cutoff {
			s.keep(sent)
			return false
		}
		if len(s.found) == SweepSize {
			s.more = true
			return false
		}
		s.found = append(s.found, expired{lane: layout.Lane(layout.Number(value)), sequence: layout.KeySequence(key), sent: sent})
		return true
	})
	s.more = s.more || q.heldAges() && len(s.found) > found // then the next messages of their groups are at the head
	return err
}

// findExpiredGroups finds expired messages of a queue whose index of expiries has returned
// messages only: among those in flight, and in the listed groups whose first message is fresh.
func (q *Machine) findExpiredGroups(r Reader) error {
	s := q.sweeping
	q.leases.Each(func(l *leases.Item) {
		switch {
		case l.Sent == 0: // its record is damaged: it expires once it is returned
		case l.Sent > s.cutoff:
			s.keep(l.Sent)
		default:
			s.found = append(s.found, expired{lane: l.Lane, sequence: l.Sequence, sent: l.Sent})
		}
	})
	slices.SortFunc(s.found, func(a, b expired) int { return cmp.Compare(a.sequence, b.sequence) })
	if len(s.found) > 0 { // more of their groups may have expired
		s.found, s.more = s.found[:min(len(s.found), SweepSize)], true
		return nil
	}
	var first []listed
	var failed error
	err := r.Scan(q.keys.ListedFrom(0), func(key, value []byte) bool {
		l, err := layout.DecodeListing(value)
		if failed = err; err != nil {
			return false
		}
		if l.At > s.cutoff {
			s.keep(l.At)
			return false
		}
		first = append(first, listed{layout.KeySequence(key), l})
		s.more = len(first) == sweepGroups
		return !s.more
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	for _, l := range first {
		if len(s.found) >= SweepSize {
			s.more = true
			break
		}
		from := l.sequence
		if l.At != 0 { // else its record is damaged
			s.found = append(s.found, expired{lane: l.Lane, sequence: l.sequence, sent: l.At})
			from++
		}
		if err := s.lane(r, &q.keys, l.Lane, &from); err != nil {
			return err
		}
	}
	s.more = s.more && len(s.found) > 0
	return nil
}

// sweepGroups bounds the groups that one sweep scans.
const sweepGroups = 64

func (s *sweeping) keep(sent int64) {
	if s.oldest == 0 || sent < s.oldest {
		s.oldest = sent
	}
}

// lane finds the expired messages of a lane, which is in the order of sending. A damaged
// record has no send time: it has expired if the next intact one has.
func (s *sweeping) lane(r Reader, keys *layout.Keys, lane layout.Lane, low *uint64) error {
	var damaged []expired
	return r.Scan(keys.Lane(lane, *low), func(key, value []byte) bool {
		sent, ok := message.RecordSent(value)
		e := expired{lane: lane, sequence: layout.KeySequence(key)}
		if len(damaged) == 0 {
			*low = e.sequence
		}
		switch {
		case !ok:
			if len(damaged) < SweepSize { // the next sweep finds the others
				damaged = append(damaged, e)
			}
			return true
		case sent > s.cutoff:
			s.keep(sent)
			return false
		case len(s.found) >= SweepSize:
			s.more = true
			return false
		case len(damaged) == SweepSize: // e stays, so that the next sweep sees the same
			s.found, s.more = append(s.found, damaged...), true
			return false
		}
		s.found = append(append(s.found, damaged...), e)
		damaged = damaged[:0]
		return true
	})
}

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

// SweepSize is about how many messages one Sweep drops at most.
const SweepSize = 512

// expired is a message that a sweep found to be past its retention.
type expired struct {
	lane     layout.Lane
	sequence uint64
	sent     int64 // 0: as its record says
}

// sweeping is a sweep under way.
type sweeping struct {
	cutoff           int64 // what was sent at it or before has expired
	found            []expired
	removed          int
	lowMain, lowLate uint64 // from where the next sweep of the main and the delayed lane begins
	oldest           int64  // when the oldest message that stays was sent; 0: none stays
	more             bool   // it stopped early
}

// pastRetention reports that the retention of a message is, as far as is known.
func (q *Machine) pastRetention(sent, now int64) bool {
	return sent != 0 && !q.kind.Backlog && q.cfg.Value().Retention > 0 && sent+q.cfg.Value().Retention.Milliseconds() <= now
}

// sweep removes the messages that were found, as many as there are. Their records may
// be such that they cannot be read.
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
		// Gone meanwhile is as good as removed.
		if need, _ := q.remove(b, now, s.found[s.removed]); !need.Nothing() {
			return 0, need
		}
	}
	q.sweeping = nil
	q.c.LowMain = max(q.c.LowMain, s.lowMain)
	q.c.LowDelayed = max(q.c.LowDelayed, s.lowLate)
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

// firstSequences are the sequences at which the main and the delayed lane begin.
func (q *Machine) firstSequences() (mainLane, delayed uint64) {
	if q.due.Count > 0 {
		return q.c.LowMain, q.c.LowDelayed
	}
	// Then all that is not leased is fresh: no need to pass what was deleted.
	low := q.leases.Lowest(q.head())
	return max(low, q.c.LowMain), max(low, q.c.LowDelayed)
}

// findExpired begins a sweep: it walks the lanes from their lows for messages that
// have expired.
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
	err = r.Scan(q.keys.Of(layout.KindExpiry), func(key, value []byte) bool {
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
	s.more = s.more || q.heldAges() && len(s.found) > found // what stands behind them in their groups is listed next
	return err
}

// findExpiredGroups finds what has expired in a queue of which only messages that came
// back stand in the order of expiries: in flight, and in the groups that are listed by
// messages that were never received.
func (q *Machine) findExpiredGroups(r Reader) error {
	s := q.sweeping
	q.leases.Each(func(l *leases.Item) {
		switch {
		case l.Sent == 0: // its record is damaged: it expires when it has come back
		case l.Sent > s.cutoff:
			s.keep(l.Sent)
		default:
			s.found = append(s.found, expired{lane: l.Lane, sequence: l.Sequence, sent: l.Sent})
		}
	})
	slices.SortFunc(s.found, func(a, b expired) int { return cmp.Compare(a.sequence, b.sequence) })
	if len(s.found) > 0 { // behind them may be more of their groups
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

// sweepGroups bounds the groups that one sweep looks into.
const sweepGroups = 64

func (s *sweeping) keep(sent int64) {
	if s.oldest == 0 || sent < s.oldest {
		s.oldest = sent
	}
}

// lane finds what has expired of a lane, in the order of which messages were sent.
// One whose record is damaged was sent before the next that is not.
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
			if len(damaged) < SweepSize { // the others are for the next sweep
				damaged = append(damaged, e)
			}
			return true
		case sent > s.cutoff:
			s.keep(sent)
			return false
		case len(s.found) >= SweepSize:
			s.more = true
			return false
		case len(damaged) == SweepSize: // e is kept to tell the next sweep, too
			s.found, s.more = append(s.found, damaged...), true
			return false
		}
		s.found = append(append(s.found, damaged...), e)
		damaged = damaged[:0]
		return true
	})
}

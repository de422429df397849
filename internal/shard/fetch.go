package shard

import (
	"errors"

	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// fetchBytes bounds the records that are walked to fill a window.
const fetchBytes = 1 << 20

// fill reads what a machine needs. A store that cannot be read ends the process.
func (sh *queueShard) fill(qs *queueState, need queue.Need) {
	sh.readable()
	if err := sh.read(qs, need); err != nil {
		sh.engine.fatal(err)
	}
}

func (sh *queueShard) read(qs *queueState, need queue.Need) error {
	m := &qs.machine
	switch need.Kind {
	case queue.NeedNothing:
		return nil
	case queue.NeedGroup:
		value, _, err := sh.engine.store.Get(nil, m.Keys().Group(need.Lane))
		m.FillGroup(need.Lane, value)
		return err
	case queue.NeedState:
		return sh.readState(m, need)
	default:
		return sh.walk(qs, need)
	}
}

// walk hands over the first entries of a span.
func (sh *queueShard) walk(qs *queueState, need queue.Need) error {
	span := qs.machine.Span(need)
	it, err := sh.engine.store.Iter(span.Lower, span.Upper)
	if err != nil {
		return err
	}
	n, size, exhausted := 0, 0, true
	for it.Next() {
		if need.Limit > 0 && (n == need.Limit || size > fetchBytes) {
			exhausted = false
			break
		}
		if err := qs.machine.Fill(need, it.Key(), it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
		n++
		size += len(it.Value())
	}
	if err := it.Close(); err != nil {
		return err
	}
	if !qs.machine.FillEnd(need, exhausted) {
		sh.engine.inconsistent(qs)
	}
	return nil
}

func (sh *queueShard) readState(m *queue.Machine, need queue.Need) error {
	s := sh.engine.store
	record, exists, err := s.Get(nil, m.Keys().Record(need.Lane, need.Sequence))
	if err != nil {
		return err
	}
	sent, _ := message.RecordSent(record)
	due, isDue, err := s.Get(nil, m.Keys().DueOf(need.Sequence))
	if err != nil {
		return err
	}
	var scheduled []byte
	if isDue {
		if scheduled, _, err = s.Get(nil, m.Keys().Due(int64(layout.Number(due)), need.Sequence)); err != nil {
			return err
		}
	}
	return m.FillState(need, exists, sent, scheduled)
}

// findExpired walks the lanes of a queue from their lows for messages sent
// before cutoff. It returns about sweepSize of them at most, the lows from which the
// next walk can start, and the sent time of the oldest message that stays.
func (sh *queueShard) findExpired(qs *queueState, cutoff int64) (found []queue.Expired, mainLow, delayedLow uint64, oldest int64, more bool) {
	sh.readable()
	keys := qs.machine.Keys()
	mainLow, delayedLow = qs.machine.Lows()
	stays := func(sent int64) {
		if oldest == 0 || sent < oldest {
			oldest = sent
		}
	}
	lane := func(lane layout.Lane, low *uint64) error {
		var unknown []queue.Expired // damaged ones, sent before the next that is not
		return each(sh.engine.store, keys.Lane(lane, *low), func(key, value []byte) bool {
			sent, ok := message.RecordSent(value)
			e := queue.Expired{Lane: lane, Sequence: layout.KeySequence(key)}
			if len(unknown) == 0 {
				*low = e.Sequence
			}
			switch {
			case !ok:
				if len(unknown) < sweepSize { // the others are for the next sweep
					unknown = append(unknown, e)
				}
				return true
			case sent > cutoff:
				stays(sent)
				return false
			case len(found) >= sweepSize:
				more = true
				return false
			case len(unknown) == sweepSize: // e is kept to tell the next sweep, too
				found, more = append(found, unknown...), true
				return false
			}
			found = append(append(found, unknown...), e)
			unknown = unknown[:0]
			return true
		})
	}
	err := lane(layout.MainLane, &mainLow)
	if err == nil && !more {
		err = lane(layout.DelayedLane, &delayedLow)
	}
	if err == nil && !more {
		err = each(sh.engine.store, keys.Of(layout.KindExpiry), func(key, value []byte) bool {
			sent := layout.KeyTime(key)
			if sent > cutoff {
				stays(sent)
				return false
			}
			if len(found) == sweepSize {
				more = true
				return false
			}
			found = append(found, queue.Expired{Lane: layout.Lane(layout.Number(value)), Sequence: layout.KeySequence(key), Sent: sent})
			return true
		})
	}
	if err != nil {
		sh.engine.fatal(err)
	}
	return found, mainLow, delayedLow, oldest, more
}

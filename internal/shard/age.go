package shard

import (
	"errors"
	"slices"
	"time"

	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// ageCursors are how far the search for the oldest message of a queue has come: all
// that stands before them is gone or poison, which it stays. So the messages that
// are poison are passed once, and not at each reading, and what was deleted, too.
type ageCursors struct {
	main, delayed, moved uint64 // sequences, in each lane
	groupSent            int64  // of those with a group, in the order of their ages
	groupSequence        uint64

	// What was found last, and of how many messages up to which sequence. As long as
	// these are the same, and none has been received or is delayed, it is found again.
	oldest   int64 // epoch milliseconds; 0: none
	messages int64
	next     uint64
}

// poison is how often a message of a standard queue may have been received, and not
// deleted, until its age does not count any more. Source: "Available CloudWatch
// metrics for Amazon SQS" in the SQS developer guide.
const poison = 3

// ageSteps bounds the messages of each order that one reading looks at. Where all
// of these do not count, it is told the oldest of those that memory knows.
const ageSteps = 128

// oldestAge is the age of the oldest message of a queue that does not belong to one
// of the given tenants; 0: there is none.
func (sh *queueShard) oldestAge(qs *queueState, now int64, without []layout.Lane) time.Duration {
	if qs.machine.Empty() {
		return 0
	}
	m, s := &qs.machine, ageSearch{sh: sh, qs: qs, keys: qs.machine.Keys(), without: without}
	untouched := without == nil && m.NoneScheduled() && m.NoneLeased()
	if last := qs.ages; untouched && last != nil && last.next == m.NextSequence() && last.messages == m.Len() {
		s.oldest = last.oldest
	} else {
		sh.readable()
		if err := s.run(); err != nil {
			sh.engine.fatal(err)
		}
		if untouched {
			if qs.ages == nil {
				qs.ages = &ageCursors{}
			}
			qs.ages.oldest, qs.ages.messages, qs.ages.next = s.oldest, m.Len(), m.NextSequence()
		}
	}
	if s.oldest == 0 {
		return 0
	}
	return time.Duration(max(now-s.oldest, 0)) * time.Millisecond
}

type ageSearch struct {
	sh      *queueShard
	qs      *queueState
	keys    *layout.Keys
	without []layout.Lane
	oldest  int64 // epoch milliseconds
}

func (s *ageSearch) note(at int64) {
	if s.oldest == 0 || at < s.oldest {
		s.oldest = at
	}
}

func (s *ageSearch) run() error {
	m := &s.qs.machine
	if s.qs.arn.FIFO() {
		return each(s.sh.engine.store, s.keys.Of(layout.KindExpiry), func(key, _ []byte) bool {
			s.note(layout.KeyTime(key))
			return false
		})
	}
	var c ageCursors
	if s.qs.ages != nil {
		c = *s.qs.ages
	}
	mainLow, delayedLow := m.Lows()
	c.main, c.delayed = max(c.main, mainLow), max(c.delayed, delayedLow)
	before := c
	err := errors.Join(
		s.lane(layout.MainLane, &c.main),
		s.lane(layout.DelayedLane, &c.delayed),
		s.lane(layout.MovedLane, &c.moved),
		s.groups(&c),
	)
	if c != before {
		s.qs.ages = &c
	}
	return err
}

// lane looks for the oldest message of a lane that counts, from a sequence on, which
// it puts behind those that never will.
func (s *ageSearch) lane(lane layout.Lane, from *uint64) error {
	steps, passing, found := 0, true, false
	span := s.keys.Lane(lane, *from)
	*from = s.qs.machine.NextSequence() // what was deleted is not passed again
	var failed error
	err := each(s.sh.engine.store, span, func(key, value []byte) bool {
		if steps++; steps > ageSteps {
			return false
		}
		seq := layout.KeySequence(key)
		if steps == 1 {
			*from = seq
		}
		bad, err := s.poisoned(seq)
		if failed = err; err != nil {
			return false
		}
		if passing {
			*from = seq
		}
		if passing = passing && bad; passing {
			*from = seq + 1
		}
		if bad {
			return true
		}
		at, counts := s.came(lane, value)
		if counts {
			s.note(at)
			found = true
		}
		return !found
	})
	if steps == 0 {
		*from = s.qs.machine.NextSequence()
	}
	if err = errors.Join(err, failed); err != nil || found || steps <= ageSteps {
		return err
	}
	s.known()
	return nil
}

// came is when a message came into the queue, and whether it counts. A record that
// cannot be read does not.
func (s *ageSearch) came(lane layout.Lane, record []byte) (at int64, counts bool) {
	if lane == layout.MainLane { // without a group, and not moved
		return message.RecordSent(record)
	}
	m, err := message.DecodeRecord(record)
	if err != nil {
		return 0, false
	}
	if at = m.Sent; m.Moved != 0 {
		at = m.Moved
	}
	return at, !slices.Contains(s.without, layout.GroupLane(m.Group))
}

// groups looks for the oldest message in the lanes of groups.
func (s *ageSearch) groups(c *ageCursors) error {
	if !s.qs.machine.Grouped() {
		return nil
	}
	steps, passing, found := 0, true, false
	var failed error
	err := each(s.sh.engine.store, s.keys.ExpiryFrom(c.groupSent, c.groupSequence), func(key, value []byte) bool {
		if steps++; steps > ageSteps {
			return false
		}
		lane, at, seq := layout.Lane(layout.Number(value)), layout.KeyTime(key), layout.KeySequence(key)
		bad := !lane.Grouped() // its own lane is searched for it
		if !bad {
			if bad, failed = s.poisoned(seq); failed != nil {
				return false
			}
		}
		if passing = passing && bad; passing {
			c.groupSent, c.groupSequence = at, seq+1
		}
		if found = !bad && !slices.Contains(s.without, lane); found {
			s.note(at)
		}
		return !found
	})
	if err = errors.Join(err, failed); err != nil || found || steps <= ageSteps {
		return err
	}
	s.known()
	return nil
}

// known notes the oldest message that memory knows, once it knows what comes next.
func (s *ageSearch) known() {
	s.sh.prepare(s.qs, s.sh.now(), 1)
	if at := s.qs.machine.OldestKnown(poison, s.without); at != 0 {
		s.note(at)
	}
}

// poisoned reports that a message has been received too often for its age to count.
func (s *ageSearch) poisoned(seq uint64) (bool, error) {
	if l, ok := s.qs.machine.Leased(seq); ok {
		return l.Receives >= poison, nil
	}
	if s.qs.machine.NoneScheduled() {
		return false, nil
	}
	st := s.sh.engine.store
	due, ok, err := st.Get(nil, s.keys.DueOf(seq))
	if err != nil || !ok {
		return false, err
	}
	key := s.keys.Due(int64(layout.Number(due)), seq)
	value, ok, err := st.Get(nil, key)
	if err != nil || !ok {
		return false, err
	}
	state, err := layout.DecodeState(key, value)
	return state.Receives >= poison, err
}

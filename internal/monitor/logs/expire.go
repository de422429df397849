package logs

import (
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
)

// dueOf is the hour from which on nothing of a bucket is kept any more.
func dueOf(h, days uint64) uint64 { return h + 1 + days*24 }

// schedule sets when a group is to be looked at next, by its oldest bucket.
func (l *Logs) schedule(b *mutation.Batch, group uint64, t *totals) error {
	due := uint64(0)
	if t.retention > 0 {
		err := l.each(key(kindBucket, group), key(kindBucket, group+1), func(k, _ []byte) bool {
			due = dueOf(number(k, 1), t.retention)
			return false
		})
		if err != nil {
			return err
		}
	}
	moveDue(b, group, t, due)
	return nil
}

func moveDue(b *mutation.Batch, group uint64, t *totals, due uint64) {
	if t.due != 0 {
		b.Delete(key(kindDue, t.due, group))
	}
	if t.due = due; due != 0 {
		b.Set(key(kindDue, due, group), nil)
	}
}

// expiry is the timer of what expires next.
type expiry struct {
	mu     sync.Mutex
	timer  clock.Timer
	due    uint64 // of the timer; 0: there is none
	closed bool
}

// arm has expire called at an hour, unless it is called before.
func (x *expiry) arm(l *Logs, due uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || due == 0 || x.due != 0 && x.due <= due {
		return
	}
	if x.timer != nil {
		x.timer.Stop()
	}
	x.due = due
	x.timer = l.Clock.AfterFunc(time.UnixMilli(int64(due*hour)).Sub(l.Clock.Now()), func() {
		x.mu.Lock()
		if x.closed || x.due != due {
			x.mu.Unlock()
			return
		}
		x.due, x.timer = 0, nil
		l.background.Add(1) // Close waits for it
		x.mu.Unlock()
		defer l.background.Done()
		l.expire()
	})
}

func (x *expiry) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	if x.timer != nil {
		x.timer.Stop()
	}
}

// expireNext arms the timer for what expires next.
func (l *Logs) expireNext() error {
	return l.each(key(kindDue), behind(key(kindDue)), func(k, _ []byte) bool {
		l.expiry.arm(l, number(k, 0))
		return false
	})
}

// expire removes what is past its group's retention.
func (l *Logs) expire() {
	now := l.now() / hour
	var groups []uint64
	err := l.each(key(kindDue), key(kindDue, now+1), func(k, _ []byte) bool {
		groups = append(groups, number(k, 1))
		return len(groups) < 10_000
	})
	for _, g := range groups {
		if err == nil {
			err = l.expireGroup(g, now)
		}
	}
	if err == nil {
		err = l.expireNext()
	}
	if err != nil && l.stopping.Err() == nil {
		l.Logger.Error("log events past their retention could not be removed", "error", err)
	}
}

func (l *Logs) expireGroup(group, now uint64) error {
	defer l.guard.Unlock(l.lock(group))
	t, err := l.totals(group)
	if err != nil {
		return nil //nolint:nilerr // it is gone
	}
	var b mutation.Batch
	if t.retention > 0 && now > t.retention*24 {
		// A bucket h goes once dueOf(h) has come.
		if err := l.drop(&b, group, &t, 0, now-t.retention*24); err != nil {
			return err
		}
	}
	oldest := uint64(0)
	err = l.each(key(kindBucket, group), key(kindBucket, group+1), func(k, _ []byte) bool {
		oldest = number(k, 1)
		return t.retention == 0 || dueOf(oldest, t.retention) <= now
	})
	if err != nil {
		return err
	}
	due := uint64(0)
	if t.retention > 0 && dueOf(oldest, t.retention) > now {
		due = dueOf(oldest, t.retention)
	}
	moveDue(&b, group, &t, due)
	b.Set(key(kindTotals, group), t.encode())
	l.apply(&b)
	return nil
}

// drop removes the buckets of the hours in [from, to).
func (l *Logs) drop(b *mutation.Batch, group uint64, t *totals, from, to uint64) error {
	var gone bucket
	err := l.each(key(kindBucket, group, from), key(kindBucket, group, to), func(k, v []byte) bool {
		gone.add(decodeBucket(v))
		b.Delete(key(kindOldest, number(k, 1), group))
		return true
	})
	if err != nil {
		return err
	}
	b.DeleteRange(key(kindEvent, group, from*hour), key(kindEvent, group, to*hour))
	b.DeleteRange(key(kindIndex, group, from), key(kindIndex, group, to))
	b.DeleteRange(key(kindBucket, group, from), key(kindBucket, group, to))
	t.sub(gone)
	l.disk.Add(-gone.disk())
	return nil
}

// Beyond the bound so much more goes that the next put does not have to wait for
// the same: one bucket after the other, which costs nothing by the event; one that
// is a large part of all goes in steps.
const (
	trimShare  = 20 // one part of the bound
	largeShare = 8
	trimStep   = 5000
)

// trim removes the oldest events, in the background, when there are too many.
func (l *Logs) trim() {
	if l.MaxBytes <= 0 || l.disk.Load() <= l.MaxBytes || !l.trimming.CompareAndSwap(false, true) {
		return
	}
	l.goBackground(func() {
		defer l.trimming.Store(false)
		for target := l.MaxBytes - l.MaxBytes/trimShare; l.disk.Load() > target && l.stopping.Err() == nil; {
			before := l.disk.Load()
			if err := l.trimOldest(target); err != nil {
				l.Logger.Error("the oldest log events could not be removed", "error", err)
				return
			}
			if l.disk.Load() == before && before > target {
				if !l.forgetOldest() {
					return
				}
			}
		}
	})
}

// oldest finds the oldest bucket of all groups.
func (l *Logs) oldest() (h, group uint64, ok bool, err error) {
	err = l.each(key(kindOldest), behind(key(kindOldest)), func(k, _ []byte) bool {
		h, group, ok = number(k, 0), number(k, 1), true
		return false
	})
	return h, group, ok, err
}

// forgetOldest drops the mark of a bucket that has nothing to give.
func (l *Logs) forgetOldest() bool {
	h, group, ok, err := l.oldest()
	if err != nil || !ok {
		return false
	}
	var b mutation.Batch
	b.Delete(key(kindOldest, h, group))
	l.apply(&b)
	return true
}

// trimOldest removes the oldest bucket, or the beginning of a large one.
func (l *Logs) trimOldest(target int64) error {
	h, group, ok, err := l.oldest()
	if err != nil || !ok {
		return err
	}
	defer l.guard.Unlock(l.lock(group))
	t, err := l.totals(group)
	if err != nil {
		return nil //nolint:nilerr // it is gone
	}
	v, _, err := l.reader.Get(nil, key(kindBucket, group, h))
	if err != nil {
		return err
	}
	held := decodeBucket(v)
	excess := l.disk.Load() - target
	var b mutation.Batch
	if held.disk() <= max(excess, l.MaxBytes/largeShare) {
		if err := l.drop(&b, group, &t, h, h+1); err != nil {
			return err
		}
	} else {
		var gone bucket
		end := position{}
		err := l.each(key(kindEvent, group, h*hour), key(kindEvent, group, (h+1)*hour), func(k, v []byte) bool {
			e, _ := decodeStored(v)
			p := position{number(k, 1), number(k, 2)}
			b.SingleDelete(indexKey(group, e.stream, p))
			gone.add(bucket{uint64(len(e.message)), 1})
			end = p.next()
			return gone.events < trimStep && gone.disk() < excess
		})
		if err != nil {
			return err
		}
		b.DeleteRange(key(kindEvent, group, h*hour), eventKey(group, end))
		held.sub(gone)
		b.Set(key(kindBucket, group, h), held.encode())
		t.sub(gone)
		l.disk.Add(-gone.disk())
	}
	b.Set(key(kindTotals, group), t.encode())
	l.apply(&b)
	return nil
}

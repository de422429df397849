package logs

import (
	"bytes"
	"errors"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// dueOf is the hour from which on a bucket is expired.
func dueOf(h, days uint64) uint64 { return h + 1 + days*24 }

// schedule sets when a group is next checked for expired events, by its oldest bucket from an
// hour on.
func (l *Logs) schedule(b *mutation.Batch, group uint64, t *totals, from uint64) error {
	due := uint64(0)
	if t.retention > 0 {
		err := l.each(key(tagBucket, group, from), key(tagBucket, group+1), func(k, _ []byte) error {
			due = dueOf(number(k, 1), t.retention)
			return store.ErrStop
		})
		if err != nil {
			return err
		}
	}
	l.moveDue(b, group, t, due)
	return nil
}

func (l *Logs) moveDue(b *mutation.Batch, group uint64, t *totals, due uint64) {
	if t.due != 0 {
		b.Delete(key(tagDue, t.due, group))
	}
	if t.due = due; due != 0 {
		b.Set(key(tagDue, due, group), nil)
		if l.due == 0 || due < l.due {
			l.due = due
		}
	}
}

// earliest is the hour of the next expiry; 0: there is none.
func (l *Logs) earliest() (due uint64, err error) {
	err = l.each(key(tagDue), behind(key(tagDue)), func(k, _ []byte) error {
		due = number(k, 0)
		return store.ErrStop
	})
	return due, err
}

// NextDue implements kernel.Lifecycle.
func (l *Logs) NextDue() int64 { return int64(l.due * hour) }

// Bounds of one tick: groups, and buckets of one.
const (
	expireGroups  = 100
	expireBuckets = 5000
)

// Tick implements kernel.Lifecycle: it removes events past their group's retention.
func (l *Logs) Tick(at int64) {
	now := uint64(at) / hour
	if l.due == 0 || l.due > now {
		return
	}
	if err := l.expire(now); err != nil {
		l.shard.Logger.Error("log events past their retention could not be removed", "error", err)
		l.due = now + 1 // it is retried
	}
}

func (l *Logs) expire(now uint64) error {
	var all [][]byte
	err := l.each(key(tagDue), key(tagDue, now+1), func(k, _ []byte) error {
		if all = append(all, bytes.Clone(k)); len(all) == expireGroups {
			return store.ErrStop
		}
		return nil
	})
	for _, k := range all {
		if err != nil || l.shard.Batch.Size() >= mutation.StepBytes {
			break
		}
		if err = l.expireGroup(number(k, 1), now); errors.Is(err, ErrNoGroup) {
			l.shard.Batch.Delete(k)
			err = nil
		}
	}
	if err != nil {
		return err
	}
	l.shard.AppendPartial(journal.Lazy)
	l.due, err = l.earliest()
	return err
}

func (l *Logs) expireGroup(group, now uint64) error {
	t, err := l.totals(group)
	if err != nil {
		return err
	}
	before, rest := t, uint64(0)
	var b mutation.Batch
	if t.retention > 0 && now > t.retention*24 {
		// A bucket h is removed once dueOf(h) has come.
		if rest, err = l.drop(&b, group, &t, 0, now-t.retention*24); err != nil {
			return err
		}
	}
	if err := l.schedule(&b, group, &t, rest); err != nil {
		return err
	}
	l.writeTotals(&b, group, before, t)
	l.apply(&b)
	return nil
}

// drop removes the buckets of the hours in [from, to), or the first of them: rest is the hour
// from which on there may be others.
func (l *Logs) drop(b *mutation.Batch, group uint64, t *totals, from, to uint64) (rest uint64, err error) {
	buckets := 0
	err = l.each(key(tagBucket, group, from), key(tagBucket, group, to), func(k, v []byte) error {
		if buckets++; buckets > expireBuckets {
			to = number(k, 1)
			return store.ErrStop
		}
		t.sub(decodeBucket(v))
		b.Delete(key(tagOldest, number(k, 1), group))
		return nil
	})
	if err != nil {
		return from, err
	}
	b.DeleteRange(key(tagEvent, group, from*hour), key(tagEvent, group, to*hour))
	b.DeleteRange(key(tagIndex, group, from), key(tagIndex, group, to))
	b.DeleteRange(key(tagBucket, group, from), key(tagBucket, group, to))
	return to, nil
}

// writeTotals writes the totals of a group, and updates the count of bytes.
func (l *Logs) writeTotals(b *mutation.Batch, group uint64, before, t totals) {
	b.Set(key(tagTotals, group), t.encode())
	l.disk.Add(t.disk() - before.disk())
}

// Beyond the bound more is removed than necessary, so that the next put does not exceed it
// again. Buckets are removed whole, without a cost per event; one that is a large part of all
// events is removed in steps.
const (
	trimShare  = 20 // one part of the bound
	largeShare = 8
	trimStep   = 5000
)

// trim removes the oldest events, step by step in the background, if there are too many.
func (l *Logs) trim() {
	if l.options.MaxBytes <= 0 || l.disk.Load() <= l.options.MaxBytes || l.trimming {
		return
	}
	l.trimming = true
	target := l.options.MaxBytes - l.options.MaxBytes/trimShare
	l.inSteps(&l.trimming, func() bool {
		if l.disk.Load() <= target {
			return false
		}
		more, err := l.trimOldest(target)
		if err != nil {
			l.shard.Logger.Error("the oldest log events could not be removed", "error", err)
		}
		return more && err == nil
	})
}

// oldest finds the oldest bucket of all groups.
func (l *Logs) oldest() (h, group uint64, ok bool, err error) {
	err = l.each(key(tagOldest), behind(key(tagOldest)), func(k, _ []byte) error {
		h, group, ok = number(k, 0), number(k, 1), true
		return store.ErrStop
	})
	return h, group, ok, err
}

// trimOldest removes the oldest bucket, or the first events of a large one.
func (l *Logs) trimOldest(target int64) (more bool, err error) {
	h, group, ok, err := l.oldest()
	if err != nil || !ok {
		return false, err
	}
	t, err := l.totals(group)
	if errors.Is(err, ErrNoGroup) {
		l.shard.Batch.Delete(key(tagOldest, h, group))
		return true, nil
	}
	if err != nil {
		return false, err
	}
	before := t
	v, _, err := l.reader.Get(nil, key(tagBucket, group, h))
	if err != nil {
		return false, err
	}
	held := decodeBucket(v)
	excess := l.disk.Load() - target
	var b mutation.Batch
	if held.disk() <= max(excess, l.options.MaxBytes/largeShare) {
		if _, err := l.drop(&b, group, &t, h, h+1); err != nil {
			return false, err
		}
	} else {
		var gone bucket
		end := position{}
		err := l.each(key(tagEvent, group, h*hour), key(tagEvent, group, (h+1)*hour), func(k, v []byte) error {
			e, _ := decodeStored(v)
			p := position{number(k, 1), number(k, 2)}
			b.SingleDelete(indexKey(group, e.stream, p))
			gone.add(bucket{uint64(len(e.message)), 1})
			end = p.next()
			if gone.events >= trimStep || gone.disk() >= excess {
				return store.ErrStop
			}
			return nil
		})
		if err != nil {
			return false, err
		}
		b.DeleteRange(key(tagEvent, group, h*hour), eventKey(group, end))
		held.sub(gone)
		b.Set(key(tagBucket, group, h), held.encode())
		t.sub(gone)
	}
	if t.bucket == before.bucket { // the bucket has no removable events
		b.Delete(key(tagOldest, h, group))
	}
	l.writeTotals(&b, group, before, t)
	l.apply(&b)
	return true, nil
}

package alarms

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/store"
)

// HistoryQuery selects items of the history of a scope's alarms.
type HistoryQuery struct {
	metrics.Scope
	Name       string         // of the alarm; empty: of all
	Type       alarm.ItemType // empty: all
	Of         alarm.Kind     // of which alarms; empty: of both
	From, To   time.Time      // inclusive; zero: any
	Descending bool           // the newest first
	After      []byte         // the place to continue from; empty: the beginning
	Limit      int
}

// maxLooked bounds how many items a query reads.
const maxLooked = 5000

// History returns items of the history, ordered by time. next is the place to continue from;
// nil: there are no others. If few items match, a page may have fewer than the limit and still
// a next.
func (e *Engine) History(q HistoryQuery) (items []alarm.Item, next []byte, err error) {
	defer e.shard.AwaitReads()
	all := scopeKey(tagHistory, q.Scope)
	space := all
	if q.Name != "" {
		space = ID{q.Account, q.Region, q.Name}.key(tagIndex)
	}
	oldest := e.now().Add(-keepHistory)
	if q.From.Before(oldest) {
		q.From = oldest
	}
	low, high := appendMillis(bytes.Clone(space), q.From), keyspace.Prefix(space).Upper
	if !q.To.IsZero() {
		high = appendMillis(bytes.Clone(space), q.To.Add(time.Millisecond))
	}
	if len(q.After) > 0 {
		if place := append(space, q.After...); q.Descending {
			high = slices.MinFunc([][]byte{high, place}, bytes.Compare)
		} else {
			low = slices.MaxFunc([][]byte{low, append(place, 0)}, bytes.Compare)
		}
	}
	if bytes.Compare(low, high) >= 0 {
		return nil, nil, nil
	}
	it, err := e.reader.Iter(low, high)
	if err != nil {
		return nil, nil, err
	}
	items, next, err = e.page(it, all, q)
	return items, next, cmp.Or(err, it.Close())
}

// page reads a page of items by an iterator over keys that end with the items' times; all is
// the prefix of the items' own keys.
func (e *Engine) page(it store.Iterator, all []byte, q HistoryQuery) (items []alarm.Item, next []byte, err error) {
	step := it.Next
	if q.Descending {
		step = it.Prev
	}
	for looked := 0; step(); looked++ {
		if len(items) == q.Limit || looked == maxLooked {
			return items, next, nil
		}
		next = bytes.Clone(it.Key()[len(it.Key())-stampSize:])
		value, ok, err := e.reader.Get(nil, append(bytes.Clone(all), next...))
		if err != nil {
			return nil, nil, err
		}
		var item alarm.Item
		if !ok {
			continue // it has expired meanwhile
		}
		if err := decode(value, &item); err != nil { // it must not block others
			e.kernel.Logger.Error("an item of the history of alarms is left out", "reason", err.Error())
			continue
		}
		if (q.Type == "" || item.Type == q.Type) && (q.Of == "" || item.Kind() == q.Of) {
			items = append(items, item)
		}
	}
	return items, nil, nil
}

func appendMillis(key []byte, at time.Time) []byte {
	return binary.BigEndian.AppendUint64(key, uint64(max(at.UnixMilli(), 0)))
}

func decode(value []byte, into any) error { return json.Unmarshal(value, into) }

package alarms

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"time"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// HistoryQuery asks for items of the history of an owner's alarms.
type HistoryQuery struct {
	metrics.Owner
	Name       string         // of the alarm; empty: of all
	Type       alarm.ItemType // empty: all
	From, To   time.Time      // inclusive; zero: any
	Descending bool           // the newest first
	After      []byte         // the place to go on from; empty: the beginning
	Limit      int
}

// maxLooked bounds how many items a query looks at.
const maxLooked = 5000

// History gives items of the history in the order of time. next is the place to
// go on from; nil: there are no others. Where few are wanted, a page may be short
// of the limit and still have a next.
func (e *Engine) History(q HistoryQuery) (items []alarm.Item, next []byte, err error) {
	all := ownerKey(kindHistory, q.Owner)
	space := all
	if q.Name != "" {
		space = ID{q.Account, q.Region, q.Name}.key(kindIndex)
	}
	oldest := e.now().Add(-keepHistory)
	if q.From.Before(oldest) {
		q.From = oldest
	}
	low, high := appendMillis(bytes.Clone(space), q.From), after(space)
	if !q.To.IsZero() {
		high = appendMillis(bytes.Clone(space), q.To.Add(time.Millisecond))
	}
	stamps, err := e.stamps(low, high, q)
	if err != nil {
		return nil, nil, err
	}
	for i, stamp := range stamps {
		if len(items) == q.Limit || i == maxLooked {
			return items, stamps[i-1], nil
		}
		value, ok, err := e.options.Store.Get(nil, append(bytes.Clone(all), stamp...))
		if err != nil {
			return nil, nil, err
		}
		var item alarm.Item
		if !ok {
			continue // it has become too old meanwhile
		}
		if err := decode(value, &item); err != nil {
			return nil, nil, err
		}
		if q.Type == "" || item.Type == q.Type {
			items = append(items, item)
		}
	}
	return items, nil, nil
}

// stamps are the times of the items between two keys, behind the query's place, in
// its order. Stores only go forwards, so that the newest first costs a look at all
// keys, of which thirty days bound the number.
func (e *Engine) stamps(low, high []byte, q HistoryQuery) (stamps [][]byte, err error) {
	if bytes.Compare(low, high) >= 0 {
		return nil, nil
	}
	it, err := e.options.Store.Iter(low, high)
	if err != nil {
		return nil, err
	}
	for it.Next() {
		stamp := it.Key()[len(it.Key())-stampSize:]
		behind := bytes.Compare(stamp, q.After) > 0
		if q.Descending {
			behind = len(q.After) == 0 || bytes.Compare(stamp, q.After) < 0
		}
		if behind {
			stamps = append(stamps, bytes.Clone(stamp))
		}
	}
	if q.Descending {
		for i, j := 0, len(stamps)-1; i < j; i, j = i+1, j-1 {
			stamps[i], stamps[j] = stamps[j], stamps[i]
		}
	}
	return stamps, it.Close()
}

func appendMillis(key []byte, at time.Time) []byte {
	return binary.BigEndian.AppendUint64(key, uint64(max(at.UnixMilli(), 0)))
}

func decode(value []byte, into any) error { return json.Unmarshal(value, into) }

package queues

import (
	"bytes"
	"context"
	"errors"

	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/store"
)

// recordWeight is how much an answer holds of each byte of a message: its record, its
// text, and the answer itself.
const recordWeight = 3

var errNoRoom = errors.New("no room for the record")

// readRecords reads the records of messages, in the order of their keys, until there is
// no room for the next; for the first it waits. records are nil where there is none
// (it was deleted or has expired), and at the places in rest, which were not read. A
// store that cannot be read ends the process.
func (e *Queues) readRecords(ctx context.Context, keys [][]byte, memory *limit.Reservation) (records [][]byte, rest []int, err error) {
	records = make([][]byte, len(keys))
	var granted int64 // what was waited for
	for {
		some, missing, at := false, int64(0), 0
		err = store.GetEach(e.Store, keys, func(i int, record []byte) error {
			weight := recordWeight * int64(len(record))
			if weight <= granted {
				granted -= weight
			} else if !memory.TryMore(weight) {
				missing, at = weight, i
				return errNoRoom
			}
			some = true
			if records[i] = record; len(keys) > 1 { // else it is a copy already
				records[i] = bytes.Clone(record)
			}
			return nil
		})
		switch {
		case err == nil:
			memory.Shrink(granted)
			return records, nil, nil
		case !errors.Is(err, errNoRoom):
			e.Fatal(err)
			return nil, nil, err
		case !some:
			if err := memory.Grow(ctx, missing-granted); err != nil {
				return nil, nil, err
			}
			granted = missing
			continue
		}
		memory.Shrink(granted)
		for i := range keys {
			if bytes.Compare(keys[i], keys[at]) >= 0 {
				rest = append(rest, i)
			}
		}
		return records, rest, nil
	}
}

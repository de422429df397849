package offsite

import (
	"context"
	"strings"
	"time"

	"godwit.dev/godwit/internal/outlet/bucket"
)

// allFor is how long every point is kept; after that one per hour is.
const allFor = time.Hour

// spared is the minimum age of an unreferenced piece to be removed: it may belong to an
// unfinished point.
const spared = time.Hour

// surplus are the points to be removed: of those older than allFor all but the last of each
// hour, and those older than retention. The latest is always kept. Ages are by the clock of the
// bucket's server, from the moment at which the latest was stored: a machine's clock that is
// ahead would make all of them old.
func surplus(all []listed, retention time.Duration) (gone []listed) {
	for i, p := range all[:max(len(all)-1, 0)] {
		age, next := all[len(all)-1].stored.Sub(p.stored), all[i+1]
		sameHour := p.at.Truncate(time.Hour).Equal(next.at.Truncate(time.Hour))
		if retention > 0 && age > retention || age > allFor && sameHour {
			gone = append(gone, p)
		}
	}
	return gone
}

// trim removes surplus points, and then unreferenced pieces. It also updates the known content
// of the bucket. It is called after a point was made.
func (f *Follower) trim(ctx context.Context) error {
	all, err := f.Place.points(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	now := all[len(all)-1].stored
	gone := map[string]bool{}
	for _, p := range surplus(all, f.Retention) {
		if err := f.Place.Objects.Delete(ctx, f.Place.name(p.key)); err != nil {
			return err
		}
		gone[p.key] = true
	}
	named := map[string]bool{}
	for _, p := range all {
		if gone[p.key] {
			continue
		}
		point, err := f.Place.point(ctx, p)
		if err != nil { // else its pieces would be removed
			return err
		}
		point.each(func(hash string) { named[hash] = true })
	}
	present := map[string]bool{}
	var unnamed []string
	prefix := f.Place.Prefix + piecesDir
	err = f.Place.Objects.Each(ctx, f.Place.Bucket, prefix, func(o bucket.Object) error {
		switch hash := strings.TrimPrefix(o.Key, prefix); {
		case named[hash]:
			present[hash] = true
		case now.Sub(o.Modified) > spared:
			unnamed = append(unnamed, piecesDir+hash)
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.present = present // before any is removed
	for _, key := range unnamed {
		if err := f.Place.Objects.Delete(ctx, f.Place.name(key)); err != nil {
			return err
		}
	}
	return nil
}

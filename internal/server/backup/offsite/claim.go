package offsite

import (
	"context"
	"errors"
	"maps"
	"time"
)

// lookEvery is the least time between two looks for another server's points.
const lookEvery = 15 * time.Second

// errAnother reports that points of another server are where this one's are: the latest, which a
// restore takes, would be the one's or the other's, and each removes what only the other one names.
var errAnother = errors.New("another server puts its backups there, which needs a bucket or prefix of its own")

// claim tells a Follower's points from those of another server at the same place. The server with
// the latest point goes on: as a rule the one that began last, since a restored one has to.
type claim struct {
	// mine are the numbers of its latest points, those of uncertain puts included, by key, and of
	// the point that it began with.
	mine   map[string]uint64
	looked time.Time // when the bucket was last looked at

	theirs string    // the other server's latest point; empty: there is none
	since  time.Time // when that was first seen
}

// made forgets points before the latest.
func (c *claim) made(number uint64) {
	maps.DeleteFunc(c.mine, func(_ string, n uint64) bool { return n < number })
}

// dispute reports errAnother while another server makes points at this place. Once that has ended,
// and if points were removed, it begins anew with what is there.
func (f *Follower) dispute(ctx context.Context) error {
	c, now := &f.claim, f.Clock.Now()
	if c.theirs == "" && now.Sub(c.looked) < lookEvery {
		return nil
	}
	all, err := f.Place.points(ctx)
	if err != nil {
		return err
	}
	c.looked = now
	var latest listed
	if len(all) > 0 {
		latest = all[len(all)-1]
	}
	if _, ok := c.mine[latest.key]; ok || len(c.mine) == 0 && len(all) == 0 {
		c.theirs = ""
		return nil
	}
	if latest.number >= f.number && len(all) > 0 {
		if c.theirs != latest.key {
			c.theirs, c.since = latest.key, now
		}
		if now.Sub(c.since) <= max(3*f.Interval, tolerated) {
			return errAnother
		}
	}
	return f.resume(ctx)
}

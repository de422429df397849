package clustered

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// meta is a node that may lead the log's meta group, and notes when it gives that up.
type meta struct {
	began time.Time
	leads bool
	again time.Duration // since it began: it leads once more; 0: it does not
	fails error
	given []time.Duration // since it began
}

func (m *meta) LeadsMeta() bool {
	if m.again > 0 && clock.System.Now().Sub(m.began) >= m.again {
		m.leads, m.again = true, 0
	}
	return m.leads
}

func (m *meta) TransferMeta(context.Context) error {
	m.given = append(m.given, clock.System.Now().Sub(m.began))
	if m.fails == nil {
		m.leads = false
	}
	return m.fails
}

// TestSpreadLeaders: a node gives the meta group's lead up where it owns the state and another
// one could lead, and tries again after a while where that fails.
func TestSpreadLeaders(t *testing.T) {
	for name, c := range map[string]struct {
		owns, leads   bool
		alone, fails  error
		ownsLater     time.Duration // 0: as it is from the beginning
		followedLater time.Duration
		want          []time.Duration
	}{
		"an owner that leads":               {owns: true, leads: true, want: []time.Duration{metaPoll}},
		"an owner that does not lead":       {owns: true},
		"a follower that leads":             {leads: true},
		"an owner without a successor":      {owns: true, leads: true, alone: errNoSuccessor},
		"once it owns the state":            {leads: true, ownsLater: 5 * metaPoll / 2, want: []time.Duration{3 * metaPoll}},
		"once there is a successor":         {owns: true, leads: true, alone: errNoSuccessor, followedLater: 7 * metaPoll / 2, want: []time.Duration{4 * metaPoll}},
		"an owner that cannot give it up":   {owns: true, leads: true, fails: errors.New("no"), want: []time.Duration{metaPoll, 2*metaPoll + metaAgain, 3*metaPoll + 2*metaAgain}},
		"a follower that cannot give it up": {leads: true, fails: errors.New("no")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &meta{began: clock.System.Now(), leads: c.leads, fails: c.fails}
				since := func(d time.Duration) bool { return d > 0 && clock.System.Now().Sub(m.began) >= d }
				owns := func() bool { return c.owns || since(c.ownsLater) }
				successor := func(context.Context) error {
					if since(c.followedLater) {
						return nil
					}
					return c.alone
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*(metaPoll+metaAgain))
				defer cancel()
				spreadLeaders(ctx, slog.New(slog.DiscardHandler), m, owns, successor)
				if !slices.Equal(m.given, c.want) {
					t.Errorf("given up after %v, want %v", m.given, c.want)
				}
			})
		})
	}
}

// TestSpreadLeadersAgain: a lead that comes back to the owner is given up again.
func TestSpreadLeadersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &meta{began: clock.System.Now(), leads: true, again: 10 * time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		spreadLeaders(ctx, slog.New(slog.DiscardHandler), m, func() bool { return true }, func(context.Context) error { return nil })
		if want := []time.Duration{metaPoll, 2*metaPoll + metaAgain}; !slices.Equal(m.given, want) {
			t.Errorf("given up after %v, want %v", m.given, want)
		}
	})
}

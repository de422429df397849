package clustered

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/space"
)

// Where there is no room for a copy, the store gives its own if it is damaged, and stays if it
// is only behind the log.
func TestRoomFor(t *testing.T) {
	p := &part{cfg: config.Config{Data: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	kept := filepath.Join(p.cfg.Data, "store")
	if err := os.Mkdir(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	const more = 1 << 60 // than any disk has
	for _, c := range []struct {
		reason error
		need   int64
		fits   bool
		stays  bool
	}{
		{store.ErrDamaged, 0, true, true},
		{replog.ErrTrimmed, more, false, true},
		{store.ErrDamaged, more, false, false},
	} {
		err := p.roomFor(c.need, c.reason)
		if (err == nil) != c.fits || !c.fits && !errors.Is(err, space.ErrNoRoom) {
			t.Errorf("%v, %d bytes: %v", c.reason, c.need, err)
		}
		if _, err := os.Stat(kept); (err == nil) != c.stays {
			t.Errorf("%v, %d bytes: the store: %v", c.reason, c.need, err)
		}
	}
	if snapshot.Condemned(p.cfg.Data) == "" {
		t.Error("the store that was removed is not condemned")
	}
}

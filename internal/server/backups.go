package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/api/operator/backups"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server/backup"
	"godwit.dev/godwit/internal/server/backup/offsite"
	"godwit.dev/godwit/internal/server/hold"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/shard/keys"
	"godwit.dev/godwit/internal/store"
)

// checkData refuses what is no data directory, and is to stay what it is.
func checkData(c *config.Config) error {
	info, err := os.Stat(c.Data)
	switch {
	case c.Store == config.MemoryStore || err != nil: // if it is not there it is made
		return nil
	case !info.IsDir():
		return fmt.Errorf("%s is a file, and no directory (--data)", c.Data)
	case backup.Is(c.Data):
		return fmt.Errorf("%s is a backup, which a server would change: godwit restore %s --data NEW makes a data directory of it", c.Data, c.Data)
	}
	return nil
}

// openHold reads whether the server was restored and must not deliver yet. It refuses a
// directory with an unfinished restore, as a start would make it an empty one.
func (d *Deps) openHold() (err error) {
	if d.Config.Store == config.MemoryStore || d.World.Store != nil && !d.World.Replicated {
		return nil
	}
	if err := recovery.CheckRestored(d.Config.Data); err != nil {
		return err
	}
	d.hold, err = hold.Open(d.Config.Data)
	if err == nil && d.hold.Held() {
		d.Log.Warn("nothing is delivered until an operator says so: this data was restored with --paused", "command", "godwit deliveries begin")
	}
	return err
}

// heldNotice is the banner's notice of a hold.
func (d *Deps) heldNotice() []string {
	if d.hold.Held() {
		return []string{"Paused:  restored with --paused, nothing is delivered until: godwit deliveries begin"}
	}
	return nil
}

// sealedWith reports the id of the root key that the store is sealed with.
func sealedWith(log *journal.Journal) func() string {
	return func() string {
		text, err := keys.Sealing(log)
		if err != nil || text == nil {
			return ""
		}
		id, _ := seal.RootOf(text) // the start has read it
		return id
	}
}

// backupsOf serves copies of the store, if it is on a disk.
func backupsOf(deps Deps, st store.Store, log *journal.Journal) (*backups.Backups, error) {
	o := backups.Options{Version: config.Version, Process: uuid.NewString(), Now: clock.System.Now, Hold: deps.hold, RootKey: sealedWith(log)}
	if onDisk(deps) || deps.World.Replicated {
		source, err := snapshot.NewSource(filepath.Join(deps.Config.Data, snapshot.ForBackup), func(dir string) (uint64, error) {
			return 0, st.Checkpoint(dir)
		}, clock.System)
		if err != nil {
			return nil, err
		}
		deps.OnStop("backups", func(context.Context) error { return source.Close() })
		o.Source = source
	}
	return backups.New(o), nil
}

// follow makes backups in a bucket, if one is set, and reports their problems.
func (s *state) follow(deps Deps, trust *tls.Config) ([]admin.Check, error) {
	f, err := offsite.Follow(deps.Config, trust, s.store.Checkpoint, sealedWith(s.journal), deps.Log)
	if f == nil || err != nil {
		return nil, err
	}
	deps.OnStop("backups in a bucket", func(context.Context) error { return f.Stop() })
	s.prometheus.Follow(f.Metrics)
	return []admin.Check{{Name: "backup", Failing: f.Failing}}, nil
}

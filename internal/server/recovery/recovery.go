// Package recovery checks data directories that no server has open, and copies what can be
// read of damaged ones.
package recovery

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/keyspace/values"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble/check"
	"godwit.dev/godwit/internal/store/pebble/salvage"
)

// StoreName is the name of the store's directory in a data directory.
const StoreName = "store"

// incoming is in a data directory that a backup is being restored to.
const incoming = "restore.incoming"

// Incoming is where a restore into a data directory works until it is through.
func Incoming(data string) string { return filepath.Join(data, incoming) }

// ErrRestoring refuses a data directory in which a restore was cut off.
var ErrRestoring = errors.New("a restore has not come to its end: run godwit restore again")

// CheckRestored refuses a data directory that a restore has begun to write and not
// finished: ErrRestoring.
func CheckRestored(data string) error {
	if _, err := os.Stat(Incoming(data)); err != nil {
		return nil //nolint:nilerr // there is none
	}
	if _, err := os.Stat(filepath.Join(data, StoreName)); err == nil {
		return nil // all is in place; a crash has left the directory
	}
	return fmt.Errorf("%s: %w", data, ErrRestoring)
}

// records knows the records of a whole store.
type records struct{ values.Names }

// Check implements check.Records.
func (*records) Check(key, value []byte) error {
	if isMargin(key) {
		return nil
	}
	_, err := values.Check(key, value)
	return err
}

// LostEarlier implements check.Records: a salvage leaves a message that it lost its
// place, without a value, which no message has otherwise.
func (*records) LostEarlier(key, value []byte) bool { return len(value) == 0 && keepPlace(key) }

// Required implements check.Records.
func (*records) Required(from, to []byte) bool {
	return slices.ContainsFunc(keyspace.Required(), keyspace.Span{Lower: from, Upper: to}.Meets)
}

// isMargin is of keys that the store itself writes and deletes, at the ends of the
// key space.
func isMargin(key []byte) bool {
	return len(key) == 1 && key[0] == 0 || len(key) == 3 && key[0] == 0xff
}

// Describe implements check.Records.
func (r *records) Describe(key []byte) (kind, resource string) {
	k, err := keyspace.Parse(key)
	if err != nil {
		return Describe(key), ""
	}
	if a, ok := r.Of(&k); ok {
		resource = a.String()
	}
	return k.Kind().Name, resource
}

// ErrMember refuses to change the store of a cluster's node outside of the cluster's log.
var ErrMember = errors.New("the data is a node's of a cluster")

// RefuseMember refuses a store that is a replica of a cluster's log, with ErrMember: a separate
// change would be lost, or make it diverge from the other nodes.
func RefuseMember(st store.Store) error {
	return store.Each(st, keyspace.Prefix([]byte{keyspace.ClusterSpace, keyspace.ClusterFences}), func(_, _ []byte) error {
		return ErrMember
	})
}

// Describe says in a log line which record has a key.
func Describe(key []byte) string {
	if len(key) == 0 {
		return "the first record"
	}
	k, err := keyspace.Parse(key)
	if err != nil {
		return fmt.Sprintf("key %x", key)
	}
	text := []string{k.Kind().Name}
	for _, part := range []string{keyspace.PartShard, keyspace.PartIncarnation, keyspace.PartSequence} {
		if n, ok := k.Number(part); ok {
			text = append(text, fmt.Sprintf("%s %d", part, n))
		}
	}
	return strings.Join(text, ", ")
}

// Check reads all that is in a data directory, and prints what of it is damaged.
// ok says that nothing is. It fails if a server has the directory open.
func Check(data string, stdout io.Writer) (ok bool, err error) {
	return checkIn(vfs.Default, data, stdout)
}

// CheckCopy is Check of a backup, which no server has open, and in which it writes nothing.
func CheckCopy(data string, stdout io.Writer) (ok bool, err error) {
	return checkBy(check.RunCopy, vfs.Default, data, stdout)
}

// storeIn is the store's directory in a data directory.
func storeIn(f vfs.FS, data string) (dir string, err error) {
	dir = filepath.Join(data, StoreName)
	switch _, err := f.Stat(dir); {
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("%s cannot be read (--data): %w", data, err)
	case err != nil:
		return "", fmt.Errorf("%s holds no data of Godwit's (--data): %w", data, err)
	}
	return dir, nil
}

func checkIn(f vfs.FS, data string, stdout io.Writer) (ok bool, err error) {
	return checkBy(check.Run, f, data, stdout)
}

func checkBy(run func(vfs.FS, string, check.Records) (*check.Report, error), f vfs.FS, data string, stdout io.Writer) (ok bool, err error) {
	dir, err := storeIn(f, data)
	if err != nil {
		return false, err
	}
	report, err := run(f, dir, new(records))
	if err != nil {
		return false, err
	}
	if err := report.Write(stdout); err != nil {
		return false, err
	}
	switch {
	case report.OK() && len(report.Earlier) > 0:
		_, err = fmt.Fprintf(stdout, "ok: %d writes read, nothing is damaged. What the salvage that made this directory lost keeps its place until the end of its retention; another one would change nothing\n", report.Writes)
	case report.OK():
		_, err = fmt.Fprintf(stdout, "ok: %d writes read, nothing is damaged\n", report.Writes)
	case report.Refusal != nil:
		_, err = fmt.Fprintf(stdout, "a start is refused: %v\n", report.Refusal)
	case report.Required:
		_, err = fmt.Fprintf(stdout, "a start is refused: records that say what there is, and who may do what, cannot be read. Restore a backup, or run: godwit salvage --data %s --to DIR\n", data)
	default:
		_, err = fmt.Fprintf(stdout, "damaged: godwit starts, and serves what else there is. To get rid of the damage, restore a backup, or run: godwit salvage --data %s --to DIR\n", data)
	}
	return report.OK(), err
}

// Salvage copies what can be read of a data directory into another one, which
// must not exist or be empty, and prints what was lost. whole says that nothing was.
func Salvage(data, to string, log *slog.Logger, stdout io.Writer) (whole bool, err error) {
	whole, err = untilFull(to, func(full func()) (bool, error) { return salvageIn(vfs.Default, data, to, log, stdout, full) })
	if err != nil {
		return false, err
	}
	if err := bootstrap.CopyKeys(data, to); err != nil {
		return false, fmt.Errorf("the copy is done, but for its keys: %w", err)
	}
	return whole, nil
}

// untilFull ends a copy whose disk is full: by itself it would wait for space that nobody is there
// to make, and a process that ends leaves it.
func untilFull(to string, run func(full func()) (whole bool, err error)) (whole bool, err error) {
	type outcome struct {
		whole bool
		err   error
	}
	full, done := make(chan struct{}), make(chan outcome, 1)
	var once sync.Once
	go func() {
		whole, err := run(func() { once.Do(func() { close(full) }) })
		done <- outcome{whole, err}
	}()
	select {
	case o := <-done:
		return o.whole, o.err
	case <-full:
		return false, fmt.Errorf("the disk of %s is full, which needs space for the copy twice: remove it, and give a directory on another disk", to)
	}
}

func salvageIn(f vfs.FS, data, to string, log *slog.Logger, stdout io.Writer, full func()) (whole bool, err error) {
	dir, err := storeIn(f, data)
	if err != nil {
		return false, err
	}
	report, err := salvage.Run(dir, to, filepath.Join(to, StoreName), salvage.Options{
		FS: f, Records: new(records), Repair: shard.NewRepair(clock.System.Now()), Logger: log, Keep: keepPlace, Full: full,
	})
	if err != nil {
		return false, err
	}
	if err := report.Write(stdout); err != nil {
		return false, err
	}
	if !report.Exact {
		if _, err := fmt.Fprintln(stdout, "The MANIFEST could not be read: what was deleted shortly before may have come back."); err != nil {
			return false, err
		}
	}
	_, err = fmt.Fprintf(stdout, "copied %d records to %s, and made %d that others need\n", report.Copied, to, report.Repaired)
	return report.OK(), err
}

// keepPlace reports whether a record that is lost keeps its place: that of a
// message, which its queue counts.
func keepPlace(key []byte) bool {
	k, err := keyspace.Parse(key)
	return err == nil && k.ID == keyspace.KindMessage
}

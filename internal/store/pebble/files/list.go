package files

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Listing is the content of a store's directory, each kind of file ordered by number.
type Listing struct {
	Logs, Tables, Values, Manifests []uint64
	Options                         []uint64
	ManifestMarker                  string // the manifest in use; empty: it is not known
	FormatMarker                    bool
	Names                           []string
}

// List lists a store's directory.
func List(fs vfs.FS, dir string) (*Listing, error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	l := &Listing{Names: names}
	latest := int64(-1)
	for _, name := range names {
		name = path.Base(name)
		stem, ext, _ := strings.Cut(name, ".")
		n, numbered := number(stem)
		switch {
		case numbered && ext == "log":
			l.Logs = append(l.Logs, n)
		case numbered && ext == "sst":
			l.Tables = append(l.Tables, n)
		case numbered && ext == "blob":
			l.Values = append(l.Values, n)
		case strings.HasPrefix(name, "marker.format-version."):
			l.FormatMarker = true
		case strings.HasPrefix(name, "marker.manifest."):
			count, value, _ := strings.Cut(strings.TrimPrefix(name, "marker.manifest."), ".")
			if i, err := strconv.ParseInt(count, 10, 64); err == nil && i > latest {
				latest, l.ManifestMarker = i, value
			}
		default:
			if n, ok := number(strings.TrimPrefix(name, "MANIFEST-")); ok && strings.HasPrefix(name, "MANIFEST-") {
				l.Manifests = append(l.Manifests, n)
			}
			if n, ok := number(strings.TrimPrefix(name, "OPTIONS-")); ok && strings.HasPrefix(name, "OPTIONS-") {
				l.Options = append(l.Options, n)
			}
		}
	}
	for _, s := range [][]uint64{l.Logs, l.Tables, l.Values, l.Manifests, l.Options} {
		slices.Sort(s)
	}
	return l, nil
}

func number(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && s != ""
}

// LogName is the name of a log.
func LogName(n uint64) string { return pad(n) + ".log" }

// TableName is the name of a table.
func TableName(n uint64) string { return pad(n) + ".sst" }

// ValuesName is the name of a blob file.
func ValuesName(n uint64) string { return pad(n) + ".blob" }

// ManifestName is the name of a manifest.
func ManifestName(n uint64) string { return "MANIFEST-" + pad(n) }

// ParseManifestName parses the number in a manifest's name.
func ParseManifestName(name string) (uint64, bool) {
	rest, ok := strings.CutPrefix(name, "MANIFEST-")
	if !ok {
		return 0, false
	}
	return number(rest)
}

// ParseLogName parses the number in a log's name.
func ParseLogName(name string) (uint64, bool) {
	rest, ok := strings.CutSuffix(name, ".log")
	if !ok {
		return 0, false
	}
	return number(rest)
}

func pad(n uint64) string {
	s := strconv.FormatUint(n, 10)
	return strings.Repeat("0", max(0, 6-len(s))) + s
}

// SyncDir makes the entries of a directory durable.
func SyncDir(f vfs.FS, dir string) error {
	d, err := f.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

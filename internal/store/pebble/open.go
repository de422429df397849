package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/store/pebble/badblocks"
	"godwit.dev/godwit/internal/store/pebble/durable"
	"godwit.dev/godwit/internal/store/pebble/files"
	"godwit.dev/godwit/internal/store/pebble/headroom"
	"godwit.dev/godwit/internal/store/pebble/mark"
	"godwit.dev/godwit/internal/store/pebble/pace"
	"godwit.dev/godwit/internal/store/pebble/pause"
	"godwit.dev/godwit/internal/store/pebble/verify"
)

// Options configure a store; the zero value is valid.
type Options struct {
	// FS is the file system; nil is the operating system's, watched for slow
	// operations.
	FS vfs.FS
	// Logger gets the engine's events; nil writes warnings to standard error.
	Logger *slog.Logger
	// CacheBytes bounds the memory for blocks of tables; default
	// DefaultCacheBytes. Pebble counts the write buffers into it.
	CacheBytes int64
	// MemTableBytes is the size of a write buffer, of which there are up to two; default
	// DefaultMemTableBytes, or less on a disk below 1 GiB, since there are up to five logs of
	// this size. Records that are deleted before their buffer is full never reach a table.
	MemTableBytes int64
	// MaxOpenFiles is about how many files the store may hold open at once: tables and blob
	// files; default 1,000. It does not reduce the files that Pebble insists on, some 75.
	MaxOpenFiles int
	// OnDiskFull is called when a write of the log finds the disk full. If it
	// frees space, the write succeeds on its second try. All writes wait for it,
	// so it must be quick, and it must not use the store. May be nil.
	OnDiskFull func()
	// NoLog opens a store without a write-ahead log, whose user can repeat what a crash takes: what
	// was applied is durable only once it is flushed to a table, by Sync and the like, by Close
	// unless the disk is full, or because a write buffer is full. A crash keeps the batches up to
	// some one, each whole. Each open of a directory may choose.
	NoLog bool
	// AcceptLoss opens a store whose log lacks writes that were durable, which is refused with
	// ErrLoss otherwise. The remaining log is kept in a separate directory.
	AcceptLoss bool
	// Describe describes the record of a key, for log lines; the default is to quote the key.
	Describe func(key []byte) string
	// Fatal is called once, with the first failure after which the store cannot be used, on any
	// goroutine and with locks held: it must not use the store. The default logs the failure
	// and ends the process with ExitCode. It returns in tests only.
	Fatal func(error)
}

// ExitCode is the exit code of the process when the store fails: EX_SOFTWARE of sysexits.h.
const ExitCode = 70

// Defaults of Options. With them a process that writes, reads and deletes a
// million records of 300 B peaks at 100 to 120 MB resident, 25 of which are the
// Go runtime's and the test's (BenchmarkMillionMessages). The cache must exceed
// two write buffers by what the indexes, filters and busy blocks need: without
// that a read from a table takes twice as long.
const (
	DefaultCacheBytes    = 40 << 20
	DefaultMemTableBytes = 16 << 20
)

const (
	// ownFiles are open beside tables: logs, the manifest, locks, files being written.
	ownFiles = 32

	// l0Sublevels is at how many sublevels L0 is compacted.
	l0Sublevels = 12

	// blockSize is large, since each block costs a flush a checksum, an index entry and a
	// goroutine switch, and since readers of a message mostly read the next one, too.
	blockSize = 16 << 10

	// formatMajorVersion is Pebble's on-disk format. It is a named one, so
	// that a newer Pebble does not change it silently: an upgrade is one way.
	formatMajorVersion = pebble.FormatValueSeparation

	// formatFile holds the version of our own format in decimal.
	formatFile = "godwit-format"
	format     = 5

	// oldestFormat is the oldest that is read. Such a directory is marked with our format, as
	// an older godwit would not understand our additions.
	oldestFormat = 2

	// A flush stores values of separateFrom bytes or more in a blob file, apart from their
	// keys, so that compactions need not write them again. A blob file is rewritten once it has
	// the age wasteAge and a share of garbage (values without a key) of wasteShare, or of
	// tightShare while the disk is short of space.
	separateFrom = 512
	wasteAge     = 10 * time.Second
	wasteShare   = 0.3
	tightShare   = 0.02
	// maxDepth is how many blob files over the same keys a table may refer to before a
	// compaction writes the values again, in order: those of a few compactions.
	maxDepth = 5 * l0Sublevels

	// A disk of less than diskPerMemTable default write buffers has smaller ones.
	diskPerMemTable  = 64
	minMemTableBytes = 1 << 20

	// A range tombstone in the memtable frees no space. Below the floor of free space,
	// where sends are refused, little else would flush it.
	flushRangeTombstones = 15 * time.Second
)

// Errors that Open can report beside those of the file system.
var (
	// ErrInUse: another process, or another Store of this one, has the
	// directory open.
	ErrInUse = errors.New("in use")
	// ErrFormat: the directory holds a format that this version cannot read,
	// or no store of Godwit's at all.
	ErrFormat = errors.New("unknown format")
)

// Open opens the store in the directory dir and makes it if it does not
// exist. Nothing in dir is changed if it is refused.
func Open(dir string, o Options) (*Store, error) {
	f := o.FS
	if f == nil {
		f = vfs.Default
	}
	if err := mkdirSynced(f, dir); err != nil {
		return nil, fmt.Errorf("store %s: %w", dir, err)
	}
	o.defaults(f, dir)
	s := &Store{
		failure: failure{happened: make(chan struct{}), fatal: o.Fatal}, log: o.Logger, fs: f, dir: dir,
		durable: durable.Watch(f, dir, format, o.Logger), describe: o.Describe, compactions: pause.New(isDamage),
		repairs: repairs{wanted: map[string]places{}, stuck: map[string]bool{}},
	}
	s.blocks = badblocks.New(s.durable)
	s.flushes.begin(&o)
	s.headroom = headroom.Keep(s.blocks, headroom.Options{Dir: dir, MemTableBytes: o.MemTableBytes, OnDiskFull: o.OnDiskFull, OnFlushFull: s.flushes.refuse, Logger: o.Logger, Fatal: s.fail})
	s.flushes.throttle = pace.NewThrottle(s.headroom)
	l := logger{log: o.Logger, fatal: s.fail, damaged: s.damagedIn, merges: s.compactions.Begin, merged: s.compactionEnded, flushBegan: s.flushes.throttle.FlushBegan, flushed: s.flushes.flushed, l0Changed: s.countSublevels, corrupt: s.damagedFile, rewrite: s.blocks.Rewriting}
	cache := pebble.NewCache(o.CacheBytes)
	defer cache.Unref()
	opts := tuned(o, s.flushes.throttle, l, s.separation)
	opts.Cache = cache
	opts.Experimental.CompactionScheduler = s.compactions

	lock, err := pebble.LockDirectory(dir, f)
	if err != nil {
		return nil, lockError(dir, err)
	}
	opts.Lock = lock
	if err := checkFormat(f, dir, true); err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", dir, err), lock.Close())
	}
	err = s.recall()
	if err == nil {
		err = s.openVerified(f, dir, opts, o.AcceptLoss)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", dir, err), s.durable.Close(false), lock.Close())
	}
	s.headroom.Opened()
	s.dropped.ctx, s.dropped.stop = context.WithCancel(context.Background())
	s.idleCompaction.ctx, s.idleCompaction.stop = context.WithCancel(context.Background())
	s.repairs.ctx, s.repairs.stop = context.WithCancel(context.Background())
	s.lock = lock
	s.gate.change(func() { s.gate.ready = true })
	s.countSublevels()
	s.repairs.opened(s.repair)
	// Records that the last process deleted may still take space.
	s.noteWrites(0, minDeletes)
	return s, nil
}

func (o *Options) defaults(f vfs.FS, dir string) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = DefaultMemTableBytes
		if u, err := f.GetDiskUsage(dir); err == nil && u.TotalBytes > 0 {
			o.MemTableBytes = min(DefaultMemTableBytes, max(minMemTableBytes, int64(u.TotalBytes/diskPerMemTable)))
		}
	}
	if o.Describe == nil {
		o.Describe = func(key []byte) string { return strconv.QuoteToASCII(string(key)) }
	}
	if o.Fatal == nil {
		log := o.Logger
		o.Fatal = func(err error) {
			if isDamage(err) {
				log.Error("the store has met damage that it cannot go around; run: godwit check", "error", err.Error())
			} else {
				log.Error("the store failed; what was acknowledged is safe, restart to go on", "error", err.Error())
			}
			os.Exit(ExitCode)
		}
	}
}

// tuned are Pebble's options for short-lived records: most messages are written, read and
// deleted while they are in the memtable.
func tuned(o Options, f vfs.FS, l logger, separation func() pebble.ValueSeparationPolicy) *pebble.Options {
	opts := &pebble.Options{
		FS:                    f,
		Logger:                l,
		EventListener:         l.events(),
		FormatMajorVersion:    formatMajorVersion,
		MemTableSize:          uint64(o.MemTableBytes),
		DisableWAL:            o.NoLog,
		FlushDelayDeleteRange: flushRangeTombstones,
		// Compactions leave a core to the commits; two concurrent ones gain nothing on the two
		// cores that we measure on.
		CompactionConcurrencyRange: func() (lower, upper int) { return 1, 1 },
		// Messages are written once and soon deleted: late compactions write less. At a
		// threshold of 1, compactions took a quarter of the CPU of a send in batches of 10.
		// idleCompaction and Reclaim reclaim the space that a high threshold leaves in use.
		L0CompactionThreshold: l0Sublevels,
		L0StopWritesThreshold: 1 << 20, // the gate holds writes back
		// Each table costs a file descriptor, and memory for its index and filter.
		TargetFileSizes: [...]int64{4 << 20, 8 << 20, 16 << 20, 32 << 20, 32 << 20, 32 << 20, 32 << 20},
	}
	if o.MaxOpenFiles > 0 {
		opts.MaxOpenFiles = max(o.MaxOpenFiles-ownFiles, 1)
	}
	for i := range opts.Levels {
		// Point reads of missing keys are common: deduplication, known transfers.
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		opts.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
		opts.Levels[i].BlockSize = blockSize
	}
	opts.Experimental.ValueSeparationPolicy = separation
	// Tables of the upper levels are compacted soon.
	for i := range 2 {
		opts.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	}
	if o.FS == nil {
		opts.WithFSDefaults()
	}
	return opts
}

// separation is the policy for storing values apart from their keys.
func (s *Store) separation() pebble.ValueSeparationPolicy {
	share := wasteShare
	if s.tight() {
		share = tightShare
	}
	return pebble.ValueSeparationPolicy{
		Enabled: true, MinimumSize: separateFrom, MaxBlobReferenceDepth: maxDepth,
		RewriteMinimumAge: wasteAge, TargetGarbageRatio: share,
	}
}

// mkdirSynced makes dir and its parents durably, by syncing each parent. Pebble does so for
// directories that it makes itself.
func mkdirSynced(f vfs.FS, dir string) error {
	var parents []string
	for path := dir; ; {
		if _, err := f.Stat(path); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		parent := f.PathDir(path)
		if parent == path {
			break
		}
		parents = append(parents, parent)
		path = parent
	}
	if len(parents) == 0 {
		return nil
	}
	if err := f.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for _, p := range parents {
		if err := files.SyncDir(f, p); err != nil {
			return err
		}
	}
	return nil
}

func lockError(dir string, err error) error {
	// fcntl(2) reports a lock of another process with either of these errors, unwrapped; the
	// error of a file that may not be opened has its path.
	if _, ok := errors.AsType[*fs.PathError](err); !ok &&
		(errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES)) {
		return fmt.Errorf("store %s is %w: another godwit seems to run on this directory; "+
			"stop it, or give this one a directory of its own", dir, ErrInUse)
	}
	if strings.Contains(err.Error(), "held by current process") { // Pebble has no sentinel for it
		return fmt.Errorf("store %s is %w: this process has it open already", dir, ErrInUse)
	}
	return fmt.Errorf("locking store %s: %w", dir, err)
}

// checkFormat refuses a directory whose format we do not know, and marks an empty one as ours.
// The mark is on disk before Pebble writes its first file, so that a store without a mark is
// not ours. Without write it marks nothing.
func checkFormat(f vfs.FS, dir string, write bool) error {
	says, err := read(f, f.PathJoin(dir, formatFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		desc, err := pebble.Peek(dir, f)
		if err != nil {
			return err
		}
		if _, err := f.Stat(f.PathJoin(dir, mark.Name)); err == nil {
			return fmt.Errorf("%w: %w", ErrFormat, verify.Damaged("the file %s is missing", formatFile))
		}
		if desc.Exists {
			return fmt.Errorf("%w: it is a Pebble store without the file %s, so it is not Godwit's, or an incomplete copy; "+
				"give Godwit another directory, or copy the whole store again", ErrFormat, formatFile)
		}
		return writeFormat(f, dir)
	case err != nil:
		return err
	}
	v, err := strconv.ParseUint(strings.TrimSpace(says), 10, 32)
	m, _, _ := mark.Read(f, dir)
	switch {
	case err != nil || v == 0 || m != nil && m.Format == format && (v > format || v < oldestFormat):
		return fmt.Errorf("%w: %w", ErrFormat, verify.Damaged("the file %s says %.40q, which is not the version of this directory", formatFile, says))
	case v > format:
		return fmt.Errorf("%w: its version is %d and this godwit knows versions up to %d; "+
			"run the godwit that wrote it or a newer one (nothing was changed)", ErrFormat, v, format)
	case v < oldestFormat:
		return fmt.Errorf("%w: its version is %d, of a godwit before the first release, and this one knows versions from %d on; "+
			"run the godwit that wrote it, or begin with an empty directory (nothing was changed)", ErrFormat, v, oldestFormat)
	}
	desc, err := pebble.Peek(dir, f)
	if err != nil {
		return verify.Damaged("%v", err)
	}
	if desc.FormatMajorVersion > formatMajorVersion {
		return fmt.Errorf("%w: its engine's version is %s and this godwit writes version %s; "+
			"run the godwit that wrote it or a newer one (nothing was changed)",
			ErrFormat, desc.FormatMajorVersion, formatMajorVersion)
	}
	if v < format && write {
		return writeFormat(f, dir)
	}
	return nil
}

func writeFormat(f vfs.FS, dir string) error {
	path := f.PathJoin(dir, formatFile)
	file, err := f.Create(path+".tmp", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%d\n", format)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := f.Rename(path+".tmp", path); err != nil {
		return err
	}
	return files.SyncDir(f, dir)
}

func read(f vfs.FS, path string) (string, error) {
	file, err := f.Open(path)
	if err != nil {
		return "", err
	}
	var buf [64]byte
	n, err := file.Read(buf[:])
	if n > 0 || errors.Is(err, io.EOF) {
		err = nil
	}
	return string(buf[:n]), errors.Join(err, file.Close())
}

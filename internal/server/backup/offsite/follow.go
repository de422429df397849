package offsite

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
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
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/durable"
	"godwit.dev/godwit/internal/monitor/prom"
	"godwit.dev/godwit/internal/server/backup"
)

// Names in a data directory.
const (
	checkpointName = "backup.following"    // the checkpoint being backed up
	directoryName  = "backup-directory.id" // the data directory's id
)

// pieceSize is the size of the pieces of a growing file, in bytes.
const pieceSize = 1 << 20

// trimEvery is how often old points are removed.
const trimEvery = time.Hour

// Options configure a Follower.
type Options struct {
	Place Place
	Data  string // the data directory
	// Checkpoint makes a copy of the store in a directory that does not exist.
	Checkpoint func(dir string) error
	Interval   time.Duration // between the beginnings of two points
	Retention  time.Duration // how long points are kept; 0: for ever
	Version    string        // of the server
	RootKey    func() string // the id of the key that the state is sealed with
	Clock      clock.Clock   // the machine's
	Logger     *slog.Logger
}

// Follower makes points periodically.
type Follower struct {
	Options

	directory string
	present   map[string]bool   // pieces that exist in the bucket
	tables    map[string]hashed // tables of the latest point, by name
	number    uint64            // of the latest point
	trimmed   time.Time
	claim     claim

	stop  context.CancelFunc
	ended chan struct{}
	close func() // closes the connections; nil: there are none

	mu     sync.Mutex
	status Status
}

// hashed is a table with a known hash.
type hashed struct {
	size, modified int64
	sum            string
}

// Status is the progress of a Follower.
type Status struct {
	Interval time.Duration // 0: backups are off
	// Point is the time of the latest point; zero: unknown.
	Point time.Time
	Began time.Time // when it began to follow
	// Points made, and failed attempts, since the start; bytes written to the bucket.
	Made, Failed, Bytes int64
	Problem             error // why the latest attempt failed; nil: it did not
}

// Since is the time since which changes are in no point.
func (s *Status) Since() time.Time {
	if s.Point.IsZero() {
		return s.Began
	}
	return s.Point
}

// tolerated is the minimum lag at which a Follower is failing.
const tolerated = time.Minute

// Failing reports a problem if the latest point is too old: three intervals and a minute.
func (s *Status) Failing(now time.Time) error {
	lag := now.Sub(s.Since())
	if lag <= max(3*s.Interval, tolerated) {
		return nil
	}
	text := "nothing was backed up for " + lag.Round(time.Second).String()
	if s.Problem != nil {
		return fmt.Errorf("%s: %w", text, s.Problem)
	}
	return errors.New(text)
}

// Follow starts a Follower as configured, until Stop; nil: backups are off.
func Follow(c config.Config, trust *tls.Config, checkpoint func(dir string) error, rootKey func() string, log *slog.Logger) (*Follower, error) {
	of := c.Backup
	if of.To == "" {
		return nil, nil //nolint:nilnil // as it says
	}
	place, closeIdle, err := (&Server{
		URL: of.To, Endpoint: of.Endpoint, Region: cmp.Or(of.Region, c.Region), Credentials: of.Credentials, Private: c.Production,
		HostStyle: of.HostStyle, Trust: trust,
	}).Open()
	if err != nil {
		return nil, fmt.Errorf("--backup-s3: %w", err)
	}
	f, err := Start(Options{
		Place: place, Data: c.Data, Checkpoint: checkpoint, Interval: of.Interval, Retention: of.Retention,
		Version: config.Version, RootKey: rootKey, Clock: clock.System, Logger: log,
	})
	if err == nil {
		f.close = closeIdle
	}
	return f, err
}

// Failing reports the current problem of the backups, for a health check.
func (f *Follower) Failing() error {
	status := f.Status()
	return status.Failing(f.Clock.Now())
}

// Start begins to make points, until Stop.
func Start(o Options) (*Follower, error) {
	f := &Follower{Options: o, ended: make(chan struct{})}
	f.status = Status{Interval: o.Interval, Began: o.Clock.Now()}
	var err error
	if f.directory, err = directoryID(o.Data); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	go func() {
		defer close(f.ended)
		f.follow(ctx)
	}()
	return f, nil
}

// Stop stops it. An unfinished point is abandoned: the next start makes another one. It does not
// give up waiting: the state may be another node's next, or another Follower use the directory.
func (f *Follower) Stop() error {
	f.stop()
	<-f.ended
	if f.close != nil {
		f.close()
	}
	return os.RemoveAll(filepath.Join(f.Data, checkpointName))
}

// Status reports its progress.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// Metrics reports its status to Prometheus.
func (f *Follower) Metrics() prom.Backups {
	s := f.Status()
	return prom.Backups{Interval: s.Interval, Point: s.Since(), Made: s.Made, Failed: s.Failed, Bytes: s.Bytes}
}

// directoryID is the id of a data directory. A restored one has another.
func directoryID(data string) (string, error) {
	path := filepath.Join(data, directoryName)
	text, err := os.ReadFile(path) //nolint:gosec // of the data directory
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(uuid.NewString() + "\n")
		err = durable.Replace(path, text)
	}
	return strings.TrimSpace(string(text)), err
}

func (f *Follower) follow(ctx context.Context) {
	for {
		begun := f.Clock.Now()
		err := f.round(ctx)
		if ctx.Err() != nil {
			return
		}
		f.note(err)
		wait, stop := clock.After(f.Clock, max(f.Interval-f.Clock.Now().Sub(begun), time.Second))
		select {
		case <-wait:
		case <-ctx.Done():
			stop()
			return
		}
	}
}

// note notes the result of a round. Of consecutive failures the first is logged, and the first
// success after them.
func (f *Follower) note(err error) {
	f.mu.Lock()
	before := f.status.Problem
	f.status.Problem = err
	if err != nil {
		f.status.Failed++
	}
	f.mu.Unlock()
	switch {
	case err != nil && before == nil:
		f.Logger.Warn("the store cannot be backed up; it is tried again", "bucket", f.Place.Bucket, "error", err)
	case err == nil && before != nil:
		f.Logger.Info("the store is backed up again", "bucket", f.Place.Bucket)
	}
}

// round makes a point, and periodically removes old ones.
func (f *Follower) round(ctx context.Context) error {
	if f.present == nil {
		if err := f.resume(ctx); err != nil {
			return err
		}
	} else if err := f.dispute(ctx); err != nil {
		return err
	}
	if err := f.makePoint(ctx); err != nil {
		return err
	}
	if now := f.Clock.Now(); now.Sub(f.trimmed) >= trimEvery {
		f.trimmed = now // also if it fails: it reads every point
		if err := f.trim(ctx); err != nil {
			return fmt.Errorf("old backups cannot be removed: %w", err)
		}
	}
	return nil
}

// resume learns from the latest point which pieces are in the bucket, and the hashes of tables,
// if it is of the same directory.
func (f *Follower) resume(ctx context.Context) error {
	present, tables := map[string]bool{}, map[string]hashed{}
	all, err := f.Place.points(ctx)
	if err != nil {
		return err
	}
	f.claim = claim{looked: f.Clock.Now(), mine: map[string]uint64{}}
	if len(all) > 0 { // also if it is damaged
		latest := all[len(all)-1]
		f.number, f.claim.mine[latest.key] = latest.number, latest.number
	}
	found, err := f.Place.Find(ctx, time.Time{})
	switch {
	case errors.Is(err, ErrNone), errors.Is(err, backup.ErrDamaged): // a new one is made
	case err != nil:
		return err
	default:
		point := found.point
		point.each(func(hash string) { present[hash] = true })
		if point.Directory == f.directory {
			for _, file := range point.Files {
				if at, ok := point.Modified[file.Name]; ok {
					tables[file.Name] = hashed{file.Size, at, file.SHA256}
				}
			}
			f.mu.Lock()
			f.status.Point = earlier(point.CreatedAt, f.status.Began) // a clock may have been ahead
			f.mu.Unlock()
		}
	}
	f.present, f.tables = present, tables
	return nil
}

// makePoint uploads what has changed, and then the point.
func (f *Follower) makePoint(ctx context.Context) error {
	dir := filepath.Join(f.Data, checkpointName)
	defer func() { _ = os.RemoveAll(dir) }() // else the next point removes it
	at, rootKey, err := f.checkpoint(ctx, dir)
	if err != nil {
		return err
	}
	point := &Point{
		Manifest: backup.Manifest{Format: backup.Format, CreatedAt: at.UTC(), Version: f.Version, RootKey: rootKey},
		Pieces:   map[string][]Piece{}, Directory: f.directory, Modified: map[string]int64{},
	}
	tables := map[string]hashed{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if !isTable(name) {
			file, pieces, err := f.grown(ctx, name, path)
			point.Files, point.Pieces[name] = append(point.Files, file), pieces
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		table, err := f.table(ctx, name, path, info)
		tables[name], point.Modified[name] = table, table.modified
		point.Files = append(point.Files, backup.File{Name: name, Size: table.size, SHA256: table.sum})
		return err
	})
	if err != nil {
		return err
	}
	key, text, err := point.encode(f.number + 1)
	if err != nil {
		return err
	}
	f.claim.mine[key] = f.number + 1 // a put that fails may have been done
	if err := f.Place.put(ctx, key, bytes.NewReader(text)); err != nil {
		return err
	}
	f.number++
	f.claim.made(f.number)
	f.tables = tables
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Point, f.status.Made = at, f.status.Made+1
	return nil
}

// checkpoint copies the store to dir, and reports the time of the copy and the id of the root key
// that it is sealed with. A rotation meanwhile leaves it open which key that is: then it copies again.
func (f *Follower) checkpoint(ctx context.Context, dir string) (at time.Time, rootKey string, err error) {
	for {
		if err := os.RemoveAll(dir); err != nil {
			return at, "", err
		}
		at, rootKey = f.Clock.Now(), f.RootKey()
		if err := f.Checkpoint(dir); err != nil {
			return at, "", err
		}
		if f.RootKey() == rootKey {
			return at, rootKey, nil
		}
		if err := ctx.Err(); err != nil {
			return at, "", err
		}
	}
}

// isTable reports that a file with this name is immutable.
func isTable(name string) bool {
	return slices.Contains([]string{".sst", ".blob"}, filepath.Ext(name))
}

// table uploads a table, unless it is in the bucket.
func (f *Follower) table(ctx context.Context, name, path string, info fs.FileInfo) (hashed, error) {
	h := hashed{size: info.Size(), modified: info.ModTime().UnixNano()}
	if known, ok := f.tables[name]; ok && known.size == h.size && known.modified == h.modified {
		h.sum = known.sum
	} else if err := h.read(ctx, path); err != nil {
		return h, err
	}
	if f.present[h.sum] {
		return h, nil
	}
	in, err := os.Open(path) //nolint:gosec // of the checkpoint
	if err != nil {
		return h, err
	}
	defer func() { _ = in.Close() }() // it was only read
	return h, f.piece(ctx, h.sum, h.size, in)
}

// read computes the hash of a table.
func (h *hashed) read(ctx context.Context, path string) error {
	in, err := os.Open(path) //nolint:gosec // of the checkpoint
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	sum := sha256.New()
	n, err := io.Copy(sum, until{ctx, in})
	if err == nil && n != h.size {
		err = fmt.Errorf("%s has %d bytes, and had %d", path, n, h.size)
	}
	h.sum = hex.EncodeToString(sum.Sum(nil))
	return err
}

// until reads until ctx ends.
type until struct {
	ctx context.Context
	io.Reader
}

func (r until) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// grown uploads the new pieces of a growing file.
func (f *Follower) grown(ctx context.Context, name, path string) (file backup.File, pieces []Piece, err error) {
	file.Name = name
	in, err := os.Open(path) //nolint:gosec // of the checkpoint
	if err != nil {
		return file, nil, err
	}
	defer func() { _ = in.Close() }() // it was only read
	whole, buf := sha256.New(), make([]byte, pieceSize)
	pieces = []Piece{}
	for {
		n, err := io.ReadFull(until{ctx, in}, buf)
		if n > 0 {
			p := buf[:n]
			_, _ = whole.Write(p) // it never fails
			sum := sha256.Sum256(p)
			piece := Piece{hex.EncodeToString(sum[:]), int64(n)}
			pieces, file.Size = append(pieces, piece), file.Size+piece.Size
			if !f.present[piece.SHA256] {
				if err := f.piece(ctx, piece.SHA256, piece.Size, bytes.NewReader(p)); err != nil {
					return file, nil, err
				}
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return file, nil, err
		}
	}
	file.SHA256 = hex.EncodeToString(whole.Sum(nil))
	return file, pieces, nil
}

func (f *Follower) piece(ctx context.Context, hash string, size int64, from io.Reader) error {
	if err := f.Place.put(ctx, piecesDir+hash, from); err != nil {
		return err
	}
	f.present[hash] = true
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Bytes += size
	return nil
}

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
	checkpointName = "backup.following"    // what is being backed up
	directoryName  = "backup-directory.id" // names the data directory
)

// pieceSize is how much of a file that grows is one piece, in bytes.
const pieceSize = 1 << 20

// trimEvery is how often old points are removed.
const trimEvery = time.Hour

// Options are what a Follower is made of.
type Options struct {
	Place Place
	Data  string // the data directory
	// Checkpoint makes a copy of the store in a directory that does not exist.
	Checkpoint func(dir string) error
	Interval   time.Duration // from the begin of one point to that of the next
	Retention  time.Duration // how long points are kept; 0: for ever
	Version    string        // of the server
	RootKey    func() string // the id of the key that the state is sealed with
	Clock      clock.Clock   // the machine's
	Logger     *slog.Logger
}

// Follower makes a point after the other.
type Follower struct {
	Options

	directory string
	present   map[string]bool   // pieces that are in the bucket
	tables    map[string]hashed // that are in the latest point, by their names
	trimmed   time.Time

	stop  context.CancelFunc
	ended chan struct{}
	close func() // of the connections; nil: there is nothing to close

	mu     sync.Mutex
	status Status
}

// hashed is a table whose hash is known.
type hashed struct {
	size, modified int64
	sum            string
}

// Status reports how far a Follower is.
type Status struct {
	Interval time.Duration // 0: nothing follows
	// Point is of when the latest point is; zero: none is known.
	Point time.Time
	Began time.Time // when it began to follow
	// Points made, and failures to make one, since the start; bytes that were put into the
	// bucket.
	Made, Failed, Bytes int64
	Problem             error // why the latest could not be made; nil: it was
}

// Since is from when on the server has done what no point has.
func (s *Status) Since() time.Time {
	if s.Point.IsZero() {
		return s.Began
	}
	return s.Point
}

// tolerated is how far a Follower may lag, at least, before something is wrong.
const tolerated = time.Minute

// Failing says what is wrong if the latest point is too old: as old as three intervals, and a
// minute.
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

// Follow begins to follow as it is set, until Stop; nil: nothing is set.
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

// Failing says what is wrong with the backups now, for a check.
func (f *Follower) Failing(context.Context) error {
	status := f.Status()
	return status.Failing(f.Clock.Now())
}

// Start begins to follow, until Stop.
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

// Stop ends it. What is under way is left: the next start makes another point.
func (f *Follower) Stop(ctx context.Context) error {
	f.stop()
	select {
	case <-f.ended:
		if f.close != nil {
			f.close()
		}
		return os.RemoveAll(filepath.Join(f.Data, checkpointName))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Status reports how far it is.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// Metrics tells the same to Prometheus.
func (f *Follower) Metrics() prom.Backups {
	s := f.Status()
	return prom.Backups{Interval: s.Interval, Point: s.Since(), Made: s.Made, Failed: s.Failed, Bytes: s.Bytes}
}

// directoryID is the name of a data directory. One that is restored has another.
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

// note notes how a round has ended. Of several that fail one is logged, and the first that does
// not.
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

// round makes a point, and removes old ones now and then.
func (f *Follower) round(ctx context.Context) error {
	if f.present == nil {
		if err := f.resume(ctx); err != nil {
			return err
		}
	}
	if err := f.makePoint(ctx); err != nil {
		return err
	}
	if now := f.Clock.Now(); now.Sub(f.trimmed) >= trimEvery {
		f.trimmed = now // also if it fails: it reads every point
		if err := f.trim(ctx, now); err != nil {
			return fmt.Errorf("old backups cannot be removed: %w", err)
		}
	}
	return nil
}

// resume takes from the latest point what is in the bucket, and the hashes of tables, if it is of
// the same directory.
func (f *Follower) resume(ctx context.Context) error {
	present, tables := map[string]bool{}, map[string]hashed{}
	found, err := f.Place.Find(ctx, time.Time{})
	switch {
	case errors.Is(err, ErrNone), errors.Is(err, backup.ErrDamaged): // it is created again
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
			f.status.Point = point.CreatedAt
			f.mu.Unlock()
		}
	}
	f.present, f.tables = present, tables
	return nil
}

// makePoint puts into the bucket what has changed, and then the point.
func (f *Follower) makePoint(ctx context.Context) error {
	dir := filepath.Join(f.Data, checkpointName)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	at := f.Clock.Now()
	if err := f.Checkpoint(dir); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // else the next point does
	point := &Point{
		Manifest: backup.Manifest{Format: backup.Format, CreatedAt: at.UTC(), Version: f.Version, RootKey: f.RootKey()},
		Pieces:   map[string][]Piece{}, Directory: f.directory, Modified: map[string]int64{},
	}
	tables := map[string]hashed{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
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
	if err := f.Place.putPoint(ctx, point); err != nil {
		return err
	}
	f.tables = tables
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Point, f.status.Made = at, f.status.Made+1
	return nil
}

// isTable reports that a file of a name does not change once it is there.
func isTable(name string) bool {
	return slices.Contains([]string{".sst", ".blob"}, filepath.Ext(name))
}

// table puts a table into the bucket, if it is not there.
func (f *Follower) table(ctx context.Context, name, path string, info fs.FileInfo) (hashed, error) {
	h := hashed{size: info.Size(), modified: info.ModTime().UnixNano()}
	if known, ok := f.tables[name]; ok && known.size == h.size && known.modified == h.modified {
		h.sum = known.sum
	} else if err := h.read(path); err != nil {
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

// read finds the hash of a table.
func (h *hashed) read(path string) error {
	in, err := os.Open(path) //nolint:gosec // of the checkpoint
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	sum := sha256.New()
	n, err := io.Copy(sum, in)
	if err == nil && n != h.size {
		err = fmt.Errorf("%s has %d bytes, and had %d", path, n, h.size)
	}
	h.sum = hex.EncodeToString(sum.Sum(nil))
	return err
}

// grown puts into the bucket what is not there yet of a file that grows.
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
		n, err := io.ReadFull(in, buf)
		if n > 0 {
			p := buf[:n]
			_, _ = whole.Write(p) // it gives no error
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

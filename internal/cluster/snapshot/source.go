package snapshot

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// Bounds of the snapshots that are offered: how many at once, and how long each after its last
// request. A snapshot retains disk space that its store has reclaimed since, and the part of the
// log that its copy continues with.
const (
	maxOffered = 4
	idleTime   = 2 * time.Minute
)

// Source offers snapshots of a store.
type Source struct {
	dir   string
	take  func(dir string) (position uint64, err error)
	clock clock.Clock
	mux   *http.ServeMux

	mu      sync.Mutex
	offered map[string]*offer
	taking  int        // how many are being made
	idle    *sync.Cond // none is
	closed  bool
}

// offer is a checkpoint that may be copied.
type offer struct {
	manifest Manifest
	dir      string
	timer    clock.Timer
	used     time.Time
}

// Names of the directories in a data directory where a Source offers checkpoints.
const (
	ForNodes  = "store.offered"  // of a cluster
	ForBackup = "backup.offered" // who makes a backup
)

// NewSource offers checkpoints below dir, which is on the file system of the store. take makes
// one in a directory that does not exist, and returns a position up to which it has the whole
// log, at least. What an earlier process has offered is removed. Errors: the file system's.
func NewSource(dir string, take func(dir string) (position uint64, err error), c clock.Clock) (*Source, error) {
	s := &Source{dir: dir, take: take, clock: c, mux: http.NewServeMux(), offered: map[string]*offer{}}
	s.idle = sync.NewCond(&s.mu)
	if err := os.RemoveAll(s.dir); err != nil {
		return nil, fmt.Errorf("old snapshots cannot be removed: %w", err)
	}
	s.mux.HandleFunc("POST "+Path, s.begin)
	s.mux.HandleFunc("GET "+Path+"/{id}/{name...}", s.chunk)
	return s, nil
}

// Path is where a Source answers, and below it.
const Path = "/snapshot"

// ServeHTTP implements http.Handler: a POST makes a snapshot and answers its Manifest; a GET
// of a file below its id, with an offset in the query, answers up to ChunkSize bytes and
// their checksum.
func (s *Source) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Position is the lowest position of the snapshots that are offered: their copies need the log
// from there on, so it must not be trimmed further. ok is false if there are none.
func (s *Source) Position() (position uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.offered {
		if !ok || o.manifest.Position < position {
			position, ok = o.manifest.Position, true
		}
	}
	return position, ok
}

// Close removes what is offered, and offers nothing any more. On return no snapshot is being made.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for s.taking > 0 {
		s.idle.Wait()
	}
	for _, o := range s.offered {
		o.timer.Stop()
	}
	clear(s.offered)
	return os.RemoveAll(s.dir)
}

func (s *Source) begin(w http.ResponseWriter, _ *http.Request) {
	m, err := s.Begin()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(m)
}

// ErrBusy refuses a snapshot while the maximum of them is offered.
var ErrBusy = errors.New("no further snapshot can be made now")

// Begin makes a snapshot, and offers it until it has not been requested for a while. Errors:
// ErrBusy, and those of making one.
func (s *Source) Begin() (Manifest, error) {
	s.mu.Lock()
	busy := s.closed || len(s.offered)+s.taking >= maxOffered
	if !busy {
		s.taking++
	}
	s.mu.Unlock()
	if busy {
		return Manifest{}, ErrBusy
	}
	o := &offer{manifest: Manifest{ID: rand.Text()}}
	o.dir = filepath.Join(s.dir, o.manifest.ID)
	err := os.MkdirAll(s.dir, 0o700)
	if err == nil {
		o.manifest.Position, err = s.take(o.dir)
	}
	if err == nil {
		o.manifest.Files, err = list(o.dir)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taking--; s.taking == 0 {
		s.idle.Broadcast()
	}
	if err == nil && s.closed {
		err = ErrBusy
	}
	if err != nil {
		return Manifest{}, errors.Join(err, os.RemoveAll(o.dir))
	}
	o.used = s.clock.Now()
	s.offered[o.manifest.ID] = o
	s.expire(o, idleTime)
	return o.manifest, nil
}

// expire withdraws an offer that nobody has asked for; s.mu is held.
func (s *Source) expire(o *offer, after time.Duration) {
	o.timer = s.clock.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.offered[o.manifest.ID] != o {
			return
		}
		if left := o.used.Add(idleTime).Sub(s.clock.Now()); left > 0 {
			s.expire(o, left)
			return
		}
		s.withdraw(o)
	})
}

// withdraw removes an offer; s.mu is held.
func (s *Source) withdraw(o *offer) {
	o.timer.Stop()
	delete(s.offered, o.manifest.ID)
	_ = os.RemoveAll(o.dir) // the next start removes what is left
}

func list(dir string) (all []File, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		all = append(all, File{filepath.ToSlash(name), info.Size()})
		return err
	})
	return all, err
}

// find is the path and size of a file of a snapshot; ok is false for a name that is not in the
// manifest, so that no other file can be read.
func (s *Source) find(id, name string) (path string, size int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.offered[id]
	if o == nil {
		return "", 0, false
	}
	o.used = s.clock.Now()
	for _, f := range o.manifest.Files {
		if f.Name == name {
			return filepath.Join(o.dir, filepath.FromSlash(f.Name)), f.Size, true
		}
	}
	return "", 0, false
}

// ErrOffset refuses a part that a file does not have.
var ErrOffset = errors.New("no such offset")

// Part is up to ChunkSize bytes of a file of a snapshot, from an offset on, and their
// checksum. Errors: ErrGone, ErrOffset, and the file system's.
func (s *Source) Part(id, name string, offset int64) (p []byte, sum string, err error) {
	path, size, ok := s.find(id, name)
	if !ok {
		return nil, "", ErrGone
	}
	if offset < 0 || offset > size {
		return nil, "", ErrOffset
	}
	f, err := os.Open(path) //nolint:gosec // of a manifest
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", ErrGone // it was withdrawn just now
	}
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = f.Close() }()
	p = make([]byte, min(ChunkSize, size-offset))
	if _, err := io.ReadFull(io.NewSectionReader(f, offset, size-offset), p); err != nil {
		return nil, "", err
	}
	return p, checksum(p), nil
}

// End withdraws a snapshot before its time, if it is there.
func (s *Source) End(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.offered[id]; o != nil {
		s.withdraw(o)
	}
}

func (s *Source) chunk(w http.ResponseWriter, r *http.Request) {
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil {
		offset = -1
	}
	p, sum, err := s.Part(r.PathValue("id"), r.PathValue("name"), offset)
	switch {
	case errors.Is(err, ErrGone):
		http.NotFound(w, r)
	case errors.Is(err, ErrOffset):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		WritePart(w, p, sum)
	}
}

// WritePart answers with what Part gave.
func WritePart(w http.ResponseWriter, p []byte, sum string) {
	w.Header().Set(checksumHeader, sum)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(p)))
	_, _ = w.Write(p) // if it fails, the client is gone
}

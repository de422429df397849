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

// Bounds of what is offered: so many at once, each for so long after it was last asked for.
// A snapshot keeps the space of what its store has dropped since, and the log that whoever
// has copied it goes on with.
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
	taking  int // so many are being made
	closed  bool
}

// offer is a checkpoint that a node copies.
type offer struct {
	manifest Manifest
	dir      string
	timer    clock.Timer
	used     time.Time
}

// NewSource offers checkpoints in a data directory. take makes one in a directory that
// does not exist, and says up to which position of the log it has all, at least. What an
// earlier process has offered is removed.
func NewSource(data string, take func(dir string) (position uint64, err error), c clock.Clock) (*Source, error) {
	s := &Source{dir: filepath.Join(data, offeredName), take: take, clock: c, mux: http.NewServeMux(), offered: map[string]*offer{}}
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

// Position is the least that a snapshot has all up to that somebody copies; ok is false
// where there is none. Who has copied it needs the log from there on.
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

// Close removes what is offered, and offers nothing any more.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, o := range s.offered {
		o.timer.Stop()
	}
	clear(s.offered)
	return os.RemoveAll(s.dir)
}

func (s *Source) begin(w http.ResponseWriter, _ *http.Request) {
	m, err := s.offer()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(m)
}

var errBusy = errors.New("no further snapshot can be made now")

// offer makes a snapshot.
func (s *Source) offer() (Manifest, error) {
	s.mu.Lock()
	busy := s.closed || len(s.offered)+s.taking >= maxOffered
	if !busy {
		s.taking++
	}
	s.mu.Unlock()
	if busy {
		return Manifest{}, errBusy
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
	s.taking--
	if err == nil && s.closed {
		err = errBusy
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
	return all, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
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
}

// find is the file of a request, of which only the names of manifests are known.
func (s *Source) find(r *http.Request) (path string, size int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.offered[r.PathValue("id")]
	if o == nil {
		return "", 0, false
	}
	o.used = s.clock.Now()
	for _, f := range o.manifest.Files {
		if f.Name == r.PathValue("name") {
			return filepath.Join(o.dir, filepath.FromSlash(f.Name)), f.Size, true
		}
	}
	return "", 0, false
}

func (s *Source) chunk(w http.ResponseWriter, r *http.Request) {
	path, size, ok := s.find(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil || offset < 0 || offset > size {
		http.Error(w, "no such offset", http.StatusBadRequest)
		return
	}
	f, err := os.Open(path) //nolint:gosec // of a manifest
	if err != nil {
		http.NotFound(w, r) // it was withdrawn just now
		return
	}
	defer func() { _ = f.Close() }()
	p := make([]byte, min(ChunkSize, size-offset))
	if _, err := io.ReadFull(io.NewSectionReader(f, offset, size-offset), p); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set(checksumHeader, checksum(p))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(p)))
	_, _ = w.Write(p)
}

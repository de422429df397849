package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/durable"
	"godwit.dev/godwit/internal/server/recovery"
)

// path is where a server offers snapshots.
const path = "/_godwit/v1/backup"

// attempts is how often a snapshot is restarted that the server has discarded.
const attempts = 3

// Making makes a backup of a running server.
type Making struct {
	Endpoint string       // of the server: http://HOST:PORT
	Client   *http.Client // it signs requests if the server needs that
	Dir      string       // of the backup: new, empty, or with an unfinished one
	// Progress is called with the bytes received, and the total; may be nil.
	Progress func(done, all int64)
	Stdout   io.Writer // gets a description of damage in the server's store
}

// Run makes it, or continues an unfinished one, while the server has its snapshot. whole is
// false if the server's own store is damaged: then the readable part is backed up.
func (b *Making) Run(ctx context.Context) (m Manifest, whole bool, err error) {
	if err := b.prepare(); err != nil {
		return m, false, err
	}
	unlock, err := lock(b.Dir)
	if err != nil {
		return m, false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(filepath.Join(b.Dir, lockName)), unlock()) }()
	if err := b.prepare(); err != nil { // another one has come to its end meanwhile
		return m, false, err
	}
	from := &server{endpoint: strings.TrimRight(b.Endpoint, "/"), client: b.Client}
	store := filepath.Join(b.Dir, recovery.StoreName)
	d := snapshot.Download{Dir: store, Note: filepath.Join(b.Dir, noteName), Source: from.endpoint, From: from, Progress: b.Progress}
	var of snapshot.Manifest
	for range attempts {
		if of, err = d.Run(ctx); !errors.Is(err, snapshot.ErrGone) {
			break
		}
	}
	if err != nil {
		return m, false, err
	}
	m, err = manifestOf(store, &of)
	if err != nil {
		return m, false, err
	}
	if err := syncBelow(store); err != nil {
		return m, false, err
	}
	var found bytes.Buffer
	if whole, err = recovery.CheckCopy(b.Dir, &found); err != nil {
		return m, false, err
	}
	if err := m.write(b.Dir); err != nil {
		return m, false, err
	}
	if err := os.Remove(filepath.Join(b.Dir, noteName)); err != nil {
		return m, false, err
	}
	from.end(ctx, of.ID)
	if !whole {
		_, err = b.Stdout.Write(found.Bytes())
	}
	return m, whole, err
}

// prepare refuses a directory that has anything but an unfinished backup.
func (b *Making) prepare() error {
	if _, err := os.Stat(filepath.Join(b.Dir, sumName)); err == nil {
		return fmt.Errorf("%w: %s has a backup already", ErrNotEmpty, b.Dir)
	}
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(b.Dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(b.Dir, noteName)); err == nil {
		return nil
	}
	for _, e := range entries {
		if name := e.Name(); name != recovery.StoreName && name != noteName+".tmp" && name != lockName {
			return fmt.Errorf("%w: %s has %s", ErrNotEmpty, b.Dir, name)
		}
		if e.Name() == recovery.StoreName { // of one that was interrupted at its beginning
			if below, err := os.ReadDir(filepath.Join(b.Dir, e.Name())); err != nil || len(below) > 0 {
				return fmt.Errorf("%w: %s has %s", ErrNotEmpty, b.Dir, e.Name())
			}
		}
	}
	return nil
}

// manifestOf hashes the received files.
func manifestOf(store string, of *snapshot.Manifest) (m Manifest, err error) {
	m = Manifest{Format: Format, Version: of.Meta["version"], RootKey: of.Meta["rootKey"]}
	if m.CreatedAt, err = time.Parse(time.RFC3339Nano, of.Meta["createdAt"]); err != nil {
		return m, fmt.Errorf("the server does not say of when the snapshot is: %w", err)
	}
	for _, f := range of.Files {
		sum, size, err := hash(store, f.Name)
		if err != nil {
			return m, err
		}
		if size != f.Size {
			return m, fmt.Errorf("%s has %d bytes, and was to have %d: something else writes into the backup", f.Name, size, f.Size)
		}
		m.Files = append(m.Files, File{f.Name, size, sum})
	}
	return m, nil
}

// syncBelow makes the directory entries durable.
func syncBelow(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := syncBelow(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return durable.SyncDir(dir)
}

// server calls the operator API of a server.
type server struct {
	endpoint string
	client   *http.Client
}

var _ snapshot.Origin = (*server)(nil)

func (s *server) ask(ctx context.Context, method, link, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.endpoint+path+link, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("the server cannot be asked (--endpoint): %w", err)
	}
	return answer, nil
}

// Begin implements snapshot.Origin.
func (s *server) Begin(ctx context.Context) (m snapshot.Manifest, err error) {
	answer, err := s.ask(ctx, http.MethodPost, "", "{}")
	if err != nil {
		return m, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, snapshot.MaxManifest))
	if err != nil {
		return m, err
	}
	if answer.StatusCode != http.StatusOK {
		return m, fmt.Errorf("the server gives no backup: %s", problem(answer, text))
	}
	var of struct {
		ID                                   string
		CreatedAt, Version, RootKey, Process string
		Files                                []snapshot.File
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return m, fmt.Errorf("what the server offers cannot be read: %w", err)
	}
	return snapshot.Manifest{ID: of.ID, Files: of.Files, Meta: map[string]string{
		"createdAt": of.CreatedAt, "version": of.Version, "rootKey": of.RootKey, "process": of.Process,
	}}, nil
}

// problem is the text of a refusal.
func problem(answer *http.Response, text []byte) string {
	var p struct{ Error string }
	if json.Unmarshal(text, &p) == nil && p.Error != "" {
		return p.Error
	}
	return answer.Status + ": is it a Godwit of this version?"
}

// Part implements snapshot.Origin.
func (s *server) Part(ctx context.Context, id, name string, offset int64) (*http.Response, error) {
	form := url.Values{"id": {id}, "name": {name}, "offset": {strconv.FormatInt(offset, 10)}}
	return s.ask(ctx, http.MethodGet, "/part?"+form.Encode(), "")
}

// end releases the server's snapshot; the server also does so after a while.
func (s *server) end(ctx context.Context, id string) {
	text, _ := json.Marshal(map[string]string{"id": id}) // strings always can be
	if answer, err := s.ask(ctx, http.MethodPost, "/end", string(text)); err == nil {
		_ = answer.Body.Close()
	}
}

package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/durable"
)

// MaxManifest bounds an encoded manifest, in bytes.
const MaxManifest = 64 << 20

// Origin is where a snapshot comes from.
type Origin interface {
	// Begin asks for a snapshot.
	Begin(ctx context.Context) (Manifest, error)
	// Part asks for up to ChunkSize bytes of a file, from an offset on, as Source answers:
	// a status of 404 says that the snapshot is not offered any more.
	Part(ctx context.Context, id, name string, offset int64) (*http.Response, error)
}

// Download downloads the files of a snapshot into a directory, and can be resumed.
type Download struct {
	Dir    string // of the files
	Note   string // the file that the progress is kept in
	Source string // whose snapshot it is: an incomplete download from another source is dropped
	From   Origin
	// Progress is called with the number of bytes that have come, and of all; may be nil.
	Progress func(done, all int64)
	// CheckSpace is called before the first byte is written, and fails if there is no disk space
	// for so many bytes: then what has come is dropped, and Run returns its error. May be
	// nil.
	CheckSpace func(bytes int64) error
}

// progress is how far a download has come.
type progress struct {
	Source   string          `json:"source"`
	Manifest Manifest        `json:"manifest"`
	Done     map[string]bool `json:"done"` // files that are there, and synced
}

func readProgress(path string) (p progress, ok bool) {
	text, err := os.ReadFile(path) //nolint:gosec // the caller's
	return p, err == nil && json.Unmarshal(text, &p) == nil && p.Manifest.ID != "" && p.Done != nil
}

func (p *progress) write(path string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return durable.Replace(path, text)
}

// Run downloads and syncs the files that are missing, and returns the manifest. Errors: after
// ErrGone, ErrUnfit and those of CheckSpace the next Run starts over; after all others it resumes.
func (d *Download) Run(ctx context.Context) (Manifest, error) {
	p, ok := readProgress(d.Note)
	if !ok || p.Source != d.Source {
		if err := d.Drop(); err != nil {
			return Manifest{}, err
		}
		m, err := d.From.Begin(ctx)
		if err == nil {
			err = m.check()
		}
		if err == nil {
			err = d.checkSpace(m.Size()) // before anything is written
		}
		if err != nil {
			return Manifest{}, err
		}
		p = progress{Source: d.Source, Manifest: m, Done: map[string]bool{}}
		if err := os.MkdirAll(d.Dir, 0o700); err != nil {
			return Manifest{}, err
		}
		if err := p.write(d.Note); err != nil {
			return Manifest{}, err
		}
	}
	err := d.bring(ctx, &p)
	if errors.Is(err, ErrGone) || errors.Is(err, ErrUnfit) {
		err = errors.Join(err, d.Drop())
	}
	return p.Manifest, err
}

func (d *Download) checkSpace(bytes int64) error {
	if d.CheckSpace == nil {
		return nil
	}
	return d.CheckSpace(bytes)
}

// Drop removes what was downloaded.
func (d *Download) Drop() error {
	for _, path := range [...]string{d.Note, d.Dir} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// check refuses a manifest that names files elsewhere, or none.
func (m *Manifest) check() error {
	if m.ID == "" || len(m.Files) == 0 {
		return fmt.Errorf("%w: it is empty", ErrUnfit)
	}
	for _, file := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(file.Name)) || file.Size < 0 {
			return fmt.Errorf("%w: it has a file %q of %d bytes", ErrUnfit, file.Name, file.Size)
		}
	}
	return nil
}

// bring downloads all files that are not there yet.
func (d *Download) bring(ctx context.Context, p *progress) error {
	all, done := p.Manifest.Size(), int64(0)
	for _, file := range p.Manifest.Files {
		if p.Done[file.Name] {
			done += file.Size
		}
	}
	if done > 0 { // else it was asked already
		if err := d.checkSpace(all - done); err != nil {
			return errors.Join(err, d.Drop())
		}
	}
	for _, file := range p.Manifest.Files {
		if p.Done[file.Name] {
			continue
		}
		err := d.file(ctx, p.Manifest.ID, file, func(n int) {
			done += int64(n)
			if d.Progress != nil {
				d.Progress(done, all)
			}
		})
		if err != nil {
			return err
		}
		p.Done[file.Name] = true
		if err := p.write(d.Note); err != nil {
			return err
		}
	}
	return nil
}

// file downloads one file, and syncs it.
func (d *Download) file(ctx context.Context, id string, file File, came func(n int)) error {
	path := filepath.Join(d.Dir, filepath.FromSlash(file.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // a local name
	if err != nil {
		return err
	}
	err = eachPart(ctx, d.From, id, file, func(p []byte) error {
		_, err := out.Write(p)
		came(len(p))
		return err
	})
	if err != nil {
		return errors.Join(err, out.Close())
	}
	if err := errors.Join(out.Sync(), out.Close()); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// eachPart gives f the parts of a file in order. Errors: ErrGone, ErrChecksum, f's and the
// origin's.
func eachPart(ctx context.Context, from Origin, id string, file File, f func(p []byte) error) error {
	for offset := int64(0); offset < file.Size; {
		p, err := part(ctx, from, id, file, offset)
		if err == nil {
			err = f(p)
		}
		if err != nil {
			return err
		}
		offset += int64(len(p))
	}
	return nil
}

// part downloads a part of a file, with one retry after ErrChecksum.
func part(ctx context.Context, from Origin, id string, file File, offset int64) (p []byte, err error) {
	for range 2 {
		if p, err = partOnce(ctx, from, id, file, offset); !errors.Is(err, ErrChecksum) {
			break
		}
	}
	return p, err
}

func partOnce(ctx context.Context, from Origin, id string, file File, offset int64) ([]byte, error) {
	answer, err := from.Part(ctx, id, file.Name, offset)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, ErrGone
	default:
		why, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return nil, fmt.Errorf("a part of the snapshot is refused: %s: %s", answer.Status, why)
	}
	p := make([]byte, min(ChunkSize, file.Size-offset))
	if _, err := io.ReadFull(answer.Body, p); err != nil {
		return nil, fmt.Errorf("a part of the snapshot: %w", err)
	}
	if sum := checksum(p); sum != answer.Header.Get(checksumHeader) {
		return nil, fmt.Errorf("%w: %s, from %d on", ErrChecksum, file.Name, offset)
	}
	return p, nil
}

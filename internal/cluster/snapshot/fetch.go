package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"godwit.dev/godwit/internal/durable"
)

// maxManifest bounds an encoded manifest, in bytes.
const maxManifest = 64 << 20

// Fetch is a copy of another node's store.
type Fetch struct {
	Data   string       // the data directory that it is for
	Source string       // the name of the node that it is of
	URL    string       // of that node's Source, without Path
	Client *http.Client // which it trusts
	// Verify reads the copy, in a directory, through: errors that it reports as ErrUnfit
	// drop the copy.
	Verify func(dir string) error
	// Progress is told how many bytes have come, of all; may be nil.
	Progress func(done, all int64)
}

// Run brings the copy, or what is missing of one that was begun, and has it take the
// store's place at the next Install. Errors: ErrGone, ErrUnfit, after which the next Run
// begins anew; all others leave what has come to the next Run.
func (f *Fetch) Run(ctx context.Context) error {
	p, ok := readProgress(f.Data)
	if !ok || p.Source != f.Source {
		if err := f.drop(); err != nil {
			return err
		}
		m, err := f.begin(ctx)
		if err != nil {
			return err
		}
		p = progress{Source: f.Source, Manifest: m, Done: map[string]bool{}}
		if err := os.MkdirAll(filepath.Join(f.Data, incomingName), 0o700); err != nil {
			return err
		}
		if err := p.write(f.Data); err != nil {
			return err
		}
	}
	err := f.bring(ctx, &p)
	if err == nil {
		err = f.finish()
	}
	if errors.Is(err, ErrGone) || errors.Is(err, ErrUnfit) {
		return errors.Join(err, f.drop())
	}
	return err
}

// drop removes what has come.
func (f *Fetch) drop() error {
	for _, name := range [...]string{progressName, incomingName} {
		if err := os.RemoveAll(filepath.Join(f.Data, name)); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fetch) ask(ctx context.Context, method, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, f.URL+Path+path, nil)
	if err != nil {
		return nil, err
	}
	return f.Client.Do(r)
}

func (f *Fetch) begin(ctx context.Context) (m Manifest, err error) {
	answer, err := f.ask(ctx, http.MethodPost, "")
	if err != nil {
		return m, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return m, fmt.Errorf("node %s gives no snapshot: %s: %s", f.Source, answer.Status, why)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxManifest)).Decode(&m); err != nil {
		return m, fmt.Errorf("the snapshot of node %s: %w", f.Source, err)
	}
	if m.ID == "" || len(m.Files) == 0 {
		return m, fmt.Errorf("%w: it is empty", ErrUnfit)
	}
	for _, file := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(file.Name)) || file.Size < 0 {
			return m, fmt.Errorf("%w: it has a file %q of %d bytes", ErrUnfit, file.Name, file.Size)
		}
	}
	return m, nil
}

// bring brings all files that are not there yet.
func (f *Fetch) bring(ctx context.Context, p *progress) error {
	all, done := p.Manifest.Size(), int64(0)
	for _, file := range p.Manifest.Files {
		if p.Done[file.Name] {
			done += file.Size
		}
	}
	for _, file := range p.Manifest.Files {
		if p.Done[file.Name] {
			continue
		}
		err := f.file(ctx, p.Manifest.ID, file, func(n int) {
			done += int64(n)
			if f.Progress != nil {
				f.Progress(done, all)
			}
		})
		if err != nil {
			return err
		}
		p.Done[file.Name] = true
		if err := p.write(f.Data); err != nil {
			return err
		}
	}
	return nil
}

// file brings one file, and syncs it.
func (f *Fetch) file(ctx context.Context, id string, file File, came func(n int)) error {
	path := filepath.Join(f.Data, incomingName, filepath.FromSlash(file.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // a local name
	if err != nil {
		return err
	}
	for offset := int64(0); offset < file.Size; {
		p, err := f.chunk(ctx, id, file, offset)
		if err == nil {
			_, err = out.Write(p)
		}
		if err != nil {
			return errors.Join(err, out.Close())
		}
		offset += int64(len(p))
		came(len(p))
	}
	if err := errors.Join(out.Sync(), out.Close()); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// chunk brings a part of a file; one that was damaged on the way is asked for once more.
func (f *Fetch) chunk(ctx context.Context, id string, file File, offset int64) (p []byte, err error) {
	for range 2 {
		if p, err = f.chunkOnce(ctx, id, file, offset); !errors.Is(err, ErrChecksum) {
			break
		}
	}
	return p, err
}

func (f *Fetch) chunkOnce(ctx context.Context, id string, file File, offset int64) ([]byte, error) {
	answer, err := f.ask(ctx, http.MethodGet, "/"+id+"/"+(&url.URL{Path: file.Name}).EscapedPath()+"?offset="+strconv.FormatInt(offset, 10))
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, fmt.Errorf("%w by node %s", ErrGone, f.Source)
	default:
		return nil, fmt.Errorf("node %s answers %s for a part of its snapshot", f.Source, answer.Status)
	}
	want := min(ChunkSize, file.Size-offset)
	p := make([]byte, want)
	if _, err := io.ReadFull(answer.Body, p); err != nil {
		return nil, fmt.Errorf("a part of the snapshot of node %s: %w", f.Source, err)
	}
	if sum := checksum(p); sum != answer.Header.Get(checksumHeader) {
		return nil, fmt.Errorf("%w: %s, from %d on", ErrChecksum, file.Name, offset)
	}
	return p, nil
}

// finish has a copy that is whole take the store's place from the next start on.
func (f *Fetch) finish() error {
	incoming := filepath.Join(f.Data, incomingName)
	if err := f.Verify(incoming); err != nil {
		return err
	}
	// What is in directories below was synced with each file.
	if err := filepath.WalkDir(incoming, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = durable.SyncDir(path)
		}
		return err
	}); err != nil {
		return err
	}
	if err := os.Rename(incoming, filepath.Join(f.Data, readyName)); err != nil {
		return err
	}
	return errors.Join(durable.SyncDir(f.Data), os.RemoveAll(filepath.Join(f.Data, progressName)))
}

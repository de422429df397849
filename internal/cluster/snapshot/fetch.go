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

// Fetch copies another node's store.
type Fetch struct {
	Data   string       // the data directory that it is for
	Source string       // the name of the node that it is of
	URL    string       // of that node's Source, without Path
	Client *http.Client // which it trusts
	// Verify checks the whole copy in a directory. An error that is ErrUnfit drops the
	// copy.
	Verify func(dir string) error
	// Progress is called with the number of bytes that have come, and of all; may be nil.
	Progress func(done, all int64)
	// CheckSpace is that of Download.
	CheckSpace func(bytes int64) error
}

// Run downloads the copy, or what is missing of it, and has the next Install replace the store by
// it. Errors: after ErrGone, ErrUnfit and those of CheckSpace the next Run starts over; after all
// others it resumes.
func (f *Fetch) Run(ctx context.Context) error {
	d := Download{
		Dir: filepath.Join(f.Data, incomingName), Note: filepath.Join(f.Data, progressName), Source: f.Source,
		From: remote{f}, Progress: f.Progress, CheckSpace: f.CheckSpace,
	}
	_, err := d.Run(ctx)
	if err != nil {
		return err
	}
	err = f.finish()
	if errors.Is(err, ErrUnfit) {
		return errors.Join(err, d.Drop())
	}
	return err
}

// remote is another node.
type remote struct{ *Fetch }

var _ Origin = remote{}

func (f remote) ask(ctx context.Context, method, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, f.URL+Path+path, nil)
	if err != nil {
		return nil, err
	}
	return f.Client.Do(r)
}

// Begin implements Origin.
func (f remote) Begin(ctx context.Context) (m Manifest, err error) {
	answer, err := f.ask(ctx, http.MethodPost, "")
	if err != nil {
		return m, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return m, fmt.Errorf("node %s gives no snapshot: %s: %s", f.Source, answer.Status, why)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, MaxManifest)).Decode(&m); err != nil {
		return m, fmt.Errorf("the snapshot of node %s: %w", f.Source, err)
	}
	return m, nil
}

// Part implements Origin.
func (f remote) Part(ctx context.Context, id, name string, offset int64) (*http.Response, error) {
	return f.ask(ctx, http.MethodGet, "/"+id+"/"+(&url.URL{Path: name}).EscapedPath()+"?offset="+strconv.FormatInt(offset, 10))
}

// finish makes a complete copy durable, and has the next start install it.
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

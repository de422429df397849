package backups_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api/operator/backups"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/snapshot"
)

var at = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// hold keeps a server from delivering until it is let go, once the disk allows it.
type hold struct {
	held  bool
	fails error
}

func (h *hold) Held() bool { return h.held }

func (h *hold) Release() (bool, error) {
	if h.fails != nil {
		return false, h.fails
	}
	changed := h.held
	h.held = false
	return changed, nil
}

func status(err error) int {
	refused, ok := errors.AsType[*rest.Refusal](err)
	if !ok {
		return 0
	}
	return refused.Status
}

// A backup is made of the parts of a snapshot, and is gone once it is ended.
func TestBackup(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 500_000) // more than a part
	dir := filepath.Join(t.TempDir(), "offered")
	source, err := snapshot.NewSource(dir, func(dir string) (uint64, error) {
		return 7, errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "000001.sst"), content, 0o600))
	}, clock.NewVirtual(at))
	if err != nil {
		t.Fatal(err)
	}
	b := backups.New(backups.Options{Source: source, Version: "1.2.3", Process: "p", RootKey: func() string { return "key" }, Now: func() time.Time { return at }})
	made, err := b.Begin(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if made.Version != "1.2.3" || made.Process != "p" || made.RootKey != "key" || !made.CreatedAt.Equal(at) || len(made.Files) != 1 || made.Files[0].Size != int64(len(content)) {
		t.Fatalf("the snapshot is %+v", made)
	}
	var whole []byte
	for len(whole) < len(content) {
		w := httptest.NewRecorder()
		if _, err := b.Part(t.Context(), &rest.Call{Writer: w}, &backups.Part{ID: made.ID, Name: made.Files[0].Name, Offset: int64(len(whole))}); err != nil {
			t.Fatal(err)
		}
		if w.Body.Len() == 0 || w.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("a part of %d bytes, %v", w.Body.Len(), w.Header())
		}
		whole = append(whole, w.Body.Bytes()...)
	}
	if !bytes.Equal(whole, content) {
		t.Error("the parts are another file")
	}
	for name, part := range map[string]backups.Part{
		"behind the end":       {ID: made.ID, Name: made.Files[0].Name, Offset: int64(len(content)) + 1},
		"another file":         {ID: made.ID, Name: "none"},
		"another directory":    {ID: made.ID, Name: "../../" + filepath.Base(dir)},
		"a snapshot of nobody": {ID: "none", Name: made.Files[0].Name},
	} {
		w := httptest.NewRecorder()
		_, err := b.Part(t.Context(), &rest.Call{Writer: w}, &part)
		if s := status(err); s != http.StatusNotFound && s != http.StatusBadRequest || w.Body.Len() > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 2 {
		if _, err := b.End(t.Context(), nil, &backups.End{ID: made.ID}); err != nil {
			t.Error(err)
		}
	}
	if _, err := b.Part(t.Context(), &rest.Call{Writer: httptest.NewRecorder()}, &backups.Part{ID: made.ID, Name: made.Files[0].Name}); status(err) != http.StatusNotFound {
		t.Errorf("a part of one that was ended: %v", err)
	}
}

// A backup names the root key that its snapshot is sealed with, also if that is rotated while the
// snapshot is made, and the one that it replaces is offered no longer.
func TestRotatedMeanwhile(t *testing.T) {
	for what, before := range map[string]bool{"before": true, "after": false} {
		key, dir := "old", filepath.Join(t.TempDir(), "offered")
		source, err := snapshot.NewSource(dir, func(dir string) (uint64, error) {
			if before {
				key = "new"
			}
			err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "MANIFEST-000001"), []byte(key), 0o600))
			key = "new"
			return 7, err
		}, clock.NewVirtual(at))
		if err != nil {
			t.Fatal(err)
		}
		b := backups.New(backups.Options{Source: source, RootKey: func() string { return key }, Now: func() time.Time { return at }})
		made, err := b.Begin(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _, err := source.Part(made.ID, made.Files[0].Name, 0)
		if err != nil || made.RootKey != string(text) {
			t.Errorf("%s: sealed with %q, and the snapshot names %q: %v", what, text, made.RootKey, err)
		}
		if offered, err := os.ReadDir(dir); err != nil || len(offered) != 1 {
			t.Errorf("%s: %d are offered, %v", what, len(offered), err)
		}
	}
}

// What is in memory has no backup.
func TestNothingOnDisk(t *testing.T) {
	b := backups.New(backups.Options{})
	if _, err := b.Begin(t.Context(), nil, nil); status(err) != http.StatusConflict {
		t.Errorf("it begins: %v", err)
	}
	if _, err := b.Part(t.Context(), nil, &backups.Part{}); status(err) != http.StatusNotFound {
		t.Errorf("it has parts: %v", err)
	}
	if _, err := b.End(t.Context(), nil, &backups.End{ID: "x"}); err != nil {
		t.Error(err)
	}
}

// A server that was restored with --paused delivers once it is told to, and says so once.
func TestDeliver(t *testing.T) {
	h := &hold{held: true, fails: errors.New("the disk is full")}
	b := backups.New(backups.Options{Hold: h})
	if _, err := b.Deliver(t.Context(), nil, nil); !errors.Is(err, h.fails) {
		t.Errorf("what could not be made durable: %v", err)
	}
	if d, err := b.Held(t.Context(), nil, nil); err != nil || !d.Held {
		t.Errorf("it is let go: %+v, %v", d, err)
	}
	h.fails = nil
	for _, changed := range []bool{true, false} {
		if d, err := b.Deliver(t.Context(), nil, nil); err != nil || d.Held || d.Changed != changed {
			t.Errorf("want changed %v: %+v, %v", changed, d, err)
		}
	}
}

package upgrade_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/server/backup"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/built"
	"godwit.dev/godwit/test/upgrade"
)

// The keys that an earlier version signed with stand where its replays do. A check takes them for
// what they are; a server that opens the directory, or what is restored of a backup of it, serves
// their certificates and has moved them; and so has one that opens what is salvaged.
func TestSigningKeysOfEarlierVersions(t *testing.T) {
	binary, err := built.Server(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d80cf7c", "e351ca1"} { // later ones have moved them
		t.Run(name, func(t *testing.T) {
			archive := filepath.Join("testdata", name+".tar.gz")
			unpacked := func() (data string) {
				t.Helper()
				data = filepath.Join(t.TempDir(), "data")
				if err := upgrade.Unpack(archive, data); err != nil {
					t.Fatal(err)
				}
				return data
			}
			moved, ids := signingKeys(t, unpacked())
			if moved || len(ids) == 0 {
				t.Fatalf("the earlier version left the keys %x, moved: %v", ids, moved)
			}
			checked, salvaged := unpacked(), filepath.Join(t.TempDir(), "salvaged")
			var out strings.Builder
			if ok, err := recovery.Check(checked, &out); err != nil || !ok {
				t.Errorf("a check: %v, %v\n%s", ok, err, &out)
			}
			if whole, err := recovery.Salvage(checked, salvaged, slog.New(slog.DiscardHandler), &out); err != nil || !whole {
				t.Errorf("a salvage: %v, %v\n%s", whole, err, &out)
			}
			for what, data := range map[string]string{"opened": unpacked(), "restored": restored(t, checked), "salvaged": salvaged} {
				s, stop := start(t, binary, data)
				for _, id := range ids {
					resp, err := http.Get(s.Base + envelope.CertificatePath(id))
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					if resp.StatusCode != http.StatusOK {
						t.Errorf("%s: the certificate of %x: %s", what, id, resp.Status)
					}
				}
				stop()
				if moved, now := signingKeys(t, data); !moved || !slices.Equal(now, ids) {
					t.Errorf("%s: the keys are %x, not %x, moved: %v", what, now, ids, moved)
				}
			}
		})
	}
}

// signingKeys are the ids of the keys in a directory. moved says that none is where earlier versions
// had them.
func signingKeys(t *testing.T, data string) (moved bool, ids [][16]byte) {
	t.Helper()
	st, err := pebble.Open(filepath.Join(data, recovery.StoreName), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	moved = true
	for key := range storetest.Dump(t, st) {
		if k, err := keyspace.Parse(key); err == nil && k.ID == keyspace.KindSigningKey {
			ids = append(ids, [16]byte(k.Bytes(keyspace.PartSigningKey)))
			moved = moved && key[2] == keyspace.SigningKeys
		}
	}
	return moved, ids
}

// files are those of a store that nobody has open, as a backup has them.
type files struct{ dir string }

func (f files) Manifest() (m backup.Manifest) {
	m = backup.Manifest{Format: backup.Format, Version: config.Version}
	_ = fs.WalkDir(os.DirFS(f.dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && name != "LOCK" {
			text, _ := os.ReadFile(filepath.Join(f.dir, name)) // what cannot be read fails the restore
			sum := sha256.Sum256(text)
			m.Files = append(m.Files, backup.File{Name: name, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])})
		}
		return nil
	})
	return m
}

func (f files) Open(_ context.Context, file backup.File) (io.ReadCloser, error) {
	return os.Open(filepath.Join(f.dir, filepath.FromSlash(file.Name)))
}

// restored is a directory that a backup of another one is restored to.
func restored(t *testing.T, of string) (data string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	r := &backup.Restoring{From: files{filepath.Join(of, recovery.StoreName)}, Data: data, Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler)}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if key, err := os.ReadFile(filepath.Join(of, bootstrap.DevRootKey)); err == nil {
		if err := os.WriteFile(filepath.Join(data, bootstrap.DevRootKey), key, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return data
}

package rootkey

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/shard/keys"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/pebble"
)

// A root key is made once where none is configured, for its owner's eyes only; and one
// that is not the data's is named, and nothing is written.
func TestRootKey(t *testing.T) {
	dir := t.TempDir()
	st := memory.New()
	log := journal.Open(journal.Options{Store: st})
	t.Cleanup(log.Close)
	open := func(file string) (*seal.Keys, error) {
		return Source{Config: config.Config{Data: dir, RootKey: file}, OnDisk: true, Clock: clock.System}.Open(log)
	}
	first, err := open("")
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(dir, bootstrap.DevRootKey)
	info, err := os.Stat(made)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %v", info.Mode(), err)
	}
	sealed, err := first.Sealer("x").Seal([]byte("secret"), nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := open("")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Sealer("x").Open(sealed, nil); err != nil || string(got) != "secret" {
		t.Errorf("%q after another start: %v", got, err)
	}
	before := contents(t, st)
	other := filepath.Join(t.TempDir(), "root.key")
	if _, err := open(other); !errors.Is(err, keys.ErrNoRoot) || !strings.Contains(err.Error(), other) {
		t.Errorf("no such file: %v", err)
	}
	if err := bootstrap.WriteRootKey(other, seal.NewRoot()); err != nil {
		t.Fatal(err)
	}
	if _, err := open(other); !errors.Is(err, seal.ErrWrongRoot) {
		t.Errorf("another root key: %v", err)
	}
	if err := bootstrap.WriteRootKey(other, seal.NewRoot()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a root key was overwritten: %v", err)
	}
	if err := os.WriteFile(other, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(other); !errors.Is(err, seal.ErrRootFile) || !strings.Contains(err.Error(), other) {
		t.Errorf("not a root key: %v", err)
	}
	if err := os.Remove(made); err != nil {
		t.Fatal(err)
	}
	if _, err := open(""); !errors.Is(err, keys.ErrNoRoot) {
		t.Errorf("without the file: %v", err)
	}
	if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another root key was made: %v", err)
	}
	if !bytes.Equal(contents(t, st), before) {
		t.Error("a refused start has written")
	}
}

// A crash between any two steps of a rotation leaves data that opens with one of the two root
// keys; where that is the next one, the refusal of the other says so, and what to do.
func TestInterruptedRotationIsNamed(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "root.key")
	old, next := seal.NewRoot(), seal.NewRoot()
	for path, root := range map[string]*seal.Root{file: old, file + ".new": next} {
		if err := bootstrap.WriteRootKey(path, root); err != nil {
			t.Fatal(err)
		}
	}
	log := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(log.Close)
	c := config.Config{Data: data, RootKey: file, Production: true}
	start := func() error {
		if err := Check(c); err != nil {
			return err
		}
		_, err := Source{Config: c, OnDisk: true, Clock: clock.System}.Open(log)
		return err
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	opens := func(after string) {
		t.Helper()
		if err := start(); err != nil {
			t.Errorf("after %s: %v", after, err)
		}
	}
	named := func(after string) {
		t.Helper()
		if err := start(); !errors.Is(err, seal.ErrWrongRoot) || !strings.Contains(err.Error(), file+".new already; a rotation was interrupted, and goes on by godwit keys rotate-root --dir DIR") {
			t.Errorf("after %s: %v", after, err)
		}
	}
	opens("the next key was made")
	do(bootstrap.NoteRotation(data, old.ID(), next.ID()))
	opens("both were noted") // which takes the note back
	do(bootstrap.NoteRotation(data, old.ID(), next.ID()))
	do(keys.RewrapSealing(log, clock.System.Now(), old, next))
	named("the data was put under the next")
	do(bootstrap.NoteSealedWith(data, next.ID()))
	named("the next was noted")
	do(bootstrap.ForgetSealing(data))
	named("the copy was removed")
	do(os.Rename(file+".new", file))
	opens("the next was put in the old one's place")
}

// The root key of a cluster is rotated when every node has the next one: whichever takes over
// continues with that.
func TestRotationOfACluster(t *testing.T) {
	log := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(log.Close)
	old, next := seal.NewRoot(), seal.NewRoot()
	node := func() Source {
		t.Helper()
		file := filepath.Join(t.TempDir(), "root.key")
		if err := bootstrap.WriteRootKey(file, old); err != nil {
			t.Fatal(err)
		}
		return Source{
			Config: config.Config{Data: t.TempDir(), RootKey: file, Production: true}, Clock: clock.System, Log: slog.New(slog.DiscardHandler),
			Replicated: true,
		}
	}
	has := func(d *Source) {
		t.Helper()
		if err := bootstrap.WriteRootKey(d.Config.RootKey+".new", next); err != nil {
			t.Fatal(err)
		}
	}
	owner, second, third := node(), node(), node()
	sealing, err := owner.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := sealing.Sealer("x").Seal([]byte("secret"), nil)
	if err != nil {
		t.Fatal(err)
	}
	rotate := owner.Rotation(nil, func(to *seal.Root) error { return keys.RewrapSealing(log, clock.System.Now(), old, to) })
	if _, err := rotate(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "on every node") {
		t.Errorf("without the next key: %v", err)
	}
	has(&owner)
	has(&second)
	// One that was a single node has noted its root key, which is not to count.
	if err := errors.Join(bootstrap.NoteSealedWith(owner.Config.Data, old.ID()), bootstrap.KeepSealing(owner.Config.Data, []byte("old"))); err != nil {
		t.Fatal(err)
	}
	if _, err := rotate(); err != nil {
		t.Fatal(err)
	}
	if err := Check(owner.Config); !errors.Is(err, seal.ErrWrongRoot) {
		t.Fatalf("the note is not looked at: %v", err)
	}
	for range 2 {
		if err := bootstrap.ForgetRootKey(owner.Config.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := Check(owner.Config); err != nil {
		t.Errorf("without the note: %v", err)
	}
	if left, err := os.ReadDir(owner.Config.Data); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	for name, d := range map[string]Source{"which has rotated it": owner, "which has the next": second} {
		again, err := d.Open(log)
		if err != nil {
			t.Fatalf("the node %s: %v", name, err)
		}
		if got, err := again.Sealer("x").Open(sealed, nil); err != nil || string(got) != "secret" {
			t.Errorf("the node %s: %q, %v", name, got, err)
		}
	}
	if _, err := third.Open(log); !errors.Is(err, seal.ErrWrongRoot) {
		t.Errorf("the node without the next: %v", err)
	}
	alone := second
	alone.Replicated = false
	if _, err := alone.Open(log); !errors.Is(err, seal.ErrWrongRoot) || !strings.Contains(err.Error(), "a rotation was interrupted") {
		t.Errorf("a single node: %v", err)
	}
}

// The data of a node of a cluster is not changed beside the cluster's log.
func TestRotationOfAMemberIsRefused(t *testing.T) {
	data := t.TempDir()
	st, err := pebble.Open(filepath.Join(data, recovery.StoreName), pebble.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	log := journal.Open(journal.Options{Store: st})
	from, to := seal.NewRoot(), seal.NewRoot()
	_, err = keys.OpenSealing(log, clock.System.Now(), nil, func(string) (*seal.Root, error) { return from, nil })
	log.Close()
	if err := errors.Join(err, replica.Bootstrap(st, 0), st.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := rotate(data, from, to, slog.New(slog.DiscardHandler)); !errors.Is(err, recovery.ErrMember) {
			t.Errorf("%v", err)
		}
	}
	if ids, err := bootstrap.SealedWith(data); err != nil || len(ids) > 0 {
		t.Errorf("%v is noted: %v", ids, err)
	}
}

// A salvaged copy of development's data starts: what it is sealed with comes along.
func TestSalvageKeepsTheRootKeyOfDevelopment(t *testing.T) {
	open := func(data string) *seal.Keys {
		t.Helper()
		st, err := pebble.Open(filepath.Join(data, recovery.StoreName), pebble.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		log := journal.Open(journal.Options{Store: st})
		opened, err := Source{Config: config.Config{Data: data}, OnDisk: true, Clock: clock.System}.Open(log)
		log.Close()
		if err := errors.Join(err, st.Close()); err != nil {
			t.Fatal(err)
		}
		return opened
	}
	data, to := t.TempDir(), filepath.Join(t.TempDir(), "new")
	sealed, err := open(data).Sealer("x").Seal([]byte("secret"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if whole, err := recovery.Salvage(data, to, slog.New(slog.DiscardHandler), io.Discard); err != nil || !whole {
		t.Fatalf("%v, %v", whole, err)
	}
	if got, err := open(to).Sealer("x").Open(sealed, nil); err != nil || string(got) != "secret" {
		t.Errorf("%q in the copy: %v", got, err)
	}
	info, err := os.Stat(filepath.Join(to, bootstrap.DevRootKey))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %v", info, err)
	}
}

// The keys that everything is sealed with are kept twice: where the store has lost them
// they come from beside it, unless a rotation has put them under another root key.
func TestLostSealingKeys(t *testing.T) {
	data := t.TempDir()
	open := func(st *memory.Store) (*seal.Keys, error) {
		log := journal.Open(journal.Options{Store: st})
		defer log.Close()
		return Source{Config: config.Config{Data: data}, OnDisk: true, Clock: clock.System}.Open(log)
	}
	first, err := open(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := first.Sealer("x").Seal([]byte("secret"), nil)
	if err != nil {
		t.Fatal(err)
	}
	lost := memory.New()
	for range 2 {
		again, err := open(lost)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := again.Sealer("x").Open(sealed, nil); err != nil || string(got) != "secret" {
			t.Errorf("%q: %v", got, err)
		}
	}
	to := t.TempDir()
	if err := bootstrap.CopyKeys(data, to); err != nil {
		t.Fatal(err)
	}
	if kept, err := bootstrap.KeptSealing(to); err != nil || len(kept) == 0 {
		t.Errorf("the copy has none: %v", err)
	}
	if err := errors.Join(bootstrap.ForgetSealing(data), bootstrap.ForgetSealing(data)); err != nil {
		t.Error(err)
	}
	if again, err := open(memory.New()); err != nil {
		t.Error(err)
	} else if _, err := again.Sealer("x").Open(sealed, nil); err == nil {
		t.Error("what was forgotten is there")
	}
}

func contents(t *testing.T, st *memory.Store) (all []byte) {
	t.Helper()
	it, err := st.Iter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		all = append(append(all, it.Key()...), it.Value()...)
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

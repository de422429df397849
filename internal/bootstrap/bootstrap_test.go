package bootstrap_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/seal"
)

func initialise(t *testing.T) bootstrap.Set {
	t.Helper()
	made, err := bootstrap.Init(filepath.Join(t.TempDir(), "prod"), "", "123456789012")
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func file(set bootstrap.Set, name string) string { return filepath.Join(set.Dir, name) }

func readKey(t *testing.T, set bootstrap.Set) (config.Root, *seal.Root) {
	t.Helper()
	root, err := bootstrap.ReadRootKey(file(set, bootstrap.RootKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	key, err := bootstrap.ReadAccessKey(file(set, bootstrap.AccessKeyFile), root)
	if err != nil {
		t.Fatal(err)
	}
	return key, root
}

func TestAccessKeyHoldsItsAccount(t *testing.T) {
	// The second is that of a key of AWS's that was published with its account.
	for account, want := range map[string]string{"000000000000": "AKIAQAAAAAAA", "029608264753": "AKIAQNZGKIQY"} {
		key := bootstrap.NewAccessKey(account)
		if !strings.HasPrefix(key.AccessKeyID, want) || len(key.AccessKeyID) != 20 || len(key.Secret) != 40 {
			t.Errorf("%s: %s, want %s…, and a secret of %d", account, key.AccessKeyID, want, len(key.Secret))
		}
		if other := bootstrap.NewAccessKey(account); other.AccessKeyID == key.AccessKeyID || other.Secret == key.Secret {
			t.Error("two keys are the same")
		}
	}
}

// A start is refused where others can read any of the files that are to be their owner's alone.
func TestSecretFiles(t *testing.T) {
	set := initialise(t)
	c := &config.Config{Production: true, RootKey: file(set, bootstrap.RootKeyFile), Data: filepath.Join(t.TempDir(), "data")}
	dir, paths := t.TempDir(), []string{}
	var visit func(v reflect.Value)
	visit = func(v reflect.Value) {
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if _, embedded := field.Tag.Lookup("embed"); embedded {
				visit(v.Field(i))
			}
			if !strings.Contains(field.Tag.Get("help"), "owner only") {
				continue
			}
			path := filepath.Join(dir, field.Tag.Get("name")+field.Name)
			if err := os.WriteFile(path, []byte("AKIDEXAMPLE\nsecret\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			v.Field(i).SetString(path)
			paths = append(paths, path)
		}
	}
	visit(reflect.ValueOf(c).Elem())
	err := bootstrap.Load(c, bootstrap.Files{Settings: file(set, "godwit.yaml"), AccessKey: file(set, bootstrap.AccessKeyFile)})
	if !bootstrap.IsUnsafe(err) || len(paths) < 8 {
		t.Fatalf("%d files: %v", len(paths), err)
	}
	for _, path := range paths {
		if !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("nothing is said of %s", filepath.Base(path))
		}
	}
}

// A key that is missing is told with what to do.
func TestMissingKeys(t *testing.T) {
	for name, want := range map[string]string{bootstrap.RootKeyFile: "put the copy of it back", bootstrap.AccessKeyFile: "godwit keys reset-root"} {
		set := initialise(t)
		if err := os.Remove(file(set, name)); err != nil {
			t.Fatal(err)
		}
		c := &config.Config{Production: true, RootKey: file(set, bootstrap.RootKeyFile), Data: filepath.Join(t.TempDir(), "data")}
		err := bootstrap.Load(c, bootstrap.Files{Settings: file(set, "godwit.yaml"), AccessKey: file(set, bootstrap.AccessKeyFile)})
		if !bootstrap.IsUnsafe(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name+" is not there") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	key := bootstrap.NewAccessKey("000000000000")
	for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
		if strings.Contains(fmt.Sprintf(form, key), key.Secret) {
			t.Errorf("%s shows the secret", form)
		}
	}
}

func TestInit(t *testing.T) {
	set := initialise(t)
	key, root := readKey(t, set)
	if d := cmp.Diff(set.Key.Secret, key.Secret); d != "" || key.AccessKeyID != set.Key.AccessKeyID {
		t.Error("another key was kept")
	}
	if _, err := bootstrap.ReadAccessKey(file(set, bootstrap.AccessKeyFile), seal.NewRoot()); err == nil || strings.Contains(err.Error(), key.Secret) {
		t.Errorf("with another root key: %v", err)
	}
	text, err := os.ReadFile(set.Settings)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := config.ParseFile(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"data": set.Dir + "-data", "account": "123456789012", "root-key": file(set, bootstrap.RootKeyFile), "root-access-key": file(set, bootstrap.AccessKeyFile),
	} {
		if got, _ := settings.Value(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, err := bootstrap.Init(set.Dir, "", "123456789012"); err == nil {
		t.Error("a second time it has worked")
	}
	if _, again := readKey(t, set); again.ID() != root.ID() {
		t.Error("the root key is another one")
	}
	if _, err := bootstrap.Init(filepath.Join(t.TempDir(), "a", "b"), filepath.Dir(t.TempDir()), "123456789012"); err == nil {
		t.Error("a root key in the data directory was made")
	}
}

// A root key of which one bit was flipped can be read; one of which two were cannot.
func TestFlippedBitOfARootKey(t *testing.T) {
	path, root := filepath.Join(t.TempDir(), "x"), seal.NewRoot()
	if err := bootstrap.WriteDevRootKey(path, root); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		text[i] ^= 1 << (i % 8)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := bootstrap.ReadRootKey(path); err != nil || got.ID() != root.ID() {
			t.Fatalf("byte %d: %v", i, err)
		}
		text[i] ^= 1 << (i % 8)
	}
	text[len(text)-5] ^= 1
	text[len(text)-9] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bootstrap.ReadRootKey(path); !errors.Is(err, seal.ErrRootFile) {
		t.Errorf("two bits: %v", err)
	}
}

func TestResetAccessKey(t *testing.T) {
	set := initialise(t)
	made, err := bootstrap.ResetAccessKey(set.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if key, _ := readKey(t, set); key.Secret != made.Secret || key.AccessKeyID == set.Key.AccessKeyID {
		t.Error("the key is not the new one")
	}
	if _, err := bootstrap.ResetAccessKey(t.TempDir()); err == nil {
		t.Error("where nothing was made it has worked")
	}
}

// Keys that others may read where they come from are the server's alone where it takes them to.
func TestTake(t *testing.T) {
	set, other := initialise(t), initialise(t)
	for _, name := range []string{bootstrap.RootKeyFile, bootstrap.AccessKeyFile} {
		if err := os.Chmod(file(set, name), 0o440); err != nil {
			t.Fatal(err)
		}
	}
	to := bootstrap.Set{Dir: filepath.Join(t.TempDir(), "keys")}
	for _, from := range []bootstrap.Set{set, set, other} { // the last is another key
		if err := bootstrap.Take(from.Dir, to.Dir); err != nil {
			t.Fatal(err)
		}
		if key, _ := readKey(t, to); key != from.Key {
			t.Errorf("the key is %s, want %s", key.AccessKeyID, from.Key.AccessKeyID)
		}
	}
	entries, err := os.ReadDir(to.Dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("there is %v: %v", entries, err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has mode %v: %v", entry.Name(), info.Mode(), err)
		}
	}
	// A root key that does not open the access key is of no use, and changes nothing.
	mixed := t.TempDir()
	for name, of := range map[string]bootstrap.Set{bootstrap.RootKeyFile: set, bootstrap.AccessKeyFile: other} {
		text, err := os.ReadFile(file(of, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(mixed, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := bootstrap.Take(mixed, to.Dir); err == nil {
		t.Error("keys that do not belong together are taken")
	}
	if key, _ := readKey(t, to); key != other.Key {
		t.Error("a refusal has changed what there was")
	}
}

// A file that was cut short while it was made is not there: it would keep a server from
// starting, and a rotation from going on.
func TestFilesAreMadeAsAWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "root.key")
	if err := os.WriteFile(path+".123", []byte("cut sh"), 0o600); err != nil { // as a crash leaves it
		t.Fatal(err)
	}
	root := seal.NewRoot()
	if err := bootstrap.WriteRootKey(path, root); err != nil {
		t.Fatal(err)
	}
	if err := bootstrap.WriteRootKey(path, seal.NewRoot()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("it was written over: %v", err)
	}
	if got, err := bootstrap.ReadRootKey(path); err != nil || got.ID() != root.ID() {
		t.Errorf("%v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v: something is left", entries, err)
	}
}

// A rotation that ends between any two steps continues when it is done again.
func TestRotationGoesOn(t *testing.T) {
	set := initialise(t)
	before, old := readKey(t, set)
	under := old.ID() // what the data is sealed with
	cut := errors.New("cut off")
	fails := true
	rewrap := func(data string, from, to *seal.Root) error {
		if data != set.Data {
			t.Errorf("the data in %s", data)
		}
		if under != to.ID() && under != from.ID() {
			return seal.ErrWrongRoot
		}
		under = to.ID()
		if fails {
			return cut
		}
		return nil
	}
	if _, err := bootstrap.RotateRootKey(set.Dir, "", rewrap); !errors.Is(err, cut) {
		t.Fatal(err)
	}
	if _, root := readKey(t, set); root.ID() != old.ID() {
		t.Error("the root key was replaced before the data was under the new one")
	}
	fails = false
	kept, err := bootstrap.RotateRootKey(set.Dir, "", rewrap)
	if err != nil {
		t.Fatal(err)
	}
	after, root := readKey(t, set)
	if root.ID() != under || root.ID() == old.ID() || after.Secret != before.Secret || after.AccessKeyID != before.AccessKeyID {
		t.Error("the data, the root key and the access key do not belong together")
	}
	if was, err := bootstrap.ReadRootKey(kept); err != nil || was.ID() != old.ID() {
		t.Errorf("%s: %v", kept, err)
	}

	dev := filepath.Join(t.TempDir(), bootstrap.DevRootKey)
	from := seal.NewRoot()
	under = from.ID()
	if err := bootstrap.WriteDevRootKey(dev, from); err != nil {
		t.Fatal(err)
	}
	if _, err := bootstrap.RotateRootKey(set.Dir, dev, rewrap); err != nil || under != root.ID() {
		t.Errorf("from development's: %v", err)
	}
}

package bootstrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/seal"
)

// The names of Init's files.
const (
	SettingsFile  = "godwit.yaml"
	RootKeyFile   = "root.key"
	AccessKeyFile = "root-access-key.json"
)

// Set is the result of Init.
type Set struct {
	Dir      string // absolute
	Data     string // the data directory, absolute; the first start creates it
	Settings string // the file's path
	Key      config.Root
}

// Init creates in dir, which it also creates, what a production server starts from: its
// settings, its root key and the access key of the root user. data is the data directory;
// empty: dir with the suffix "-data". If one of the files exists, it fails and creates none.
func Init(dir, data, account string) (Set, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Set{}, err
	}
	if data == "" {
		data = dir + "-data"
	} else if data, err = filepath.Abs(data); err != nil {
		return Set{}, err
	}
	if within(dir, data) {
		return Set{}, fmt.Errorf("the data directory %s holds %s: a copy of the data would have the root key; choose another with --data", data, dir)
	}
	for _, name := range []string{SettingsFile, RootKeyFile, AccessKeyFile} {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			return Set{}, fmt.Errorf("%s exists, and is left as it is: choose another directory with --dir", path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return Set{}, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Set{}, err
	}
	set := Set{Dir: dir, Data: data, Settings: filepath.Join(dir, SettingsFile), Key: NewAccessKey(account)}
	text, err := set.text(account)
	if err != nil {
		return Set{}, err
	}
	root := seal.NewRoot()
	// The settings come last: if they exist, so do the other files.
	return set, errors.Join(
		WriteRootKey(filepath.Join(dir, RootKeyFile), root),
		writeAccessKey(filepath.Join(dir, AccessKeyFile), set.Key, root),
		create(set.Settings, text),
	)
}

// Take copies the root key and the root user's access key from one directory to another,
// which it creates, readable by their owner only: files from elsewhere, such as a volume of
// secrets, have other modes and owners. Existing files are replaced. Nothing is written if
// the two do not fit together.
func Take(from, dir string) error {
	root, err := ReadRootKey(filepath.Join(from, RootKeyFile))
	if err != nil {
		return err
	}
	if _, err := ReadAccessKey(filepath.Join(from, AccessKeyFile), root); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{RootKeyFile, AccessKeyFile} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = replace(filepath.Join(dir, name), text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ResetAccessKey replaces the root user's access key in a directory of Init. A running server
// continues with the old one.
func ResetAccessKey(dir string) (config.Root, error) {
	file, err := settings(dir)
	if err != nil {
		return config.Root{}, err
	}
	account := setting(file, "account", strings.Repeat("0", 12))
	if err := config.CheckAccount(account); err != nil {
		return config.Root{}, err
	}
	root, err := ReadRootKey(setting(file, "root-key", filepath.Join(dir, RootKeyFile)))
	if err != nil {
		return config.Root{}, err
	}
	path := setting(file, "root-access-key", filepath.Join(dir, AccessKeyFile))
	if err := checkOwner(dir); err != nil {
		return config.Root{}, err
	}
	key := NewAccessKey(account)
	return key, replaceAccessKey(path, key, root)
}

// text is the text of the settings file.
func (s *Set) text(account string) ([]byte, error) {
	var b strings.Builder
	b.WriteString("# Settings of godwit serve --config FILE: the names of its flags, without their\n" +
		"# dashes. godwit serve --help lists them all.\n")
	for _, setting := range [][3]string{
		{"listen", "127.0.0.1:4566", "To be reached from elsewhere: another address, and the two below."},
		{"data", s.Data, ""},
		{"account", account, ""},
		{"root-key", filepath.Join(s.Dir, RootKeyFile), "Without this file nothing that is sealed can be read: keep a copy, apart from the data."},
		{"root-access-key", filepath.Join(s.Dir, AccessKeyFile), "Sealed with the root key. godwit keys reset-root makes another one."},
	} {
		if setting[2] != "" {
			b.WriteString("\n# " + setting[2] + "\n")
		}
		value, err := yaml.Marshal(map[string]string{setting[0]: setting[1]})
		if err != nil {
			return nil, err
		}
		b.Write(value)
		if setting[0] == "listen" {
			b.WriteString("# tls-cert: " + filepath.Join(s.Dir, "tls.crt") + "\n# tls-key: " + filepath.Join(s.Dir, "tls.key") + "\n\n")
		}
	}
	return []byte(b.String()), nil
}

// within reports whether a path is dir or below it. Both are absolute.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

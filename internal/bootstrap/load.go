package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/certs"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/seal"
)

// Unsafe is the error of a production start. It lists all that is missing or unsafe, each
// with the flag and the remedy.
type Unsafe struct{ Problems []string }

func (u *Unsafe) Error() string {
	return "godwit serve does not start like this:\n  " + strings.Join(u.Problems, "\n  ")
}

// Files are the files of a production server, besides its settings.
type Files struct {
	Settings  string // the file of the settings
	AccessKey string // the file of the root user's access key; ignored if Config.Root is set
	// Environ are the process's environment variables, as in os.Environ.
	Environ []string
}

// shortestSecret is the minimum length of a secret access key in production, in characters.
const shortestSecret = 32

// Load checks what a production server is to start from, and adds the root user's access key
// to its settings. It writes nothing. Errors: *Unsafe.
func Load(c *config.Config, files Files) error {
	l := &loading{config: c}
	if err := c.CheckFlags(); err != nil {
		l.problems = append(l.problems, lines(err)...)
	}
	l.environment(files.Environ)
	l.mode("config", files.Settings, 0o022, "others can change it", "chmod go-w")
	l.directories(map[string]string{"config": files.Settings, "root-key": c.RootKey, "root-access-key": files.AccessKey})
	root := l.rootKey()
	l.accessKey(files.AccessKey, root)
	l.data()
	l.network()
	l.check(c.FunctionIsolation != config.IsolationNone, "function-isolation",
		"without isolation a function can read the root key; leave it out, and functions that need the machine run elsewhere (docs/functions.md)")
	if len(l.problems) > 0 {
		return &Unsafe{l.problems}
	}
	return nil
}

// lines splits joined errors.
func lines(err error) (texts []string) {
	for line := range strings.Lines(err.Error()) {
		texts = append(texts, strings.TrimSpace(line))
	}
	return texts
}

type loading struct {
	config   *config.Config
	problems []string
}

func (l *loading) check(ok bool, flag, format string, args ...any) bool {
	if !ok {
		l.problems = append(l.problems, "--"+flag+": "+fmt.Sprintf(format, args...))
	}
	return ok
}

// mode refuses a file with forbidden permission bits. It reports whether the file exists.
func (l *loading) mode(flag, path string, forbidden fs.FileMode, what, remedy string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return l.check(false, flag, "%v", err)
	}
	l.check(info.Mode().Perm()&forbidden == 0, flag, "%s has mode %04o, so that %s: %s %s", path, info.Mode().Perm(), what, remedy, path)
	return true
}

// present refuses a file that is not there, with what to do.
func (l *loading) present(flag, path, remedy string) bool {
	_, err := os.Stat(path)
	return l.check(!errors.Is(err, fs.ErrNotExist), flag, "%s is not there: %s", path, remedy)
}

// directories refuses directories in which others can replace the files. With the sticky bit
// they cannot.
func (l *loading) directories(of map[string]string) {
	seen := map[string]bool{}
	for _, flag := range slices.Sorted(maps.Keys(of)) {
		if of[flag] == "" {
			continue
		}
		dir := filepath.Dir(of[flag])
		info, err := os.Stat(dir)
		if err != nil || seen[dir] || info.Mode()&fs.ModeSticky != 0 {
			continue // a missing file is reported separately
		}
		seen[dir] = true
		l.mode(flag, dir, 0o022, "others can replace what is in it", "chmod go-w")
	}
}

// environment refuses variables of development: whoever set them does not expect production.
func (l *loading) environment(environ []string) {
	for _, flag := range []string{"clock", "store", "enforce"} {
		name := "GODWIT_" + strings.ToUpper(flag)
		l.check(!slices.ContainsFunc(environ, func(pair string) bool { return strings.HasPrefix(pair, name+"=") && pair != name+"=" }), flag,
			"%s is set, which only godwit dev has: unset it", name)
	}
}

// rootKey reads the root key; nil: it cannot be used.
func (l *loading) rootKey() *seal.Root {
	path := l.config.RootKey
	if !l.check(path != "", "root-key", "there is no root key: godwit init --dir DIR makes one, with settings that name it") {
		return nil
	}
	if !l.present("root-key", path, "put the copy of it back, without which nothing that is sealed can be read") ||
		!l.mode("root-key", path, 0o077, "others can use it", "chmod 600") {
		return nil
	}
	if key, data := whole(path), whole(l.config.Data); l.config.Data != "" {
		l.check(!within(key, data), "root-key", "%s is in the data directory %s, so that a copy of the data has it too: move it elsewhere", path, l.config.Data)
	}
	root, err := ReadRootKey(path)
	if err != nil {
		l.check(false, "root-key", "%v", err)
		return nil
	}
	if dev, err := ReadRootKey(filepath.Join(l.config.Data, DevRootKey)); err == nil && dev.ID() == root.ID() {
		l.check(false, "root-key", "it is development's, which is in the data directory as %s and protects nothing: "+
			"godwit keys rotate-root has the data under another one", DevRootKey)
	}
	return root
}

// whole resolves links in a path, as far as it exists.
func whole(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Join(whole(filepath.Dir(path)), filepath.Base(path))
}

func (l *loading) accessKey(path string, root *seal.Root) {
	c := l.config
	if c.Root.AccessKeyID == "" {
		if !l.check(path != "", "root-access-key", "there is no access key of the root user: godwit init --dir DIR makes one, "+
			"and so does godwit keys reset-root; or set GODWIT_ROOT_ACCESS_KEY_ID and GODWIT_ROOT_SECRET_ACCESS_KEY") ||
			!l.present("root-access-key", path, "godwit keys reset-root --dir DIR makes another one") ||
			!l.mode("root-access-key", path, 0o077, "others can read it", "chmod 600") || root == nil {
			return
		}
		key, err := ReadAccessKey(path, root)
		if a, reading := readAccessKey(path); err != nil && reading == nil {
			err = cmp.Or(Interrupted(c.RootKey, a.RootKey), err)
		}
		if err != nil {
			l.check(false, "root-access-key", "%v", err)
			return
		}
		c.Root, c.RootAccessKey = key, path
	}
	secret := c.Root.Secret
	l.check(len(secret) >= shortestSecret && !strings.Contains(secret, "EXAMPLE"), "root-access-key",
		"the secret can be guessed: want %d characters or more at random", shortestSecret)
}

func (l *loading) data() {
	if _, err := os.Stat(l.config.Data); err == nil {
		l.mode("data", l.config.Data, 0o077, "others can look into it", "chmod 700")
	}
}

// network refuses unsafe settings of listeners.
func (l *loading) network() {
	c := l.config
	l.check(c.TLS() || c.AllowPlainHTTP || config.IsLocal(c.Listen), "listen",
		"%s is reached from other machines, and there is no TLS: set --tls-cert and --tls-key, or --acme-domains; "+
			"or --allow-plain-http where a proxy in front ends TLS", c.Listen)
	l.check(c.IngestListen == "" || c.TLS() || c.AllowPlainHTTP || config.IsLocal(c.IngestListen), "ingest-listen",
		"%s is reached by others, and posts have secrets: give --tls-cert or --acme-domains, or --allow-plain-http where a proxy in front ends TLS", c.IngestListen)
	for _, at := range [...]struct{ flag, address string }{{"admin-listen", c.AdminListen}, {"pprof", c.Pprof}} {
		l.check(at.address == "" || isPrivate(at.address), at.flag, "%s may be reached by strangers, and nobody is asked for a signature there: "+
			"want an address of loopback or of a private network", at.address)
	}
	for _, secret := range [...]struct{ flag, path string }{
		{"mail-password-file", c.MailPasswordFile},
		{"mail-dkim-key", c.MailDKIMKey},
		{"sms-password-file", c.SMS.PasswordFile},
		{"sms-http", c.SMS.HTTP},
		{"firehose-s3-credentials", c.FirehoseS3Credentials},
		{"trace-headers-file", c.Traces.HeadersFile},
		{"artifacts-s3-credentials", c.Artifacts.Credentials},
		{"backup-s3-credentials", c.Backup.Credentials},
		{"console-oidc-secret-file", c.OIDC.SecretFile},
	} {
		if secret.path != "" {
			l.mode(secret.flag, secret.path, 0o077, "others can use it", "chmod 600")
		}
	}
	if c.TLSCert == "" || c.TLSKey == "" {
		return
	}
	if l.mode("tls-key", c.TLSKey, 0o027, "others can use it", "chmod 600") {
		if _, err := certs.Open(certs.Options{Cert: c.TLSCert, Key: c.TLSKey, ClientCA: c.TLSClientCA, Logger: slog.New(slog.DiscardHandler)}); err != nil {
			l.problems = append(l.problems, err.Error())
		}
	}
}

// isPrivate reports whether an address HOST:PORT is of this machine alone or of a private
// network.
func isPrivate(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true // config.Check refuses it
	}
	if config.IsLocal(address) {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && !a.IsUnspecified() && publicnet.Of(a) == publicnet.Private
}

// IsUnsafe reports whether err lists what is unsafe about a start.
func IsUnsafe(err error) bool {
	_, ok := errors.AsType[*Unsafe](err)
	return ok
}

//go:build unix

package bootstrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkOwner refuses to replace files of a server that runs as another user, which could not
// read the new ones.
func checkOwner(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user with the number %d: run this as that user, for whom the server runs", path, owner.Uid)
	}
	return nil
}

// WithOwner adds to the system's refusal of a file whose that is, if it is another user's: most
// often a command was run as root that is for the server's user.
func WithOwner(err error) error {
	refused, ok := errors.AsType[*fs.PathError](err)
	if !ok || !errors.Is(refused, fs.ErrPermission) {
		return err
	}
	for path := refused.Path; ; path = filepath.Dir(path) {
		info, failed := os.Stat(path)
		if errors.Is(failed, fs.ErrPermission) && path != filepath.Dir(path) {
			continue // the directory is what refuses
		}
		if failed != nil {
			return err
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		if me := os.Geteuid(); ok && int(owner.Uid) != me {
			return fmt.Errorf("%w: %s belongs to the user with the number %d, and this runs as %d: run it as that user, or give this one the files by chown",
				err, path, owner.Uid, me)
		}
		return err
	}
}

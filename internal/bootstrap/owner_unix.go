//go:build unix

package bootstrap

import (
	"fmt"
	"os"
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

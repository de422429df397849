// Package secret reads the files that secrets of the settings are in.
package secret

import (
	"fmt"
	"os"

	"godwit.dev/godwit/internal/config"
)

// Read reads a file that in production only its owner may read.
func Read(c config.Config, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if c.Production && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, so that others can use it: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	return os.ReadFile(path)
}

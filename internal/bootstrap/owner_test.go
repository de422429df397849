//go:build unix

package bootstrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A refusal of the system says whose file it is, and who asks, if these are two.
func TestWithOwner(t *testing.T) {
	mine, other := filepath.Join(t.TempDir(), "mine"), filepath.Join(t.TempDir(), "other")
	for _, name := range []string{mine, other} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(other, 12345, -1); err != nil {
		t.Skip(err) // only root gives files away
	}
	refused := func(path string, errno syscall.Errno) error {
		return fmt.Errorf("store: %w", &fs.PathError{Op: "open", Path: path, Err: errno})
	}
	err := WithOwner(refused(other, syscall.EACCES))
	if want := fmt.Sprintf("%s belongs to the user with the number 12345, and this runs as %d", other, os.Geteuid()); !strings.Contains(err.Error(), want) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
	for _, err := range []error{
		refused(mine, syscall.EACCES), refused(other, syscall.ENOSPC), refused(filepath.Join(mine, "no", "such"), syscall.EACCES), errors.New("other"), nil,
	} {
		if got := WithOwner(err); got != err { //nolint:errorlint // the very same
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

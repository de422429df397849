package space

import (
	"crypto/rand"
	"io"
	"os"
)

// fill writes size random bytes to f: a file system with compression would allocate nothing for
// zeros.
func fill(f *os.File, size int64) error {
	_, err := io.CopyN(f, rand.Reader, size)
	return err
}

package space

import (
	"crypto/rand"
	"io"
	"os"
)

// fill writes size bytes to f, random ones: a file system that compresses
// would keep nothing of zeros.
func fill(f *os.File, size int64) error {
	_, err := io.CopyN(f, rand.Reader, size)
	return err
}

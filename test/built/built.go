// Package built gives tests the programs that they run.
//
// make builds the server before the tests and names its binary in GODWIT_BINARY, in a
// directory that is called by what is in the binary. So go test sees whether a result in
// its cache is of the same server. Without the variable the server is built here, and
// go test sees nothing of it: then run the tests with -count=1.
package built

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

const variable = "GODWIT_BINARY"

// Server is the path of a binary of cmd/godwit, which is in dir if make has built none.
func Server(dir string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return path, nil
	}
	path := filepath.Join(dir, "godwit")
	return path, build(path, "godwit.dev/godwit/cmd/godwit")
}

// Program builds a command, which is in a directory below root, the module's, and has
// nothing of the module that is elsewhere. It runs in a sandbox, too, where there are no
// libraries.
func Program(dir, root, command string) (string, error) {
	if err := Look(filepath.Join(root, command)); err != nil {
		return "", err
	}
	path := filepath.Join(dir, filepath.Base(command))
	return path, build(path, "godwit.dev/godwit/"+command, "CGO_ENABLED=0")
}

// Function builds a command as Program does, and returns it as the code of a function.
func Function(dir, root, command string) ([]byte, error) {
	path, err := Program(dir, root, command)
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Zip(program)
}

// Zip is the code of a function of a runtime provided.*: a zip with its bootstrap.
func Zip(bootstrap []byte) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	h.SetMode(0o755)
	f, err := w.CreateHeader(h)
	if err == nil {
		_, err = f.Write(bootstrap)
	}
	err = errors.Join(err, w.Close()) // which writes the rest into b
	return b.Bytes(), err
}

// Look has go test see what the files in a directory are: a result in its cache is of
// the same ones.
func Look(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			_, err = os.Stat(path) // go test notes it
		}
		return err
	})
}

func build(path, pkg string, env ...string) error {
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, pkg)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

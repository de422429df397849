package bucket

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// Object is an object in a bucket.
type Object struct {
	Key      string
	Size     int64     // in bytes
	Modified time.Time // by the server's clock
}

// Get reads an object, within objectTime. The caller closes it. A missing one is reported by the
// first Read, if not here.
func (s *Server) Get(ctx context.Context, name Name) (io.ReadCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, objectTime)
	object, err := s.client.GetObject(ctx, name.Bucket, name.Key, minio.GetObjectOptions{})
	if err != nil {
		cancel()
		return nil, explain(err)
	}
	return explained{object, cancel}, nil
}

// explained converts errors to those of the other functions.
type explained struct {
	io.ReadCloser

	cancel context.CancelFunc
}

func (e explained) Close() error {
	defer e.cancel()
	return e.ReadCloser.Close()
}

func (e explained) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // minio-go gives it as it is
		err = explain(err)
	}
	return n, err
}

// Each calls f with the objects of a bucket whose keys begin with prefix, in the order of their
// keys, until it fails, within objectTime.
func (s *Server) Each(ctx context.Context, bucket, prefix string, f func(Object) error) error {
	ctx, cancel := context.WithTimeout(ctx, objectTime) // its end ends the listing
	defer cancel()
	for o := range s.client.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return explain(o.Err)
		}
		if err := f(Object{Key: o.Key, Size: o.Size, Modified: o.LastModified}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Delete removes an object; it is idempotent.
func (s *Server) Delete(ctx context.Context, name Name) error {
	return explain(s.client.RemoveObject(ctx, name.Bucket, name.Key, minio.RemoveObjectOptions{}))
}

// ReadCredentials reads an access key and its secret from a file, one per line. With private
// the file must only be readable by its owner.
func ReadCredentials(path string, private bool) (key, secret string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", "", err
	}
	if private && info.Mode().Perm()&0o077 != 0 {
		return "", "", fmt.Errorf("%s has mode %04o, so that others can use it: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := os.ReadFile(path) //nolint:gosec // the operator's
	if err != nil {
		return "", "", err
	}
	lines := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' }) // a secret may have spaces
	if len(lines) != 2 {
		return "", "", fmt.Errorf("%s: want an access key on the first line, and its secret on the second", path)
	}
	return strings.TrimSpace(lines[0]), strings.TrimSpace(lines[1]), nil
}

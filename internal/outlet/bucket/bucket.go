// Package bucket puts objects into buckets of a server that speaks S3.
package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/outgoing"
	"godwit.dev/godwit/internal/outlet"
)

// Options configure a Server.
type Options struct {
	Endpoint          *url.URL // http or https, host and port
	Region            string
	AccessKey, Secret string     // both empty: requests are not signed
	PathStyle         bool       // buckets are in the path, not in the name of the host
	Dial              limit.Dial // to addresses that are allowed
	Transport         *http.Transport
}

// Server is a server that speaks S3. It implements outlet.Buckets.
type Server struct {
	client    *minio.Client
	transport *http.Transport
}

var _ outlet.Buckets = (*Server)(nil)

// The timeouts of a server's answer, and of an object as a whole.
const (
	answerTime = 30 * time.Second
	objectTime = 15 * time.Minute
)

// partSize is how much of an object is in memory at once: a larger one is uploaded in parts.
const partSize = 16 << 20

// New makes a Server. It does not connect.
func New(o Options) (*Server, error) {
	transport := o.Transport
	if transport == nil {
		transport = &http.Transport{}
	}
	transport.DialContext, transport.Proxy = o.Dial, nil
	transport.ResponseHeaderTimeout, transport.IdleConnTimeout = answerTime, 4*time.Second
	transport.DisableCompression = true
	lookup := minio.BucketLookupDNS
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.New(o.Endpoint.Host, &minio.Options{
		Creds: credentials.NewStaticV4(o.AccessKey, o.Secret, ""), Secure: o.Endpoint.Scheme == "https", Transport: outgoing.New(transport),
		Region: o.Region, BucketLookup: lookup, MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("the endpoint of S3: %w", err)
	}
	return &Server{client, transport}, nil
}

// Close ends idle connections.
func (s *Server) Close() { s.transport.CloseIdleConnections() }

// Put implements outlet.Buckets.
func (s *Server) Put(ctx context.Context, name outlet.Name, write func(w io.Writer) error) error {
	ctx, cancel := context.WithTimeout(ctx, objectTime)
	defer cancel()
	out := &upload{ctx: ctx, server: s, name: name}
	return out.end(write(out))
}

// upload sends a small object once it is complete, and a larger one in parts as it is written.
type upload struct {
	ctx    context.Context
	server *Server
	name   Name
	small  []byte
	pipe   *io.PipeWriter // nil: it is still small
	sent   chan error
}

// Name is the name of an object.
type Name = outlet.Name

func (u *upload) Write(p []byte) (int, error) {
	if u.pipe != nil {
		return u.pipe.Write(p)
	}
	if len(u.small)+len(p) <= partSize {
		u.small = append(u.small, p...)
		return len(p), nil
	}
	var r *io.PipeReader
	r, u.pipe = io.Pipe()
	u.sent = make(chan error, 1)
	go func() {
		err := u.send(io.MultiReader(bytes.NewReader(u.small), r), -1)
		_ = r.CloseWithError(errSent) // it never fails
		u.sent <- err
	}()
	return u.pipe.Write(p)
}

// errSent is a writer's error when the upload has ended: the upload has the reason.
var errSent = errors.New("bucket: the object is not sent any further")

// end sends the rest; failed is why the object is incomplete, nil if it is complete.
func (u *upload) end(failed error) error {
	if u.pipe == nil {
		if failed != nil {
			return failed
		}
		return explain(u.send(bytes.NewReader(u.small), int64(len(u.small))))
	}
	_ = u.pipe.CloseWithError(failed) // it never fails
	sent := <-u.sent
	if failed != nil && !errors.Is(failed, errSent) {
		return failed
	}
	return explain(sent)
}

func (u *upload) send(r io.Reader, size int64) error {
	// The digest of the content is in a signed header. Otherwise minio-go would, without TLS,
	// sign it in chunks, which some servers keep as a part of its encoding.
	options := minio.PutObjectOptions{
		ContentType: "application/octet-stream", PartSize: partSize, NumThreads: 1, SendContentMd5: true, DisableContentSha256: true,
	}
	if u.name.GZIP {
		options.ContentEncoding = "gzip"
	}
	_, err := u.server.client.PutObject(u.ctx, u.name.Bucket, u.name.Key, r, size, options)
	return err
}

func explain(err error) error {
	if err == nil {
		return nil
	}
	if answer := minio.ToErrorResponse(err); answer.Code != "" {
		return &outlet.Error{Code: "S3." + answer.Code, Message: answer.Message}
	}
	if refused, ok := errors.AsType[*net.OpError](err); ok {
		return &outlet.Error{Code: "S3.Unreachable", Message: "The endpoint of S3 cannot be reached: " + refused.Err.Error()}
	}
	if asked, ok := errors.AsType[*url.Error](err); ok {
		err = asked.Err
	}
	return &outlet.Error{Code: "S3.Failed", Message: "The request failed: " + err.Error()}
}

// Package offsite makes periodic backups of a running server in a bucket of S3, and reads them.
//
// A point is the state of the store at a time. In the bucket it is an object below points/,
// which names the files of a snapshot with their hashes and is itself named by its number, its
// time and its own hash. The number says which point is the latest, whatever the machine's clock
// says: a point of a clock that was ahead would be the latest until then. The files' content is below pieces/, each piece under its hash: an immutable table
// as a whole, and growing files in parts. So each point is complete by itself, and costs only
// what has changed since the one before.
//
// A point is written last, and removed first: an interruption leaves complete points, and
// unreferenced pieces, which the next trim removes.
package offsite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/outgoing"
	"godwit.dev/godwit/internal/outlet"
	"godwit.dev/godwit/internal/outlet/bucket"
	"godwit.dev/godwit/internal/server/backup"
)

// Objects are the objects of a server that speaks S3, which bucket.Server is.
type Objects interface {
	Put(ctx context.Context, name outlet.Name, write func(w io.Writer) error) error
	Get(ctx context.Context, name outlet.Name) (io.ReadCloser, error)
	Each(ctx context.Context, bucket, prefix string, f func(bucket.Object) error) error
	Delete(ctx context.Context, name outlet.Name) error
}

// Place is the place of a server's points.
type Place struct {
	Objects Objects
	Bucket  string
	Prefix  string // empty, or ends in a slash
}

// Server identifies the S3 server of a place, and how to access it.
type Server struct {
	URL         string // of the place: s3://BUCKET/PREFIX
	Endpoint    string // http://HOST:PORT or https://HOST
	Region      string
	Credentials string // the file of the access key and its secret; empty: requests are not signed
	Private     bool   // the file must only be readable by its owner
	HostStyle   bool
	Trust       *tls.Config // accepted certificates; nil: the system's
}

// Open makes the place; it does not connect. close ends idle connections.
func (s *Server) Open() (p Place, close func(), err error) {
	if p.Bucket, p.Prefix, err = config.ParseS3URL(s.URL); err != nil {
		return p, nil, err
	}
	endpoint, err := config.ParseS3Endpoint(s.Endpoint)
	if err != nil {
		return p, nil, fmt.Errorf("the endpoint of S3: %w", err)
	}
	o := bucket.Options{
		Endpoint: endpoint, Region: s.Region, PathStyle: !s.HostStyle, Dial: (&net.Dialer{Timeout: outgoing.ConnectTime}).DialContext,
		Transport: &http.Transport{TLSClientConfig: s.Trust.Clone()},
	}
	if s.Credentials != "" {
		if o.AccessKey, o.Secret, err = bucket.ReadCredentials(s.Credentials, s.Private); err != nil {
			return p, nil, fmt.Errorf("the credentials of S3: %w", err)
		}
	}
	server, err := bucket.New(o)
	if err != nil {
		return p, nil, err
	}
	p.Objects = server
	return p, server.Close, nil
}

// ErrNone reports that there is no point, or none as early as requested.
var ErrNone = errors.New("there is no backup")

// Below the prefix.
const (
	pointsDir = "points/"
	piecesDir = "pieces/"
)

// timeForm is the beginning of the name of a point, so that names are ordered by time.
const timeForm = "20060102T150405.000Z"

// maxPoint bounds a point, in bytes.
const maxPoint = 128 << 20

// Point is a backup at a time.
type Point struct {
	backup.Manifest

	// Pieces are the parts of files that are not stored as a whole, by file name.
	Pieces map[string][]Piece `json:"pieces"`
	// Directory is the id of the data directory, in which a table of a name, size and time is
	// immutable.
	Directory string `json:"directory"`
	// Modified is when tables were written, in epoch nanoseconds.
	Modified map[string]int64 `json:"modified"`
}

// Piece is a part of a file.
type Piece struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"` // bytes
}

// piecesOf are the pieces of a file.
func (p *Point) piecesOf(f backup.File) []Piece {
	if pieces, ok := p.Pieces[f.Name]; ok {
		return pieces
	}
	return []Piece{{f.SHA256, f.Size}}
}

// each calls f with the hash of each piece of the point.
func (p *Point) each(f func(hash string)) {
	for _, file := range p.Files {
		for _, piece := range p.piecesOf(file) {
			f(piece.SHA256)
		}
	}
}

func (p *Place) name(key string) outlet.Name {
	return outlet.Name{Bucket: p.Bucket, Key: p.Prefix + key}
}

// put writes an object, unless ctx has ended.
func (p *Place) put(ctx context.Context, key string, from io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.Objects.Put(ctx, p.name(key), func(w io.Writer) error {
		_, err := io.Copy(w, from)
		return err
	})
}

// encode makes the object of a point, which is written after everything that it names. Versions
// before had no numbers, and find the point below its number, too.
func (p *Point) encode(number uint64) (key string, text []byte, err error) {
	if text, err = json.Marshal(p); err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(text)
	return pointsDir + strconv.FormatUint(number, 10) + "/" + p.CreatedAt.UTC().Format(timeForm) + "-" + hex.EncodeToString(sum[:]) + ".json", text, nil
}

// listed is a point with the properties in its name.
type listed struct {
	key    string // without the prefix
	number uint64 // 0: of a version without numbers
	at     time.Time
	stored time.Time // by the clock of the bucket's server
}

// points lists the points in the order in which they were made. Objects with other names are
// ignored.
func (p *Place) points(ctx context.Context) (all []listed, err error) {
	err = p.Objects.Each(ctx, p.Bucket, p.Prefix+pointsDir, func(o bucket.Object) error {
		key := strings.TrimPrefix(o.Key, p.Prefix)
		text, hash, ok := strings.Cut(strings.TrimSuffix(path.Base(key), ".json"), "-")
		if at, err := time.Parse(timeForm, text); err == nil && ok && len(hash) == hex.EncodedLen(sha256.Size) {
			number, _ := strconv.ParseUint(path.Base(path.Dir(key)), 10, 64) // fails for a version without numbers
			all = append(all, listed{key, number, at, o.Modified})
		}
		return nil
	})
	slices.SortStableFunc(all, func(a, b listed) int { return cmp.Or(cmp.Compare(a.number, b.number), a.at.Compare(b.at)) })
	return all, err
}

// point reads a point, and verifies it by the hash in its name.
func (p *Place) point(ctx context.Context, of listed) (*Point, error) {
	in, err := p.Objects.Get(ctx, p.name(of.key))
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(in, maxPoint))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	if !strings.HasSuffix(of.key, "-"+hex.EncodeToString(sum[:])+".json") {
		return nil, fmt.Errorf("%w: %s is not as it was written", backup.ErrDamaged, of.key)
	}
	point := &Point{}
	if err := json.Unmarshal(text, point); err != nil {
		return nil, fmt.Errorf("%w: %s cannot be read", backup.ErrDamaged, of.key)
	}
	return point, point.Check("s3://" + p.Bucket + "/" + p.Prefix + of.key)
}

// Find finds the point of the latest time at or before at; a zero at: the last that was made.
// Errors: ErrNone, and the server's.
func (p *Place) Find(ctx context.Context, at time.Time) (*Found, error) {
	all, err := p.points(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w in s3://%s/%s", ErrNone, p.Bucket, p.Prefix)
	}
	last := len(all) - 1
	if !at.IsZero() {
		first := all[0].at
		last = -1
		for i, p := range all {
			if first = earlier(first, p.at); !p.at.After(at) && (last < 0 || !p.at.Before(all[last].at)) {
				last = i
			}
		}
		if last < 0 {
			return nil, fmt.Errorf("%w of %s or before: the first is of %s", ErrNone, at.UTC().Format(time.RFC3339), first.Format(time.RFC3339))
		}
	}
	point, err := p.point(ctx, all[last])
	if errors.Is(err, backup.ErrDamaged) && last > 0 {
		return nil, fmt.Errorf("%w; the one before it: --at %s", err, all[last-1].at.UTC().Format(time.RFC3339Nano))
	}
	if err != nil {
		return nil, err
	}
	return &Found{p, point}, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Found is a point that can be restored.
type Found struct {
	place *Place
	point *Point
}

var _ backup.Origin = (*Found)(nil)

// Manifest implements backup.Origin.
func (f *Found) Manifest() backup.Manifest { return f.point.Manifest }

// Open implements backup.Origin.
func (f *Found) Open(ctx context.Context, of backup.File) (io.ReadCloser, error) {
	return &file{ctx: ctx, place: f.place, rest: f.point.piecesOf(of)}, nil
}

// file reads the pieces of a file one after the other.
type file struct {
	ctx   context.Context
	place *Place
	rest  []Piece
	in    io.ReadCloser
}

func (f *file) Read(p []byte) (n int, err error) {
	for {
		if f.in == nil {
			if len(f.rest) == 0 {
				return 0, io.EOF
			}
			if f.in, err = f.place.Objects.Get(f.ctx, f.place.name(piecesDir+f.rest[0].SHA256)); err != nil {
				return 0, err
			}
			f.rest = f.rest[1:]
		}
		n, err = f.in.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if err = f.Close(); n > 0 || err != nil {
			return n, err
		}
	}
}

func (f *file) Close() error {
	if f.in == nil {
		return nil
	}
	err := f.in.Close()
	f.in = nil
	return err
}

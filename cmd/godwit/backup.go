package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"godwit.dev/godwit/cmd/godwit/operate"
	"godwit.dev/godwit/cmd/godwit/signed"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/server/backup"
	"godwit.dev/godwit/internal/server/backup/offsite"
)

type makeBackup struct {
	Endpoint string `default:"http://127.0.0.1:4566" type:"endpoint" placeholder:"URL" help:"The server, which runs (${default}). Where it verifies signatures the request is signed with the access key of the usual environment or profile, which godwit:Backup has to be allowed."`
	Dir      string `arg:"" help:"The directory of the backup: a new one, or one of a backup that was cut off, which goes on."`
}

// Run makes a backup.
func (b *makeBackup) Run(p *process) error {
	client, err := signed.Client(0)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	shown := newProgress(p.stderr, "backed up")
	stdout := operate.Plain(p.stdout)
	m, whole, err := (&backup.Making{Endpoint: b.Endpoint, Client: client, Dir: b.Dir, Progress: shown.report, Stdout: stdout}).Run(ctx)
	shown.end()
	if errors.Is(err, backup.ErrNotEmpty) {
		return fmt.Errorf("%w: give a new one", err)
	}
	if err != nil {
		return fmt.Errorf("%s is no backup yet: %w", b.Dir, err)
	}
	if _, err := fmt.Fprintf(stdout, "%s has the state of %s: %d files, %d bytes.\n", b.Dir, m.CreatedAt.UTC().Format(time.RFC3339), len(m.Files), m.Size()); err != nil {
		return err
	}
	if m.RootKey != "" {
		fmt.Fprintf(stdout, "It is of no use without the root key %s, which is not in it: keep a copy of that elsewhere.\n", m.RootKey)
	}
	if !whole {
		fmt.Fprintln(p.stdout, "The server's own store is damaged, and so is what there is of it here.")
		return errDamaged
	}
	return nil
}

type restore struct {
	Dir     string `arg:"" help:"The directory of the backup, or s3://BUCKET/PREFIX, where a server with --backup-s3 keeps backups."`
	Data    string `env:"-" required:"" placeholder:"NEW" help:"The data directory to make, which must not exist or be empty."`
	RootKey string `env:"-" placeholder:"FILE" help:"The root key that the backup is sealed with, to look at whether it is the one. One called dev-root.key is copied to --data, where godwit dev looks for it."`
	Paused  bool   `env:"-" help:"Have the server deliver nothing, and run nothing, until godwit deliveries begin."`

	Bucket inBucket `embed:""`
}

// inBucket has the access to a backup in a bucket.
type inBucket struct {
	At          time.Time `env:"-" placeholder:"TIME" help:"Of backups in a bucket, take the latest that is as of this time or before, as 2006-01-02T15:04:05Z; by default the latest."`
	Endpoint    string    `name:"s3-endpoint" env:"-" placeholder:"URL" help:"The server of S3 that has the bucket: http://HOST:PORT or https://HOST. A certificate of an authority that the system does not know is verified by the file that AWS_CA_BUNDLE names."`
	Region      string    `name:"s3-region" env:"-" default:"us-east-1" placeholder:"NAME" help:"The region that requests to it are signed for (${default})."`
	Credentials string    `name:"s3-credentials" env:"-" placeholder:"FILE" help:"The access key that they are signed with, and its secret on a second line; by default they are not signed."`
	HostStyle   bool      `name:"s3-host-style" env:"-" help:"Name the bucket in the host of requests, and not in the path."`
}

// find finds a backup at a URL; nil: it is a directory.
func (b *inBucket) find(ctx context.Context, at string) (from backup.Origin, done func(), err error) {
	if !strings.HasPrefix(at, "s3:") {
		if !b.At.IsZero() || b.Endpoint != "" || b.Credentials != "" || b.HostStyle {
			return nil, nil, errors.New("--at and --s3-… are for s3://BUCKET/PREFIX")
		}
		return nil, func() {}, nil
	}
	trust, err := signed.Trust()
	if err != nil {
		return nil, nil, err
	}
	place, done, err := (&offsite.Server{
		URL: at, Endpoint: b.Endpoint, Region: b.Region, Credentials: b.Credentials, HostStyle: b.HostStyle, Trust: trust,
	}).Open()
	if err != nil {
		return nil, nil, err
	}
	if from, err = place.Find(ctx, b.At); err != nil {
		done()
		return nil, nil, err
	}
	return from, done, nil
}

// Run restores a backup.
func (r *restore) Run(p *process) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	from, done, err := r.Bucket.find(ctx, r.Dir)
	if err != nil {
		return damaged(p, err)
	}
	defer done()
	shown := newProgress(p.stderr, "restored")
	err = (&backup.Restoring{
		Dir: r.Dir, From: from, Data: r.Data, RootKey: r.RootKey, Paused: r.Paused, Stdout: operate.Plain(p.stdout), Progress: shown.report,
		Logger: slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}).Run(ctx)
	shown.end()
	if err = damaged(p, err); err == nil && r.Paused {
		_, err = fmt.Fprintln(p.stdout, "A server on it delivers nothing until: godwit deliveries begin")
	}
	return err
}

// progress prints the progress of a command: on a terminal in one line, else every ten seconds.
type progress struct {
	w        io.Writer
	done     string // "backed up"
	terminal bool
	reported time.Time
}

func newProgress(w io.Writer, done string) *progress {
	p := &progress{w: w, done: done, reported: clock.System.Now()}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// Intervals of progress lines.
const (
	onTerminal = 100 * time.Millisecond
	elsewhere  = 10 * time.Second
)

func (p *progress) report(done, all int64) {
	now := clock.System.Now()
	switch since := now.Sub(p.reported); {
	case p.terminal && (since > onTerminal || done == all):
		fmt.Fprintf(p.w, "\r%3d %%  %d of %d MiB %s\x1b[K", 100*done/max(all, 1), done>>20, all>>20, p.done)
	case !p.terminal && since > elsewhere:
		fmt.Fprintf(p.w, "%d of %d MiB %s\n", done>>20, all>>20, p.done)
	default:
		return
	}
	p.reported = now
}

// end ends the line.
func (p *progress) end() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

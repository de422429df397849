package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"godwit.dev/godwit/cmd/godwit/operate"
	"godwit.dev/godwit/internal/server/backup"
	"godwit.dev/godwit/internal/server/recovery"
)

// exitDamaged is the exit code of a check or salvage that has found damage.
const exitDamaged = 3

var errDamaged = errors.New("the data is damaged")

type check struct {
	Dir  string `arg:"" optional:"" help:"A data directory, a backup, or s3://BUCKET/PREFIX, where a server with --backup-s3 keeps backups; without one --data."`
	Data string `default:"./godwit-data" placeholder:"DIR" help:"The data directory (${default})."`

	Bucket inBucket `embed:""`
	Temp   string   `env:"-" placeholder:"DIR" help:"Where a backup in a bucket is for as long as it is read; by default where the system has temporary files."`
}

// Run prints the damage.
func (c *check) Run(p *process) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir := cmp.Or(c.Dir, c.Data)
	from, done, err := c.Bucket.find(ctx, dir)
	if err != nil {
		return damaged(p, err)
	}
	defer done()
	var ok bool
	stdout := operate.Plain(p.stdout)
	switch {
	case from != nil:
		shown := newProgress(p.stderr, "read")
		ok, err = backup.CheckOrigin(ctx, from, c.Temp, stdout, shown.report)
		shown.end()
	case backup.Is(dir):
		ok, err = backup.Check(ctx, dir, stdout)
	default:
		ok, err = recovery.Check(dir, stdout)
	}
	if err == nil && !ok {
		return errDamaged
	}
	return err
}

// damaged describes a damaged backup; it passes on other errors.
func damaged(p *process, err error) error {
	if errors.Is(err, backup.ErrDamaged) || errors.Is(err, backup.ErrIncomplete) {
		fmt.Fprintf(operate.Plain(p.stderr), "godwit: %v\n", err)
		return errDamaged
	}
	return err
}

type salvage struct {
	Data string `default:"./godwit-data" placeholder:"DIR" help:"The damaged data directory, which is not changed (${default})."`
	To   string `required:"" placeholder:"DIR" help:"The new data directory, which must not exist or be empty."`
}

// Run copies, and prints the losses.
func (s *salvage) Run(p *process) error {
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	whole, err := recovery.Salvage(s.Data, s.To, log, operate.Plain(p.stdout))
	if err == nil && !whole {
		return errDamaged
	}
	return err
}

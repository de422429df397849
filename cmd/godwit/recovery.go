package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"

	"godwit.dev/godwit/cmd/godwit/operate"
	"godwit.dev/godwit/internal/server/backup"
	"godwit.dev/godwit/internal/server/recovery"
)

// exitDamaged is the status of a check or salvage that has found damage.
const exitDamaged = 3

var errDamaged = errors.New("the data is damaged")

type check struct {
	Dir  string `arg:"" optional:"" help:"A data directory or a backup; without one --data."`
	Data string `default:"./godwit-data" placeholder:"DIR" help:"The data directory (${default})."`
}

// Run says what is damaged.
func (c *check) Run(p *process) error {
	dir := cmp.Or(c.Dir, c.Data)
	look := recovery.Check
	if backup.Is(dir) {
		look = func(dir string, stdout io.Writer) (bool, error) {
			return backup.Check(context.Background(), dir, stdout)
		}
	}
	ok, err := look(dir, operate.Plain(p.stdout))
	if err == nil && !ok {
		return errDamaged
	}
	return err
}

type salvage struct {
	Data string `default:"./godwit-data" placeholder:"DIR" help:"The damaged data directory, which is not changed (${default})."`
	To   string `required:"" placeholder:"DIR" help:"The new data directory, which must not exist or be empty."`
}

// Run copies, and says what is lost.
func (s *salvage) Run(p *process) error {
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	whole, err := recovery.Salvage(s.Data, s.To, log, operate.Plain(p.stdout))
	if err == nil && !whole {
		return errDamaged
	}
	return err
}

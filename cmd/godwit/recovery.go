package main

import (
	"errors"
	"log/slog"

	"godwit.dev/godwit/internal/server/recovery"
)

// exitDamaged is the status of a check or salvage that has found damage.
const exitDamaged = 3

var errDamaged = errors.New("the data is damaged")

type check struct {
	Data string `default:"./godwit-data" placeholder:"DIR" help:"The data directory (${default})."`
}

// Run says what is damaged.
func (c *check) Run(p *process) error {
	ok, err := recovery.Check(c.Data, p.stdout)
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
	whole, err := recovery.Salvage(s.Data, s.To, log, p.stdout)
	if err == nil && !whole {
		return errDamaged
	}
	return err
}

package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/config"
)

// live are the flags of settings that are effective at once when they are reloaded.
var live = config.LiveFlags()

// logging makes a server's logger, and in production reloads the settings on SIGHUP, until
// done. Errors are then logged, and everything stays as it was.
func (p *process) logging(cfg *config.Config) (log *slog.Logger, done func()) {
	level := &slog.LevelVar{}
	level.Set(levelOf(*cfg))
	log = newLoggerAt(level, *cfg, p.stderr)
	if !cfg.Production {
		return log, func() {}
	}
	cfg.Live = config.NewLive(cfg)
	running := *cfg
	_, before, err := p.reread(&running)
	if err != nil { // they have changed since they were checked
		log.Warn("the settings are not those of the start any more", "error", err)
	}
	hangups, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer close(over)
		for range hangups {
			running.Live.Reload() // also where the settings are wrong
			now, texts, err := p.reread(&running)
			if err != nil {
				log.Error("the settings are not read anew, and stay as they are", "error", err)
				continue
			}
			level.Set(levelOf(now))
			running.Live.Take(&now)
			taken, left := differences(before, texts)
			for _, name := range taken {
				before[name] = texts[name]
			}
			log.Info("settings were read anew", "changed", taken)
			if len(left) > 0 {
				log.Warn("settings that have changed count from the next start", "settings", left)
			}
		}
	}()
	return log, func() {
		signal.Stop(hangups)
		close(hangups)
		<-over
	}
}

// differences are the names of changed settings: those that are effective now, and those that
// are not.
func differences(before, now map[string]string) (taken, left []string) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch {
		case now[name] == before[name]:
		case slices.Contains(live, name):
			taken = append(taken, name)
		default:
			left = append(left, name)
		}
	}
	return taken, left
}

// reread reads the settings as at the start, from the same flags and environment and from the
// current file, and makes the same checks. The texts are by the name of the flag. The root
// user's access key is that of the running server.
func (p *process) reread(running *config.Config) (cfg config.Config, texts map[string]string, err error) {
	var flags cli
	exited := false
	parser, err := newParser(&flags, kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) { exited = true }))
	if err != nil {
		return cfg, nil, err
	}
	parsed, err := parser.Parse(p.args)
	switch {
	case err != nil:
		return cfg, nil, err
	case exited: // the server would not have started with it
		return cfg, nil, errors.New("the arguments cannot be read")
	}
	cfg = flags.Serve.config()
	cfg.Root = running.Root
	err = bootstrap.Load(&cfg, bootstrap.Files{Settings: string(flags.Serve.File), AccessKey: flags.Serve.RootAccessKey, Environ: os.Environ()})
	if more := flags.Serve.Member.problems(&cfg); len(more) > 0 {
		err = errors.Join(err, &bootstrap.Unsafe{Problems: more})
	}
	if err != nil {
		return cfg, nil, err
	}
	texts = map[string]string{}
	for _, flag := range parsed.Flags() {
		texts[flag.Name] = fmt.Sprint(flag.Target.Interface())
	}
	return cfg, texts, nil
}

// Package process runs functions as processes of this machine, which speak
// Lambda's Runtime API: a program named bootstrap (provided.al2023,
// provided.al2), or a handler of the machine's node (nodejs20.x and later) or
// python (python3.x).
//
// Each process has a sandbox (package sandbox). Where the kernel lets this user
// make namespaces, a function sees the machine's programs and libraries, its
// code in /var/task and a /tmp of its own, and no other process; if the server
// is root, it runs as a user that nobody else is. Elsewhere it runs as the
// server's user, beside the server's files.
//
// Its memory is limited by a control group where the server may make one;
// elsewhere it is looked at ten times a second while the function runs.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/invoke/process/sandbox"
)

// Options are what a Runner is made of. Endpoint and Plain may be empty.
type Options struct {
	// Directory is the runner's own; what is in it is removed when the first function
	// runs.
	Directory string
	// Code reads the zip of a function.
	Code   func(ctx context.Context, t function.Target) ([]byte, error)
	Logger *slog.Logger
	// Endpoint is the URL at which the functions' SDKs find AWS's services,
	// unless their configuration says otherwise; empty: AWS's own.
	Endpoint string
	// Hide are directories that no function may see.
	Hide []string
	// InitTime is how long a process may take until it asks for work; 0: 10 s.
	InitTime time.Duration
	// LimitProcessors gives a function as much of the processors as its memory gives
	// it at AWS, where the kernel lets us; else it has what it finds.
	LimitProcessors bool
	// Plain does without namespaces, as if the kernel had none for us.
	Plain bool
}

// Runner starts processes.
type Runner struct {
	Options
	code   *codeCache
	number atomic.Uint64 // of the latest environment

	prepare  func() error // once; sets what follows
	groups   controlGroups
	isolated bool // the kernel gives us namespaces
	users    bool // and lets functions be users of their own
}

var _ invoke.Runner = (*Runner)(nil)

// New makes a runner. It touches the disk only when a function is to be run.
func New(o Options) (*Runner, error) {
	o.InitTime = cmp.Or(o.InitTime, 10*time.Second)
	dir, err := filepath.Abs(o.Directory)
	if err != nil {
		return nil, err
	}
	o.Directory = dir
	r := &Runner{Options: o, code: newCodeCache(filepath.Join(dir, "code"), o.Code)}
	r.prepare = sync.OnceValue(r.makeDirectories)
	return r, nil
}

// makeDirectories makes the runner's directory, and finds out what the kernel
// lets us do.
func (r *Runner) makeDirectories() error {
	if err := os.RemoveAll(r.Directory); err != nil {
		return fmt.Errorf("clearing the functions' directory: %w", err)
	}
	for _, name := range []string{"runtime", "code", "run"} {
		if err := os.MkdirAll(filepath.Join(r.Directory, name), 0o755); err != nil {
			return fmt.Errorf("making the functions' directory: %w", err)
		}
	}
	if err := writeRuntimes(filepath.Join(r.Directory, "runtime")); err != nil {
		return fmt.Errorf("making the functions' directory: %w", err)
	}
	r.groups = findControlGroups(thisKernel, r.LimitProcessors)
	r.isolated, r.users = r.isolates(), changesUsers()
	return nil
}

// Close removes what the runner keeps on disk. No environment may be left.
func (r *Runner) Close() error { return os.RemoveAll(r.Directory) }

// isolates reports whether the kernel gives us namespaces, by trying.
func (r *Runner) isolates() bool {
	if r.Plain {
		return false
	}
	err := r.tryIsolation()
	if err != nil {
		r.Logger.Warn("functions run without namespaces: they see this machine's files and processes as the server's user does",
			"reason", err)
	}
	return err == nil
}

func (r *Runner) tryIsolation() error {
	root := filepath.Join(r.Directory, "run", "probe")
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	defer func() { _ = os.Remove(root) }()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	p, err := sandbox.Start(sandbox.Spec{Args: []string{"/bin/true"}, Dir: "/", Isolate: true, Root: root}, null)
	if err != nil {
		return err
	}
	<-p.Done()
	if exit := p.Exit(); exit.Err != nil && !exit.NotExecutable {
		return exit.Err
	} else if exit.Signal != "" {
		return errors.New("the sandbox was ended by the kernel")
	}
	return nil
}

// firstUser is the first of the users that functions run as under root: one
// each, of a range that nothing else uses (systemd's UIDS-GIDS.md).
const (
	firstUser = 0x7000_0000
	allUsers  = 1 << 16
)

// Open makes an environment for a function. Errors: InvalidRuntime,
// InvalidZipFile.
func (r *Runner) Open(t *function.Target, out invoke.Output) (invoke.Environment, error) {
	lang, err := find(t.Runtime)
	if err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	code, err := r.code.acquire(context.Background(), t)
	if err != nil {
		return nil, err
	}
	n := r.number.Add(1)
	e := &environment{
		runner: r, target: t, language: lang, code: code, out: out,
		dir: filepath.Join(r.Directory, "run", strconv.FormatUint(n, 10)), closing: make(chan struct{}),
	}
	if r.users {
		e.user = firstUser + int(n%allUsers)
	}
	if err := e.makeDirectories(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Installed reports whether functions of a runtime can run on this machine.
// Error: InvalidRuntime, which says what is missing.
func Installed(runtime string) error {
	_, err := find(runtime)
	return err
}

var errClosed = fault.New(fault.Unavailable, "")

// Package process runs functions as processes of this machine, which use Lambda's Runtime
// API: a program named bootstrap (provided.al2023, provided.al2), or a handler of the
// machine's node (nodejs20.x and later) or python (python3.x).
//
// Each process has a sandbox (package sandbox). A function sees the machine's programs and
// libraries, its code in /var/task and its own /tmp, and no other process; if the server is
// root, each environment has a user of its own. If the kernel does not allow this, functions
// do not run, unless isolation is disabled: then they run as the server's user, with access
// to the server's files. On other Unix systems than Linux they only run this way, as process
// groups.
//
// A control group limits the memory, if the server may create one; otherwise it is measured
// ten times a second while the function runs.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/invoke/process/netns"
	"godwit.dev/godwit/internal/invoke/process/network"
	"godwit.dev/godwit/internal/invoke/process/sandbox"
	"godwit.dev/godwit/internal/limit"
)

// Options are the dependencies and settings of a Runner. Endpoint and Plain may be empty.
type Options struct {
	// Directory is the runner's own; its content is deleted when the first function runs.
	Directory string
	// Code reads the zip of a function.
	Code func(ctx context.Context, t function.Target) ([]byte, error)
	// Layer reads the zip of a layer of a function.
	Layer  func(ctx context.Context, l function.Layer) ([]byte, error)
	Logger *slog.Logger
	// Network is the network of isolated functions. Required.
	Network *network.Network
	// Endpoint is the URL of AWS's services for the SDKs of functions without isolation,
	// unless their configuration has another one; empty: AWS's own.
	Endpoint string
	// Hide are directories that functions must not see.
	Hide []string
	// InitTime is the timeout of a process's start; 0: 10 s.
	InitTime time.Duration
	// LimitProcessors gives a function the share of processors that AWS gives for its memory,
	// if the kernel allows it; otherwise it is not limited.
	LimitProcessors bool
	// Storage bounds the content of all functions' /tmp, in bytes, besides the bound of each;
	// 0: a quarter of this machine's memory.
	Storage int64
	// Variables decrypts the environment of a function with a customer key, as its role; nil:
	// there are no such functions. Errors: KMS's.
	Variables func(t *function.Target) (map[string]string, error)
	// Roles returns functions' credentials; nil: they have none of a role.
	Roles invoke.Roles
	// Answers bounds the memory of all answers being read; nil: no bound.
	Answers *limit.Budget
	// Plain disables isolation.
	Plain bool
	// Libraries is a directory of additional libraries for functions: nodejs/node_modules and
	// python in it; empty: none.
	Libraries string
}

// Runner starts processes.
type Runner struct {
	Options
	code   *codeCache
	number atomic.Uint64 // of the latest environment

	storage *storage
	prepare func() error // once; sets groups and names
	groups  controlGroups
	names   []sandbox.Bind // files for name resolution
	users   bool           // functions are users of their own
	warned  sync.Map       // the runtimes that were warned about, by name
	refusal func() error   // once: why functions cannot be isolated, and so cannot run
}

var _ invoke.Runner = (*Runner)(nil)

// New makes a runner. It uses the disk only when a function is to run.
func New(o Options) (*Runner, error) {
	o.InitTime = cmp.Or(o.InitTime, 10*time.Second)
	dir, err := filepath.Abs(o.Directory)
	if err != nil {
		return nil, err
	}
	o.Directory = dir
	if o.Libraries, err = findLibraries(o.Libraries); err != nil {
		return nil, err
	}
	r := &Runner{Options: o, code: newCodeCache(filepath.Join(dir, "code"), &o)}
	r.prepare = sync.OnceValue(r.makeDirectories)
	r.storage = newStorage(o.Storage, o.Logger)
	r.users = changesUsers()
	r.refusal = sync.OnceValue(r.probe)
	return r, nil
}

// makeDirectories makes the runner's directory, and finds the available control groups.
func (r *Runner) makeDirectories() error {
	if err := os.RemoveAll(r.Directory); err != nil {
		return fmt.Errorf("clearing the functions' directory: %w", err)
	}
	for _, name := range []string{"runtime", "code", "run", "names"} {
		if err := os.MkdirAll(filepath.Join(r.Directory, name), 0o755); err != nil {
			return fmt.Errorf("making the functions' directory: %w", err)
		}
	}
	if err := writeRuntimes(filepath.Join(r.Directory, "runtime")); err != nil {
		return fmt.Errorf("making the functions' directory: %w", err)
	}
	if err := os.WriteFile(r.entrypoint(), []byte("#!/bin/sh\n# Functions are started without it.\nexit 1\n"), 0o755); err != nil {
		return fmt.Errorf("making the functions' directory: %w", err)
	}
	if err := r.makeLibraries(); err != nil {
		return fmt.Errorf("making the functions' libraries visible: %w", err)
	}
	if err := r.writeNames(); err != nil {
		return fmt.Errorf("making the functions' directory: %w", err)
	}
	r.groups = findControlGroups(thisKernel, r.LimitProcessors)
	if n, few := openFiles(); few {
		r.Logger.Warn("functions can open fewer files than at AWS: raise the server's hard limit of file descriptors (ulimit -Hn, systemd's LimitNOFILE, docker run --ulimit nofile)",
			"limit", n, "aws", sandbox.MaxOpenFiles)
	}
	return nil
}

// entrypoint is the file in place of AWS's entrypoint program.
func (r *Runner) entrypoint() string {
	return filepath.Join(r.Directory, "names", "lambda-entrypoint.sh")
}

// makeLibraries makes the libraries visible, or a directory for them.
func (r *Runner) makeLibraries() error {
	if r.Plain {
		return linkLibraries(r.Directory, r.Libraries)
	}
	return os.Mkdir(filepath.Join(r.Directory, "runtime", filepath.Base(pythonTarget)), 0o755)
}

// warn logs, once for a runtime, that its interpreter is of another version than its name
// says.
func (r *Runner) warn(runtime string, l *language) {
	if !l.other(runtime) {
		return
	}
	if _, warned := r.warned.LoadOrStore(runtime, true); !warned {
		r.Logger.Warn("a runtime's functions are run by another version of its interpreter: the one that is named is not installed",
			"runtime", runtime, "version", l.version, "interpreter", l.interpreter)
	}
}

// Close deletes the runner's files. All environments must be closed.
func (r *Runner) Close() error { return os.RemoveAll(r.Directory) }

// NoIsolation is the setting with which functions run without isolation.
const NoIsolation = "--function-isolation=none"

// Storage is the memory of all functions' /tmp, and the number of environments that were
// ended because it was too much.
func (r *Runner) Storage() limit.Stats { return r.storage.stats() }

// Refusal is why functions cannot run here; nil: they can. The first call tries it. Errors:
// ErrPlatform, ErrIsolation.
func (r *Runner) Refusal() error {
	if !sandbox.Supported {
		return ErrPlatform.With(runtime.GOOS)
	}
	if r.Plain {
		return nil
	}
	return r.refusal()
}

func (r *Runner) probe() error {
	problem, err := tryIsolation(r.Network.Plan())
	if err != nil {
		return ErrIsolation.With(err, NoIsolation)
	}
	if problem != "" {
		r.Logger.Warn("functions reach AWS's API only, as with --function-network=none: they have no tunnel out. Give the server's user /dev/net/tun; docs/functions.md tells how", "reason", problem)
		r.Network.WithoutTunnel()
	}
	return nil
}

// Isolated is why functions cannot be isolated on this machine; nil: they can.
func Isolated() error {
	_, err := tryIsolation(netns.Plan{})
	return err
}

// tryIsolation runs a program in a sandbox with a network. problem is why the network has no
// tunnel.
func tryIsolation(plan netns.Plan) (problem string, err error) {
	if runtime.GOOS != "linux" {
		return "", errors.New("only Linux has the namespaces")
	}
	users := changesUsers()
	if os.Geteuid() == 0 && !users {
		return "", errors.New("the server is root without the capabilities to give functions users of their own: CHOWN, DAC_OVERRIDE, KILL, SETGID, SETUID")
	}
	root, err := os.MkdirTemp("", "godwit-probe-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(root) }()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = null.Close() }()
	spec := sandbox.Spec{
		Args: []string{"/bin/true"}, Dir: "/", Isolate: true, Root: root, Tmp: &sandbox.Tmp{MB: 1}, Network: &plan,
	}
	defer spec.Tmp.Close()
	if users {
		spec.User = firstUser
	}
	p, err := sandbox.Start(spec, null)
	switch {
	case errors.Is(err, syscall.ENOSPC): // from clone: a sysctl limit, not a full disk
		return "", errors.New("the kernel gives no more namespaces: raise the sysctl user.max_user_namespaces, and its siblings in /proc/sys/user")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EINVAL):
		return "", fmt.Errorf("the kernel refuses namespaces: %w", err)
	case err != nil:
		return "", err
	}
	if sockets, err := p.Network(); err == nil { // otherwise its exit reports why
		problem = sockets.Problem
		sockets.Close()
	}
	<-p.Done()
	if exit := p.Exit(); exit.Err != nil && !exit.NotExecutable {
		return "", exit.Err
	} else if exit.Signal != "" {
		return "", errors.New("the kernel ended the sandbox")
	}
	return problem, nil
}

// writeNames writes the functions' hosts and resolv.conf, in place of the machine's.
func (r *Runner) writeNames() error {
	machine, _ := os.ReadFile("/etc/resolv.conf") // without one there are no search domains
	for path, text := range map[string]string{"/etc/hosts": r.Network.Hosts(), "/etc/resolv.conf": r.Network.ResolvConf(string(machine))} {
		target, ok := followed(path)
		if !ok {
			continue
		}
		source := filepath.Join(r.Directory, "names", filepath.Base(path))
		if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
			return err
		}
		r.names = append(r.names, sandbox.Bind{Source: source, Target: target})
	}
	return nil
}

// followed resolves the links of a path; false if functions cannot have a file there. A
// dangling link is accepted.
func followed(path string) (string, bool) {
	for range 16 {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			return path, !sandbox.Visible(path)
		case info.Mode()&os.ModeSymlink == 0:
			return path, true
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", false
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = filepath.Clean(to)
	}
	return "", false
}

// firstUser is the first of the functions' users if the server is root: one each, from a
// range that nothing else uses (systemd's UIDS-GIDS.md).
const (
	firstUser = 0x7000_0000
	allUsers  = 1 << 16
)

// Open makes an environment for a function. Errors: InvalidRuntime,
// InvalidZipFile, ctx's.
func (r *Runner) Open(ctx context.Context, t *function.Target, out invoke.Output) (invoke.Environment, error) {
	lang, err := find(ctx, t.Runtime)
	if err != nil {
		return nil, err
	}
	if err := r.Refusal(); err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	r.warn(t.Runtime, &lang)
	code, err := r.code.acquire(ctx, t)
	if err != nil {
		return nil, err
	}
	layers, err := r.acquireLayers(ctx, t, &lang)
	if err != nil {
		code.release()
		return nil, err
	}
	n := r.number.Add(1)
	e := &environment{
		runner: r, target: t, language: lang, code: code, layers: layers, out: out,
		dir: filepath.Join(r.Directory, "run", strconv.FormatUint(n, 10)), closing: make(chan struct{}),
	}
	if r.users {
		e.user = firstUser + int(n%allUsers)
	}
	if !r.Plain {
		e.memory = &sandbox.Tmp{MB: t.EphemeralMB}
		r.storage.add(e)
	}
	if err := e.makeDirectories(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Installed is why functions of a runtime cannot run on this machine; nil: they can. Error:
// InvalidRuntime, ctx's.
func Installed(ctx context.Context, runtime string) error {
	_, err := find(ctx, runtime)
	return err
}

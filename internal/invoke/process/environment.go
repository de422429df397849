package process

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/invoke/process/network"
	"godwit.dev/godwit/internal/invoke/process/sandbox"
)

const (
	// extensionTime is how long a process that registered an extension has
	// between SIGTERM and SIGKILL.
	extensionTime = 2 * time.Second
	// memoryPause is the interval between checks of a process's memory.
	memoryPause = 100 * time.Millisecond
)

// bootstrapName is the program in the code of functions with a provided runtime.
const bootstrapName = "bootstrap"

// environment runs a function's processes, one after another. /tmp survives them.
type environment struct {
	runner   *Runner
	target   *function.Target
	language language
	code     *code
	layers   *code // nil: it has none
	out      invoke.Output
	dir      string
	user     int          // 0: the server's
	passwd   string       // file with names of users; empty: the machine's
	memory   *sandbox.Tmp // /tmp; nil: a directory
	closing  chan struct{}
	// credentials are the credentials of the latest process; nil: none of a role.
	credentials atomic.Pointer[invoke.Credentials]

	mu      sync.Mutex
	current *instance // nil: nothing runs
	closed  bool

	// Only the call that runs the environment uses these fields.
	slow     bool          // the last start took too long
	started  time.Duration // of a start that no invocation has reported yet
	sampled  time.Time     // when its memory was last checked
	memoryKB int64
}

// instance is a process with its API and output.
type instance struct {
	process *sandbox.Process
	api     *api
	output  *output
	group   group
	pid     int // 0: unknown

	mu         sync.Mutex
	attachment *network.Attachment // nil: it has no own network, or not yet
	disposed   bool
}

func (e *environment) tmp() string  { return filepath.Join(e.dir, "tmp") }
func (e *environment) root() string { return filepath.Join(e.dir, "root") }

func (e *environment) makeDirectories() error {
	within := e.root()
	if e.memory == nil {
		within = e.tmp()
	}
	for _, dir := range []string{e.dir, within} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("making a function's directory: %w", err)
		}
	}
	if e.memory == nil && e.user != 0 {
		return os.Chown(e.tmp(), e.user, e.user)
	}
	if e.memory != nil && e.user != 0 {
		return e.writePasswd()
	}
	return nil
}

// running is the running process, or nil.
func (e *environment) running() *instance {
	e.mu.Lock()
	i := e.current
	e.mu.Unlock()
	if i == nil {
		return nil
	}
	select {
	case <-i.process.Done():
		e.retire(i)
		return nil
	default:
		return i
	}
}

// Start starts a process, if none runs, and waits until it asks for work.
func (e *environment) Start() (*invoke.Failure, error) {
	if e.slow || e.running() != nil {
		return nil, nil
	}
	failure, err := e.start(e.runner.InitTime)
	if errors.Is(err, errSlow) {
		e.slow = true // Run starts it again, within the function's timeout
		return nil, nil
	}
	return failure, err
}

var errSlow = errors.New("the function's start takes too long")

// start starts a process and waits until it asks for work, for at most d. Otherwise the
// process is ended.
func (e *environment) start(d time.Duration) (*invoke.Failure, error) {
	e.slow = false
	began := clock.System.Now()
	if e.language.interpreter == "" {
		if _, found := e.bootstrap("", ""); !found {
			return &invoke.Failure{
				Type: invoke.TypeInvalidEntrypoint, Status: invoke.StatusError,
				Message: "Couldn't find valid bootstrap(s): [/var/task/bootstrap /opt/bootstrap]",
			}, nil
		}
	}
	i, err := e.launch()
	if err != nil {
		return nil, err
	}
	late, stop := alarm(d)
	defer stop()
	select {
	case <-i.api.ready:
		i.pid = i.process.PID()
		e.started += clock.System.Now().Sub(began)
		i.output.drain() // the output of the start must not be part of the first invocation's
		return nil, nil
	case body := <-i.api.failed:
		e.retire(i)
		return &invoke.Failure{Body: body, Type: "Runtime.InitError", Message: "the function could not be initialized", Status: invoke.StatusError}, nil
	case <-i.process.Done():
		e.retire(i)
		return e.exited(i)
	case <-late:
		e.retire(i)
		return nil, errSlow
	case <-e.closing:
		return nil, ErrClosed
	}
}

// exited is the failure that a process's exit means for the caller.
func (e *environment) exited(i *instance) (*invoke.Failure, error) {
	exit := i.process.Exit()
	e.memoryKB = max(e.memoryKB, exit.MaxMemoryKB)
	f := &invoke.Failure{Type: invoke.TypeExit, Status: invoke.StatusError}
	switch {
	case e.isClosed():
		return nil, ErrClosed
	case exit.NotExecutable:
		f.Type, f.Message = invoke.TypeInvalidEntrypoint, exit.String()
	case exit.Err != nil:
		return nil, fmt.Errorf("the sandbox of %s: %w", e.target.Function, exit.Err)
	case exit.Code == 0 && exit.Signal == "":
		f.Message = "Runtime exited without providing a reason"
	default:
		f.Message = "Runtime exited with error: " + exit.String()
	}
	return f, nil
}

// launch starts a process.
func (e *environment) launch() (*instance, error) {
	if err := e.assume(); err != nil {
		return nil, err
	}
	own := e.target.Environment
	if e.target.Cipher != nil && e.runner.Variables != nil {
		var err error
		if own, err = e.runner.Variables(e.target); err != nil {
			return nil, err
		}
	}
	i := &instance{api: newAPI(e.runner.Answers)}
	var listener net.Listener // nil: the sandbox has it
	address := e.runner.Network.RuntimeAPI()
	var err error
	if e.runner.Plain {
		if listener, err = listenApart(); err != nil {
			return nil, err
		}
		address = listener.Addr().String()
	}
	tmpMB := 0
	if e.memory != nil {
		tmpMB = e.memory.MB
	}
	if i.group, err = e.runner.groups.make(e.target.MemoryMB, tmpMB); err != nil {
		if listener != nil {
			_ = listener.Close()
		}
		return nil, err
	}
	reader, writer, err := os.Pipe()
	spec := e.spec(address, i.group, own)
	if err == nil {
		i.output = newOutput(reader, e.out, e.language.managed)
		go i.output.follow()
		i.process, err = sandbox.Start(spec, writer)
		_ = writer.Close()
	}
	if err != nil {
		if listener != nil {
			_ = listener.Close()
		}
		i.dispose()
		return nil, fmt.Errorf("starting a function: %w", err)
	}
	if listener == nil {
		go i.attach(e.runner.Network)
	} else {
		i.api.admit = func(c net.Conn) bool { return i.process.Connected(c, spec.User) }
		go i.api.serve(listener)
	}
	e.mu.Lock()
	closed := e.closed
	if !closed {
		e.current = i
	}
	e.mu.Unlock()
	if closed {
		i.end()
		return nil, ErrClosed
	}
	return i, nil
}

// assume begins a session of the function's role for the next process.
func (e *environment) assume() error {
	if e.runner.Roles == nil {
		return nil
	}
	c, err := e.runner.Roles.Credentials(e.target)
	e.credentials.Store(c)
	return err
}

// Usable implements invoke.Environment.
func (e *environment) Usable() bool {
	return e.runner.Roles == nil || e.runner.Roles.Lasts(e.target, e.credentials.Load())
}

// attach serves the sandbox's network. If the sandbox failed to make one, the process's exit
// reports it.
func (i *instance) attach(n *network.Network) {
	sockets, err := i.process.Network()
	if err != nil {
		return
	}
	i.mu.Lock()
	if i.disposed {
		i.mu.Unlock()
		sockets.Close()
		return
	}
	a, listener := n.Attach(sockets)
	i.attachment = a
	i.mu.Unlock()
	i.api.serve(listener)
}

// listenApart listens at a loopback address of its own, for a process without an own network.
func listenApart() (net.Listener, error) {
	var b [3]byte
	rand.Read(b[:])
	host := net.IPv4(127, b[0], b[1], b[2]|1)
	l, err := net.Listen("tcp", net.JoinHostPort(host.String(), "0"))
	if err != nil { // a system with only one loopback address
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listening for a function: %w", err)
	}
	return l, nil
}

// spec describes the sandbox.
func (e *environment) spec(api string, groups group, own map[string]string) sandbox.Spec {
	s := sandbox.Spec{Groups: groups.dirs, MemoryLimited: groups.memory, User: e.user, Isolate: !e.runner.Plain}
	task, lib, opt := e.code.dir, filepath.Join(e.runner.Directory, "runtime"), e.layersDir()
	if s.Isolate {
		s.Root, s.Hide, s.Tmp = e.root(), e.runner.Hide, e.memory
		s.Binds = []sandbox.Bind{
			{Source: task, Target: "/var/task"},
			{Source: lib, Target: "/var/runtime"},
		}
		if opt != "" {
			s.Binds = append(s.Binds, sandbox.Bind{Source: opt, Target: layersTarget})
		}
		for _, path := range e.language.needs {
			if (!sandbox.Visible(path) || opt != "" && within(path, layersTarget)) && !slices.ContainsFunc(s.Binds, func(b sandbox.Bind) bool { return within(path, b.Source) }) {
				s.Binds = append(s.Binds, sandbox.Bind{Source: path, Target: path})
			}
		}
		plan := e.runner.Network.Plan()
		s.Network, s.Binds = &plan, append(s.Binds, e.runner.names...)
		s.Binds = append(s.Binds, sandbox.Bind{Source: e.runner.entrypoint(), Target: "/lambda-entrypoint.sh"})
		s.Binds = append(s.Binds, e.language.libraries(e.runner.Libraries)...)
		if e.passwd != "" {
			s.Binds = append(s.Binds, sandbox.Bind{Source: filepath.Join(e.dir, "passwd"), Target: e.passwd})
		}
		task, lib = "/var/task", "/var/runtime"
		if opt != "" {
			opt = layersTarget
		}
	} else if e.user != 0 && !reachable(e.code.dir, lib, e.tmp(), e.language.interpreter) {
		s.User = 0 // another user could not read its own code
	}
	s.Dir = task
	program, _ := e.bootstrap(task, opt)
	s.Args = []string{program}
	if e.language.interpreter != "" {
		s.Args = append([]string{e.language.interpreter}, e.language.flags...)
		s.Args = wrapped(own[wrapperVariable], task, opt, append(s.Args, filepath.Join(lib, e.language.script)))
	}
	s.Env = e.variables(api, places{task, lib, opt}, own)
	if !s.Isolate {
		s.Env = append(s.Env, "TMPDIR="+e.tmp())
	}
	return s
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// reachable reports whether all users may enter the directories above the paths.
func reachable(paths ...string) bool {
	for _, path := range paths {
		for dir := path; dir != "" && dir != "/"; dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err != nil || info.IsDir() && info.Mode()&0o001 == 0 {
				if dir != path || err != nil {
					return false
				}
			}
		}
	}
	return true
}

// alarm returns a channel that is closed after d of the machine's time, in which processes
// run.
func alarm(d time.Duration) (<-chan struct{}, func()) {
	over, stop := clock.After(clock.System, d)
	return over, func() { stop() }
}

// Run runs the function once.
func (e *environment) Run(w *invoke.Work) (invoke.Result, error) {
	began := clock.System.Now()
	deadline := began.Add(e.target.Timeout)
	late, stop := alarm(e.target.Timeout)
	defer stop()
	for {
		i := e.running()
		if i == nil {
			// The last start took too long, or the process ended between two invocations.
			failure, err := e.start(deadline.Sub(clock.System.Now()))
			e.started = 0 // the duration includes it
			switch {
			case errors.Is(err, errSlow):
				return e.result(began, nil, e.timedOut()), nil
			case err != nil:
				return invoke.Result{}, err
			case failure != nil:
				return e.result(began, nil, failure), nil
			}
			continue
		}
		job := newJob(w, deadline)
		i.api.hand(job)
		a, failure, err := e.await(i, job, late)
		i.output.drain()
		if a == nil {
			e.retire(i)
		}
		if err != nil {
			return invoke.Result{}, err
		}
		if a == nil && failure == nil {
			continue // the process had not fetched it: a new process gets it
		}
		e.sample(i)
		return e.result(began, a, failure), nil
	}
}

// await waits until the process has answered, exited, timed out, or used too much memory.
// Without an answer the process must be ended. With neither answer nor failure it exited
// before it fetched the job.
func (e *environment) await(i *instance, j *job, late <-chan struct{}) (*answer, *invoke.Failure, error) {
	var sample <-chan struct{} // nil: a control group limits all of its memory
	stop := func() {}
	if !i.group.memory || e.memory != nil {
		sample, stop = alarm(memoryPause)
	}
	defer func() { stop() }()
	for ended := false; !ended; {
		select {
		case a := <-j.done:
			return a, a.failure, nil
		case <-i.process.Done():
			ended = true
		case <-late:
			return nil, e.timedOut(), nil
		case <-e.closing:
			return nil, nil, ErrClosed
		case <-sample:
			if e.exceeds(i) {
				i.process.Kill() // its exit is handled above
			}
			sample, stop = alarm(memoryPause)
		}
	}
	select { // it may have answered before it exited
	case a := <-j.done:
		return a, a.failure, nil
	default:
	}
	if !i.api.taken(j) {
		return nil, nil, nil
	}
	failure, err := e.exited(i)
	return nil, failure, err
}

// exceeds reports whether a process and its descendants use more memory than the function
// may. The kernel also counts the content of /tmp, which is not part of the function's
// memory.
func (e *environment) exceeds(i *instance) bool {
	if i.group.memory {
		return i.group.exceeds(e.target.MemoryMB, e.memory.UsedKB())
	}
	return i.pid != 0 && treeKB(i.pid) > int64(e.target.MemoryMB)<<10
}

func (e *environment) timedOut() *invoke.Failure {
	return &invoke.Failure{
		Type: invoke.TypeTimedOut, Status: invoke.StatusTimeout,
		Message: fmt.Sprintf("Task timed out after %.2f seconds", e.target.Timeout.Seconds()),
	}
}

// result is the result of an invocation that began at a time.
func (e *environment) result(began time.Time, a *answer, f *invoke.Failure) invoke.Result {
	r := invoke.Result{
		Failure: f, Duration: clock.System.Now().Sub(began), Init: e.started,
		MemoryMB: int((e.memoryKB + 1023) >> 10),
	}
	if f != nil && f.Status == invoke.StatusTimeout {
		r.Duration = e.target.Timeout
	}
	e.started = 0
	if a != nil && f == nil {
		r.Payload = a.body
	}
	return r
}

// sample measures the process's memory, unless it did so recently.
func (e *environment) sample(i *instance) {
	if now := clock.System.Now(); i.pid != 0 && now.Sub(e.sampled) >= memoryPause {
		e.sampled = now
		e.memoryKB = max(e.memoryKB, peakKB(i.pid))
	}
}

// retire ends a process and waits until no process of it is left.
func (e *environment) retire(i *instance) {
	i.end()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == i {
		e.current = nil
	}
}

func (e *environment) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// empty ends the process and deletes the content of /tmp. Those that wait for the process see
// its exit.
func (e *environment) empty() {
	e.memory.Empty()
	e.mu.Lock()
	i := e.current
	e.mu.Unlock()
	if i != nil {
		i.process.Kill()
	}
}

// Close ends the process and deletes the environment's files.
func (e *environment) Close() {
	e.mu.Lock()
	first, i := !e.closed, e.current
	e.closed = true
	e.mu.Unlock()
	if first {
		close(e.closing)
	}
	if i != nil {
		i.leave()
	}
	if first {
		e.code.release()
		if e.layers != nil {
			e.layers.release()
		}
	}
	if e.memory != nil {
		e.runner.storage.remove(e)
		e.memory.Close()
	}
	_ = os.RemoveAll(e.dir)
}

// leave ends a process as AWS ends an unused one: at once; but if it has registered an
// extension, with SIGTERM, and SIGKILL after extensionTime.
func (i *instance) leave() {
	if i.api.extension.Load() {
		i.process.Terminate()
		late, stop := alarm(extensionTime)
		defer stop()
		select {
		case <-i.process.Done():
		case <-late:
		}
	}
	i.end()
}

// end ends a process and waits until no process of it is left.
func (i *instance) end() {
	i.process.Kill()
	<-i.process.Done()
	i.dispose()
}

// dispose releases the resources of a process that has exited, or never started.
func (i *instance) dispose() {
	i.api.close()
	i.mu.Lock()
	i.disposed = true
	if i.attachment != nil {
		i.attachment.Close()
	}
	i.mu.Unlock()
	if i.output != nil {
		i.output.close()
	}
	i.group.remove()
}

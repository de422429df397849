package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/programs"
)

// rotating is a server of production whose root key is rotated while clients send.
type rotating struct {
	*production

	operators string
	server    *process
	queue     string

	mu    sync.Mutex
	acked map[string]bool // bodies
}

func newRotating(t *testing.T) *rotating {
	t.Helper()
	r := &rotating{production: initialise(t), operators: freeAddress(t), acked: map[string]bool{}}
	settings, err := os.OpenFile(r.settings, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = settings.WriteString("admin-listen: " + r.operators + "\n")
		err = errors.Join(err, settings.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	r.server = r.serve(t, freeAddress(t), nil)
	made, err := r.sqs(r.server, r.SecretAccessKey).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")})
	if err != nil {
		t.Fatal(err)
	}
	r.queue = *made.QueueUrl
	return r
}

// load sends until stop is called, which waits for those who do.
func (r *rotating) load(t *testing.T, round int) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	c := r.sqs(r.server, r.SecretAccessKey)
	var clients sync.WaitGroup
	for n := range 4 {
		clients.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				body := fmt.Sprintf("%d/%d/%d", round, n, i)
				if _, err := c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &r.queue, MessageBody: &body}); err != nil {
					continue // nobody said that it was there
				}
				r.mu.Lock()
				r.acked[body] = true
				r.mu.Unlock()
			}
		})
	}
	return func() {
		cancel()
		clients.Wait()
	}
}

// rotate runs godwit keys rotate-root.
func (r *rotating) rotate() (string, error) {
	out, err := exec.Command(binary, "keys", "rotate-root", "--dir", r.dir).CombinedOutput()
	return string(out), err
}

// reopen starts the server again, as somebody does who reads what it says: with the root key
// that is there, or once the rotation has gone on if that is what it asks for. It reports which.
func (r *rotating) reopen(t *testing.T, what string) (state string) {
	t.Helper()
	s := launch(t, r.server.addr, exec.Command(binary, "serve", "--config", r.settings, "--listen", r.server.addr))
	r.server.http.CloseIdleConnections()
	state = "with the key that is there"
	if refusal := s.readyOrEnd(t); refusal != "" {
		state = "once the rotation went on"
		if !strings.Contains(refusal, "root.key.new already; a rotation was interrupted, and goes on by godwit keys rotate-root --dir DIR") {
			t.Fatalf("%s: it does not start, and does not say what to do: %s", what, refusal)
		}
		if out, err := r.rotate(); err != nil || !strings.Contains(out, "root.key.") {
			t.Fatalf("%s: the rotation does not go on: %v: %s", what, err, out)
		}
		s = r.serve(t, r.server.addr, nil)
	}
	r.server = s
	return state
}

// readyOrEnd waits until a server is ready, or has ended with what it then says.
func (p *process) readyOrEnd(t *testing.T) (refusal string) {
	t.Helper()
	eventually(t, "it is ready, or has ended", func() (bool, error) {
		select {
		case <-p.ended:
			refusal = p.stdout.String() + p.stderr.String() + p.cmd.ProcessState.String()
			return true, nil
		default:
		}
		a, err := p.call(t.Context(), "GET", "/_godwit/ready", nil, nil)
		return err == nil && a.status == 200, err
	})
	return refusal
}

// complete has the rotation done, and every message there that was acknowledged.
func (r *rotating) complete(t *testing.T) {
	t.Helper()
	if out, err := r.rotate(); err != nil {
		t.Fatalf("another rotation: %v: %s", err, out)
	}
	r.server.kill()
	r.server = r.serve(t, r.server.addr, nil)
	c := r.sqs(r.server, r.SecretAccessKey)
	missing := len(r.acked)
	for missing > 0 {
		got, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &r.queue, MaxNumberOfMessages: 10, VisibilityTimeout: 3600})
		if err != nil || len(got.Messages) == 0 {
			t.Fatalf("%d messages that were acknowledged are not there, of %d: %v", missing, len(r.acked), err)
		}
		for _, m := range got.Messages {
			if r.acked[*m.Body] {
				r.acked[*m.Body] = false
				missing--
			}
		}
	}
}

// A server that is killed at random while its root key is rotated under load starts with one
// of the two keys, or says which it wants and how; and all that it acknowledged is there.
func TestKilledWhileRotating(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	states := map[string]int{}
	const rounds = 12
	for round := range rounds {
		stop := r.load(t, round)
		victim := r.server
		timer := time.AfterFunc(time.Duration(10+round*4+random.IntN(20))*time.Millisecond, func() { _ = victim.cmd.Process.Kill() })
		_, _ = r.rotate() // however far it comes
		if timer.Stop() {
			_ = victim.cmd.Process.Kill()
		}
		<-victim.ended
		stop()
		states[r.reopen(t, fmt.Sprintf("round %d", round))]++
	}
	t.Log(states)
	r.complete(t)
}

// steps are the places where what a rotation writes becomes another state on the disk: the
// system call before which the process is killed, and the file that it is about.
func (r *rotating) steps() map[string][2]string {
	in := func(name string) string { return filepath.Join(r.dir, name) }
	const rename = "rename,renameat,renameat2"
	return map[string][2]string{
		"before the next key is there":              {"linkat", in("root.key.new")},
		"before both keys are noted":                {rename, filepath.Join(r.data, "root-key.id")},
		"before the kept copy of keys is removed":   {"unlinkat", filepath.Join(r.data, "sealing-keys")},
		"before the access key is under the next":   {rename, in("root-access-key.json")},
		"before the old key has its name":           {"linkat", in("root.key")},
		"before the next key is in the old's place": {rename, in("root.key")},
	}
}

// strace has a process killed at a step: one that is started, or that runs (-p).
func strace(step [2]string, which ...string) *exec.Cmd {
	return exec.Command("strace", append([]string{"-f", "-P", step[1], "-e", "trace=" + step[0], "-e", "inject=" + step[0] + ":signal=KILL"}, which...)...)
}

// The same at each step of a rotation: offline, and of a server under load.
func TestKilledAtEachStepOfARotation(t *testing.T) {
	programs.Need(t, "strace")
	r := newRotating(t)
	for what, step := range r.steps() {
		r.server.terminate(t)
		r.server.exit(t)
		out, err := strace(step, binary, "keys", "rotate-root", "--dir", r.dir).CombinedOutput()
		if err == nil || bytes.Contains(out, []byte("The data is under")) {
			if bytes.Contains(out, []byte("Operation not permitted")) {
				programs.Skip(t, "strace may not trace here")
			}
			t.Fatalf("%s: offline: it was not killed: %v: %s", what, err, out)
		}
		t.Logf("%s: offline: opens %s", what, r.reopen(t, "offline, "+what))
	}
	round := 0
	for what, step := range r.steps() {
		if step[0] == "linkat" && strings.HasSuffix(step[1], ".new") {
			continue // the command makes it before it finds that a server runs
		}
		round++
		stop := r.load(t, round)
		watch := strace(step, "-p", fmt.Sprint(r.server.cmd.Process.Pid))
		said, err := watch.StderrPipe()
		if err == nil {
			err = watch.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(said)
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "attached") {
			t.Fatalf("%q: %v", line, err)
		}
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.Copy(io.Discard, lines)
		}()
		if out, err := r.rotate(); err == nil {
			t.Errorf("%s: online: it was not killed: %s", what, out)
		}
		r.server.kill() // if it was not
		<-drained
		_ = watch.Wait() // it ends with whom it watches
		stop()
		t.Logf("%s: online: opens %s", what, r.reopen(t, "online, "+what))
	}
	r.complete(t)
}

// What the unit starts runs as a user of its own, which alone can have its root key rotated.
func TestRotationAsTheUnitsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run as another user")
	}
	unit, err := os.ReadFile("../../deploy/systemd/godwit.service")
	if err != nil {
		t.Fatal(err)
	}
	start := regexp.MustCompile(`(?m)^ExecStart=godwit (.*)$`).FindStringSubmatch(string(unit))
	if start == nil {
		t.Fatal("the unit starts nothing")
	}
	const user = 65534
	home, err := os.MkdirTemp("", "unit-") // t.TempDir is in a directory of root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	program, err := os.ReadFile(binary)
	if err == nil {
		err = os.WriteFile(filepath.Join(home, "godwit"), program, 0o755) //nolint:gosec // others run it
	}
	for _, dir := range []string{"etc", "lib"} {
		path := filepath.Join(home, dir)
		err = errors.Join(err, os.Mkdir(path, 0o700), os.Chown(path, user, user))
	}
	if err = errors.Join(err, os.Chmod(home, 0o755)); err != nil { //nolint:gosec // others look into it
		t.Fatal(err)
	}
	as := func(uid uint32, args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(home, "godwit"), args...)
		c.Dir, c.Env = home, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + filepath.Join(home, "lib")}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		return c
	}
	made, err := as(user, "init", "--dir", filepath.Join(home, "etc"), "--data", filepath.Join(home, "lib"), "-o", "json").Output()
	p := &production{dir: filepath.Join(home, "etc"), data: filepath.Join(home, "lib"), settings: filepath.Join(home, "etc", "godwit.yaml")}
	if err != nil || json.Unmarshal(made, p) != nil {
		t.Fatalf("init: %v: %s", err, made)
	}
	addr, operators := freeAddress(t), freeAddress(t)
	serve := strings.Fields(strings.ReplaceAll(start[1], "/etc/godwit", p.dir))
	run := func() *process {
		s := launch(t, addr, as(user, append(serve, "--listen", addr, "--admin-listen", operators)...))
		s.awaitReady(t)
		if _, err := p.sqs(s, p.SecretAccessKey).ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
			t.Error(err)
		}
		return s
	}
	settings, err := os.OpenFile(p.settings, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = settings.WriteString("admin-listen: " + operators + "\n")
		err = errors.Join(err, settings.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	s := run()
	before, err := os.ReadFile(filepath.Join(p.dir, "root.key"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := as(0, "keys", "rotate-root", "--dir", p.dir).CombinedOutput(); err == nil || !strings.Contains(string(out), "run this as that user") {
		t.Errorf("as root: %v: %s", err, out)
	}
	if out, err := as(user, "keys", "rotate-root", "--dir", p.dir).CombinedOutput(); err != nil {
		t.Fatalf("as its user: %v: %s", err, out)
	}
	if after, err := os.ReadFile(filepath.Join(p.dir, "root.key")); err != nil || bytes.Equal(before, after) {
		t.Errorf("%v: the root key is the old one", err)
	}
	s.kill()
	run()
}

package clients_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// celery is a directory with the recipe's tasks.py and the test's own tasks, which one
// Python can run.
type celery struct {
	python, dir string
}

// newCelery skips the test where no Python has Celery with what it needs for SQS.
func newCelery(t *testing.T) *celery {
	t.Helper()
	installed(t)
	c := &celery{dir: t.TempDir()}
	for _, python := range []string{"python3", "/usr/bin/python3"} { // Debian's packages are of the latter
		if exec.CommandContext(t.Context(), python, "-c", "import celery, kombu.transport.SQS, boto3, pycurl").Run() == nil {
			c.python = python
			break
		}
	}
	if c.python == "" {
		skips.skip(t, "Celery", "no python3 has it (apt-get install python3-celery python3-boto3 python3-pycurl)")
	}
	document, err := os.ReadFile("../../docs/howto/celery.md")
	if err != nil {
		t.Fatal(err)
	}
	recipe := regexp.MustCompile(`(?s)cat > tasks\.py <<'EOF'\n(.*?)\nEOF\n`).FindSubmatch(document)
	if recipe == nil {
		t.Fatal("docs/howto/celery.md has no tasks.py")
	}
	c.write(t, "tasks.py", bytes.ReplaceAll(recipe[1], []byte("127.0.0.1:4566"), []byte(serverURL.Host)))
	for _, name := range []string{"jobs.py", "client.py"} {
		text, err := os.ReadFile(filepath.Join("celery", name))
		if err != nil {
			t.Fatal(err)
		}
		c.write(t, name, text)
	}
	return c
}

func (c *celery) write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c *celery) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.python, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "JOBS_DIR="+c.dir, "PYTHONWARNINGS=ignore", "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// ask runs client.py.
func (c *celery) ask(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	out, err := c.command(ctx, append([]string{"client.py"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// worker is a worker with one process for tasks.
type worker struct {
	cmd   *exec.Cmd
	out   *os.File
	ended chan error
}

func (c *celery) work(t *testing.T, name string) *worker {
	t.Helper()
	out, err := os.Create(filepath.Join(c.dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{cmd: c.command(context.WithoutCancel(t.Context()), "-m", "celery", "-A", "jobs", "worker",
		"-n", name+"@%h", "-c", "1", "-l", "info", "-Q", "celery,reports"), out: out, ended: make(chan error, 1)}
	w.cmd.Stdout, w.cmd.Stderr = out, out
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { w.ended <- w.cmd.Wait() }()
	t.Cleanup(func() {
		w.kill()
		out.Close()
		if t.Failed() {
			text, _ := os.ReadFile(out.Name())
			t.Logf("%s:\n%s", name, text)
		}
	})
	return w
}

// kill ends the worker and its process for tasks at once.
func (w *worker) kill() { _ = syscall.Kill(-w.cmd.Process.Pid, syscall.SIGKILL) }

// until waits for something that other processes bring about.
func until(t *testing.T, what string, done func() (bool, string)) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(testTimeout)
	for {
		ok, now := done()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not after %v: %s; there is\n%s", testTimeout, what, now)
		}
	}
}

// done are the lines of tasks that have ended, in order.
func (c *celery) done() []string {
	text, err := os.ReadFile(filepath.Join(c.dir, "done"))
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(regexp.MustCompile(`^due [\d.]+`).ReplaceAllString(line, "due"))
	}
	slices.Sort(lines)
	return lines
}

// held are the workers that have a task of that name under way.
func (c *celery) held(name string) []string {
	all, _ := filepath.Glob(filepath.Join(c.dir, name+".*"))
	return all
}

// TestCelery runs the recipe of docs/howto/celery.md and what else people do with it: many tasks on two
// workers, retries, a countdown and a time, a queue that is made by its first task,
// a worker that is killed with a task, and one that is told to end.
func TestCelery(t *testing.T) {
	t.Parallel()
	c := newCelery(t)
	one, two := c.work(t, "one"), c.work(t, "two")
	c.ask(t, "everyday")
	want := []string{"flaky 2 2", "due 0", "due 0", "work elsewhere 0", "work " + strings.Repeat("ü", 10_000) + " 0"}
	for n := range 20 {
		want = append(want, fmt.Sprintf("work %d 0", n))
	}
	slices.Sort(want)
	until(t, "all tasks have run once", func() (bool, string) {
		got := c.done()
		return slices.Equal(got, want), strings.Join(got, "\n")
	})
	billed := func() (n int) {
		for _, w := range []*worker{one, two} {
			text, _ := os.ReadFile(w.out.Name())
			n += strings.Count(string(text), "tasks.bill[") / 2 // received, succeeded
		}
		return n
	}
	until(t, "the recipe's task has run", func() (bool, string) { return billed() == 1, fmt.Sprint(billed()) })

	// A worker that is killed gives its task to the other when the visibility timeout ends.
	c.ask(t, "held", "killed")
	until(t, "a worker has the task", func() (bool, string) { return len(c.held("killed")) == 1, "" })
	survivor := two
	if strings.HasSuffix(c.held("killed")[0], fmt.Sprint(".", two.cmd.Process.Pid)) {
		survivor = one
		two.kill()
		<-two.ended
	} else {
		one.kill()
		<-one.ended
	}
	until(t, "the other has it", func() (bool, string) { return len(c.held("killed")) == 2, "" })
	c.write(t, "go", nil)
	until(t, "it has run", func() (bool, string) {
		return slices.Contains(c.done(), "held killed 0"), strings.Join(c.done(), "\n")
	})

	// One that is told to end ends its task before.
	if err := os.Remove(filepath.Join(c.dir, "go")); err != nil {
		t.Fatal(err)
	}
	c.ask(t, "held", "last")
	until(t, "the worker has the task", func() (bool, string) { return len(c.held("last")) == 1, "" })
	if err := survivor.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.write(t, "go", nil)
	if err := <-survivor.ended; err != nil {
		t.Errorf("the worker ended: %v", err)
	}
	if !slices.Contains(c.done(), "held last 0") {
		t.Errorf("the last task has not run:\n%s", strings.Join(c.done(), "\n"))
	}
	if got := c.ask(t, "left"); got != "celery 0 0 20\nreports 0 0 20\n" {
		t.Errorf("the queues hold\n%s", got)
	}
}

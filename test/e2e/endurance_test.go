//go:build linux

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/test/soak"
)

// Rates of the load, as periods, and how long it goes on in each cycle.
const (
	sendEvery    = 100 * time.Millisecond // a batch of ten
	publishEvery = 100 * time.Millisecond
	loadedFor    = 8 * time.Second
)

// endurance is one server that is under load for long, cycle after cycle. In each it is backed
// up, the backup is restored, and the server on that is killed, started again and checked;
// another server imports its resources; and its disk is filled and emptied.
type endurance struct {
	*diskTest

	cycle    int
	work     string // queue that is sent to and published to, and consumed
	keep     string // queue that nobody consumes
	news     string // topic with work and the hook
	hook     *sink
	importer *process
	pprof    string
	full     bool // the disk is a small one

	mu      sync.Mutex
	sent    map[string]bool // bodies to work that were acknowledged; true once received
	deleted map[string]bool // of these, those whose delete was acknowledged
	kept    map[string]time.Time
	hooked  []string
	wrong   []string
	total   struct{ sent, published, kept, restored, filled int }
}

// TestEndurance holds memory, goroutines, descriptors and disk of a server that has been at work
// against what they were before, and accounts for all that was acknowledged. make soak runs it
// for GODWIT_SOAK_TIME, and docs/reliability.md has what it printed.
func TestEndurance(t *testing.T) {
	t.Parallel()
	e := newEndurance(t)
	until := time.Now().Add(soak.Time(t))
	samples := []sample{e.sample(t)}
	t.Logf("%s", sampleHead)
	for e.cycle = 1; len(samples) < 2 || time.Now().Before(until); e.cycle++ {
		e.run(t)
		s := e.sample(t)
		samples = append(samples, s)
		t.Logf("%3d  %s", e.cycle, s)
	}
	t.Logf("%d sent, %d published, %d kept; %d restored; %d to fill the disk", e.total.sent, e.total.published, e.total.kept, e.total.restored, e.total.filled)
	for _, text := range e.wrong {
		t.Error(text)
	}
	holdFlat(t, samples[1:])
	e.kill()
	e.process = startAt(t, e.addr, e.data, e.flags()...)
	e.drain(t)
	e.empty(t)
}

func newEndurance(t *testing.T) *endurance {
	e := &endurance{
		pprof: freeAddress(t), sent: map[string]bool{}, deleted: map[string]bool{}, kept: map[string]time.Time{},
	}
	dir := t.TempDir()
	if soak.Enabled() && os.Geteuid() == 0 { // TestFullDisk is short enough
		dir, e.full = smallDisk(t), true
	}
	e.diskTest = &diskTest{data: filepath.Join(dir, "data"), acked: map[string]bool{}}
	e.process = startAt(t, freeAddress(t), e.data, e.flags()...)
	e.queue = e.createQueue(t, "heap")
	// What is restored of keep is received once, however long that takes.
	e.work, e.keep = e.createQueue(t, "work"), e.createQueue(t, "keep", "VisibilityTimeout", "3600")
	e.news = e.createTopic(t, "news")
	e.subscribe(t, e.news, "sqs", queueARN("work"), "RawMessageDelivery", "true")
	e.hook = newSink(t, nil)
	e.subscribeSink(t, e.news, e.hook)
	e.importer = start(t, "--store", "memory")
	return e
}

// flags have finished deliveries kept for less than a cycle, not for an hour: what is kept would
// grow for as long.
func (e *endurance) flags() []string {
	return []string{"--pprof", e.pprof, "--delivery-history", "10s"}
}

// run is a cycle.
func (e *endurance) run(t *testing.T) {
	extra := e.createQueue(t, fmt.Sprint("cycle-", e.cycle))
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	e.load(ctx, &clients)
	if soak.Enabled() {
		pass(ctx, loadedFor)
	}
	dir := t.TempDir()
	backup := filepath.Join(dir, "backup")
	began := time.Now()
	e.command(t, 0, "backup", "--endpoint", e.base, backup)
	e.command(t, 0, "check", backup)
	e.imported(t)
	cancel()
	clients.Wait()
	e.restored(t, dir, backup, began)
	e.drain(t)
	e.mustSQS(t, "PurgeQueue", object{"QueueUrl": e.keep}, nil)
	clear(e.kept)
	e.mustSQS(t, "DeleteQueue", object{"QueueUrl": extra}, nil)
	if e.full {
		checkNoSpace(t, e.fill(t), "com.amazon.coral.service#InsufficientStorageException")
		e.total.filled += len(e.acked)
		e.empty(t)
		e.healthy(t)
		e.empty(t)
		clear(e.acked)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}

// every calls f once in a period until the context ends.
func every(ctx context.Context, period time.Duration, f func(n int)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		f(n)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// load has clients send, publish, keep and consume.
func (e *endurance) load(ctx context.Context, clients *sync.WaitGroup) {
	told := func(err error) bool {
		if err != nil && ctx.Err() == nil {
			e.complain("%v", err)
		}
		return err == nil
	}
	clients.Go(func() {
		every(ctx, sendEvery, func(n int) {
			entries, bodies := make([]object, 10), make([]string, 10)
			for i := range entries {
				bodies[i] = fmt.Sprintf("sent %d %d %d %s", e.cycle, n, i, strings.Repeat("x", 200))
				entries[i] = object{"Id": fmt.Sprint(i), "MessageBody": bodies[i]}
			}
			if told(e.sqs(ctx, "SendMessageBatch", object{"QueueUrl": e.work, "Entries": entries}, nil)) {
				e.acknowledged(&e.total.sent, bodies...)
			}
		})
	})
	clients.Go(func() {
		every(ctx, publishEvery, func(n int) {
			body := fmt.Sprintf("published %d %d", e.cycle, n)
			if _, err := e.publish(ctx, e.news, body, ""); told(err) {
				e.acknowledged(&e.total.published, body)
				e.mu.Lock()
				e.hooked = append(e.hooked, body)
				e.mu.Unlock()
			}
		})
	})
	clients.Go(func() {
		every(ctx, publishEvery, func(n int) {
			body := fmt.Sprintf("kept %d %d", e.cycle, n)
			if told(e.sqs(ctx, "SendMessage", object{"QueueUrl": e.keep, "MessageBody": body}, nil)) {
				e.mu.Lock()
				e.kept[body] = time.Now()
				e.total.kept++
				e.mu.Unlock()
			}
		})
	})
	clients.Go(func() {
		for ctx.Err() == nil { // what it has begun it ends: nothing stays in flight
			_, err := e.consume(context.WithoutCancel(ctx), 1)
			told(err)
		}
	})
}

func (e *endurance) complain(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.wrong) < mostWrong {
		e.wrong = append(e.wrong, fmt.Sprintf("cycle %d: ", e.cycle)+fmt.Sprintf(format, args...))
	}
}

func (e *endurance) acknowledged(count *int, bodies ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, body := range bodies {
		if _, received := e.sent[body]; !received { // it may have come before its answer
			e.sent[body] = false
		}
		*count++
	}
}

// consume receives some messages of work and deletes them.
func (e *endurance) consume(ctx context.Context, wait int) (n int, err error) {
	got, err := e.receive(ctx, e.work, wait)
	if err != nil || len(got) == 0 {
		return 0, err
	}
	entries := make([]object, len(got))
	for i, m := range got {
		entries[i] = object{"Id": fmt.Sprint(i), "ReceiptHandle": m.ReceiptHandle}
		e.mu.Lock()
		again := e.deleted[m.Body]
		e.sent[m.Body] = true
		e.mu.Unlock()
		if again {
			e.complain("%.30q was deleted and is there again", m.Body)
		}
	}
	var out struct{ Failed []object }
	if err := e.sqs(ctx, "DeleteMessageBatch", object{"QueueUrl": e.work, "Entries": entries}, &out); err != nil {
		return len(got), err
	}
	if len(out.Failed) > 0 {
		return len(got), fmt.Errorf("deletes failed: %v", out.Failed)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range got {
		e.deleted[m.Body] = true
	}
	return len(got), nil
}

// drain consumes what there is, and sees that all that was acknowledged has come.
func (e *endurance) drain(t *testing.T) {
	t.Helper()
	eventually(t, "work is done", func() (bool, error) {
		for began := time.Now(); time.Since(began) < testTimeout; {
			n, err := e.consume(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
		}
		counts := e.counts(t, e.work) // in flight is what a consumer had that was stopped
		return counts == [3]int{}, fmt.Errorf("%v messages", counts)
	})
	eventually(t, "the hook has what was published", func() (bool, error) {
		missing := 0
		for _, body := range e.hooked {
			if _, taken := e.hook.count(body); taken == 0 {
				missing++
			}
		}
		return missing == 0, fmt.Errorf("%d are missing", missing)
	})
	for body, received := range e.sent {
		if !received {
			e.complain("%.30q is lost", body)
		}
	}
	clear(e.sent)
	clear(e.deleted)
	e.hooked = nil
	e.hook.mu.Lock()
	defer e.hook.mu.Unlock()
	clear(e.hook.seen)
	clear(e.hook.taken)
}

// command runs the binary.
func (e *endurance) command(t *testing.T, status int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	out, _ := cmd.CombinedOutput() // its status is looked at
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Fatalf("godwit %s: status %d, want %d\n%s", strings.Join(args, " "), got, status, out)
	}
	return string(out)
}

// imported has another server take the resources, twice.
func (e *endurance) imported(t *testing.T) {
	t.Helper()
	args := []string{"import", "--from-endpoint", e.base, "--endpoint", e.importer.base}
	name := fmt.Sprint("cycle-", e.cycle)
	if out := e.command(t, 0, args...); !strings.Contains(out, "+ queue "+name) {
		t.Errorf("the import has no %s:\n%s", name, out)
	}
	if out := e.command(t, 0, args...); strings.Contains(out, "+ queue ") {
		t.Errorf("a second import changes something:\n%s", out)
	}
	e.importer.mustSQS(t, "DeleteQueue", object{"QueueUrl": e.importer.queueURL(name)}, nil)
}

// restored starts a server on a backup, kills it, and holds what it has against what was
// acknowledged when the backup began.
func (e *endurance) restored(t *testing.T, dir, backup string, began time.Time) {
	t.Helper()
	data := filepath.Join(dir, "restored")
	e.command(t, 0, "restore", backup, "--data", data, "--root-key", filepath.Join(e.data, "dev-root.key"))
	other := startAt(t, freeAddress(t), data)
	keep := other.queueURL("keep")
	after := fmt.Sprint("after ", e.cycle)
	other.mustSQS(t, "SendMessage", object{"QueueUrl": keep, "MessageBody": after}, nil)
	other.kill()
	if out := e.command(t, 0, "check", data); !strings.Contains(out, "nothing is damaged") {
		t.Errorf("the data of a server that was killed:\n%s", out)
	}
	other = startAt(t, freeAddress(t), data)
	keep = other.queueURL("keep")
	got := map[string]bool{}
	for {
		all, err := other.receive(t.Context(), keep, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			break
		}
		for _, m := range all {
			got[m.Body] = true
		}
	}
	other.kill()
	for body, at := range e.kept {
		if at.Before(began) && !got[body] {
			e.complain("%q was acknowledged before the backup began, and is not in it", body)
		}
	}
	if !got[after] {
		e.complain("%q is lost by a kill", after)
	}
	delete(got, after)
	for body := range got {
		if _, ok := e.kept[body]; !ok && !strings.HasPrefix(body, fmt.Sprintf("kept %d ", e.cycle)) {
			e.complain("%q is in the backup, and was purged", body)
		}
	}
	e.total.restored += len(got)
}

// sample is what a server takes when it has nothing to do.
type sample struct {
	goroutines           int
	descriptors, tables  int     // others than of the store's files, and those
	heap, resident, disk float64 // MB
}

const sampleHead = "cycle  goroutines  descriptors  of files of the store  heap MB  resident MB  disk MB"

func (s sample) String() string {
	return fmt.Sprintf("%10d  %11d  %21d  %7.1f  %11.1f  %7.1f", s.goroutines, s.descriptors, s.tables, s.heap, s.resident, s.disk)
}

// sample waits for connections to end and for the store to merge what it has, until two looks
// at it are the same; and has the collector run.
func (e *endurance) sample(t *testing.T) (s sample) {
	t.Helper()
	e.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	last := sample{}
	for calm := 0; calm < 3 && ctx.Err() == nil; calm++ {
		pass(ctx, 300*time.Millisecond)
		if s = e.look(t); s.goroutines != last.goroutines || s.descriptors != last.descriptors || s.disk != last.disk {
			calm = -1
		}
		last = s
	}
	return s
}

func (e *endurance) look(t *testing.T) (s sample) {
	t.Helper()
	collect := client{base: "http://" + e.pprof, http: e.http, hung: e.hung}
	if a, err := collect.call(t.Context(), http.MethodGet, "/debug/pprof/heap?gc=1", nil, nil); err != nil || a.status != http.StatusOK {
		t.Fatalf("the heap: %d, %v", a.status, err)
	}
	a, err := e.call(t.Context(), http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(a.body)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			values[name] = v
		}
	}
	for _, name := range []string{"go_goroutines", "go_memstats_heap_alloc_bytes", "process_resident_memory_bytes"} {
		if values[name] == 0 {
			t.Fatalf("there is no metric %s", name)
		}
	}
	const mb = 1 << 20
	s = sample{
		goroutines: int(values["go_goroutines"]), heap: values["go_memstats_heap_alloc_bytes"] / mb,
		resident: values["process_resident_memory_bytes"] / mb, disk: onDisk(t, e.data) / mb,
	}
	open := fmt.Sprintf("/proc/%d/fd", e.cmd.Process.Pid)
	all, err := os.ReadDir(open)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if to, err := os.Readlink(filepath.Join(open, d.Name())); err == nil && strings.HasPrefix(to, e.data) {
			s.tables++
		} else if err == nil {
			s.descriptors++
		}
	}
	return s
}

// onDisk are the bytes of all files below a directory. The store may remove some meanwhile.
func onDisk(t *testing.T, dir string) (size float64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info os.FileInfo
			if info, err = d.Info(); err == nil {
				size += float64(info.Size())
			}
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// holdFlat compares the middle of the last third of the samples with that of the first third.
// What grows with each cycle grows between them by a third of the cycles; what may differ from
// look to look is allowed for.
func holdFlat(t *testing.T, all []sample) {
	t.Helper()
	if len(all) < 3 {
		return
	}
	third := len(all) / 3
	middle := func(of []sample, value func(sample) float64) float64 {
		var values []float64
		for _, s := range of {
			values = append(values, value(s))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	for name, of := range map[string]struct {
		value       func(sample) float64
		more, times float64
	}{
		"goroutines":         {func(s sample) float64 { return float64(s.goroutines) }, 8, 1},
		"descriptors":        {func(s sample) float64 { return float64(s.descriptors) }, 4, 1},
		"files of the store": {func(s sample) float64 { return float64(s.tables) }, 64, 1},
		"MB of the heap":     {func(s sample) float64 { return s.heap }, 12, 1.1}, // 16,384 signatures are kept, and what was published of late
		"MB resident":        {func(s sample) float64 { return s.resident }, 32, 1.2},
		"MB on the disk":     {func(s sample) float64 { return s.disk }, 48, 1.1}, // more or less is merged yet
	} {
		first, last := middle(all[:third], of.value), middle(all[len(all)-third:], of.value)
		if last > first*of.times+of.more {
			t.Errorf("%s: %.1f in the first third of the cycles, %.1f in the last", name, first, last)
		}
	}
}

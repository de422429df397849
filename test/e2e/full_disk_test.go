//go:build linux

package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"godwit.dev/godwit/test/soak"
)

const (
	diskSize = 96 << 20 // bytes
	fillSize = 64 << 10 // of one of the messages that fill it
)

// smallDisk mounts a file system of its own for a test.
func smallDisk(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", diskSize), "godwit-e2e", dir).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here, which takes root: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}

// fillerText is text that no store can compress.
func fillerText(size int) string {
	p := make([]byte, (size*3+3)/4)
	_, _ = rand.Read(p) // never fails
	return base64.StdEncoding.EncodeToString(p)[:size]
}

// diskTest is a server on a small disk, and what it has acknowledged.
type diskTest struct {
	*process
	data  string
	queue string
	topic string

	mu    sync.Mutex
	acked map[string]bool // message ids; true once received
}

func newDiskTest(t *testing.T, dir string) *diskTest {
	d := &diskTest{data: filepath.Join(dir, "data"), acked: map[string]bool{}}
	d.process = startAt(t, freeAddress(t), d.data)
	d.queue = d.createQueue(t, "heap")
	d.topic = d.createTopic(t, "news")
	d.subscribe(t, d.topic, "sqs", queueARN("heap"))
	return d
}

// send sends a batch of ten of the given size.
func (d *diskTest) send(ctx context.Context, size int) error {
	entries := make([]object, 10)
	for i := range entries {
		entries[i] = object{"Id": fmt.Sprint(i), "MessageBody": fillerText(size)}
	}
	var out struct{ Successful []struct{ MessageId string } }
	if err := d.sqs(ctx, "SendMessageBatch", object{"QueueUrl": d.queue, "Entries": entries}, &out); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range out.Successful {
		d.acked[m.MessageId] = false
	}
	return nil
}

// fill sends until that is refused.
func (d *diskTest) fill(t *testing.T) *refusal {
	t.Helper()
	for range 2 * diskSize / (10 * fillSize) {
		err := d.send(t.Context(), fillSize)
		if r, ok := errors.AsType[*refusal](err); ok {
			return r
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the disk takes twice what it has room for")
	return nil
}

// empty receives and deletes everything, and sees that nothing acknowledged is missing.
func (d *diskTest) empty(t *testing.T) {
	t.Helper()
	eventually(t, "the queue is empty", func() (bool, error) {
		for began := time.Now(); time.Since(began) < testTimeout; {
			got, err := d.receive(t.Context(), d.queue, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 {
				break
			}
			entries := make([]object, len(got))
			for i, m := range got {
				d.acked[m.MessageId] = true
				entries[i] = object{"Id": fmt.Sprint(i), "ReceiptHandle": m.ReceiptHandle}
			}
			var out struct{ Failed []object }
			d.mustSQS(t, "DeleteMessageBatch", object{"QueueUrl": d.queue, "Entries": entries}, &out)
			if len(out.Failed) > 0 {
				t.Fatalf("deletes failed: %v", out.Failed)
			}
		}
		counts := d.counts(t, d.queue)
		return counts == [3]int{}, fmt.Errorf("%v messages", counts)
	})
	lost := 0
	for _, seen := range d.acked {
		if !seen {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged messages are lost", lost, len(d.acked))
	}
}

// healthy waits until sends are taken again.
func (d *diskTest) healthy(t *testing.T) {
	t.Helper()
	began := time.Now()
	eventually(t, "sends are taken again", func() (bool, error) {
		err := d.send(t.Context(), 100)
		return err == nil, err
	})
	t.Logf("sends are taken again after %s", time.Since(began).Round(time.Millisecond))
	d.admin(t, http.MethodGet, "health", nil, http.StatusOK, nil)
}

func checkNoSpace(t *testing.T, err error, code string) {
	t.Helper()
	r, ok := errors.AsType[*refusal](err)
	if !ok || r.status != http.StatusInsufficientStorage || r.code != code || !strings.Contains(r.message, "free space") {
		t.Errorf("refused with %v; want 507 %s that speaks of free space", err, code)
	}
}

// TestFullDisk fills the disk with messages until they are refused.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	soak.Campaign(t, 1, func(t *testing.T, _ uint64) { testFullDisk(t) })
}

func testFullDisk(t *testing.T) {
	d := newDiskTest(t, smallDisk(t))
	checkNoSpace(t, d.fill(t), "com.amazon.coral.service#InsufficientStorageException")
	_, err := d.publish(t.Context(), d.topic, "no room", "")
	checkNoSpace(t, err, "InsufficientStorage")
	filled := len(d.acked)

	var health struct {
		Status   string
		Problems map[string]string
	}
	d.admin(t, http.MethodGet, "health", nil, http.StatusServiceUnavailable, &health)
	if health.Status != "failing" || !strings.Contains(health.Problems["disk"], "space is low") {
		t.Errorf("health says %+v", health)
	}
	if !strings.Contains(d.stderr.String(), "disk space is low") {
		t.Error("the log says nothing of the disk")
	}

	// Full as it is, it survives a kill.
	d.kill()
	d.process = startAt(t, d.addr, d.data)
	checkNoSpace(t, d.fill(t), "com.amazon.coral.service#InsufficientStorageException")

	d.empty(t)
	d.healthy(t)
	// Again and again, until more was stored than the disk can hold at once.
	const enough = diskSize * 5 / 4 / fillSize
	rounds := 0
	for ; len(d.acked) < enough && rounds < 20; rounds++ {
		d.fill(t)
		d.empty(t)
		d.healthy(t)
	}
	if len(d.acked) < enough {
		t.Errorf("the disk took %d messages at first, and %d in %d more rounds: space does not come back", filled, len(d.acked)-filled, rounds)
	}
	t.Logf("%d messages of 64 KiB at first, %d in %d more rounds", filled, len(d.acked)-filled, rounds)
}

// TestDiskFilledByOthers has somebody else take the disk's last byte while
// messages are sent.
func TestDiskFilledByOthers(t *testing.T) {
	t.Parallel()
	soak.Campaign(t, 1, func(t *testing.T, _ uint64) {
		disk := smallDisk(t)
		for range 20 {
			if filledByOthers(t, disk) {
				return
			}
			t.Log("once more: the server had given up its reserve before the disk was full, and that went, too")
		}
		t.Fatal("the server gives up its reserve each time before the disk is full")
	})
}

// filledByOthers is one run; false if it says nothing, as a check of the server's
// came while the disk was being filled.
func filledByOthers(t *testing.T, disk string) bool {
	d := newDiskTest(t, disk)
	reserve := filepath.Join(d.data, "godwit-reserve")
	kept, err := os.Stat(reserve)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var senders sync.WaitGroup
	var refused []error
	for range 4 {
		senders.Go(func() {
			for ctx.Err() == nil {
				err := d.send(ctx, 4<<10)
				if r, ok := errors.AsType[*refusal](err); !ok && err != nil {
					return // the server is gone, or ctx ended; what follows finds out
				} else if ok {
					d.mu.Lock()
					refused = append(refused, r)
					d.mu.Unlock()
					return
				}
			}
		})
	}
	hog := filepath.Join(disk, "hog")
	f, err := os.Create(hog)
	if err != nil {
		t.Fatal(err)
	}
	// Down to where nobody minds, and then with one call, so that it is over before
	// it is noticed.
	const unnoticed = diskSize * 3 / 10
	took := freeSpace(t, disk) - unnoticed
	err = syscall.Fallocate(int(f.Fd()), 0, 0, took)
	for rest := freeSpace(t, disk); err == nil && rest > 0; rest = freeSpace(t, disk) {
		err = syscall.Fallocate(int(f.Fd()), 0, took, rest)
		if err == nil {
			break
		}
		if errors.Is(err, syscall.ENOSPC) { // the server took some of it
			err = nil
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	left := freeSpace(t, disk)
	if _, err := os.Stat(reserve); err == nil {
		left += kept.Size()
	}
	if left < kept.Size()/2 {
		d.kill()
		cancel()
		senders.Wait()
		if err := errors.Join(os.Remove(hog), os.RemoveAll(d.data)); err != nil {
			t.Fatal(err)
		}
		return false
	}
	senders.Wait()
	cancel()
	select {
	case <-d.ended:
		t.Fatalf("the server ended: %s\n%s", d.cmd.ProcessState, d.stderr.String())
	default:
	}
	if len(refused) != 4 {
		t.Errorf("%d of 4 senders were refused", len(refused))
	}
	for _, err := range refused {
		checkNoSpace(t, err, "com.amazon.coral.service#InsufficientStorageException")
	}

	d.empty(t) // deletes continue without the space
	if err := os.Remove(hog); err != nil {
		t.Fatal(err)
	}
	d.healthy(t)
	d.empty(t)
	return true
}

func freeSpace(t *testing.T, dir string) int64 {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize
}

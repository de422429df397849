package shardtest

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/journal"
)

// CrashInSteps runs steps on a module, and crashes the disk at each of its commits, before
// they are applied, and behind each step. What a crash has left must be the state behind
// the last step that was done, or that behind the one that was under way: nothing that was
// acknowledged is lost, and no step is there by half. Each crash keeps several shares,
// one to three, of what was not synced, by a seed. open opens the module on a journal,
// for as long as the test runs; state lists all of it.
func CrashInSteps[M any](t *testing.T, seed uint64, shares int, open func(j *journal.Journal) M, state func(m M) string, steps ...func(m M)) {
	t.Helper()
	type crashed struct {
		fs   *vfs.MemFS
		done int // steps
	}
	var mu sync.Mutex
	var states []string
	var disks []crashed
	r := rand.New(rand.NewPCG(seed, 1))
	fs := vfs.NewCrashableMem()
	crash := func() {
		mu.Lock()
		defer mu.Unlock()
		if len(states) == 0 {
			return // it is being opened
		}
		for _, percent := range []int{r.IntN(101), 0, 100}[:shares] {
			disks = append(disks, crashed{done: len(states) - 1, fs: fs.CrashClone(vfs.CrashCloneCfg{
				UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(r.Uint64(), 2)),
			})})
		}
	}
	m := open(JournalOf(t, OpenStore(t, fs), func([]byte) { crash() }))
	stands := func() {
		now := state(m)
		mu.Lock()
		defer mu.Unlock()
		states = append(states, now)
	}
	stands()
	for _, step := range steps {
		step(m)
		stands()
		crash()
	}
	mu.Lock()
	defer mu.Unlock()
	for i, disk := range disks {
		got := state(open(JournalOf(t, OpenStore(t, disk.fs), nil)))
		if got != states[disk.done] && (disk.done+1 == len(states) || got != states[disk.done+1]) {
			t.Fatalf("crash %d, behind step %d:\n%s\nwant\n%s\nor what the next step makes of it", i, disk.done, got, states[disk.done])
		}
	}
	if len(disks) < len(steps) {
		t.Fatalf("only %d crashes", len(disks))
	}
}

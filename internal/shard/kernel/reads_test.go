package kernel

import (
	"errors"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/store/memory"
)

// appending stops its command where its change is seen but not appended yet.
type appending struct {
	counted
	once       sync.Once
	seen, goOn chan struct{}
}

func (a *appending) FinishBytes() int {
	a.once.Do(func() {
		close(a.seen)
		<-a.goOn
	})
	return a.counted.FinishBytes()
}

// TestReadsAreDurable: an answer that changes nothing waits for what commands have changed
// before, though it read that without the lock while it was not appended yet.
func TestReadsAreDurable(t *testing.T) {
	for name, read := range map[string]func(sh *Shard) error{
		"without the lock": func(sh *Shard) error { sh.AwaitReads(); return nil },
		"a command":        func(sh *Shard) error { return sh.RunDurableReads(func(*Tx) error { return nil }) },
		"a refusal": func(sh *Shard) error {
			refusal := errors.New("no")
			if err := sh.RunDurableReads(func(*Tx) error { return refusal }); !errors.Is(err, refusal) {
				return errors.New("not refused")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := openKernel(t, memory.New(), clock.System, func(*Kernel) {})
			sh := k.All[3]
			a := &appending{seen: make(chan struct{}), goOn: make(chan struct{})}
			changed := make(chan struct{})
			go func() {
				defer close(changed)
				_, _ = sh.Run(journal.Lazy, func(*Tx) error {
					sh.Batch.Set(key(3, "changed"), nil)
					sh.MarkDirty(a)
					return nil
				})
			}()
			<-a.seen
			answered := make(chan error)
			go func() { answered <- read(sh) }()
			over, stop := clock.After(clock.System, 20*time.Millisecond)
			defer stop()
			select {
			case <-answered:
				t.Error("answered before the change was appended")
			case <-over:
			}
			close(a.goOn)
			if err := <-answered; err != nil || !sh.Stream.Last().Durable() {
				t.Errorf("answered before the change was durable, %v", err)
			}
			<-changed
		})
	}
}

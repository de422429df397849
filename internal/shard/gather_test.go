package shard

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/memory"
)

// gathered runs gather with callers who wait for the group already and others who
// come a while later, and returns how long it took.
func gathered(l *commitLog, waiting, later int, after time.Duration) time.Duration {
	g := l.open
	for range waiting {
		go g.wait()
	}
	for range later {
		clock.System.AfterFunc(after, g.wait)
	}
	synctest.Wait()
	began := clock.System.Now()
	l.gather()
	took := clock.System.Now().Sub(began)
	over := make(chan struct{})
	clock.System.AfterFunc(after, func() { close(over) })
	<-over
	close(g.done)
	l.open = newGroup(g.number + 1)
	return took
}

// TestGather: a commit waits for those who are likely to come, as long as it takes
// and no longer than it may.
func TestGather(t *testing.T) {
	const soon, late = gatherWait / 2, 2 * gatherWait
	cases := []struct {
		name           string
		company        int32
		waiting, later int
		after, want    time.Duration
	}{
		{"alone", 1, 1, 0, 0, 0},
		{"few", gatherLeast - 1, 1, gatherLeast - 2, soon, 0},
		{"all are there", gatherLeast, gatherLeast, 0, 0, 0},
		{"the others come", gatherLeast, 3, gatherLeast - 3, soon, soon},
		{"not all come", gatherLeast, 3, gatherLeast - 4, soon, gatherWait},
		{"they come late", gatherLeast, 3, gatherLeast - 3, late, gatherWait},
		{"enough of many come", 4 * gatherMost, 3, gatherMost - 3, soon, soon},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &commitLog{open: newGroup(1), gathering: gathering{company: c.company}}
				if got := gathered(l, c.waiting, c.later, c.after); got != c.want {
					t.Errorf("it took %s, not %s", got, c.want)
				}
			})
		})
	}
}

// TestGatherGivesUp: where nobody comes, ever fewer commits wait, and none fewer
// once somebody has come.
func TestGatherGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &commitLog{open: newGroup(1), gathering: gathering{company: gatherLeast}}
		without := func() (n int) {
			for gathered(l, 1, 0, 0) == 0 {
				n++
			}
			return n
		}
		for _, want := range []int{0, 1, 2, 4, 8} {
			if got := without(); got != want {
				t.Fatalf("%d commits did not wait, not %d", got, want)
			}
		}
		for range 10 {
			without()
		}
		if got := without(); got != skipMost {
			t.Errorf("at last %d commits do not wait", got)
		}
		for range skipMost {
			gathered(l, 1, 0, 0)
		}
		if got := gathered(l, 1, gatherLeast-1, gatherWait/2); got != gatherWait/2 {
			t.Errorf("it took %s until all had come", got)
		}
		if got := without(); got != 0 {
			t.Errorf("after that %d commits did not wait", got)
		}
	})
}

// TestCompany: expected are those who have been answered and those who came while
// they were.
func TestCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &gatedStore{Store: memory.New()}
		var l *commitLog
		var expected []int32 // before each commit
		l = newCommitLog(s, nil, func(time.Duration) { expected = append(expected, l.company) }, func(err error) { t.Error(err) })
		sh := &shard{}
		send := func() {
			sh.batch.Set([]byte{1}, nil)
			go l.append(true, part{shard: sh, batch: &sh.batch}).wait()
		}
		s.shut()
		for range 3 {
			send()
		}
		synctest.Wait()
		for range 2 { // while these are being made durable
			send()
		}
		synctest.Wait()
		s.open()
		synctest.Wait()
		l.close()
		if expected = append(expected, l.company); !slices.Equal(expected, []int32{0, 5, 2}) {
			t.Errorf("expected are %v", expected)
		}
	})
}

// TestGatherForTheSameGroup: a group that was waited for in vain, as others had
// flushed it, can be waited for again.
func TestGatherForTheSameGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &commitLog{open: newGroup(1), gathering: gathering{company: gatherLeast}}
		g := l.open
		wait := func(n int) {
			for range n {
				go g.wait()
			}
			synctest.Wait()
		}
		l.gather()
		wait(gatherLeast)
		l.company, l.skip = gatherMost, 0
		l.gather()
		wait(2 * gatherMost)
		close(g.done)
	})
}

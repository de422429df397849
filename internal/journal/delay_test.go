package journal

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// expecting is a journal that does not run and expects some to wait.
func expecting(waiters int32) *Journal {
	j := new(Journal)
	j.open = j.newCommit(1)
	j.delay.expectedWaiters.Store(waiters)
	return j
}

// delayed runs awaitMore with callers who wait for the commit already and others who
// come a while later, and returns how long it took.
func delayed(j *Journal, waiting, later int, after time.Duration) time.Duration {
	c := j.open
	for range waiting {
		go c.Wait()
	}
	for range later {
		clock.System.AfterFunc(after, c.Wait)
	}
	synctest.Wait()
	began := clock.System.Now()
	j.awaitMore()
	took := clock.System.Now().Sub(began)
	over, _ := clock.After(clock.System, after)
	<-over
	close(c.done)
	j.open = j.newCommit(c.number + 1)
	return took
}

// TestCommitDelay: a commit waits for those who are likely to come, as long as it takes
// and no longer than it may.
func TestCommitDelay(t *testing.T) {
	const soon, late = delayTime / 2, 2 * delayTime
	cases := []struct {
		name           string
		expected       int32
		waiting, later int
		after, want    time.Duration
	}{
		{"alone", 1, 1, 0, 0, 0},
		{"few", delayMinWaiters - 1, 1, delayMinWaiters - 2, soon, 0},
		{"all are there", delayMinWaiters, delayMinWaiters, 0, 0, 0},
		{"the others come", delayMinWaiters, 3, delayMinWaiters - 3, soon, soon},
		{"not all come", delayMinWaiters, 3, delayMinWaiters - 4, soon, delayTime},
		{"they come late", delayMinWaiters, 3, delayMinWaiters - 3, late, delayTime},
		{"all of many come", delayManyWaiters, 3, delayManyWaiters - 3, soon, soon},
		{"most of very many come", 4 * delayManyWaiters, 3, 3*delayManyWaiters - 3, soon, soon},
		{"fewer of very many come", 4 * delayManyWaiters, 3, 3*delayManyWaiters - 4, soon, delayTime},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := expecting(c.expected)
				if got := delayed(j, c.waiting, c.later, c.after); got != c.want {
					t.Errorf("it took %s, not %s", got, c.want)
				}
			})
		})
	}
}

// TestCommitDelayGivesUp: where nobody comes, ever fewer commits wait, and none fewer
// once somebody has come.
func TestCommitDelayGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := expecting(delayMinWaiters)
		without := func() (n int) {
			for delayed(j, 1, 0, 0) == 0 {
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
		if got := without(); got != skipMax {
			t.Errorf("at last %d commits do not wait", got)
		}
		for range skipMax {
			delayed(j, 1, 0, 0)
		}
		if got := delayed(j, 1, delayMinWaiters-1, delayTime/2); got != delayTime/2 {
			t.Errorf("it took %s until all had come", got)
		}
		if got := without(); got != 0 {
			t.Errorf("after that %d commits did not wait", got)
		}
	})
}

// TestCommitDelayOfSome: where many come, though not all that are waited for, the next commit
// waits as well.
func TestCommitDelayOfSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := expecting(4 * delayManyWaiters)
		for range 3 {
			if got := delayed(j, 3, delayManyWaiters-3, delayTime/2); got != delayTime {
				t.Errorf("it took %s, not %s", got, delayTime)
			}
		}
		delayed(j, 3, delayManyWaiters-4, delayTime/2)
		if got := delayed(j, 3, 0, 0); got != 0 {
			t.Errorf("where too few had come the next took %s", got)
		}
	})
}

// TestExpectedWaiters: expected are those who have been answered and those who came
// while they were.
func TestExpectedWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storetest.Gated{Store: memory.New()}
		var j *Journal
		var expected []int32 // before each commit
		j = Open(Options{Store: s, Synced: func(time.Duration) { expected = append(expected, j.delay.expectedWaiters.Load()) }})
		stream := open(t, j, 0)
		send := func() { go stream.Append(Eager, 0, storetest.Sets("k", "v")).Wait() }
		s.Shut()
		send() // alone: of several the first may go before the others
		synctest.Wait()
		for range 4 { // while it is being made durable
			send()
		}
		synctest.Wait()
		s.Open()
		synctest.Wait()
		j.Close()
		if expected = append(expected, j.delay.expectedWaiters.Load()); !slices.Equal(expected, []int32{0, 5, 4}) {
			t.Errorf("expected are %v", expected)
		}
	})
}

// TestLongDelays: a replicated commit is delayed for longer unless that brings more callers.
func TestLongDelays(t *testing.T) {
	var l longDelay
	follow := func(commits int, expected func(long bool) int32) (long int) {
		for range commits {
			if l.next(expected(l.is)) {
				long++
			}
		}
		return long
	}
	closed := func(bool) int32 { return 250 } // each waits for its answer
	pausing := func(long bool) int32 {
		if long {
			return 40
		}
		return 30
	}
	const some = 10 * longUseful
	if got := follow(some, closed); got < some-10 {
		t.Errorf("%d of %d are long where as many callers come", got, some)
	}
	follow(2*longUseful, pausing) // fewer come now, which is noticed after a while
	if got := follow(some, pausing); got > 10 {
		t.Errorf("%d of %d are long where they bring more callers", got, some)
	}
	follow(2*skipMax, closed)
	if got := follow(some, closed); got < some-10 {
		t.Errorf("%d of %d are long where as many callers come again", got, some)
	}
	follow(1, func(bool) int32 { return 150 }) // one commit with fewer, as after a stall
	if got := follow(10, closed); got < 9 {
		t.Errorf("%d of 10 are long behind one with fewer callers", got)
	}
}

// TestFlushEndsADelay: nobody joins a commit that was flushed, and so it is not delayed further;
// whether the delay was in vain is not known.
func TestFlushEndsADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := Open(Options{Store: memory.New(), Replicated: true})
		defer j.Close()
		stream := open(t, j, 0)
		j.delay.expectedWaiters.Store(4 * delayManyWaiters)
		began := clock.System.Now()
		go stream.Append(Eager, 0, storetest.Sets("k", "v")).Wait()
		clock.System.AfterFunc(time.Millisecond, j.Flush)
		synctest.Wait()
		over, _ := clock.After(clock.System, 10*time.Millisecond)
		var took time.Duration
		stream.last.Load().Then(func() { took = clock.System.Now().Sub(began) })
		<-over
		synctest.Wait()
		if took != time.Millisecond || j.delay.none != (backoff{}) {
			t.Errorf("it took %s, and then %+v", took, j.delay.none)
		}
	})
}

// TestLastSync: the journal knows how long its latest commit took.
func TestLastSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storetest.Gated{Store: memory.New()}
		j := Open(Options{Store: s})
		defer j.Close()
		stream := open(t, j, 0)
		for _, took := range []time.Duration{5 * time.Millisecond, time.Millisecond} {
			s.Shut()
			clock.System.AfterFunc(took, s.Open)
			stream.Append(Eager, 0, storetest.Sets("k", "v")).Wait()
			if got := time.Duration(j.delay.lastSync.Load()); got != took {
				t.Errorf("it took %s, not %s", took, got)
			}
		}
	})
}

// TestDelayOfTheSameCommit: a commit that was waited for without success, as others had
// flushed it, can be waited for again.
func TestDelayOfTheSameCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := expecting(delayMinWaiters)
		c := j.open
		wait := func(n int) {
			for range n {
				go c.Wait()
			}
			synctest.Wait()
		}
		j.awaitMore()
		wait(delayMinWaiters)
		j.delay.expectedWaiters.Store(delayManyWaiters)
		j.delay.none = backoff{}
		j.awaitMore()
		wait(2 * delayManyWaiters)
		close(c.done)
	})
}

// TestReplicatedCommitDelay: a commit of several machines waits for most of those who are
// expected, and for longer, the more so where commits take long.
func TestReplicatedCommitDelay(t *testing.T) {
	const many = 8 * delayManyWaiters
	const enough = many - many/replicatedRest - 3
	for _, c := range []struct {
		name        string
		sync        time.Duration // what the latest took
		later       int
		after, want time.Duration
	}{
		{"nearly all come", time.Millisecond, enough, 2 * delayTime, 2 * delayTime},
		{"too few come", time.Millisecond, enough - 1, 2 * delayTime, replicatedMinTime},
		{"commits take longer", 3 * time.Millisecond, enough - 1, 2 * delayTime, 6 * time.Millisecond},
		{"all come in that time", 3 * time.Millisecond, enough, 5 * time.Millisecond, 5 * time.Millisecond},
		{"commits take very long", time.Second, enough - 1, 2 * delayTime, replicatedMaxTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := expecting(many)
				j.delay.replicated = true
				j.delay.lastSync.Store(int64(c.sync))
				if got := delayed(j, 3, c.later, c.after); got != c.want {
					t.Errorf("it took %s, not %s", got, c.want)
				}
			})
		})
	}
}

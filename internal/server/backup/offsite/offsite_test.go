package offsite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/outlet"
	"godwit.dev/godwit/internal/outlet/bucket"
	"godwit.dev/godwit/internal/server/backup"
)

// objects are a bucket in memory.
type objects struct {
	mu       sync.Mutex
	contents map[string][]byte
	modified map[string]time.Time
	puts     []string
	refused  error // what requests fail with
}

func newObjects() *objects {
	return &objects{contents: map[string][]byte{}, modified: map[string]time.Time{}}
}

func (o *objects) Put(_ context.Context, name outlet.Name, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refused != nil {
		return o.refused
	}
	o.contents[name.Key], o.modified[name.Key] = b.Bytes(), clock.System.Now()
	o.puts = append(o.puts, name.Key)
	return nil
}

func (o *objects) Get(_ context.Context, name outlet.Name) (io.ReadCloser, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p, ok := o.contents[name.Key]
	if !ok {
		return nil, errors.New("there is no " + name.Key)
	}
	return io.NopCloser(bytes.NewReader(p)), o.refused
}

func (o *objects) Each(_ context.Context, _, prefix string, f func(bucket.Object) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refused != nil {
		return o.refused
	}
	for _, key := range slices.Sorted(maps.Keys(o.contents)) {
		if strings.HasPrefix(key, prefix) {
			if err := f(bucket.Object{Key: key, Size: int64(len(o.contents[key])), Modified: o.modified[key]}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *objects) Delete(_ context.Context, name outlet.Name) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.contents, name.Key)
	return o.refused
}

// locked runs f while nobody else uses the bucket, nor the store that it is for.
func (o *objects) locked(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

// refuse has requests fail from now on; nil: not any more.
func (o *objects) refuse(err error) { o.locked(func() { o.refused = err }) }

// count is how many objects are below a key, and how many were put there since the last time.
func (o *objects) count(prefix string) (n, put int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.contents {
		if strings.HasPrefix(key, prefix) {
			n++
		}
	}
	for _, key := range o.puts {
		if strings.HasPrefix(key, prefix) {
			put++
		}
	}
	o.puts = slices.DeleteFunc(o.puts, func(key string) bool { return strings.HasPrefix(key, prefix) })
	return n, put
}

// files are a store: what a checkpoint has, by name.
type files map[string]string

// checkpoint writes them, in a directory below, too, with tables that keep their times.
func (f files) checkpoint(dir string) error {
	for name, text := range f {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		if isTable(name) {
			if err := os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)); err != nil {
				return err
			}
		}
	}
	return nil
}

func options(t *testing.T, o *objects, store *files) Options {
	return Options{
		Place: Place{Objects: o, Bucket: "b", Prefix: "p/"}, Data: t.TempDir(), Checkpoint: func(dir string) (err error) {
			o.locked(func() { err = store.checkpoint(dir) })
			return err
		},
		Interval: 20 * time.Second, Retention: 24 * time.Hour, Version: "v", RootKey: func() string { return "root" },
		Clock: clock.System, Logger: slog.New(slog.DiscardHandler),
	}
}

func start(t *testing.T, o Options) *Follower {
	t.Helper()
	f, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func stop(t *testing.T, f *Follower) {
	t.Helper()
	if err := f.Stop(); err != nil {
		t.Error(err)
	}
}

// contents reads a point, as a restore does.
func contents(t *testing.T, p Place, at time.Time) files {
	t.Helper()
	found, err := p.Find(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	m := found.Manifest()
	if m.RootKey != "root" || m.Version != "v" {
		t.Errorf("%+v", m)
	}
	all := files{}
	for _, f := range m.Files {
		in, err := found.Open(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err = errors.Join(err, in.Close()); err != nil || int64(len(text)) != f.Size {
			t.Errorf("%s: %d bytes of %d, %v", f.Name, len(text), f.Size, err)
		}
		all[f.Name] = string(text)
	}
	return all
}

func same(t *testing.T, got, want files) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%d files, want %d: %v", len(got), len(want), slices.Sorted(maps.Keys(got)))
	}
}

// sleep lets time pass.
func sleep(d time.Duration) { _ = clock.Wait(context.Background(), clock.System, d); synctest.Wait() }

// Each point is the store as it was, whole, and only what has changed since the one before is
// put into the bucket.
func TestPoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		log := strings.Repeat("0123456789abcdef", 3*pieceSize/16) // three pieces of the same contents
		first := files{"000001.sst": "one", "000002.blob": "two", "000003.log": log + "tail", "MANIFEST-1": "", "marks/x": "y"}
		store := maps.Clone(first)
		set := options(t, o, &store)
		f := start(t, set)
		synctest.Wait()
		same(t, contents(t, set.Place, time.Time{}), first)
		before := clock.System.Now()
		if n, put := o.count("p/pieces/"); n != 5 || put != 5 {
			t.Errorf("%d pieces, %d of them put", n, put)
		}
		o.locked(func() {
			store["000003.log"] += ", longer"
			store["000004.sst"] = "four"
			delete(store, "000001.sst")
		})
		second := maps.Clone(store)
		sleep(20 * time.Second)
		same(t, contents(t, set.Place, time.Time{}), second)
		if n, put := o.count("p/pieces/"); n != 7 || put != 2 {
			t.Errorf("%d pieces, %d of them put", n, put)
		}
		same(t, contents(t, set.Place, before), first)
		if _, err := set.Place.Find(t.Context(), before.Add(-time.Hour)); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
		stop(t, f)
		// A server that starts again continues with what is there.
		f = start(t, set)
		synctest.Wait()
		if _, put := o.count("p/pieces/"); put != 0 {
			t.Errorf("%d pieces put again", put)
		}
		stop(t, f)
		// One of another directory, whose tables are others, looks at each.
		o.locked(func() { store["000004.sst"] = "else" })
		set.Data = t.TempDir()
		sleep(time.Second)
		f = start(t, set)
		synctest.Wait()
		same(t, contents(t, set.Place, time.Time{}), store)
		stop(t, f)
		if left, _ := filepath.Glob(filepath.Join(set.Data, checkpointName)); len(left) > 0 {
			t.Error("a copy of the store is left")
		}
	})
}

// A point names the root key that its copy of the store is sealed with, also if that is rotated
// while it is made, before or after the store is read.
func TestRotatedMeanwhile(t *testing.T) {
	for what, before := range map[string]bool{"before": true, "after": false} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newObjects()
				store := files{"MANIFEST": "old"}
				set := options(t, o, &store)
				set.RootKey = func() (key string) {
					o.locked(func() { key = store["MANIFEST"] })
					return key
				}
				set.Checkpoint = func(dir string) (err error) {
					o.locked(func() {
						if before {
							store["MANIFEST"] = "new"
						}
						err = store.checkpoint(dir)
						store["MANIFEST"] = "new"
					})
					return err
				}
				f := start(t, set)
				synctest.Wait()
				stop(t, f)
				found, err := set.Place.Find(t.Context(), time.Time{})
				if err != nil {
					t.Fatal(err)
				}
				m := found.Manifest()
				in, err := found.Open(t.Context(), m.Files[0])
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(in)
				if err = errors.Join(err, in.Close()); err != nil || m.RootKey != string(text) {
					t.Errorf("sealed with %q, and the point names %q: %v", text, m.RootKey, err)
				}
			})
		})
	}
}

// Nothing of one that is stopped goes on behind its Stop, however little time that has: another
// one, of whoever owns the state then, may begin in the same directory. A point that is under way
// is not made.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		store := files{"000001.sst": "one", "MANIFEST": "1"}
		set := options(t, o, &store)
		first := start(t, set)
		sleep(time.Second)
		copied, release := set.Checkpoint, make(chan struct{})
		set.Checkpoint = func(dir string) error {
			<-release
			return copied(dir)
		}
		stop(t, first)
		_, _ = o.count("p/")
		f := start(t, set)
		synctest.Wait()
		stopped := make(chan error, 1)
		go func() { stopped <- f.Stop() }()
		synctest.Wait()
		select {
		case err := <-stopped:
			t.Errorf("it is stopped (%v), and makes a point", err)
			stopped <- nil
		default:
		}
		close(release)
		synctest.Wait()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if _, put := o.count("p/"); put > 0 {
			t.Errorf("%d objects are put by one that is stopped", put)
		}
		if left, _ := filepath.Glob(filepath.Join(set.Data, checkpointName)); len(left) > 0 {
			t.Error("a copy of the store is left")
		}
	})
}

// What is kept: all of an hour, one of each hour before that, none beyond the retention, and
// what these consist of.
func TestTrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		store := files{"000001.sst": "always"}
		n := 0
		set := options(t, o, &store)
		set.Interval = 5 * time.Minute
		set.Checkpoint = func(dir string) (err error) {
			o.locked(func() {
				n++
				store["MANIFEST"] = fmt.Sprint(n)
				err = store.checkpoint(dir)
			})
			return err
		}
		now := func() (copied files) {
			o.locked(func() { copied = maps.Clone(store) })
			return copied
		}
		f := start(t, set)
		sleep(72 * time.Hour)
		points, _ := o.count("p/points/")
		if points < 24+11 || points > 24+2*12+2 { // it is trimmed once an hour
			t.Errorf("%d points are kept", points)
		}
		if pieces, _ := o.count("p/pieces/"); pieces < points+1 || pieces > points+2*12+2 {
			t.Errorf("%d pieces are kept for %d points", pieces, points)
		}
		same(t, contents(t, set.Place, time.Time{}), now())
		old := clock.System.Now().Add(-23 * time.Hour)
		if got := contents(t, set.Place, old); got["000001.sst"] != "always" || got["MANIFEST"] == now()["MANIFEST"] {
			t.Errorf("a day ago %v was there", got)
		}
		// What the bucket has lost is put there again, with the next point behind a trim.
		o.locked(func() {
			for key := range o.contents {
				if string(o.contents[key]) == "always" {
					delete(o.contents, key)
				}
			}
		})
		sleep(2 * time.Hour)
		same(t, contents(t, set.Place, time.Time{}), now())
		stop(t, f)
	})
}

// A bucket that is away makes the points older, which is reported once it is too long, and nothing
// else; and ends with that.
func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		store := files{"MANIFEST": "1"}
		set := options(t, o, &store)
		var log bytes.Buffer
		set.Logger = slog.New(slog.NewTextHandler(&log, nil))
		f := start(t, set)
		synctest.Wait()
		failing := func() error { return f.Failing() }
		if err := failing(); err != nil {
			t.Error(err)
		}
		o.refuse(errors.New("away"))
		sleep(50 * time.Second)
		if err := failing(); err != nil {
			t.Error(err)
		}
		sleep(11 * time.Second)
		if err := failing(); err == nil || !strings.Contains(err.Error(), "nothing was backed up for 1m1s: away") {
			t.Error(err)
		}
		if m := f.Metrics(); m.Made != 1 || m.Failed != 3 || m.Interval != set.Interval || clock.System.Now().Sub(m.Point) != 61*time.Second {
			t.Errorf("%+v", m)
		}
		o.refuse(nil)
		o.locked(func() { store["MANIFEST"] = "2" })
		sleep(20 * time.Second)
		if err := failing(); err != nil {
			t.Error(err)
		}
		same(t, contents(t, set.Place, time.Time{}), store)
		stop(t, f)
		if n := strings.Count(log.String(), "\n"); n != 2 {
			t.Errorf("the log has %d lines:\n%s", n, log.String())
		}
	})
}

// wrong is a clock that is ahead.
type wrong struct {
	clock.Clock
	by time.Duration
}

func (w wrong) Now() time.Time { return w.Clock.Now().Add(w.by) }

// A machine's clock that was ahead for a while, or is behind, costs no backups: none is removed as
// too old, and the latest is the last that was made.
func TestWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		store := files{"MANIFEST": "0"}
		set := options(t, o, &store)
		made := func(by time.Duration, text string) Status {
			t.Helper()
			o.locked(func() { store["MANIFEST"] = text })
			set := set
			set.Clock = wrong{clock.System, by}
			f := start(t, set)
			sleep(time.Second)
			defer stop(t, f)
			return f.Status()
		}
		made(0, "good")
		good := clock.System.Now()
		made(10*365*24*time.Hour, "ahead")
		if got := contents(t, set.Place, time.Time{}); got["MANIFEST"] != "ahead" {
			t.Errorf("the latest is %v", got)
		}
		if got := contents(t, set.Place, good); got["MANIFEST"] != "good" {
			t.Errorf("from before the clock was wrong: %v", got)
		}
		made(-10*365*24*time.Hour, "behind")
		if got := contents(t, set.Place, time.Time{}); got["MANIFEST"] != "behind" {
			t.Errorf("the latest is %v", got)
		}
		if s := made(0, "right again"); s.Point.After(clock.System.Now()) {
			t.Errorf("the latest point is said to be of %v", s.Point)
		}
		if got := contents(t, set.Place, time.Time{}); got["MANIFEST"] != "right again" {
			t.Errorf("the latest is %v", got)
		}
		if got := contents(t, set.Place, good); got["MANIFEST"] != "good" {
			t.Errorf("from before the clock was wrong: %v", got)
		}
		made(10*365*24*time.Hour, "ahead once more")
		o.refuse(errors.New("away"))
		if s := made(0, "away"); s.Failing(clock.System.Now().Add(2*time.Minute)) == nil {
			t.Error("nothing is backed up, and nobody is told")
		}
	})
}

// Two servers at one place: the one that began last goes on, the other one makes no points and says
// why, since a restore would take either's, and goes on once the first has ended.
func TestTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		first, second := files{"MANIFEST": "first"}, files{"MANIFEST": "second"}
		set := options(t, o, &first)
		f := start(t, set)
		sleep(50 * time.Second)
		other := options(t, o, &second)
		s := start(t, other)
		sleep(5 * time.Minute)
		same(t, contents(t, set.Place, time.Time{}), second)
		if err := f.Failing(); err == nil || !strings.Contains(err.Error(), "another server") {
			t.Errorf("the first one says %v", err)
		}
		if err := s.Failing(); err != nil {
			t.Errorf("the second one says %v", err)
		}
		o.locked(func() { first["MANIFEST"] = "first, later" })
		stop(t, s)
		sleep(90 * time.Second)
		same(t, contents(t, set.Place, time.Time{}), first)
		if err := f.Failing(); err != nil {
			t.Errorf("alone again, the first one says %v", err)
		}
		stop(t, f)
	})
}

// A put that fails and is done is no other server's.
func TestUncertainPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		store := files{"MANIFEST": "1"}
		set := options(t, o, &store)
		set.Place.Objects = &uncertain{objects: o}
		f := start(t, set)
		sleep(5 * time.Minute)
		if s := f.Status(); s.Made < 5 || s.Failed < 5 || s.Problem != nil && errors.Is(s.Problem, errAnother) {
			t.Errorf("%+v", s)
		}
		stop(t, f)
	})
}

// uncertain has each second point put, and says that it was not.
type uncertain struct {
	*objects
	n int
}

func (u *uncertain) Put(ctx context.Context, name outlet.Name, write func(io.Writer) error) error {
	err := u.objects.Put(ctx, name, write)
	if strings.HasPrefix(name.Key, "p/points/") {
		if u.n++; u.n%2 == 0 {
			return errors.New("no answer")
		}
	}
	return err
}

// Who removes all that there is gets all of it again with the next point.
func TestEmptied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		store := files{"000001.sst": "one", "MANIFEST": "1"}
		set := options(t, o, &store)
		f := start(t, set)
		sleep(50 * time.Second)
		o.locked(func() { clear(o.contents) })
		sleep(20 * time.Second)
		same(t, contents(t, set.Place, time.Time{}), store)
		stop(t, f)
	})
}

// What is not as it was written is found: a point by its name, and pieces by what restores them.
func TestDamagedPoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		store := files{"MANIFEST": "1"}
		set := options(t, o, &store)
		f := start(t, set)
		synctest.Wait()
		first := clock.System.Now()
		sleep(20 * time.Second)
		stop(t, f)
		damage := func(number string) {
			for key, text := range o.contents {
				if strings.HasPrefix(key, "p/points/"+number) {
					text[len(text)-3] ^= 1
				}
			}
		}
		damage("2/")
		_, err := set.Place.Find(t.Context(), time.Time{})
		if !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), "--at "+first.UTC().Format(time.RFC3339)) {
			t.Errorf("of the latest: %v", err)
		}
		same(t, contents(t, set.Place, first), store)
		damage("1/")
		if _, err := set.Place.Find(t.Context(), first); !errors.Is(err, backup.ErrDamaged) || strings.Contains(err.Error(), "--at") {
			t.Errorf("of the only one: %v", err)
		}
	})
}

package function

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/sorted"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func named(name string) arn.ARN { return arn.Function("us-east-1", "000000000000", name) }

func config(timeout int) Config {
	return Config{Package: "Zip", Runtime: "provided.al2023", Handler: "h", Role: "r", TimeoutS: timeout, MemoryMB: 128, EphemeralMB: 512}
}

// disk is what the mutations of a state leave behind.
type disk map[string]string

func (d disk) apply(t *testing.T, b *mutation.Batch) {
	t.Helper()
	err := b.Each(func(op mutation.Op, key, value []byte) error {
		switch op {
		case mutation.Set:
			d[string(key)] = string(value)
		case mutation.Delete:
			delete(d, string(key))
		case mutation.DeleteRange:
			for k := range d {
				if k >= string(key) && k < string(value) {
					delete(d, k)
				}
			}
		default:
			return fmt.Errorf("unexpected write %d", op)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
}

func (d disk) load(t *testing.T, shard uint16) *State {
	t.Helper()
	s := New(shard)
	for _, prefix := range Prefixes(shard) {
		for key, value := range d {
			if len(key) >= len(prefix) && key[:len(prefix)] == string(prefix) {
				if err := s.Load([]byte(key), []byte(value)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return s
}

// internals compares all that a state holds.
var internals = cmp.Options{
	cmp.AllowUnexported(State{}, Function{}, Version{}, sorted.List[*Function]{}, sorted.List[*Version]{}, sorted.List[*Alias]{}, place{}),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Compare" }, cmp.Ignore()),
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(Version{}, "build"), cmpopts.IgnoreFields(State{}, "builds", "layerUse"), // of this run
}

// A random history leaves, after every command, records that give the same state
// again, and a command that is refused changes nothing. No version gets the number
// of another one, also of a deleted function.
func TestHistory(t *testing.T) {
	anew := false
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 0))
		s, d, now := New(3), disk{}, begin
		layers := map[arn.ARN]int{}
		s.CountLayers(func(layer arn.ARN, n int) {
			if layers[layer] += n; layers[layer] == 0 {
				delete(layers, layer)
			}
		})
		var b mutation.Batch
		pick := func(of ...string) string { return of[r.IntN(len(of))] }
		name := func() arn.ARN { return named(pick("a", "b", "c")) }
		version := func() string { return pick("1", "2", "3", "$LATEST") }
		ids := 0
		id := func() string { ids++; return fmt.Sprint("r", ids) }
		upload := func() Code {
			ids++
			return Code{Upload: uint64(ids), Size: int64(r.IntN(5)), SHA256: [32]byte{byte(r.IntN(3))}}
		}
		highest := map[arn.ARN]uint64{}
		for step := range 150 {
			var err error
			what := r.IntN(17)
			now = now.Add(time.Duration(r.IntN(2000)) * time.Millisecond)
			later := now.Add(time.Second)
			switch what {
			case 0, 1:
				f, last := name(), uint64(0)
				if record, ok := d[string(s.DeletedKey(f))]; ok {
					if last, err = DecodeDeleted([]byte(record)); err != nil || last == 0 {
						t.Fatal(last, err)
					}
					anew = true
				}
				_, _, err = s.Create(now, Create{
					ARN: f, Incarnation: uint64(step), Config: config(1), Code: upload(), Publish: r.IntN(2) == 0, Last: last,
					Revision: id(), ReadyRevision: id(), ReadyAt: later,
				}, &b)
			case 2, 3:
				code := upload()
				_, _, err = s.Update(now, Update{
					ARN: name(), Code: &code, Publish: r.IntN(2) == 0, Revision: id(), ReadyRevision: id(), ReadyAt: later,
					Change: func(c *Config) error {
						c.TimeoutS = r.IntN(3)
						c.Layers = []Layer{{ARN: arn.Layer("us-east-1", "000000000000", pick("k", "l")).LayerVersion(1)}}[r.IntN(2):]
						c.Environment = map[string]string{"A": id()}
						return nil
					},
				}, &b)
			case 4:
				_, _, err = s.Publish(now, Publish{ARN: name(), Revision: id(), Latest: id(), Token: []string{"", id()}[r.IntN(2)]}, &b)
			case 5:
				_, err = s.DeleteVersion(name(), version(), &b)
			case 6:
				_, err = s.CreateAlias(CreateAlias{Function: name(), Name: pick("x", "y"), Version: version(), Revision: id()}, &b)
			case 7:
				to := version()
				_, err = s.UpdateAlias(UpdateAlias{
					Function: name(), Name: pick("x", "y"), Version: &to, Routing: &Routing{Version: version(), Weight: 0.5}, Revision: id(),
				}, &b)
			case 8:
				err = s.DeleteAlias(name(), pick("x", "y"), &b)
			case 9:
				err = s.Permit(Permit{
					Function: name(), Qualifier: pick("", "1", "x", "$LATEST"), Revision: id(),
					Permission: Permission{Sid: pick("s", "t"), Effect: "Allow", Principal: []byte(`"*"`), Action: "a", Resource: "r"},
				}, &b)
			case 10:
				err = s.Forbid(Forbid{Function: name(), Qualifier: pick("", "1", "x"), Sid: pick("s", "t"), Revision: id()}, &b)
			case 11:
				n := r.IntN(100)
				err = s.Reserve(name(), &n, &b)
			case 12:
				err = errors.Join(s.Tag(name(), map[string]string{pick("k", "l"): id()}, id(), &b))
			case 13:
				_, err = s.CreateURL(now, CreateURL{Function: name(), Qualifier: pick("", "x"), ID: id(), Auth: pick(AuthNone, AuthIAM), CORS: []*CORS{nil, {}, {Origins: []string{"*"}}}[r.IntN(3)]}, &b)
			case 14:
				_, err = s.UpdateURL(now, UpdateURL{Function: name(), Qualifier: pick("", "x"), Auth: pick("", AuthNone), CORS: []*CORS{nil, {}, {Methods: []string{id()}}}[r.IntN(3)]}, &b)
			case 15:
				err = s.DeleteURL(name(), pick("", "x"), &b)
			default:
				if r.IntN(4) == 0 {
					_, err = s.Delete(name(), &b)
				} else {
					s.CompleteChanges(now, 10, &b)
				}
			}
			if err != nil && b.Len() > 0 {
				t.Fatalf("seed %d, step %d: command %d was refused (%v) and writes", seed, step, what, err)
			}
			d.apply(t, &b)
			again := d.load(t, 3)
			if diff := cmp.Diff(again, s, internals); diff != "" {
				t.Fatalf("seed %d, step %d, command %d, %v (-loaded +state):\n%s", seed, step, what, err, diff)
			}
			check(t, s)
			if !cmp.Equal(layers, layersOf(s)) {
				t.Fatalf("layers are counted as %v, and are %v", layers, layersOf(s))
			}
			for _, f := range s.All() {
				if f.last < highest[f.ARN] {
					t.Fatalf("seed %d, step %d, command %d: the next version of %s is %d again", seed, step, what, f.ARN, f.last+1)
				}
				highest[f.ARN] = f.last
				if _, ok := d[string(s.DeletedKey(f.ARN))]; ok {
					t.Fatalf("seed %d, step %d, command %d: %s is there, and what its deletion has left", seed, step, what, f.ARN)
				}
			}
		}
	}
	if !anew {
		t.Error("no function with versions was deleted and made anew")
	}
}

// layersOf are the layers that the functions of a state have, with how many versions have each.
func layersOf(s *State) map[arn.ARN]int {
	layers := map[arn.ARN]int{}
	for _, f := range s.order.Items {
		for _, v := range f.all() {
			for _, l := range v.Config.Layers {
				layers[l.ARN]++
			}
		}
	}
	return layers
}

// check holds a state against what it counts.
func check(t *testing.T, s *State) {
	t.Helper()
	var sum Usage
	urls := map[string]urlOwner{}
	for _, f := range s.order.Items {
		used := map[uint64]int{}
		for _, v := range f.all() {
			used[v.Code.Upload]++
		}
		for qualifier, u := range f.urls {
			urls[u.ID] = urlOwner{f.ARN, qualifier}
		}
		if !cmp.Equal(used, f.uploads) {
			t.Fatalf("%s counts the uploads %v, has %v", f.ARN, f.uploads, used)
		}
		sum.Add(Usage{Functions: 1, CodeBytes: f.CodeSize()})
		if f.Reserved != nil {
			sum.Reserved += *f.Reserved
		}
	}
	if !cmp.Equal(urls, s.urls) {
		t.Fatalf("URLs are found by %v, and are %v", s.urls, urls)
	}
	if got := s.Usage("000000000000", "us-east-1"); got != sum {
		t.Fatalf("usage is %+v, want %+v", got, sum)
	}
}

// What an upload is dropped for is that no version has it any more.
func TestUnusedUploads(t *testing.T) {
	s, now := New(0), begin
	var b mutation.Batch
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := s.Create(now, Create{ARN: named("f"), Config: config(1), Code: Code{Upload: 1, Size: 1}, Publish: true, ReadyAt: now}, &b)
	must(err)
	s.CompleteChanges(now, 1, &b)
	_, _, err = s.Update(now, Update{ARN: named("f"), Code: &Code{Upload: 2, Size: 1}, ReadyAt: now}, &b)
	must(err)
	if gone := s.CompleteChanges(now, 1, &b); len(gone) > 0 {
		t.Errorf("%v are dropped, though a version has the first", gone)
	}
	gone, err := s.DeleteVersion(named("f"), "1", &b)
	must(err)
	if !cmp.Equal(gone, []uint64{1}) {
		t.Errorf("%v are dropped with the version", gone)
	}
	_, _, err = s.Update(now, Update{ARN: named("f"), Code: &Code{Upload: 3, Size: 1}, ReadyAt: now}, &b)
	must(err)
	if gone := s.CompleteChanges(now, 1, &b); !cmp.Equal(gone, []uint64{2}) {
		t.Errorf("%v are dropped by the update", gone)
	}
}

// A publication that is repeated under its token finds what it made, whatever else was done since;
// another one makes a version of what has changed.
func TestPublishAgain(t *testing.T) {
	s, now := New(0), begin
	var b mutation.Batch
	f := named("f")
	publish := func(want uint64, token string) {
		t.Helper()
		_, v, err := s.Publish(now, Publish{ARN: f, Token: token}, &b)
		if err != nil || v.Number != want {
			t.Fatalf("%q: version %+v, %v", token, v, err)
		}
	}
	update := func() {
		t.Helper()
		if _, _, err := s.Update(now, Update{ARN: f, Change: func(c *Config) error { c.TimeoutS++; return nil }, ReadyAt: now}, &b); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Create(now, Create{ARN: f, Config: config(1), ReadyAt: now}, &b); err != nil {
		t.Fatal(err)
	}
	s.CompleteChanges(now, 1, &b)
	publish(1, "one")
	publish(1, "two") // nothing has changed
	update()
	publish(1, "one") // though an update is under way
	s.CompleteChanges(now, 1, &b)
	publish(1, "one")
	publish(2, "two")
	update()
	s.CompleteChanges(now, 1, &b)
	publish(3, "")
	publish(2, "two")
	publish(1, "one")
}

// An alias shares invocations out by the draw, and what is pending serves nobody.
func TestResolve(t *testing.T) {
	s, now := New(0), begin
	var b mutation.Batch
	f := named("f")
	if _, _, err := s.Create(now, Create{ARN: f, Config: config(1), Publish: true, ReadyAt: now.Add(1)}, &b); err != nil {
		t.Fatal(err)
	}
	for _, qualifier := range []string{"", "$LATEST", "1"} {
		if _, err := s.Resolve(f, qualifier, 0); fault.KindOf(err) != fault.ResourceConflict {
			t.Errorf("pending, %q: %v", qualifier, err)
		}
	}
	s.CompleteChanges(now.Add(1), 1, &b)
	update := Update{ARN: f, Publish: true, Change: func(c *Config) error { c.TimeoutS = 2; return nil }, ReadyAt: now.Add(2)}
	if _, _, err := s.Update(now, update, &b); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Resolve(f, "", 0); err != nil || got.Timeout != time.Second {
		t.Errorf("during an update: %v, %v", got.Timeout, err)
	}
	s.CompleteChanges(now.Add(2), 1, &b)
	if _, err := s.CreateAlias(CreateAlias{Function: f, Name: "live", Version: "1", Routing: Routing{Version: "2", Weight: 0.25}}, &b); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		qualifier string
		draw      float64
		version   string
		arn       string
	}{
		{"", 0, "$LATEST", ""},
		{"$LATEST", 0, "$LATEST", ":$LATEST"},
		{"1", 0, "1", ":1"},
		{"live", 0, "2", ":live"},
		{"live", 0.2499, "2", ":live"},
		{"live", 0.25, "1", ":live"},
		{"live", 0.9999, "1", ":live"},
	} {
		got, err := s.Resolve(f, tc.qualifier, tc.draw)
		if err != nil || got.Version != tc.version || got.ARN().String() != f.String()+tc.arn {
			t.Errorf("%s with %v: version %s of %s, %v", tc.qualifier, tc.draw, got.Version, got.ARN(), err)
		}
	}
	for _, qualifier := range []string{"3", "none", "01", "+1", "0", "-1"} {
		if _, err := s.Resolve(f, qualifier, 0); err == nil || err.Error() != "function: not found: "+f.String()+":"+qualifier {
			t.Errorf("%s: %v", qualifier, err)
		}
	}
	if _, err := s.Resolve(named("g"), "", 0); err == nil || err.Error() != "function: not found: "+named("g").String()+":$LATEST" {
		t.Errorf("another function: %v", err)
	}
}

func TestUnreadableRecords(t *testing.T) {
	for _, tc := range [][2]string{
		{"", ""},
		{"\x00\x00Lf000000000000/us-east-1/f", ""},
		{"\x00\x00Lf000000000000/us-east-1/f", "\x02{}"},
		{"\x00\x00Lf000000000000/us-east-1/f", "\x01{}"},
		{"\x00\x00Lf000000000000/us-east-1/f", "\x01{"},
		{"\x00\x01Lf000000000000/us-east-1/f", "\x01{}"},
		{"\x00\x00Lf000000000000/f", "\x01{}"},
		{"\x00\x00Lv000000000000/us-east-1/f\x00\x00\x00\x00\x00\x00\x00\x00\x01", "\x01{}"},
		{"\x00\x00Lq000000000000/us-east-1/f\x00x", "\x01{}"},
	} {
		if err := New(0).Load([]byte(tc[0]), []byte(tc[1])); !errors.Is(err, ErrRecord) {
			t.Errorf("%q: %v", tc, err)
		}
	}
}

// A thousand functions that nobody calls cost what their records do.
func TestIdleFunctionsCostLittle(t *testing.T) {
	const functions, most = 1000, 4 << 10 // bytes each
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	s := New(0)
	before := heap()
	for i := range functions {
		var b mutation.Batch
		cmd := Create{
			ARN: named(fmt.Sprint("function-", i)), Config: config(3), Code: Code{Upload: uint64(i + 1), Size: 1 << 20},
			Publish: true, Tags: map[string]string{"k": "v"}, ReadyAt: begin,
		}
		cmd.Config.Environment = map[string]string{"NAME": fmt.Sprint("value ", i)}
		if _, _, err := s.Create(begin, cmd, &b); err != nil {
			t.Fatal(err)
		}
	}
	each := (heap() - before) / functions
	t.Logf("%d bytes each", each)
	if each > most {
		t.Errorf("an idle function with one version takes %d bytes, at most %d are wanted", each, most)
	}
	runtime.KeepAlive(s)
}
